//! Recovery as users choose it, and disks that are worse than assumed.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use annals::journal::format::hash;
use annals::storage::Directory;
use annals::{ErrorKind, Options, Recovery};
use annals_simulated::{Rng, SimulatedClock, SimulatedDisk};

use super::explore::run;
use super::history::History;
use super::world::{Errors, NAME, World};
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
                let shown = history.clone().opened(disk, &database, 0);
                assert_eq!(shown, Ok(()), "{place}");
                let cut = database.recovered().cut.as_ref();
                let is_saved =
                    cut.is_some_and(|cut| cut.may_have_been_acknowledged && cut.saved_as.is_some());
                if usize::try_from(database.read().txid().0).unwrap() < history.durable {
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
