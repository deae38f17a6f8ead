//! What a backup that didn't come to its end leaves is in nobody's way, and goes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use annals::storage::{Access, Clock, Directory, Hold, Lock, MemoryDirectory};
use annals::{ErrorKind, Options, Reader, Result, RowId};
use annals_simulated::{Rng, SimulatedClock, SimulatedDisk};
use annals_tools::{Copied, Erase};

use super::COPY;
use crate::segments::{NAME, content, options, split};

fn clock() -> Arc<dyn Clock> {
    // No two backups draw the same numbers.
    static BACKUPS: AtomicU64 = AtomicU64::new(1000);
    Arc::new(SimulatedClock::new(BACKUPS.fetch_add(1, Ordering::Relaxed)))
}

fn backup(from: &MemoryDirectory, to: Arc<dyn Directory>) -> Result<Copied> {
    annals_tools::backup_in(&Options::new(), Arc::new(from.clone()), NAME, to, COPY, clock())
}

fn source() -> (MemoryDirectory, String) {
    let (many, database, _) = split(2);
    let expected = content(&database.read());
    database.close().unwrap();
    (many, expected)
}

const WHOLE: [&str; 3] = [COPY, "copy-segment-000000", "copy-segment-000001"];

/// The names of files that aren't caches. (An empty one that only had a lock is in nobody's way, and names of kept
/// segments that came back without that of the newest are known to an erasure.)
fn without_caches(disk: &dyn Directory) -> Vec<String> {
    let others = ["-image", ".held"];
    let is_other = |name: &String| {
        others.iter().any(|other| name.ends_with(other))
            || name.contains("-segment-") && name.contains(".backup-")
    };
    disk.list().unwrap().into_iter().filter(|name| !is_other(name)).collect()
}

#[test]
fn a_power_cut_leaves_nothing_that_stands_in_the_way_of_the_next_backup() {
    let (source, expected) = source();
    let whole = SimulatedDisk::new(3);
    backup(&source, Arc::new(whole.clone())).unwrap();
    assert_eq!(whole.list().unwrap(), WHOLE);
    let mut seen = [0; 2];
    for operation in 0..=whole.operations() {
        let disk = SimulatedDisk::new(3);
        disk.crash_at(operation);
        let _ = backup(&source, Arc::new(disk.clone()));
        let states = disk.crash_states();
        let random = (0..4).map(|seed| states.random(&mut Rng::new(operation * 10 + seed)));
        for state in [states.oldest(), states.newest()].into_iter().chain(random) {
            let before = state.list().unwrap();
            let is_there = before.iter().any(|name| name == COPY);
            seen[usize::from(is_there)] += 1;
            if is_there {
                // A name that came back goes with the next opening.
                let to = Arc::new(state.clone());
                options().create(false).open_in(to, COPY, clock()).unwrap().close().unwrap();
                assert_eq!(without_caches(&state), WHOLE, "{operation}: {before:?}");
                let again = backup(&source, Arc::new(state.clone()));
                assert_eq!(again.unwrap_err().kind(), ErrorKind::InUse);
                continue;
            }
            let again = backup(&source, Arc::new(state.clone()));
            again.unwrap_or_else(|error| panic!("{operation}: {before:?}: {error}"));
            assert_eq!(state.list().unwrap(), WHOLE, "{operation}: {before:?}");
            assert_eq!(content(&Reader::open(&state, COPY).unwrap().read()), expected);
        }
    }
    assert!(seen.iter().all(|&seen| seen > 5), "{seen:?}");
}

#[test]
fn names_that_came_back_are_known_to_an_erasure() {
    let (source, _) = source();
    let disk = SimulatedDisk::new(3);
    backup(&source, Arc::new(disk.clone())).unwrap();
    for name in WHOLE {
        let temporary = name.replace(COPY, "copy.backup-0123456789abcdef");
        disk.install(&temporary, &disk.content(name).unwrap()).unwrap();
    }
    let directory: Arc<dyn Directory> = Arc::new(disk.clone());
    let erased = annals_tools::erase_in(
        &options(),
        &directory,
        COPY,
        &clock(),
        &Erase::new("city", RowId(0)),
    );
    assert_eq!(erased.unwrap().removed.len(), 3);
    assert_eq!(without_caches(&disk), WHOLE);
}

#[test]
fn what_somebody_is_writing_is_left_alone() {
    let (source, _) = source();
    let to = MemoryDirectory::new();
    let held = to.create("copy.backup-0123456789abcdef.held").unwrap();
    assert!(held.try_lock(Lock::Head, Hold::Exclusive).unwrap());
    for name in WHOLE {
        to.create(&name.replace(COPY, "copy.backup-0123456789abcdef")).unwrap();
    }
    backup(&source, Arc::new(to.clone())).unwrap();
    assert_eq!(to.list().unwrap().len(), 7);
    drop(held);
    for name in WHOLE {
        to.remove(name).unwrap();
    }
    backup(&source, Arc::new(to.clone())).unwrap();
    assert_eq!(to.list().unwrap(), WHOLE);
    assert!(to.open(COPY, Access::Read).is_ok());
}
