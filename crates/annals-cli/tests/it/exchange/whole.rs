//! An output is whole, or it isn't there; and nothing is replaced that wasn't to be.

use std::path::Path;

use super::formats;
use crate::program::{run, succeed};

/// Runs the program, which must fail; returns what it says.
fn refused(dir: &Path, arguments: &[&str]) -> String {
    let output = run(dir, arguments, b"");
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn names(dir: &Path) -> Vec<String> {
    let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

const SCRIPT: &str = "create_table t\nadd_field t x int32\nadd_field t b blob\nwrite_blob \"some bytes\"\n\
    insert t 1 blob:1\ninsert t 2 null\ninsert t 3 blob:1\n";

#[test]
fn what_is_there_stays() {
    let dir = tempfile::tempdir().unwrap();
    succeed(dir.path(), &["shell", "a.annals"], SCRIPT);
    for (format, _) in formats().filter(|(format, _)| *format != "csv") {
        let out = format!("a.{format}");
        std::fs::write(dir.path().join(&out), "mine").unwrap();
        let said = refused(dir.path(), &["export", format, "a.annals", &out]);
        assert!(said.contains("say --replace"), "{said}");
        assert_eq!(std::fs::read(dir.path().join(&out)).unwrap(), b"mine");
        succeed(dir.path(), &["export", format, "a.annals", &out, "--replace"], "");
        let said = refused(dir.path(), &["import", format, &out, "a.annals"]);
        assert!(said.contains("there is such a file already"), "{said}");
    }
    assert!(succeed(dir.path(), &["check", "a.annals"], "").contains("3 rows"));
}

#[test]
fn no_database_is_replaced_by_an_export() {
    let dir = tempfile::tempdir().unwrap();
    let copies = ["schema.annals", "b.annals", "b.annals-segment-000000", "z.annals"];
    succeed(dir.path(), &["shell", "schema.annals"], SCRIPT);
    succeed(dir.path(), &["shell", "b.annals"], SCRIPT);
    succeed(dir.path(), &["backfill", "b.annals", "--mode", "restart"], "");
    let has_zstd = cfg!(feature = "zstd");
    if has_zstd {
        succeed(dir.path(), &["convert", "schema.annals", "z.annals", "--compress"], "");
    }
    let read = |name: &str| std::fs::read(dir.path().join(name)).ok();
    let before = copies.map(read);
    let targets = copies.into_iter().filter(|name| has_zstd || *name != "z.annals");
    for out in targets {
        let replacing = [
            ("json", "--replace"),
            ("ndjson", "--replace"),
            ("sqlite", "--replace"),
            ("joedb", "--force"),
        ];
        for (format, replace) in replacing {
            if format != "sqlite" || cfg!(feature = "sqlite") {
                let said = refused(dir.path(), &["export", format, "schema.annals", out, replace]);
                assert!(said.contains("it is a database; choose another name"), "{said}");
            }
        }
    }
    for arguments in [["export", "csv", "b.annals", "."], ["export", "csv", "schema.annals", "."]] {
        let said = refused(dir.path(), &arguments);
        assert!(said.contains("it is a database; choose another name"), "{said}");
    }
    assert_eq!(copies.map(read), before);
}

#[cfg(target_os = "linux")]
#[test]
fn csv_files_appear_together_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let script = format!("{SCRIPT}create_table u\nadd_field u x int32\ninsert u 1\n");
    succeed(dir.path(), &["shell", "a.annals"], &script);
    std::fs::create_dir(dir.path().join("there")).unwrap();
    std::os::unix::fs::symlink("/dev/full", dir.path().join("there/u.csv")).unwrap();
    refused(dir.path(), &["export", "csv", "a.annals", "there"]);
    assert_eq!(names(&dir.path().join("there")), ["u.csv"]);
    let program = env!("CARGO_BIN_EXE_annals");
    let line = format!("ulimit -f 0; trap '' XFSZ; exec {program} export csv a.annals new");
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &line]).current_dir(dir.path()).stderr(std::process::Stdio::null());
    assert_eq!(shell.status().unwrap().code(), Some(1));
    assert_eq!(names(dir.path()), ["a.annals", "there"]);
}

#[test]
fn nothing_to_read_and_nowhere_to_write_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    succeed(dir.path(), &["shell", "a.annals"], SCRIPT);
    std::fs::create_dir(dir.path().join("empty")).unwrap();
    let said = refused(dir.path(), &["import", "csv", "empty", "b.annals"]);
    assert!(said.contains("no file there ends with .csv"), "{said}");
    std::fs::create_dir(dir.path().join("half")).unwrap();
    std::fs::write(dir.path().join("half/schema.annals"), "create_table t\n").unwrap();
    let said = refused(dir.path(), &["import", "csv", "half", "b.annals"]);
    assert!(said.contains("no file for table t"), "{said}");
    #[cfg(all(target_os = "linux", feature = "sqlite"))]
    refused(dir.path(), &["export", "sqlite", "a.annals", "/dev/null"]);
    assert_eq!(names(dir.path()), ["a.annals", "empty", "half"]);
}

#[test]
fn a_file_that_was_cut_off_gives_nothing() {
    let dir = tempfile::tempdir().unwrap();
    succeed(dir.path(), &["shell", "a.annals"], SCRIPT);
    for format in ["json", "ndjson"] {
        let out = format!("a.{format}");
        succeed(dir.path(), &["export", format, "a.annals", &out], "");
        let whole = std::fs::read(dir.path().join(&out)).unwrap();
        let end = whole.len() - 1;
        for len in (0..end).step_by(3).chain([end - 1]) {
            std::fs::write(dir.path().join("cut"), &whole[..len]).unwrap();
            let output = run(dir.path(), &["import", format, "cut", "b.annals"], b"");
            if output.status.success() {
                // Before the schema ends nothing tells that it is one of ours; nothing at all is no row.
                assert!(format == "ndjson" && len == 0, "{len}");
                std::fs::remove_file(dir.path().join("b.annals")).unwrap();
            }
            let expected: Vec<String> = ["a.annals", "a.json", "a.ndjson", "cut"]
                .into_iter()
                .filter(|name| format == "ndjson" || *name != "a.ndjson")
                .map(str::to_owned)
                .collect();
            assert_eq!(names(dir.path()), expected, "{format} cut at {len}");
        }
    }
}

#[test]
fn no_flipped_bit_makes_a_half_database() {
    let dir = tempfile::tempdir().unwrap();
    succeed(dir.path(), &["shell", "a.annals"], SCRIPT);
    for (format, _) in formats() {
        let out = format!("a.{format}");
        succeed(dir.path(), &["export", format, "a.annals", &out], "");
        let path =
            dir.path().join(if format == "csv" { "a.csv/t.csv".to_owned() } else { out.clone() });
        let whole = std::fs::read(&path).unwrap();
        for at in (0..whole.len()).step_by(whole.len().div_ceil(60)) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            std::fs::write(&path, bytes).unwrap();
            let output = run(dir.path(), &["import", format, &out, "b.annals"], b"");
            let is_there = dir.path().join("b.annals").exists();
            match output.status.code() {
                // Some flips make another text, or change what nobody reads.
                Some(0) => {
                    assert!(
                        is_there
                            && succeed(dir.path(), &["check", "b.annals"], "").starts_with("ok: ")
                    );
                    std::fs::remove_file(dir.path().join("b.annals")).unwrap();
                }
                status => assert!(status == Some(1) && !is_there, "{format} at {at}: {output:?}"),
            }
        }
        let left = names(dir.path()).into_iter().filter(|name| name.contains("import"));
        assert_eq!(left.count(), 0);
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn a_damaged_database_of_sqlite_gives_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let mut script = SCRIPT.to_owned();
    for x in 0..2000 {
        script += &format!("insert t {x} null\n");
    }
    succeed(dir.path(), &["shell", "a.annals"], &script);
    succeed(dir.path(), &["export", "sqlite", "a.annals", "a.sqlite"], "");
    let whole = std::fs::read(dir.path().join("a.sqlite")).unwrap();
    for len in [0, 10, 100, 4096, 5000, whole.len() - 4096] {
        std::fs::write(dir.path().join("cut.sqlite"), &whole[..len]).unwrap();
        let output = run(dir.path(), &["import", "sqlite", "cut.sqlite", "b.annals"], b"");
        if len == 0 {
            // To SQLite an empty file is an empty database.
            assert!(output.status.success());
            std::fs::remove_file(dir.path().join("b.annals")).unwrap();
            continue;
        }
        assert_eq!(output.status.code(), Some(1), "{len}");
        assert_eq!(names(dir.path()), ["a.annals", "a.sqlite", "cut.sqlite"], "{len}");
    }
}
