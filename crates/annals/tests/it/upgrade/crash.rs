//! A crash at every operation of an upgrade leaves the old schema or the new one, with its rows.

use std::sync::Arc;

use annals::storage::Directory;
use annals::{Database, ErrorKind, Options, Reader, Result};
use annals_simulated::{Fault, Rng, SimulatedClock, SimulatedDisk};

use super::{Functions, assert_new, assert_old, fill, new, old};

const NAME: &str = "journal";

fn open(disk: &SimulatedDisk) -> Result<Database> {
    let directory: Arc<dyn Directory> = Arc::new(disk.clone());
    let clock = Arc::new(SimulatedClock::new(7));
    Options::new().background(false).open_in(directory, NAME, clock)
}

/// Returns a disk with a database of the old program.
fn disk() -> SimulatedDisk {
    let disk = SimulatedDisk::new(5);
    let database = open(&disk).unwrap();
    fill(&database);
    database.close().unwrap();
    disk
}

/// Upgrades, and returns the database, which the process doesn't come to close.
fn upgrade(disk: &SimulatedDisk, functions: Functions) -> Result<Database> {
    let database = open(disk)?;
    database.upgrade(&new(), &mut |custom, tx| functions.run(custom, tx))?;
    Ok(database)
}

/// Looks at what a crash left, and continues with either program; returns whether it is new.
fn look(make: &dyn Fn() -> SimulatedDisk, functions: Functions) -> bool {
    let reader = Reader::open(&make(), NAME).unwrap();
    let is_new = reader.read().schema().commands() == new().commands();
    if is_new {
        assert_new(&reader.read(), functions);
    } else {
        assert_old(&reader.read());
    }
    // The old program.
    let database = open(&make()).unwrap();
    let result = database.upgrade(&old(), &mut |_, _| panic!("no functions"));
    if is_new {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::SchemaMismatch);
        assert_new(&database.read(), functions);
    } else {
        result.unwrap();
        assert_old(&database.read());
    }
    // The new program.
    let database = open(&make()).unwrap();
    let mut runs = 0;
    let upgraded = database.upgrade(&new(), &mut |custom, tx| {
        runs += 1;
        functions.run(custom, tx)
    });
    upgraded.unwrap();
    assert_eq!(runs, if is_new { 0 } else { 2 });
    assert_new(&database.read(), functions);
    database.close().unwrap();
    is_new
}

fn explore(functions: Functions, samples: u64) {
    let whole = disk();
    let start = whole.operations();
    std::mem::forget(upgrade(&whole, functions).unwrap());
    let count = whole.operations() - start;
    assert!(count > 3, "an upgrade writes and flushes");
    let (mut olds, mut news) = (0, 0);
    for operation in 0..=count {
        let disk = disk();
        disk.crash_at(start + operation);
        let done = upgrade(&disk, functions).map(std::mem::forget);
        assert!(done.is_ok() || disk.is_off(), "{done:?}");
        let states = disk.crash_states();
        let mut judge = |make: &dyn Fn() -> SimulatedDisk| {
            let is_new = look(make, functions);
            *(if is_new { &mut news } else { &mut olds }) += 1;
            assert!(is_new || done.is_err(), "an upgrade that was acknowledged is gone");
        };
        match states.count().filter(|&count| count <= u128::from(samples)) {
            Some(count) => (0..count).for_each(|number| judge(&|| states.state(number))),
            None => {
                judge(&|| states.oldest());
                judge(&|| states.newest());
                judge(&|| states.all_but_last());
                for seed in 0..samples {
                    judge(&|| states.random(&mut Rng::new(operation * 1000 + seed)));
                }
            }
        }
    }
    assert!(olds > 0 && news > 0, "{olds} old, {news} new");
}

#[test]
fn power_cut_at_every_operation() {
    explore(Functions { length: 3 }, 64);
}

#[test]
fn power_cut_in_an_upgrade_of_several_frames() {
    explore(Functions { length: 900_000 }, 3);
}

#[test]
fn process_killed_at_every_operation() {
    let functions = Functions { length: 3 };
    let whole = disk();
    let start = whole.operations();
    std::mem::forget(upgrade(&whole, functions).unwrap());
    for operation in start..=whole.operations() {
        let killed = || {
            let disk = disk();
            disk.fail_from(operation, Fault::Io);
            // Dropped, it can't write any more: all its operations fail.
            drop(upgrade(&disk, functions));
            disk.clear_plan();
            disk
        };
        look(&killed, functions);
    }
}
