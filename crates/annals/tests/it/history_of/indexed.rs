//! What the index is for: few parts of the journal are read, however long it is.

use annals::storage::{Directory, MemoryDirectory};
use annals::{BackfillMode, Database, ErrorKind, RowId, ValueRef};

use super::{CITY, IMAGE, PEOPLE, collect, compare, define, has_index, open, open_with};

/// Inserts so many rows, and changes them one by one, each so often, every time in a transaction.
pub(super) fn fill(database: &Database, rows: u64, rounds: u32) {
    define(database);
    let insert = |number: u64| {
        let name = format!("city {number}");
        database.write(|tx| tx.insert(CITY, &[ValueRef::String(&name), ValueRef::Null]).map(drop))
    };
    (0..rows).for_each(|number| insert(number).unwrap());
    for round in 0..rounds {
        for id in 0..rows {
            database
                .write(|tx| tx.update(CITY, RowId(id * 7 % rows), PEOPLE, round.into()))
                .unwrap();
        }
    }
}

#[test]
fn only_the_frames_are_read_that_change_the_row() {
    let directory = MemoryDirectory::new();
    let database = open(&directory);
    fill(&database, 900, 4);
    database.backfill(BackfillMode::Full).unwrap();
    assert!(has_index(&database));
    let read = |database: &Database| {
        let mut history = database.history_of(CITY, RowId(123)).unwrap();
        assert_eq!(history.by_ref().map(Result::unwrap).count(), 5);
        history.bytes_read()
    };
    let with_index = read(&database);
    assert!(with_index < 5 * 100, "{with_index} bytes were read");
    database.close().unwrap();
    directory.remove(IMAGE).unwrap();
    let database = open(&directory);
    assert_eq!(read(&database), with_index, "the index was made of the journal");
    assert!(!has_index(&database));
    database.backfill(BackfillMode::Full).unwrap();
    assert!(has_index(&database));
    assert_eq!(read(&database), with_index);
}

#[test]
fn the_tail_that_is_not_indexed_yet_is_part_of_the_history() {
    let directory = MemoryDirectory::new();
    let database = open(&directory);
    fill(&database, 20, 2);
    database.backfill(BackfillMode::Full).unwrap();
    database.write(|tx| tx.update(CITY, RowId(3), PEOPLE, 77_u32.into())).unwrap();
    database.write(|tx| tx.delete(CITY, RowId(3))).unwrap();
    let one = ValueRef::UInt32(1);
    database.write(|tx| tx.insert_at(CITY, RowId(3), &["again".into(), one]).map(drop)).unwrap();
    let history = collect(database.history_of(CITY, RowId(3)));
    assert_eq!(history.len(), 1 + 2 + 3);
    assert_eq!(history[4].change.after, None);
    assert_eq!(history[5].change.before, None);
    compare(&directory, &database);
    let newest = database.history_of(CITY, RowId(3)).unwrap().newest(2).unwrap();
    assert_eq!(newest, [history[5].clone(), history[4].clone()]);
    let error = database.history_of(annals::TableNumber(9), RowId(0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

#[test]
fn a_transaction_of_several_frames_has_one_version_and_all_its_comments() {
    let directory = MemoryDirectory::new();
    let database = open_with(&directory, &super::options().level(annals::Level::Soft));
    define(&database);
    let long = "x".repeat(30_000);
    let insert = |tx: &mut annals::Transaction<'_>, number: u32| {
        tx.insert(CITY, &[ValueRef::String(&long), number.into()]).map(drop)
    };
    for turn in 0..3_u32 {
        let mut tx = database.begin().unwrap();
        tx.comment(&format!("turn {turn} begins")).unwrap();
        (0..120).for_each(|number| insert(&mut tx, number).unwrap());
        if turn > 0 {
            tx.update(CITY, RowId(5), PEOPLE, (1000 + turn).into()).unwrap();
        }
        tx.comment("half way").unwrap();
        (0..120).for_each(|number| insert(&mut tx, number).unwrap());
        tx.comment("at the end").unwrap();
        tx.commit().unwrap();
    }
    database.backfill(BackfillMode::Full).unwrap();
    let history = collect(database.history_of(CITY, RowId(5)));
    assert_eq!(history.len(), 3);
    assert_eq!(history[2].comments, ["turn 2 begins", "half way", "at the end"]);
    compare(&directory, &database);
}

#[test]
fn a_program_may_want_no_index() {
    let directory = MemoryDirectory::new();
    let database = open_with(&directory, &super::options().history_index(false));
    fill(&database, 50, 1);
    database.backfill(BackfillMode::Full).unwrap();
    assert!(!has_index(&database));
    compare(&directory, &database);
}
