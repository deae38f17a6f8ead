//! Readers between whose reads a writer does all sorts of things.

use std::sync::Arc;

use annals::storage::Directory;
use annals::{Database, Level, Options, Reader};
use annals_simulated::{Fault, SimulatedClock, SimulatedDisk};

use super::crowd::open;
use super::ledger::{NOBODY, audit, write};
use super::yielding::Yielding;

const NAME: &str = "crowd";

fn commit(database: &Database, number: u64, level: Level) {
    let mut transaction = database.begin().unwrap();
    transaction.set_level(level);
    write(&mut transaction, 1, number, 1, 0).unwrap();
    transaction.commit().unwrap();
}

/// What a writer does between two reads: it takes a long transaction back, which writes both slots and cuts
/// what stood after them; and it may commit, before and after that.
fn disturb(database: &Database, level: Level, first: Option<u64>) {
    if let Some(first) = first {
        commit(database, first, level);
    }
    let mut transaction = database.begin().unwrap();
    write(&mut transaction, NOBODY, 0, 1, 1_100_000).unwrap();
    transaction.rollback().unwrap();
    let Some(first) = first else { return };
    for (number, level) in (first + 1..).zip([Level::Half, Level::TwoPhase, level]) {
        commit(database, number, level);
    }
}

/// Lets a reader look, by `look`, while at its read number `read` the writer disturbs it. Gives
/// whether there was such a read.
fn is_disturbed(
    read: u64,
    (level, commits): (Level, bool),
    look: impl FnOnce(&Yielding, Reader) -> Reader,
) -> bool {
    let disk = SimulatedDisk::new(read);
    let clock = Arc::new(SimulatedClock::new(read));
    let database = Arc::new(open(Arc::new(disk.clone()), clock, false).unwrap());
    commit(&database, 0, Level::TwoPhase);
    let directory = Yielding::yielding(Arc::new(disk), read);
    let reader = Options::new().open_read_only_in(&directory, NAME).unwrap();
    for number in 1..4 {
        commit(&database, number, level);
    }
    let writer = Arc::clone(&database);
    directory.at_read(read, move || disturb(&writer, level, commits.then_some(4)));
    let reader = look(&directory, reader);
    let seen = audit(&reader.read()).of(1);
    assert!((4..=8).contains(&seen), "{level:?}, read {read}: {seen} are seen");
    directory.has_read()
}

#[test]
fn what_was_acknowledged_shows_whatever_is_written_between_two_reads() {
    for how in Level::ALL.into_iter().flat_map(|level| [(level, true), (level, false)]) {
        let open = |directory: &Yielding, _| {
            let directory: &dyn Directory = directory;
            Options::new().open_read_only_in(directory, NAME).unwrap()
        };
        let opening = (0..).take_while(|&read| is_disturbed(read, how, open)).count();
        let pull = |_: &Yielding, reader: Reader| {
            drop(reader.pull().unwrap());
            reader
        };
        let pulling = (0..).take_while(|&read| is_disturbed(read, how, pull)).count();
        assert!(opening > 8 && pulling > 8, "{opening} and {pulling} reads");
    }
}

/// Lets a reader open while, at its read number `read`, somebody recovers from a writer that was killed in
/// the midst of a half commit. Returns whether there was such a read.
fn is_recovered_meanwhile(read: u64, level: Level) -> bool {
    let disk = SimulatedDisk::new(read);
    let reopen = move |disk: &SimulatedDisk| {
        let clock = Arc::new(SimulatedClock::new(read));
        open(Arc::new(disk.clone()), clock, false).unwrap()
    };
    let database = reopen(&disk);
    commit(&database, 0, Level::TwoPhase);
    for number in 1..4 {
        commit(&database, number, level);
    }
    // The frame is written and flushed, and nothing else.
    let mut transaction = database.begin().unwrap();
    transaction.set_level(Level::Half);
    write(&mut transaction, 1, 4, 1, 0).unwrap();
    disk.fail_from(disk.operations() + 2, Fault::Io);
    transaction.commit().unwrap_err();
    drop(database);
    disk.clear_plan();

    let directory = Yielding::yielding(Arc::new(disk.clone()), read);
    directory.at_read(read, move || reopen(&disk).close().unwrap());
    let reader = Options::new().open_read_only_in(&directory, NAME).unwrap();
    let seen = audit(&reader.read()).of(1);
    assert!(seen == 4 || seen == 5, "{level:?}, read {read}: 4 were acknowledged, not {seen}");
    directory.has_read()
}

#[test]
fn what_was_acknowledged_shows_also_while_somebody_recovers() {
    for level in Level::ALL {
        let reads = (0..).take_while(|&read| is_recovered_meanwhile(read, level)).count();
        assert!(reads > 8, "{reads} reads");
    }
}
