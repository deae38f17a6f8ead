//! Two slots on a disk that loses power at each operation: what is found is never older than what was acknowledged, and
//! says nothing that isn't there.

use std::io;

use annals_simulated::{Rng, SimulatedDisk};
use annals_storage::bytes::{Fields, Layout};
use annals_storage::slots::{Copies, Record, Slots, newest, older};
use annals_storage::{Access, Directory};

const NAME: &str = "slots";
const SLOTS: Slots<2> = Slots { at: [4096, 8192], copies_at: [512, 1024] };
/// What records say is there: a value of two sectors for each, by turns at two places.
const VALUE_AT: [u64; 2] = [16_384, 20_480];
const VALUE_LEN: usize = 1024;
const LEN: usize = 96;
const LAST: u64 = 9;

#[derive(Clone, Debug, PartialEq)]
struct Tested(u64);

impl Record for Tested {
    fn number(&self) -> u64 {
        self.0
    }
}

fn encode(number: u64) -> [u8; LEN] {
    let mut to = Layout([0; LEN]);
    to.put(0, number.to_le_bytes());
    to.seal(LEN - 8);
    to.0
}

fn decode(bytes: &[u8; LEN]) -> Option<Tested> {
    let from = Fields(bytes);
    from.checked(LEN - 8).then(|| Tested(from.u64(0)))
}

/// The ways to write a slot.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    AtOnce,
    InTurn,
    /// Wrong: what the record says isn't flushed before it.
    Unflushed,
    /// Wrong: the slot of the newest record is written over.
    SameSlot,
}

fn value(number: u64) -> [u8; VALUE_LEN] {
    [u8::try_from(number).unwrap(); VALUE_LEN]
}

/// Writes one record after another; `acknowledged` is the last that is known to be on permanent storage.
fn write_all(disk: &SimulatedDisk, way: Way, acknowledged: &mut u64) -> io::Result<()> {
    let file = disk.open(NAME, Access::Write)?;
    for number in *acknowledged + 1..=LAST {
        let slot = usize::from(number % 2 == 1);
        file.write_at(VALUE_AT[slot], &value(number))?;
        let slot = if way == Way::SameSlot { 0 } else { slot };
        match way {
            Way::InTurn => SLOTS.write_in_turn(&*file, slot, &encode(number))?,
            Way::Unflushed => SLOTS.write_at_once(&*file, slot, &encode(number))?,
            Way::AtOnce | Way::SameSlot => {
                file.flush()?;
                SLOTS.write_at_once(&*file, slot, &encode(number))?;
            }
        }
        if way != Way::InTurn {
            file.flush()?;
        }
        *acknowledged = number;
    }
    Ok(())
}

/// Returns the newest valid record, or the problem.
fn look(disk: &SimulatedDisk, way: Way) -> Result<u64, String> {
    let file = disk.open(NAME, Access::Read).unwrap();
    let copies: Copies<Tested, 2> = SLOTS.read(&*file, decode).unwrap().copies;
    let is_there = |record: &Tested| {
        let mut bytes = [0; VALUE_LEN];
        file.read_at(VALUE_AT[usize::from(record.0 % 2 == 1)], &mut bytes).unwrap();
        bytes == value(record.0)
    };
    let mut found = 0;
    for [first, second] in &copies {
        if way != Way::InTurn {
            let untrue = [first, second].into_iter().flatten().find(|record| !is_there(record));
            // The value of the record before the newest is being written over.
            let is_newest = |record: &Tested| newest(&copies) == Some(record);
            if let Some(untrue) = untrue.filter(|record| is_newest(record)) {
                return Err(format!("{untrue:?} isn't there"));
            }
            found = found.max(first.iter().chain(second).map(|it| it.0).max().unwrap_or(0));
        } else if let Some(record) = first.as_ref().filter(|record| is_there(record)) {
            found = found.max(record.0);
        } else if first.is_some() && first == second && newest(&copies) == first.as_ref() {
            return Err(format!("{first:?} isn't there, and both copies say so"));
        }
    }
    Ok(found)
}

/// Crashes at each operation, and looks at what each crash may leave. Returns what is wrong, and how many states that were.
fn sweep(way: Way) -> (Option<String>, u64) {
    let fresh = SimulatedDisk::new(1);
    let file = fresh.create(NAME).unwrap();
    file.write_at(0, &[0; 32_768]).unwrap();
    file.flush().unwrap();
    fresh.flush().unwrap();
    let fresh = fresh.crash_states().newest();
    let done = fresh.fork();
    let begin = done.operations();
    write_all(&done, way, &mut 0).unwrap();
    let (mut states, mut rng) = (0, Rng::new(7));
    for operation in begin..done.operations() {
        let (disk, mut acknowledged) = (fresh.fork(), 0);
        disk.crash_at(operation);
        write_all(&disk, way, &mut acknowledged).unwrap_err();
        // A disk that leaves garbage may lose the whole block that is written: both copies.
        let left = match way {
            Way::InTurn => disk.crash_states(),
            _ => disk.crash_states_with_garbage(),
        };
        let all: Vec<_> = match left.count() {
            Some(count) if count <= 4096 => left.every().collect(),
            _ => (0..4096).map(|_| left.random(&mut rng)).collect(),
        };
        for state in all {
            states += 1;
            match look(&state, way) {
                Ok(found) if (acknowledged..=acknowledged + 1).contains(&found) => {}
                found => {
                    return (Some(format!("{operation}: {found:?}, not {acknowledged}")), states);
                }
            }
            // Who continues writes the other slot.
            let file = state.open(NAME, Access::Read).unwrap();
            let copies = SLOTS.read(&*file, decode).unwrap().copies;
            let next = older(&copies);
            if let Some(newest) = newest(&copies) {
                assert!(copies[next].iter().flatten().all(|record| record != newest), "{way:?}");
            }
        }
    }
    (None, states)
}

#[test]
fn the_newest_record_survives_a_power_cut_at_any_operation() {
    for way in [Way::AtOnce, Way::InTurn] {
        let (problem, states) = sweep(way);
        assert_eq!(problem, None, "{way:?}");
        assert!(states > 100, "{way:?}: {states} states");
    }
}

#[test]
fn wrong_ways_to_write_slots_are_found() {
    for way in [Way::Unflushed, Way::SameSlot] {
        assert!(sweep(way).0.is_some(), "{way:?}");
    }
}

#[test]
fn slots_are_read_again_only_while_one_may_be_being_written() {
    let disk = SimulatedDisk::new(1);
    let file = disk.create(NAME).unwrap();
    file.write_at(0, &[0; 32_768]).unwrap();
    let reads = || {
        let before = disk.reads();
        let found = SLOTS.read(&*file, decode).unwrap();
        (disk.reads() - before, found)
    };
    assert_eq!(reads().0, 4, "blank");
    SLOTS.write_at_once(&*file, 1, &encode(7)).unwrap();
    let (count, found) = reads();
    assert_eq!((count, found.is_blank), (4, [true, false]));
    assert_eq!((newest(&found.copies), older(&found.copies)), (Some(&Tested(7)), 0));
    SLOTS.write_copy(&*file, 0, 0, &encode(8)).unwrap();
    let (count, found) = reads();
    assert_eq!((count, annals_storage::slots::torn(&found.copies)), (16, [true, false]));
    assert_eq!(newest(&found.copies), Some(&Tested(8)));
}
