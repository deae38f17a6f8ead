//! A crash at every operation of a push leaves a copy that opens, at a transaction of the original and no
//! earlier one than the last that was told to be copied; and another push continues from there.

use std::sync::Arc;

use annals::reports::Older;
use annals::storage::{Directory, MemoryDirectory};
use annals::{Database, ErrorKind, Level, Options, Reader, Result};
use annals_simulated::{Fault, Rng, SimulatedClock, SimulatedDisk};

use super::{COPY, bytes, push};
use crate::segments::{NAME, NOW, content, define, open};

/// A journal as it was at some moments, and what each of its transactions left.
struct Original {
    moments: Vec<MemoryDirectory>,
    content: Vec<String>,
}

/// Writes down the files as they are on the disk while the database is open.
fn moment(database: &Database, directory: &MemoryDirectory) -> MemoryDirectory {
    database.hard_checkpoint().unwrap();
    let copy = MemoryDirectory::new();
    for name in directory.list().unwrap().iter().filter(|name| !name.ends_with("-image")) {
        copy.create(name).unwrap().write_at(0, &bytes(directory, name)).unwrap();
    }
    copy
}

fn original(commits: u32) -> Original {
    let directory = MemoryDirectory::new();
    let database = open(&directory);
    database.write(define).unwrap();
    let mut original = Original { moments: Vec::new(), content: vec![String::new()] };
    original.content.push(content(&database.read()));
    let levels =
        [Level::Soft, Level::Checksummed, Level::Half, Level::Checksummed, Level::TwoPhase];
    let restarts = [None, Some(Older::Kept), None, Some(Older::NotNeeded), None];
    for (round, restart) in (0..).zip(restarts) {
        for (number, &level) in (0..commits).zip(levels.iter().cycle()) {
            let written = database.write(|tx| {
                tx.set_level(level);
                let name = format!("city {round}.{number} {}", "x".repeat(300));
                tx.insert(
                    crate::segments::TABLE,
                    &[(&*name).into(), number.into(), annals::ValueRef::Null],
                )
            });
            written.unwrap();
            original.content.push(content(&database.read()));
        }
        if let Some(older) = restart {
            database.restart(older, NOW).unwrap();
        }
        original.moments.push(moment(&database, &directory));
    }
    original
}

/// Pushes one moment after another; returns the last transaction that was told to be copied.
fn run(moments: &[MemoryDirectory], disk: &SimulatedDisk) -> (u64, Result<()>) {
    let mut told = 0;
    for moment in moments {
        let mut pushing = push(moment, Arc::new(disk.clone()));
        match pushing.bring_up() {
            Ok(copied) => told = copied.end.txid.0,
            Err(error) => return (told, Err(error)),
        }
        if let Err(error) = pushing.close() {
            return (told, Err(error));
        }
    }
    (told, Ok(()))
}

fn open_copy(disk: &SimulatedDisk) -> Result<Database> {
    let clock = Arc::new(SimulatedClock::new(21));
    let options = Options::new().background(false).create(false);
    options.open_in(Arc::new(disk.clone()), COPY, clock)
}

/// Looks at what a crash left, and continues.
fn judge(original: &Original, told: u64, make: &dyn Fn() -> SimulatedDisk, what: &str) {
    let check = |txid: u64, text: String, who: &str| {
        assert!(
            txid >= told,
            "{what}: {who}: transaction {told} was told to be copied, not {txid}"
        );
        let expected = &original.content[usize::try_from(txid).unwrap()];
        assert!(txid == 0 || text == *expected, "{what}: {who}: not as transaction {txid} left it");
    };
    match Reader::open(&make(), COPY) {
        Ok(reader) => check(reader.read().txid().0, content(&reader.read()), "a reader"),
        Err(error) => assert!(error.kind() == ErrorKind::NotFound && told == 0, "{what}: {error}"),
    }
    // By whoever writes it, which also ends a restart; and then by the next push.
    let disk = make();
    if Reader::open(&disk, COPY).is_ok() {
        let database = open_copy(&disk).unwrap_or_else(|error| panic!("{what}: {error}"));
        check(database.read().txid().0, content(&database.read()), "a writer");
        database.close().unwrap();
        let _ = disk.remove(&format!("{COPY}-image"));
    }
    for disk in [disk, make()] {
        let last = original.moments.last().unwrap();
        let (end, done) = run(std::slice::from_ref(last), &disk);
        done.unwrap_or_else(|error| panic!("{what}: another push: {error}"));
        let reader = Reader::open(&disk, COPY).unwrap();
        assert_eq!(end, reader.read().txid().0);
        assert_eq!(content(&reader.read()), *original.content.last().unwrap(), "{what}");
        let chain = |inspected: Result<annals_tools::Inspection>| inspected.unwrap().end.chain;
        let expected = chain(annals_tools::inspect_in(&Options::new(), last, NAME));
        assert_eq!(
            chain(annals_tools::inspect_in(&Options::new(), &disk, COPY)),
            expected,
            "{what}"
        );
    }
}

/// Lets the power go off at every operation.
pub(crate) fn explore(samples: u64) {
    let original = original(4);
    let whole = SimulatedDisk::new(3);
    run(&original.moments, &whole).1.unwrap();
    for operation in 0..=whole.operations() {
        let disk = SimulatedDisk::new(3);
        disk.crash_at(operation);
        let (told, done) = run(&original.moments, &disk);
        assert!(done.is_ok() || disk.is_off(), "{done:?}");
        let states = disk.crash_states();
        let what = format!("operation {operation}");
        judge(&original, told, &|| states.oldest(), &what);
        judge(&original, told, &|| states.newest(), &what);
        for seed in 0..samples {
            let seed = operation * 1000 + seed;
            judge(&original, told, &|| states.random(&mut Rng::new(seed)), &what);
        }
    }
}

#[test]
fn a_power_cut_leaves_a_copy_that_is_a_beginning() {
    explore(4);
}

#[test]
fn a_failed_operation_leaves_a_copy_that_is_a_beginning() {
    let original = original(2);
    let whole = SimulatedDisk::new(3);
    run(&original.moments, &whole).1.unwrap();
    for operation in 0..whole.operations() {
        for fault in [Fault::Io, Fault::ShortWrite { bytes: 300 }, Fault::FlushLoses] {
            // Once only, and from then on: the process that is killed.
            for from_then_on in [false, true] {
                let make = || {
                    let disk = SimulatedDisk::new(3);
                    match from_then_on {
                        true => disk.fail_from(operation, fault),
                        false => disk.fail_at(operation, fault),
                    }
                    let (told, _) = run(&original.moments, &disk);
                    disk.clear_plan();
                    (told, disk)
                };
                let what = format!("{fault:?} at operation {operation}, then on: {from_then_on}");
                judge(&original, make().0, &|| make().1, &what);
            }
        }
    }
}
