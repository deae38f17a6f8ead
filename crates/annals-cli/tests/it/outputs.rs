//! Outputs and the kinds of files that may be in their place: a database never goes, and no link leads astray.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::program::{annals, run, succeed};

const SCRIPT: &str = "create_table t\nadd_field t s string\ninsert t \"precious\"\n";

/// What writes a file by its name, which comes last.
fn outputs() -> Vec<Vec<&'static str>> {
    let mut outputs = vec![
        vec!["export", "json", "--replace", "b"],
        vec!["export", "ndjson", "--replace", "b"],
        vec!["export", "joedb", "--force", "b"],
        vec!["backup", "b"],
        vec!["pack", "b"],
        vec!["convert", "b"],
        vec!["recover", "b", "--salvage"],
        vec!["compile", "s.schema", "-o"],
        vec!["import", "json", "b.json"],
    ];
    if cfg!(feature = "sqlite") {
        outputs.push(vec!["export", "sqlite", "--replace", "b"]);
    }
    outputs
}

fn prepare() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    succeed(dir, &["shell", "b"], "create_table t\n");
    succeed(dir, &["shell", "a"], SCRIPT);
    succeed(dir, &["export", "json", "b", "b.json"], "");
    fs::write(dir.join("s.schema"), "create_table t\n").unwrap();
    folder
}

fn write(dir: &Path, output: &[&str], target: &str) -> Output {
    let mut command = annals(dir, output);
    command.arg(target).stdin(Stdio::null()).output().unwrap()
}

fn refuses(dir: &Path, output: &[&str], target: &str) -> String {
    let done = write(dir, output, target);
    let errors = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(1), "{output:?} {target}: {errors}");
    assert!(errors.starts_with("error: "), "{output:?} {target}: {errors}");
    errors
}

fn is_precious(dir: &Path, name: &str) -> bool {
    succeed(dir, &["dump", name], "").contains("precious")
}

#[test]
fn a_database_is_never_replaced() {
    let folder = prepare();
    let dir = folder.path();
    symlink("a", dir.join("link")).unwrap();
    symlink("link", dir.join("chain")).unwrap();
    for output in outputs() {
        for target in ["a", "link", "chain", "./a"] {
            refuses(dir, &output, target);
            assert!(is_precious(dir, "a"), "{output:?} {target}");
        }
    }
    // Not even one that is damaged.
    let mut bytes = fs::read(dir.join("a")).unwrap();
    bytes[..64].fill(0xFF);
    fs::write(dir.join("a"), &bytes).unwrap();
    for output in outputs() {
        refuses(dir, &output, "a");
        assert_eq!(fs::read(dir.join("a")).unwrap(), bytes, "{output:?}");
    }
}

#[test]
fn a_file_is_replaced_only_if_that_is_said() {
    let folder = prepare();
    let dir = folder.path();
    fs::write(dir.join("file"), "mine").unwrap();
    symlink("file", dir.join("link")).unwrap();
    for format in ["json", "ndjson", "joedb", "sqlite"] {
        if format == "sqlite" && !cfg!(feature = "sqlite") {
            continue;
        }
        for target in ["file", "link"] {
            let errors = refuses(dir, &["export", format, "b"], target);
            assert!(errors.contains("there is such a file already"), "{format}: {errors}");
            assert_eq!(fs::read(dir.join("file")).unwrap(), b"mine");
        }
    }
    assert!(write(dir, &["export", "json", "--replace", "b"], "link").status.success());
    assert!(fs::symlink_metadata(dir.join("link")).unwrap().is_symlink());
    assert!(fs::read_to_string(dir.join("file")).unwrap().contains("schema"));
}

#[test]
fn what_is_no_file_stays_what_it_is() {
    let folder = prepare();
    let dir = folder.path();
    fs::create_dir(dir.join("folder")).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(dir.join("socket")).unwrap();
    for output in outputs() {
        for target in ["folder", "folder/", "socket", "folder/."] {
            refuses(dir, &output, target);
        }
        assert_eq!(fs::read_dir(dir.join("folder")).unwrap().count(), 0, "{output:?}");
        assert!(fs::symlink_metadata(dir.join("socket")).unwrap().file_type().is_socket());
    }
    drop(socket);
    // A pipe takes what is written in one go.
    assert!(Command::new("mkfifo").arg(dir.join("pipe")).status().unwrap().success());
    for format in ["json", "ndjson"] {
        let mut command = annals(dir, &["export", format, "b", "pipe"]);
        let mut child = command.spawn().unwrap();
        let text = fs::read_to_string(dir.join("pipe")).unwrap();
        assert!(child.wait().unwrap().success());
        assert!(text.contains("create_table t"), "{format}: {text}");
    }
    assert!(fs::symlink_metadata(dir.join("pipe")).unwrap().file_type().is_fifo());
    assert!(write(dir, &["export", "json", "b"], "/dev/null").status.success());
}

#[test]
fn no_guessed_name_is_followed_to_another_file() {
    let folder = prepare();
    let dir = folder.path();
    fs::write(dir.join("victim"), "precious").unwrap();
    // The shell becomes the program, whose number it knows: so any name that is made of it is taken.
    for (command, out) in [
        ("export json b out.json", "out.json"),
        ("compile s.schema -o out.rs", "out.rs"),
        ("man pages", "pages/annals.1"),
    ] {
        fs::create_dir_all(dir.join("pages")).unwrap();
        let (parent, name) =
            out.rsplit_once('/').map_or((".", out), |(parent, name)| (parent, name));
        let line = format!(
            "for t in .{name}.$$.tmp {name}.$$ .{name}.tmp {name}.tmp; do ln -s \"$PWD/victim\" {parent}/$t; done; exec \
             '{}' {command}",
            env!("CARGO_BIN_EXE_annals")
        );
        let done = Command::new("sh").arg("-c").arg(line).current_dir(dir).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert_eq!(fs::read_to_string(dir.join("victim")).unwrap(), "precious", "{command}");
        assert!(fs::symlink_metadata(dir.join(out)).unwrap().is_file(), "{command}");
    }
}

#[test]
fn a_table_with_a_long_name_is_exported_and_imported() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let names = ["x".repeat(255), format!("{}y", "x".repeat(254)), "X".repeat(255)];
    let script: String = names
        .iter()
        .enumerate()
        .map(|(row, name)| {
            format!("create_table {name}\nadd_field {name} a int32\ninsert {name} {row}\n")
        })
        .collect();
    succeed(dir, &["shell", "a"], &script);
    succeed(dir, &["export", "csv", "a", "csv"], "");
    succeed(dir, &["import", "csv", "csv", "b"], "");
    assert_eq!(succeed(dir, &["dump", "a"], ""), succeed(dir, &["dump", "b"], ""));
}

#[test]
fn a_path_need_not_be_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let sub = dir.join(OsStr::from_bytes(b"d\xff"));
    fs::create_dir(&sub).unwrap();
    let name = OsStr::from_bytes(b"a\xe9.annals");
    let annals = |arguments: &[&str], more: &[&OsStr]| {
        let output = annals(&sub, arguments).args(more).stdin(Stdio::null()).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    succeed(&sub, &["shell", "plain"], SCRIPT);
    annals(&["backup", "plain"], &[name]);
    annals(&["backfill", "--mode", "restart"], &[name]);
    assert!(annals(&["check", "--replay"], &[name]).starts_with("ok: "));
    annals(&["export", "json"], &[name, OsStr::from_bytes(b"\xe9.json")]);
    annals(&["import", "json"], &[OsStr::from_bytes(b"\xe9.json"), OsStr::from_bytes(b"\xe8")]);
    annals(&["pack"], &[name]);
    assert!(annals(&["dump"], &[name]).contains("precious"));
    assert!(annals(&["dump"], &[OsStr::from_bytes(b"\xe8")]).contains("precious"));
    let found: Vec<_> =
        fs::read_dir(&sub).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let image = OsStr::from_bytes(b"a\xe9.annals-image");
    assert!(found.iter().any(|found| found == image), "{found:?}");
    let temporary = |found: &OsStr| found.to_string_lossy().ends_with(".tmp");
    assert!(!found.iter().any(|found| temporary(found)), "{found:?}");
}

#[test]
fn a_path_that_ends_as_a_directory_makes_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    for path in ["sub/", "./sub/", "sub/.", ":memory:"] {
        let refused = run(dir, &["shell", path], b"create_table t\n");
        assert_eq!(refused.status.code(), Some(1), "{path}");
        assert_eq!(fs::read_dir(dir).unwrap().count(), 0, "{path}");
    }
    let told = run(dir, &["shell", ":memory:"], b"");
    assert!(String::from_utf8_lossy(&told.stderr).contains("Database::in_memory()"));
    succeed(dir, &["shell", "./:memory:"], "create_table t\n");
}
