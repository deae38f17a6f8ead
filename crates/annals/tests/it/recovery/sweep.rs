//! The recovery itself crashes, at every operation, in each mode: the next one comes to the same end.

use std::io::Write as _;
use std::ops::Range;
use std::panic::catch_unwind;

use annals::mistakes::{Mistake, make};
use annals::{Database, Level, Recovery};
use annals_simulated::{CrashStates, Rng, SimulatedDisk};

use super::{NAME, define, ids, insert, install, open};

const MODES: [Recovery; 4] =
    [Recovery::Checked, Recovery::ToHard, Recovery::ToSoft, Recovery::ToEnd];

fn is_full() -> bool {
    std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full")
}

/// Writes transactions at random levels until the power goes off, at some operation of `seed`'s. Gives
/// the disk and how many transactions were durable.
fn crashed(seed: u64) -> (SimulatedDisk, u64) {
    let mut rng = Rng::new(seed);
    let disk = SimulatedDisk::new(seed);
    let database = open(&disk, Recovery::Checked).unwrap();
    define(&database);
    let mut durable = 2;
    for _ in 0..4 + rng.below(6) {
        let level = Level::ALL[rng.index(4)];
        let txid = insert(&database, level);
        if level.is_durable() {
            durable = txid;
        }
        match rng.below(6) {
            0 => drop(database.soft_checkpoint().unwrap()),
            1 => database.rest().unwrap(),
            _ => {}
        }
    }
    // What it writes now tears.
    disk.crash_at(disk.operations() + rng.below(4));
    let _ = database.write(|tx| tx.comment("the last words"));
    disk.crash();
    (disk, durable)
}

/// Returns some of the states that a crash may leave.
fn some(states: &CrashStates, seed: u64) -> Vec<SimulatedDisk> {
    let mut rng = Rng::new(seed);
    let random = if is_full() { 8 } else { 2 };
    let mut some = vec![states.oldest(), states.all_but_last(), states.newest()];
    some.extend((0..random).map(|_| states.random(&mut rng)));
    some
}

fn end_of(database: &Database, place: &str) -> u64 {
    let snapshot = database.read();
    let rows: Vec<u64> = (3..=snapshot.txid().0).collect();
    let with_rows = ids(&snapshot);
    assert!(rows.starts_with(&with_rows) && with_rows.len() + 1 >= rows.len(), "{place}");
    snapshot.check().unwrap();
    snapshot.txid().0
}

#[test]
fn a_recovery_that_crashes_is_repeated_with_the_same_end() {
    let (openings, cuts) = sweep(0..if is_full() { 150 } else { 10 });
    assert!(cuts > 50, "{cuts}");
    let mut output = std::io::stderr();
    writeln!(output, "recoveries: {openings} repeated after a crash, {cuts} cuts").unwrap();
}

#[test]
fn mistakes_in_recovery_are_found() {
    for mistake in [Mistake::ProofCutFirst, Mistake::TailNotZeroed] {
        make(Some(mistake));
        let swept = catch_unwind(|| sweep(0..40));
        make(None);
        assert!(swept.is_err(), "{mistake:?} is not found");
    }
}

/// Lets recoveries of these seeds crash; returns how many were repeated, and how many cut something.
pub(crate) fn sweep(seeds: Range<u64>) -> (u64, u64) {
    let (mut openings, mut cuts) = (0, 0);
    for seed in seeds {
        let (disk, durable) = crashed(seed);
        for (number, state) in some(&disk.crash_states(), seed).into_iter().enumerate() {
            let bytes = state.content(NAME).unwrap();
            for mode in MODES {
                let place = format!("seed {seed}, state {number}, {mode:?}");
                let disk = install(&bytes);
                let database = open(&disk, mode).unwrap_or_else(|error| panic!("{place}: {error}"));
                let end = end_of(&database, &place);
                // Only what a later frame or a slot tells is known to be hard.
                let at_least = match mode {
                    Recovery::ToHard | Recovery::ToSoft => 0,
                    _ => durable,
                };
                assert!(end >= at_least, "{place}: {end} < {at_least}");
                cuts += u64::from(database.recovered().cut.is_some());
                let operations = disk.operations();
                drop(database);
                for operation in 0..operations {
                    openings += again(&bytes, mode, operation, end, &place);
                }
            }
        }
    }
    (openings, cuts)
}

/// Lets an opening crash at an operation, and opens what that may leave.
fn again(bytes: &[u8], mode: Recovery, operation: u64, end: u64, place: &str) -> u64 {
    let disk = install(bytes);
    disk.crash_at(operation);
    drop(open(&disk, mode));
    let states = some(&disk.crash_states(), operation);
    for (number, state) in states.iter().enumerate() {
        let place = format!("{place}, crashed at {operation}, state {number}");
        let database = open(state, mode).unwrap_or_else(|error| panic!("{place}: {error}"));
        assert_eq!(end_of(&database, &place), end, "{place}");
        let content = state.content(NAME).unwrap();
        let behind = usize::try_from(database.read().point().position).unwrap();
        assert!(content[behind..].iter().all(|byte| *byte == 0), "{place}");
        database.close().unwrap();
        let database = open(state, Recovery::Refuse).unwrap();
        assert_eq!(end_of(&database, &place), end, "{place}");
    }
    states.len() as u64
}
