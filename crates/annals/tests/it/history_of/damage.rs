//! An index that is damaged, cut, another journal's, or of a history that was taken back: the answers are the same.

use std::sync::Arc;

use annals::storage::{Access, Directory, MemoryDirectory};
use annals::{BackfillMode, Database, Reader, RowId, Version};

use super::indexed::fill;
use super::{CITY, INDEX, NAME, compare, define, has_index, open};
use crate::hostile::journals::thorough;

fn bytes(directory: &MemoryDirectory, name: &str) -> Vec<u8> {
    let storage = directory.open(name, Access::Read).unwrap();
    let mut bytes = vec![0; usize::try_from(storage.len().unwrap()).unwrap()];
    storage.read_at(0, &mut bytes).unwrap();
    bytes
}

fn put(directory: &MemoryDirectory, name: &str, bytes: &[u8]) {
    let _ = directory.remove(name);
    directory.create(name).unwrap().write_at(0, bytes).unwrap();
}

fn made() -> (MemoryDirectory, Database) {
    let directory = MemoryDirectory::new();
    let database = open(&directory);
    fill(&database, 60, 3);
    database.backfill(BackfillMode::Full).unwrap();
    fill_more(&database);
    database.backfill(BackfillMode::Full).unwrap();
    (directory, database)
}

fn fill_more(database: &Database) {
    for id in 0..60 {
        database.write(|tx| tx.update(CITY, RowId(id), super::PEOPLE, 9_u32.into())).unwrap();
        database.write(|tx| tx.comment(&format!("row {id}"))).unwrap();
    }
}

fn histories(reader: &Reader) -> (Vec<Vec<Version>>, usize) {
    let mut problems = 0;
    let mut history = |id| {
        let history = reader.history_of(CITY, RowId(id)).unwrap();
        problems += usize::from(history.index_problem().is_some());
        history.map(Result::unwrap).collect()
    };
    ((0..60).step_by(13).map(&mut history).collect(), problems)
}

#[test]
fn a_damaged_index_gives_the_same_answers() {
    let (directory, database) = made();
    let sound = bytes(&directory, INDEX);
    let reader = Reader::open(&directory, NAME).unwrap();
    let (expected, problems) = histories(&reader);
    assert_eq!(problems, 0);
    let (mut found_out, mut tried) = (0, 0);
    // Every byte of the first sectors of each page, and some of the others.
    let places = (0..sound.len()).filter(|at| at % 4096 < 300 && at % 7 == 0 || at % 997 == 0);
    for at in places {
        let mut wrong = sound.clone();
        wrong[at] ^= 0x41;
        put(&directory, INDEX, &wrong);
        let (found, problems) = histories(&reader);
        assert!(found == expected, "byte {at} of the index is damaged");
        let check = database.read().check_history_index(false).unwrap().unwrap();
        found_out += usize::from(problems > 0 || check.problem.is_some());
        tried += 1;
    }
    // What isn't used any more may be damaged without anybody seeing it.
    assert!(found_out * 3 > tried, "{found_out} of {tried} were found out");
    for len in (0..sound.len()).step_by(1531) {
        put(&directory, INDEX, &sound[..len]);
        assert!(histories(&reader).0 == expected, "the index ends after {len} bytes");
    }
    // The next backfill makes it again, and says so.
    put(&directory, INDEX, &vec![7; sound.len()]);
    database.write(|tx| tx.update(CITY, RowId(0), super::PEOPLE, 1_u32.into())).unwrap();
    database.backfill(BackfillMode::Full).unwrap();
    assert!(database.history_error().unwrap().contains("rebuilding the history index"));
    assert!(directory.list().unwrap().contains(&format!("{INDEX}-damaged")));
    compare(&directory, &database);
}

/// Every byte of the journal: a history is the right one, or an error, whatever else is beside the journal.
#[test]
fn a_flipped_byte_of_the_journal_gives_the_right_history_or_an_error() {
    let (directory, database) = made();
    database.close().unwrap();
    let expected = histories(&Reader::open(&directory, NAME).unwrap());
    assert_eq!(expected.1, 0);
    let sound = bytes(&directory, NAME);
    let beside = directory.list().unwrap();
    assert!(beside.contains(&INDEX.to_owned()) && beside.contains(&"db-image".to_owned()));
    for without in [&[][..], &[INDEX], &["db-image"], &[INDEX, "db-image"]] {
        let place = MemoryDirectory::new();
        for name in beside.iter().filter(|name| !without.contains(&name.as_str())) {
            put(&place, name, &bytes(&directory, name));
        }
        let (mut right, mut refused) = (0, 0);
        let step = if thorough() { 1 } else { 11 };
        for at in (without.len()..sound.len()).step_by(step) {
            let mut wrong = sound.clone();
            wrong[at] ^= 1 << (at % 8);
            put(&place, NAME, &wrong);
            match histories_if_sound(&place) {
                Ok(found) => {
                    assert!(found == expected.0, "byte {at} is flipped, without {without:?}");
                    right += 1;
                }
                Err(error) => {
                    let text = error.to_string();
                    assert!(text.contains(NAME), "byte {at}, without {without:?}: {text}");
                    refused += 1;
                }
            }
        }
        assert!(right > 100 && refused > 100, "{right} right, {refused} refused: {without:?}");
    }
}

/// Returns the same histories as `histories`, from a new reader; or the first error.
fn histories_if_sound(directory: &MemoryDirectory) -> annals::Result<Vec<Vec<Version>>> {
    let reader = Reader::open(directory, NAME)?;
    (0..60).step_by(13).map(|id| reader.history_of(CITY, RowId(id))?.collect()).collect()
}

#[test]
fn an_index_that_cannot_be_opened_is_told_and_the_journal_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    let options = super::options();
    let database = options.open(&path).unwrap();
    fill(&database, 20, 2);
    database.backfill(BackfillMode::Full).unwrap();
    let expected = super::collect(database.history_of(CITY, RowId(3)));
    let index = folder.path().join("a.annals-history");
    std::fs::remove_file(&index).unwrap();
    std::fs::create_dir(&index).unwrap();
    let reader = options.open_read_only(&path).unwrap();
    for history in [database.history_of(CITY, RowId(3)), reader.history_of(CITY, RowId(3))] {
        let history = history.unwrap();
        let problem = history.index_problem().unwrap().to_owned();
        assert!(problem.contains("can't open the history index"), "{problem}");
        assert!(history.map(Result::unwrap).collect::<Vec<_>>() == expected);
    }
    let error = reader.read().check_history_index(false).unwrap_err();
    assert_eq!(error.kind(), annals::ErrorKind::Io, "{error}");
}

#[test]
fn the_index_of_another_history_is_not_used() {
    let (directory, database) = made();
    let other = bytes(&directory, INDEX);
    database.close().unwrap();
    // Another journal.
    let (second, database) = (MemoryDirectory::new(), made().1);
    drop(database);
    let database = super::open_with(&second, &super::options());
    define(&database);
    put(&second, INDEX, &other);
    database.backfill(BackfillMode::Full).unwrap();
    compare(&second, &database);
}

/// Of a journal that is brought back as it was earlier, and continues otherwise, the index is of a history that
/// never was.
#[test]
fn the_index_of_commits_that_were_taken_back_is_not_used() {
    let directory = MemoryDirectory::new();
    let database = open(&directory);
    fill(&database, 30, 2);
    database.backfill(BackfillMode::Full).unwrap();
    database.close().unwrap();
    let earlier = (bytes(&directory, NAME), bytes(&directory, "db-image"));
    let database = open(&directory);
    fill_rows(&database, 500);
    database.backfill(BackfillMode::Full).unwrap();
    database.close().unwrap();
    for rows in [0, 1, 100, 900] {
        let later = bytes(&directory, INDEX);
        let again = MemoryDirectory::new();
        put(&again, NAME, &earlier.0);
        put(&again, "db-image", &earlier.1);
        put(&again, INDEX, &later);
        let clock = annals::storage::SystemClock;
        let options = super::options();
        let again_too: Arc<dyn Directory> = Arc::new(again.clone());
        let database = options.open_in(again_too, NAME, Arc::new(clock)).unwrap();
        fill_rows(&database, rows);
        let reader = Reader::open(&again, NAME).unwrap();
        let (found, _) = histories(&reader);
        let _ = again.remove(INDEX);
        assert!(found == histories(&reader).0, "{rows}");
        put(&again, INDEX, &later);
        database.backfill(BackfillMode::Full).unwrap();
        database.write(|tx| tx.update(CITY, RowId(1), super::PEOPLE, 5_u32.into())).unwrap();
        database.backfill(BackfillMode::Full).unwrap();
        compare(&again, &database);
        assert!(has_index(&again));
    }
}

fn fill_rows(database: &Database, count: u32) {
    for number in 0..count {
        let id = RowId(u64::from(number) % 30);
        database.write(|tx| tx.update(CITY, id, super::PEOPLE, number.into())).unwrap();
    }
}
