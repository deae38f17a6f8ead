//! The locks of all storages behave the same.

use std::io;

use annals_simulated::SimulatedDisk;
use annals_storage::{Access, Directory, FileDirectory, Hold, Lock, MemoryDirectory};

const LOCKS: [Lock; 7] = [
    Lock::Head,
    Lock::Tail,
    Lock::Turn,
    Lock::History,
    Lock::Backfill,
    Lock::Pin(1),
    Lock::Pin(u64::MAX),
];
const HOLDS: [Hold; 2] = [Hold::Shared, Hold::Exclusive];

/// Runs a test on one file of each implementation, with its locks.
fn on_all(test: impl Fn(&dyn Directory, &[Lock])) {
    let folder = tempfile::tempdir().unwrap();
    let of_files = if cfg!(any(windows, target_os = "linux")) { &LOCKS } else { &LOCKS[..1] };
    let all: [(&dyn Directory, &[Lock]); 3] = [
        (&FileDirectory::new(folder.path()), of_files),
        (&MemoryDirectory::new(), &LOCKS),
        (&SimulatedDisk::new(1), &LOCKS),
    ];
    for (directory, locks) in all {
        drop(directory.create("file").unwrap());
        test(directory, locks);
    }
}

#[test]
fn each_lock_is_one_handle_s_or_shared_and_knows_nothing_of_the_others() {
    on_all(|directory, locks| {
        for (lock, first, second) in locks
            .iter()
            .flat_map(|lock| HOLDS.into_iter().flat_map(move |a| HOLDS.map(|b| (*lock, a, b))))
        {
            let open = || directory.open("file", Access::Write).unwrap();
            let (one, two, three) = (open(), open(), open());
            let both = first == Hold::Shared && second == Hold::Shared;
            let what = format!("{} {lock:?} {first:?} {second:?}", directory.display("file"));
            assert!(one.try_lock(lock, first).unwrap(), "{what}");
            assert!(one.try_lock(lock, first).unwrap(), "{what}: a holder gets it again");
            assert_eq!(two.try_lock(lock, second).unwrap(), both, "{what}");
            for other in locks.iter().filter(|other| **other != lock) {
                assert!(three.try_lock(*other, Hold::Exclusive).unwrap(), "{what}: {other:?}");
            }
            three.unlock(lock).unwrap();
            assert_eq!(two.try_lock(lock, second).unwrap(), both, "{what}: not three's");
            one.unlock(lock).unwrap();
            one.unlock(lock).unwrap();
            assert!(two.try_lock(lock, second).unwrap(), "{what}: it was let go of");
            assert_eq!(one.try_lock(lock, first).unwrap(), both, "{what}: the other way round");
            drop(two);
            assert!(one.try_lock(lock, first).unwrap(), "{what}: the other handle has ended");
        }
    });
}

#[test]
fn the_last_of_those_that_share_lets_in_one_that_wants_to_be_alone() {
    on_all(|directory, locks| {
        for lock in locks {
            let open = || directory.open("file", Access::Write).unwrap();
            let (sharers, alone) = ([open(), open()], open());
            for sharer in &sharers {
                assert!(sharer.try_lock(*lock, Hold::Shared).unwrap());
            }
            for sharer in sharers {
                assert!(!alone.try_lock(*lock, Hold::Exclusive).unwrap());
                drop(sharer);
            }
            assert!(alone.try_lock(*lock, Hold::Exclusive).unwrap());
        }
    });
}

#[test]
fn how_a_lock_is_held_does_not_change() {
    on_all(|directory, locks| {
        for (lock, (hold, other)) in locks.iter().flat_map(|lock| {
            let [shared, exclusive] = HOLDS;
            [(lock, (shared, exclusive)), (lock, (exclusive, shared))]
        }) {
            let file = directory.open("file", Access::Write).unwrap();
            assert!(file.try_lock(*lock, hold).unwrap());
            let error = file.try_lock(*lock, other).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            assert!(file.try_lock(*lock, hold).unwrap(), "it is held as before");
            file.unlock(*lock).unwrap();
            assert!(file.try_lock(*lock, other).unwrap());
        }
    });
}

#[test]
fn who_may_only_read_can_share() {
    on_all(|directory, locks| {
        for lock in locks {
            let (reader, writer) = (Access::Read, Access::Write);
            let [reader, writer] = [reader, writer].map(|a| directory.open("file", a).unwrap());
            let error = reader.try_lock(*lock, Hold::Exclusive).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
            assert!(reader.try_lock(*lock, Hold::Shared).unwrap());
            assert!(!writer.try_lock(*lock, Hold::Exclusive).unwrap());
        }
    });
}

#[test]
fn anybody_can_ask_for_the_oldest_pin() {
    on_all(|directory, locks| {
        let open = |access| directory.open("file", access).unwrap();
        let (asker, reader) = (open(Access::Write), open(Access::Read));
        let oldest = |roots| asker.oldest_pin(roots);
        if !locks.contains(&Lock::Pin(1)) {
            assert_eq!(oldest(0..9).unwrap_err().kind(), io::ErrorKind::Unsupported);
            return;
        }
        assert_eq!(oldest(0..u64::MAX).unwrap(), None);
        let other = open(Access::Write);
        for (handle, root) in [(&reader, 7), (&other, 9), (&reader, 8), (&asker, 12), (&other, 3)] {
            assert!(handle.try_lock(Lock::Pin(root), Hold::Shared).unwrap());
        }
        // Other locks are none.
        assert!(other.try_lock(Lock::Backfill, Hold::Exclusive).unwrap());
        let all = [(0..4, Some(3)), (0..3, None), (3..9, Some(3)), (4..9, Some(7))];
        let more = [(8..9, Some(8)), (9..10, Some(9)), (10..12, None), (10..13, Some(12))];
        let none = [(13..u64::MAX, None), (5..5, None)];
        for (roots, found) in all.into_iter().chain(more).chain(none) {
            assert_eq!(oldest(roots.clone()).unwrap(), found, "{roots:?}");
        }
        // A query acquires no lock.
        assert!(other.try_lock(Lock::Pin(12), Hold::Shared).unwrap());
        other.unlock(Lock::Pin(3)).unwrap();
        assert_eq!(oldest(0..9).unwrap(), Some(7));
        if !cfg!(windows) {
            assert_eq!(asker.holder(Lock::Pin(8)), Some(std::process::id()));
            assert_eq!(asker.holder(Lock::Pin(10)), None);
        }
        drop(reader);
        assert_eq!(oldest(0..u64::MAX).unwrap(), Some(9));
    });
}

#[test]
fn closing_another_handle_drops_no_lock() {
    on_all(|directory, locks| {
        // As a classic POSIX lock would be dropped.
        let open = || directory.open("file", Access::Write).unwrap();
        let (one, two) = (open(), open());
        for lock in locks {
            assert!(one.try_lock(*lock, Hold::Exclusive).unwrap());
            drop(open());
            assert!(!two.try_lock(*lock, Hold::Exclusive).unwrap());
        }
    });
}
