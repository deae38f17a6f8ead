//! Databases of SQLite that a program left open, or that lie where nobody may write.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;

use rusqlite::Connection;

use crate::program::{annals, feed, succeed};

const NOBODY: u32 = 65534;

/// Imports `read/a.sqlite` as a user who may only write to `write`; returns what the program said.
fn import_as_nobody(dir: &Path) -> Result<String, String> {
    for (name, mode) in [("", 0o755), ("read", 0o555), ("write", 0o777)] {
        fs::set_permissions(dir.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let mut command = annals(dir, &["import", "sqlite", "read/a.sqlite", "write/a.annals"]);
    // For root, every medium can be written.
    if is_root(dir) {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = feed(command, b"");
    fs::set_permissions(dir.join("read"), fs::Permissions::from_mode(0o755)).unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    if output.status.success() { Ok(said) } else { Err(said) }
}

fn is_root(dir: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(dir).unwrap().uid() == 0
}

/// A connection to `read/a.sqlite`, which has a table of 1000 rows.
fn made(dir: &Path, mode: &str) -> Connection {
    for name in ["read", "write"] {
        fs::create_dir(dir.join(name)).unwrap();
    }
    let connection = Connection::open(dir.join("made.sqlite")).unwrap();
    let script = format!(
        "PRAGMA journal_mode={mode}; PRAGMA cache_size=1; CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
            INSERT INTO t SELECT i, 'old' || i FROM n;"
    );
    connection.execute_batch(&script).unwrap();
    connection
}

fn copy(dir: &Path, endings: &[&str]) {
    for ending in endings {
        let (from, to) = (format!("made.sqlite{ending}"), format!("read/a.sqlite{ending}"));
        fs::copy(dir.join(from), dir.join(to)).unwrap();
    }
}

#[test]
fn a_database_with_an_empty_log_is_read_where_nothing_can_be_written() {
    let dir = tempfile::tempdir().unwrap();
    drop(made(dir.path(), "WAL"));
    copy(dir.path(), &[""]);
    assert_eq!(import_as_nobody(dir.path()).unwrap(), "");
    let dump = succeed(dir.path(), &["dump", "write/a.annals"], "");
    assert!(dump.ends_with("insert_at t 1000 \"old1000\"\n"));
}

#[test]
fn a_database_with_a_filled_log_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let connection = made(dir.path(), "WAL");
    connection.execute_batch("UPDATE t SET v = 'new'").unwrap();
    copy(dir.path(), &["", "-wal"]);
    let said = import_as_nobody(dir.path()).unwrap_err();
    assert!(said.contains("its last transactions are in read/a.sqlite-wal"), "{said}");
    assert!(said.contains("copy both files to a folder that you may write to"), "{said}");
    // Which is true.
    fs::copy(dir.path().join("read/a.sqlite"), dir.path().join("copy.sqlite")).unwrap();
    fs::copy(dir.path().join("read/a.sqlite-wal"), dir.path().join("copy.sqlite-wal")).unwrap();
    succeed(dir.path(), &["import", "sqlite", "copy.sqlite", "copy.annals"], "");
    assert!(
        succeed(dir.path(), &["dump", "copy.annals"], "").ends_with("insert_at t 1000 \"new\"\n")
    );
}

#[test]
fn a_hot_journal_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let connection = made(dir.path(), "DELETE");
    connection.execute_batch("BEGIN; UPDATE t SET v = 'new' || v").unwrap();
    copy(dir.path(), &["", "-journal"]);
    let said = import_as_nobody(dir.path()).unwrap_err();
    assert!(said.contains("in the middle of a transaction"), "{said}");
    assert!(said.contains("`sqlite3 read/a.sqlite "), "{said}");
    let path = dir.path().join("read/a.sqlite");
    let undone = Connection::open(path).unwrap();
    undone.query_row("SELECT 1 FROM sqlite_master", [], |_| Ok(())).unwrap();
    drop(undone);
    assert_eq!(import_as_nobody(dir.path()).unwrap(), "");
    let dump = succeed(dir.path(), &["dump", "write/a.annals"], "");
    assert!(dump.ends_with("insert_at t 1000 \"old1000\"\n"));
}

#[test]
fn what_is_no_database_is_named() {
    let dir = tempfile::tempdir().unwrap();
    drop(made(dir.path(), "DELETE"));
    fs::write(
        dir.path().join("read/a.sqlite"),
        "some text, longer than a header of SQLite".repeat(20),
    )
    .unwrap();
    let said = import_as_nobody(dir.path()).unwrap_err();
    assert!(
        said.contains("read/a.sqlite: it is no database of SQLite, or an encrypted one"),
        "{said}"
    );
}
