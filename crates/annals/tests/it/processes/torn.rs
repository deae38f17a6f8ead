//! Readers between whose reads a writer does all sorts of things.

use std::sync::Arc;

use annals::storage::Directory;
use annals::storage::simulated::{SimulatedClock, SimulatedDisk};
use annals::{Database, Level, Options, Reader};

use super::crowd::open;
use super::ledger::{NOBODY, audit, write};
use super::yielding::Yielding;

const NAME: &str = "crowd";

fn commit(database: &Database, number: u64, level: Level, bulk: usize) {
    let mut transaction = database.begin().unwrap();
    transaction.set_level(level);
    write(&mut transaction, 1, number, 1, bulk).unwrap();
    transaction.commit().unwrap();
}

/// What a writer does between two reads: it moves both slots, and cuts what it wrote.
fn disturb(database: &Database, level: Level, first: u64) {
    commit(database, first, level, 0);
    let mut transaction = database.begin().unwrap();
    write(&mut transaction, NOBODY, 0, 1, 1_100_000).unwrap();
    transaction.rollback().unwrap();
    for (number, level) in (first + 1..).zip([Level::Half, Level::TwoPhase, level]) {
        commit(database, number, level, 0);
    }
}

/// Lets a reader look, by `look`, while at its read number `read` the writer disturbs it. Gives
/// whether there was such a read.
fn is_disturbed(read: u64, level: Level, look: impl FnOnce(&Yielding, Reader) -> Reader) -> bool {
    let disk = SimulatedDisk::new(read);
    let clock = Arc::new(SimulatedClock::new(read));
    let database = Arc::new(open(Arc::new(disk.clone()), clock, false).unwrap());
    commit(&database, 0, Level::TwoPhase, 0);
    let directory = Yielding::new(Arc::new(disk), read);
    let reader = Options::new().open_read_only_in(&directory, NAME).unwrap();
    for number in 1..4 {
        commit(&database, number, level, 0);
    }
    let writer = Arc::clone(&database);
    directory.at_read(read, move || disturb(&writer, level, 4));
    let reader = look(&directory, reader);
    let seen = audit(&reader.read()).of(1);
    assert!((4..=8).contains(&seen), "{level:?}, read {read}: {seen} are seen");
    directory.has_read()
}

#[test]
fn what_was_acknowledged_shows_whatever_is_written_between_two_reads() {
    for level in Level::ALL {
        for read in 0.. {
            let open = |directory: &Yielding, _| {
                let directory: &dyn Directory = directory;
                Options::new().open_read_only_in(directory, NAME).unwrap()
            };
            if !is_disturbed(read, level, open) {
                assert!(read > 8, "opening reads: {read}");
                break;
            }
        }
        for read in 0.. {
            let pull = |_: &Yielding, reader: Reader| {
                drop(reader.pull().unwrap());
                reader
            };
            if !is_disturbed(read, level, pull) {
                assert!(read > 8, "pulling reads: {read}");
                break;
            }
        }
    }
}
