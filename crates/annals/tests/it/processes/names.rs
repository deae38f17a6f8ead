//! Names that lead to the same file, and names that change while a file is open.

use std::fs;
use std::path::Path;

use annals::{Database, ErrorKind, Level, Options};

use super::ledger::{audit, schema, write};

fn open(path: &Path) -> annals::Result<Database> {
    Options::new().level(Level::Soft).open_schema(path, &schema())
}

#[track_caller]
fn commit(database: &Database, number: u64) {
    database.write(|tx| write(tx, 1, number, 2, 0)).unwrap();
}

#[track_caller]
fn is_busy(path: &Path) {
    let error = Database::open(path).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    let words = format!("this process (pid {}) has it open already", std::process::id());
    assert!(error.to_string().contains(&words), "{error}");
}

#[track_caller]
fn shows(path: &Path, transactions: u64) {
    let reader = Options::new().open_read_only(path).unwrap();
    assert_eq!(audit(&reader.read()).of(1), transactions);
}

#[test]
fn a_second_writer_in_this_process_is_told_who_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.annals");
    let database = open(&path).unwrap();
    is_busy(&path);
    // The one who was refused did no harm, and reading is allowed.
    commit(&database, 0);
    shows(&path, 1);
    is_busy(&path);
    database.close().unwrap();
    open(&path).unwrap();
}

#[test]
fn all_names_of_a_file_have_one_lock() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("real.annals"), folder.path().join("link.annals"));
    std::os::unix::fs::symlink(&path, &link).unwrap();
    // A link that leads nowhere creates nothing.
    let error = Database::open(&link).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("link"), "{error}");
    drop(open(&path).unwrap());
    let (hard, folder_link) = (folder.path().join("hard.annals"), folder.path().join("there"));
    fs::hard_link(&path, &hard).unwrap();
    std::os::unix::fs::symlink(folder.path(), &folder_link).unwrap();
    let names = [path, link, hard, folder_link.join("real.annals")];
    for (number, name) in (0..).zip(&names) {
        let database = open(name).unwrap();
        names.iter().for_each(|other| is_busy(other));
        commit(&database, number);
        names.iter().for_each(|other| shows(other, number + 1));
    }
}

#[test]
fn a_file_that_is_renamed_while_open_goes_on_under_its_new_name() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (folder.path().join("old.annals"), folder.path().join("new.annals"));
    let database = open(&old).unwrap();
    commit(&database, 0);
    fs::rename(&old, &new).unwrap();
    is_busy(&new);
    commit(&database, 1);
    shows(&new, 2);
    // The old name is free for another database.
    let other = open(&old).unwrap();
    commit(&other, 0);
    commit(&database, 2);
    database.close().unwrap();
    other.close().unwrap();
    shows(&old, 1);
    shows(&new, 3);
    assert_eq!(names_in(folder.path()), ["new.annals", "old.annals"]);
}

#[test]
fn a_file_that_is_replaced_while_open_is_another_file() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("a.annals"), folder.path().join("b.annals"));
    let first = open(&path).unwrap();
    commit(&first, 0);
    open(&other).unwrap().close().unwrap();
    fs::rename(&other, &path).unwrap();
    // The name leads to another inode now, which nobody holds.
    let second = open(&path).unwrap();
    assert_eq!(audit(&second.read()).of(1), 0);
    commit(&second, 0);
    // The first can read what it has, acknowledges nothing more, and harms nobody.
    match first.begin() {
        Ok(mut transaction) => {
            transaction.set_level(Level::Checksummed);
            write(&mut transaction, 1, 1, 1, 0).unwrap();
            assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::UnknownOutcome);
        }
        // A look at the name came first.
        Err(error) => assert_eq!(error.kind(), ErrorKind::Poisoned),
    }
    assert_eq!(audit(&first.read()).of(1), 1);
    assert_eq!(first.close().unwrap_err().kind(), ErrorKind::Poisoned);
    second.close().unwrap();
    shows(&path, 1);
    assert_eq!(names_in(folder.path()), ["a.annals"]);
}

#[test]
fn a_file_that_is_removed_while_open_stays_until_it_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("removed.annals");
    let database = open(&path).unwrap();
    commit(&database, 0);
    fs::remove_file(&path).unwrap();
    // A soft commit is there until the file is closed; what is to survive isn't acknowledged.
    for (number, level, kind) in
        [(1, Level::Soft, None), (2, Level::Checksummed, Some(ErrorKind::UnknownOutcome))]
    {
        let mut transaction = database.begin().unwrap();
        transaction.set_level(level);
        write(&mut transaction, 1, number, 1, 0).unwrap();
        assert_eq!(transaction.commit().err().map(|error| error.kind()), kind);
    }
    assert_eq!(audit(&database.read()).of(1), 2);
    // Whoever opens the name now begins a new file, and is in nobody's way.
    let new = open(&path).unwrap();
    commit(&new, 0);
    assert_eq!(database.close().unwrap_err().kind(), ErrorKind::Poisoned);
    commit(&new, 1);
    new.close().unwrap();
    shows(&path, 2);
    assert_eq!(names_in(folder.path()), ["removed.annals"]);
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
