//! Recovery as users choose it, and disks that are worse than assumed.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use annals::journal::format::hash;
use annals::storage::Directory;
use annals::storage::simulated::{Rng, SimulatedClock, SimulatedDisk};
use annals::{ErrorKind, Level, Options, Recovery};

use super::explore::run;
use super::history::{Checked, History};
use super::workload::Step;
use super::world::{Errors, NAME, Stop, World};
use super::{is_full, judge};

fn contents(disk: &SimulatedDisk) -> BTreeMap<String, Vec<u8>> {
    let names = disk.list().unwrap();
    names.into_iter().map(|name| (name.clone(), disk.content(&name).unwrap())).collect()
}

/// Calls for random states after a power cut at every operation of a few workloads.
fn for_random_states(garbage: bool, mut call: impl FnMut(&str, &SimulatedDisk, &History)) {
    let (seeds, samples) = if is_full() { (100, 40) } else { (12, 8) };
    for seed in 0..seeds {
        let workload = format!("mixed-{seed}");
        let (whole, _) = run(&workload, Errors::Fatal, |_| ()).unwrap();
        for operation in 0..whole.disk.operations() {
            let cut = |disk: &SimulatedDisk| disk.crash_at(operation);
            let (world, _) = run(&workload, Errors::Fatal, cut).unwrap();
            let states = match garbage {
                true => world.disk.crash_states_with_garbage(),
                false => world.disk.crash_states(),
            };
            for number in 0..samples {
                let place = format!("{workload}/power@{operation}/r{number}");
                let disk = states.random(&mut Rng::new(hash(place.as_bytes())));
                call(&place, &disk, &world.history);
            }
        }
    }
}

#[test]
fn refusing_changes_not_a_byte() {
    let (mut refused, mut opened) = (0, 0);
    for_random_states(false, |place, disk, history| {
        let Ok(before) = judge::before(disk, history) else { panic!("{place}") };
        let found = contents(disk);
        let options = Options::new().background(false).recovery(Recovery::Refuse);
        let clock = Arc::new(SimulatedClock::new(1));
        let result = options.open_in(Arc::new(disk.clone()), NAME, clock);
        match result {
            Ok(_) => {
                opened += 1;
                assert_eq!(before.tail(), None, "{place}: cut, though it was to refuse that");
            }
            Err(error) => {
                refused += 1;
                assert_eq!(error.kind(), ErrorKind::NeedsRecovery, "{place}: {error:?}");
                assert!(before.tail().is_some(), "{place}: {error}");
                let says = ["simulated:journal", "Recovery::Checked", "position"];
                assert!(says.iter().all(|part| error.to_string().contains(part)), "{error}");
                assert_eq!(contents(disk), found, "{place}");
                assert_eq!(disk.transcript(), "", "{place}");
            }
        }
    });
    assert!(refused > 100 && opened > 100, "{refused} refused, {opened} opened");
}

/// On a disk that may leave garbage in any sector that was being written, the last durable commits
/// are not safe, since the next one shares a sector with them. But what is opened is a state that
/// was, and what is missing of it is reported and saved; or opening fails and changes nothing.
#[test]
fn garbage_is_never_shown() {
    let (mut refused, mut opened, mut less) = (0, 0, 0);
    for_random_states(true, |place, disk, history| {
        let found = contents(disk);
        let world = World::new(disk.clone(), 1, history.clone(), Errors::Faults);
        let result = catch_unwind(AssertUnwindSafe(|| world.try_open()));
        match result.unwrap_or_else(|_| panic!("{place}: panicked")) {
            Ok(database) => {
                opened += 1;
                let shown = history.clone().opened(&database, 0);
                assert_eq!(shown, Ok(()), "{place}");
                let cut = database.recovered().cut.as_ref();
                let is_saved =
                    cut.is_some_and(|cut| cut.may_have_been_acknowledged && cut.saved_as.is_some());
                if usize::try_from(database.read().txid()).unwrap() < history.durable {
                    less += 1;
                    assert!(is_saved, "{place}: durable transactions are missing in silence");
                }
                judge::only_zeros_follow(disk, &database).unwrap();
            }
            Err(error) => {
                refused += 1;
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{place}: {error:?}");
                assert_eq!(contents(disk), found, "{place}");
            }
        }
    });
    let all = format!("{opened} opened, {refused} refused, {less} with less than was durable");
    assert!(opened > 500 && less > 0, "{all}");
}

/// Checks that a half or two-phase commit is shown after a power cut only if the second copy of its
/// slot had been written, though its frame verifies before.
pub(super) fn doubt() -> Checked {
    for level in [Level::Half, Level::TwoPhase] {
        // The frame, the first copy, the flush, the second copy; then, perhaps, another flush.
        for operation in 0..6 {
            let disk = SimulatedDisk::new(operation);
            let mut world = World::new(disk, 1, History::new(), Errors::Fatal);
            let write = |level| Step::Write { rows: 1, level };
            let broken = |stop| match stop {
                Stop::Broken(text) => Err(text),
                Stop::Died => Ok(()),
            };
            world.open(0).or_else(broken)?;
            world.step(write(Level::TwoPhase)).or_else(broken)?;
            world.disk.crash_at(world.disk.operations() + operation);
            world.step(write(level)).or_else(broken)?;
            let mut shown = 0;
            let states = world.disk.crash_states();
            for disk in states.every() {
                let world = World::new(disk, 1, History::new(), Errors::Fatal);
                let database = world.try_open().map_err(|error| format!("{error:?}"))?;
                shown += u64::from(database.read().txid() > 1);
            }
            let is_possible = operation >= 3;
            if (shown > 0) != is_possible {
                let place = format!("{level:?}, power off at operation {operation} of it");
                return Err(format!("{place}: shown in {shown} states of {:?}", states.count()));
            }
        }
    }
    Ok(())
}

#[test]
fn a_doubtful_commit_counts_by_its_slot() {
    assert_eq!(doubt(), Ok(()));
}
