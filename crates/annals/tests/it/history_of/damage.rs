//! An index that is damaged, cut, another journal's, or of a history that was taken back: the answers are the same.

use annals::storage::{Access, Directory, MemoryDirectory};
use annals::{BackfillMode, Database, Reader, RowId, Version};

use super::indexed::fill;
use super::{CITY, IMAGE, NAME, compare, open};
use crate::hostile::journals::thorough;

pub(super) fn bytes(directory: &MemoryDirectory, name: &str) -> Vec<u8> {
    let storage = directory.open(name, Access::Read).unwrap();
    let mut bytes = vec![0; usize::try_from(storage.len().unwrap()).unwrap()];
    storage.read_at(0, &mut bytes).unwrap();
    bytes
}

pub(super) fn put(directory: &MemoryDirectory, name: &str, bytes: &[u8]) {
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
    let sound = bytes(&directory, IMAGE);
    let expected = histories(&Reader::open(&directory, NAME).unwrap());
    database.close().unwrap();
    let (mut problems, step) = (0, if thorough() { 1 } else { 61 });
    for at in (0..sound.len()).step_by(step) {
        let mut wrong = sound.clone();
        wrong[at] ^= 0x41;
        put(&directory, IMAGE, &wrong);
        let reader = Reader::open(&directory, NAME).unwrap();
        let found = histories(&reader);
        assert!(found.0 == expected.0, "byte {at} of the image is damaged");
        problems += found.1;
        assert_eq!(histories(&reader).0, expected.0);
    }
    assert!(problems > 3, "{problems}");
    // The next backfill makes it again.
    put(&directory, IMAGE, &vec![7; sound.len()]);
    let database = open(&directory);
    database.write(|tx| tx.update(CITY, RowId(0), super::PEOPLE, 1_u32.into())).unwrap();
    database.backfill(BackfillMode::Full).unwrap();
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
    assert!(beside.contains(&IMAGE.to_owned()));
    for without in [&[][..], &[IMAGE]] {
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
