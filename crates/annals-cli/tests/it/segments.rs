//! Databases of several segments, and what lies beside them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::program::{run, succeed};

/// Makes a database of three segments.
fn three(dir: &Path) {
    let mut script =
        "create_table t\nadd_field t a int64\nadd_field t s string\ncommit\n".to_owned();
    for row in 0..30 {
        writeln!(script, "insert t {row} \"row {row}\"").unwrap();
        if row % 5 == 4 {
            script.push_str("commit\n");
        }
        if row == 9 || row == 19 {
            script.push_str("backfill restart\n");
        }
    }
    succeed(dir, &["shell", "a.annals"], &script);
}

/// Reads all files of a folder.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
    entries
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect()
}

/// Runs a command that has to be refused, and returns what it says.
fn refused(dir: &Path, arguments: &[&str]) -> String {
    let before = files(dir);
    let output = run(dir, arguments, b"create_table more\n");
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
    assert!(files(dir) == before, "{arguments:?} changed something: {error}");
    error
}

#[test]
fn a_kept_segment_is_never_written_by_its_own_name() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    three(dir);
    succeed(dir, &["backup", "a.annals", "other.annals"], "");
    fs::write(dir.join("rows.csv"), "a,s\n1,x\n").unwrap();
    for kept in ["a.annals-segment-000000", "a.annals-segment-000001"] {
        for arguments in [
            &["shell", kept][..],
            &["shell", "--shared", kept],
            &["backfill", kept],
            &["backfill", kept, "--mode", "restart"],
            &["recover", kept, "--yes"],
            &["recover", kept, "--dry-run"],
            &["recover", kept, "--to", "hard", "--yes"],
            &["retain", kept, "--transactions", "1"],
            &["erase", kept, "t", "0", "--yes"],
            &["pack", kept],
            &["push", "a.annals", kept],
            &["push", "other.annals", kept],
            &["merge", kept, "other.annals"],
            &["import", "csv", "rows.csv", kept, "--table", "t"],
            &["import", "changes", "rows.csv", kept],
            &["backup", "a.annals", kept],
            &["pack", "a.annals", kept],
            &["convert", "a.annals", kept],
            &["export", "json", "a.annals", kept, "--replace"],
            &["recover", "a.annals", "--salvage", kept],
        ] {
            let error = refused(dir, arguments);
            // Where a new file is to be made, any file of that name is in the way.
            let is_taken = error.contains("there is such a file already")
                || error.contains("it is a database");
            let says = error.contains("of the database a.annals");
            assert!(says || is_taken || arguments[0] == "import", "{arguments:?}: {error}");
        }
    }
    succeed(dir, &["check", "a.annals"], "");
    assert!(succeed(dir, &["log", "a.annals-segment-000000"], "").contains("row 9"), "it is read");

    // Without the newest one a sealed segment isn't taken for a database either.
    fs::rename(dir.join("a.annals"), dir.join("elsewhere")).unwrap();
    let error = refused(dir, &["shell", "a.annals-segment-000001"]);
    assert!(error.contains("of the database a.annals, sealed"), "{error}");
}

#[test]
fn another_database_whose_name_looks_like_a_segment_is_written_and_never_removed() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let names = ["a", "a-segment-000000", "a-image", "a-image-damaged"];
    for name in names {
        let script =
            format!("create_table t\nadd_field t s string\ninsert t \"precious {name}\"\n");
        succeed(dir, &["shell", name], &script);
    }
    let shell = run(dir, &["shell", "a"], b"insert t \"x\"\n");
    let note = String::from_utf8(shell.stderr).unwrap();
    assert!(shell.status.success() && note.contains("a-image: is a database"), "{note}");
    succeed(dir, &["backfill", "a-segment-000000"], "");
    let backfill = run(dir, &["backfill", "a"], b"");
    let error = String::from_utf8(backfill.stderr).unwrap();
    assert!(error.contains("a-image: is a database") && error.contains("move it"), "{error}");
    let plan = succeed(dir, &["erase", "a", "t", "0", "--dry-run"], "");
    let done = succeed(dir, &["erase", "a", "t", "0", "--yes"], "");
    assert_eq!(done, plan.replace("would be ", ""));
    for name in &names[1..] {
        assert!(done.contains(&format!("left: {name}, which isn't proven")), "{done}");
        let dump = succeed(dir, &["dump", name], "");
        assert!(dump.contains(&format!("precious {name}")), "{dump}");
    }
}

/// Lets a command run with a small limit of open files.
#[cfg(target_os = "linux")]
fn limited(dir: &Path, arguments: &[&str]) -> std::process::Output {
    let annals = env!("CARGO_BIN_EXE_annals");
    let command = format!("ulimit -n 96; exec '{annals}' {}", arguments.join(" "));
    std::process::Command::new("sh").args(["-c", &command]).current_dir(dir).output().unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn more_segments_than_files_may_be_open_are_read_and_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let mut script = "create_table t\nadd_field t a int64\ncommit\n".to_owned();
    for row in 0..150 {
        write!(script, "insert t {row}\ncommit\nbackfill restart\n").unwrap();
    }
    let made = limited(dir, &["shell", "s", "< /dev/null"]);
    assert!(made.status.success(), "{made:?}");
    succeed(dir, &["shell", "s"], &script);
    assert!(files(dir).len() > 150);
    for command in [
        "check s",
        "log s",
        "info s",
        "history s t 5",
        "dump s --at txid:50",
        "backup s copy",
        "push s pushed",
        "recover s --salvage salvaged",
        "erase s t 3 --dry-run",
        "pack s packed",
        "convert s converted",
        "retain s --transactions 1",
        "pack s",
        "check s",
    ] {
        let output = limited(dir, &[command]);
        let (error, status) = (String::from_utf8_lossy(&output.stderr), output.status.code());
        assert_eq!(status, Some(0), "annals {command}: {error}");
    }
    assert!(files(dir).keys().filter(|name| name.starts_with("s-segment-")).count() < 3);
    assert_eq!(succeed(dir, &["dump", "copy"], "").matches("insert_at").count(), 150);
}

/// That a file can't be opened is no damage.
#[test]
#[cfg(target_os = "linux")]
fn what_cannot_be_opened_is_not_called_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    three(dir);
    // Anybody is somebody who may not read a directory as a file.
    fs::remove_file(dir.join("a.annals-segment-000001")).unwrap();
    std::os::unix::fs::symlink("a.annals-segment-000001", dir.join("a.annals-segment-000001"))
        .unwrap();
    let output = run(dir, &["check", "a.annals"], b"");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
}
