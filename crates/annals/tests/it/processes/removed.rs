//! The file of a database is removed or replaced while it is open: nothing is acknowledged that nobody would find.

use std::fs;
use std::path::Path;

use annals::{Database, ErrorKind, Level, Options, TableNumber, Txid, ValueRef};

const TABLE: TableNumber = TableNumber(0);

/// What somebody does to the file of an open database, or to its folder.
type Loss = (&'static str, fn(&Path));

const LOSSES: [Loss; 3] = [
    ("the file is removed", |file| fs::remove_file(file).unwrap()),
    ("another file is moved there", |file| {
        let other = file.with_extension("other");
        drop(begun(&other));
        fs::rename(other, file).unwrap();
    }),
    ("the folder is removed", |file| fs::remove_dir_all(file.parent().unwrap()).unwrap()),
];

fn begun(file: &Path) -> Database {
    let database = Options::new().open(file).unwrap();
    let schema = annals_schema::parse("create_table t\nadd_field t f string").unwrap().schema;
    database
        .write(|tx| schema.commands().iter().try_for_each(|command| tx.apply_command(command)))
        .unwrap();
    database
}

fn insert(database: &Database, level: Level) -> annals::Result<()> {
    database.write(|tx| {
        tx.set_level(level);
        tx.insert(TABLE, &[ValueRef::String("a text")]).map(drop)
    })
}

#[test]
fn nothing_is_acknowledged_once_the_file_has_no_name() {
    for (loss, lose) in LOSSES {
        for level in [Level::Checksummed, Level::Half, Level::TwoPhase] {
            let context = format!("{loss}, {level:?}");
            let outer = tempfile::tempdir().unwrap();
            let folder = outer.path().join("folder");
            fs::create_dir(&folder).unwrap();
            let file = folder.join("db.annals");
            let database = begun(&file);
            insert(&database, level).unwrap();
            lose(&file);
            let error = insert(&database, level).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnknownOutcome, "{context}: {error}");
            let error = insert(&database, Level::Soft).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Poisoned, "{context}: {error}");
            assert!(error.to_string().contains("removed or replaced"), "{context}: {error}");
            // What was acknowledged can still be read.
            assert_eq!(database.read().txid(), Txid(2), "{context}");
        }
    }
}

#[test]
fn soft_commits_are_not_said_to_be_flushed_once_the_file_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db.annals");
    let database = begun(&file);
    insert(&database, Level::Soft).unwrap();
    fs::remove_file(&file).unwrap();
    assert_eq!(database.close().unwrap_err().kind(), ErrorKind::Poisoned);
}
