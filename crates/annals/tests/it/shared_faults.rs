//! Shared mode where something fails: what one handle can't finish, the next one recovers, and nothing
//! that was acknowledged rests on what may be lost.

use std::path::Path;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use annals::reports::Older;
use annals::storage::{Access, Directory, FileDirectory, Hold, Lock};
use annals::{Database, ErrorKind, Level, Options, Result, Transaction, ValueRef};
use annals_simulated::{Fault, SimulatedClock, SimulatedDisk};

use crate::shared::{TABLE, define, open, options};

fn insert(database: &Database, number: i64, level: Level) -> Result<()> {
    database.write(|tx| {
        tx.set_level(level);
        tx.comment(&"x".repeat(2000))?; // so that no two share a sector
        tx.insert(TABLE, &[ValueRef::Int64(number)]).map(drop)
    })
}

/// Begins a transaction that has written data frames.
fn long(database: &Database) -> Transaction<'_> {
    let mut tx = database.begin().unwrap();
    for number in 0..300_000 {
        tx.insert(TABLE, &[ValueRef::Int64(number << 40)]).unwrap();
    }
    tx
}

/// Turns the power off, and sees that whatever is left opens and shows a transaction.
fn assert_durable(disk: &SimulatedDisk, txid: u64, what: &str) {
    let states = disk.crash_states();
    let some = states.every().take(500).chain([states.oldest(), states.all_but_last()]);
    for state in some {
        let clock = Arc::new(SimulatedClock::new(2));
        let opened = Options::new().background(false).open_in(Arc::new(state), "journal", clock);
        let opened = opened.unwrap_or_else(|error| panic!("{what}: {error}"));
        let shown = opened.read().txid();
        assert!(shown >= annals::Txid(txid), "{what}: {shown} of {txid}");
    }
}

/// Says whether the next transaction of a handle flushes, which a soft one does only to recover.
fn recovers(disk: &SimulatedDisk, database: &Database) -> bool {
    disk.clear_transcript();
    insert(database, 0, Level::Soft).unwrap();
    disk.transcript().contains("flush journal")
}

/// A named way to flush.
type Flush = (&'static str, fn(Database));

#[test]
fn whatever_flush_fails_the_next_one_recovers() {
    let flushes: [Flush; 3] = [
        ("checkpoint", |database| drop(database.hard_checkpoint().unwrap_err())),
        ("empty", |database| drop(database.write(|_| Ok(())).unwrap_err())),
        ("close", |database| drop(database.close().unwrap_err())),
    ];
    for (what, flush) in flushes {
        let disk = SimulatedDisk::new(1);
        let (first, second) = (open(&disk), open(&disk));
        first.write(define).unwrap();
        insert(&first, 1, Level::Soft).unwrap();
        disk.fail_at(disk.operations(), Fault::FlushLoses);
        flush(first);
        insert(&second, 2, Level::Checksummed).unwrap();
        assert_durable(&disk, 3, what);
    }
}

#[test]
fn what_a_process_did_not_come_to_tell_is_written_again() {
    let disk = SimulatedDisk::new(1);
    let (first, second) = (open(&disk), open(&disk));
    first.write(define).unwrap();
    // The flush fails, and then nothing can be written any more, not even that.
    disk.fail_from(disk.operations() + 1, Fault::FlushLoses);
    insert(&first, 1, Level::Checksummed).unwrap_err();
    drop(first);
    disk.clear_plan();
    insert(&second, 2, Level::Checksummed).unwrap();
    assert_durable(&disk, 3, "untold");
}

/// One that recovers from an interrupted writer may be interrupted itself, or fail.
#[test]
fn a_recovery_that_fails_is_done_by_the_next_one() {
    for at_opening in [false, true] {
        for step in 0..40 {
            for fault in [Fault::FlushLoses, Fault::Io] {
                let disk = SimulatedDisk::new(1);
                let (first, second, third) = (open(&disk), open(&disk), open(&disk));
                first.write(define).unwrap();
                insert(&first, 1, Level::Soft).unwrap();
                let tx = long(&first);
                disk.fail_from(disk.operations(), Fault::Io);
                drop(tx);
                drop(first);
                disk.clear_plan();
                disk.fail_from(disk.operations() + step, fault);
                let clock = Arc::new(SimulatedClock::new(1));
                let failed = match at_opening {
                    true => options().open_in(Arc::new(disk.clone()), "journal", clock).is_err(),
                    false => insert(&second, 2, Level::Soft).is_err(),
                };
                drop(second);
                disk.clear_plan();
                let what = format!("{step} {fault:?} {at_opening}");
                insert(&third, 3, Level::Checksummed).unwrap_or_else(|e| panic!("{what}: {e}"));
                assert_durable(&disk, third.read().txid().0, &what);
                let state = disk.crash_states().newest();
                let clock = Arc::new(SimulatedClock::new(2));
                let opened = Options::new().open_in(Arc::new(state), "journal", clock).unwrap();
                assert_eq!(opened.recovered().cut, None, "{what}");
                if !failed {
                    break;
                }
            }
        }
    }
}

/// The newest slot may be lost though it shows; a recovery must not take it for whole.
#[test]
fn one_slot_is_whole_behind_a_checkpoint_that_failed() {
    for step in 0..8 {
        let disk = SimulatedDisk::new(1);
        let (first, second) = (open(&disk), open(&disk));
        first.write(define).unwrap();
        insert(&second, 1, Level::Checksummed).unwrap(); // it has flushed something already
        disk.fail_at(disk.operations() + 2, Fault::FlushLoses);
        first.hard_checkpoint().unwrap_err();
        drop(first);
        disk.crash_at(disk.operations() + step);
        drop(insert(&second, 2, Level::Half));
        assert_durable(&disk, 2, &format!("{step}"));
    }
}

#[test]
fn a_mark_is_forgotten_when_another_has_recovered() {
    let disk = SimulatedDisk::new(1);
    let (first, second) = (open(&disk), open(&disk));
    first.write(define).unwrap();
    let tx = long(&first);
    disk.fail_at(disk.operations() + 1, Fault::Io);
    drop(tx);
    assert!(recovers(&disk, &second));
    for _ in 0..3 {
        assert!(!recovers(&disk, &first) && !recovers(&disk, &second));
    }
}

#[test]
fn a_handle_that_failed_leaves_the_others_in_peace() {
    let disk = SimulatedDisk::new(1);
    let (first, second) = (open(&disk), open(&disk));
    first.write(define).unwrap();
    disk.fail_at(disk.operations() + 1, Fault::Io);
    insert(&first, 1, Level::Checksummed).unwrap_err();
    assert!(recovers(&disk, &second));
    first.pull().unwrap();
    assert_eq!(first.close().unwrap_err().kind(), ErrorKind::Poisoned);
    assert!(!recovers(&disk, &second));
}

#[test]
fn a_forgotten_transaction_ends_with_its_handle() {
    let disk = SimulatedDisk::new(1);
    let (first, second) = (open(&disk), open(&disk));
    first.write(define).unwrap();
    insert(&first, 1, Level::Soft).unwrap();
    let snapshot = first.read();
    std::mem::forget(long(&first));
    first.close().unwrap();
    assert_durable(&disk, 2, "closed");
    insert(&second, 2, Level::Soft).unwrap();
    assert_eq!(snapshot.txid(), annals::Txid(2));
}

/// As after a forgotten one, or one whose code panicked: the others, and closing, continue.
#[test]
fn closing_is_whole_after_a_panic() {
    let disk = SimulatedDisk::new(1);
    let database = open(&disk);
    database.write(define).unwrap();
    let panics = || database.write(|_| -> Result<()> { panic!("as the test wants it") });
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).unwrap_err();
    insert(&database, 1, Level::Soft).unwrap();
    database.close().unwrap();
    assert!(annals_tools::inspect_in(&Options::new(), &disk, "journal").unwrap().is_closed());
    assert_durable(&disk, 2, "closed");
}

#[test]
fn those_who_open_a_new_file_together_all_get_it() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        all_open(&path);
        all_open(&path);
    }
}

fn all_open(path: &Path) {
    let barrier = Barrier::new(4);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                barrier.wait();
                let database = Options::new().shared(true).open(path).unwrap();
                database.write(|tx| tx.comment("here")).unwrap();
                database.close().unwrap();
            });
        }
    });
}

#[test]
fn who_follows_waits_for_one_who_looks_whether_it_is_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.annals");
    let patient = Options::new().shared(true).lock_timeout(Duration::from_secs(100));
    let first = patient.open(&path).unwrap();
    first.write(define).unwrap();
    let follower = patient.open(&path).unwrap();
    first.restart(Older::Kept, Duration::ZERO).unwrap();
    first.close().unwrap();
    let directory = FileDirectory::new(folder.path());
    let looks = directory.open("journal.annals", Access::Write).unwrap();
    assert!(
        looks.try_lock(Lock::Head, Hold::Exclusive).unwrap(),
        "nobody else has the new segment"
    );
    std::thread::scope(|scope| {
        let follows =
            scope.spawn(|| follower.write(|tx| tx.insert(TABLE, &[ValueRef::Int64(1)]).map(drop)));
        #[allow(clippy::disallowed_methods, reason = "another thread waits meanwhile")]
        std::thread::sleep(Duration::from_millis(50));
        assert!(!follows.is_finished());
        looks.unlock(Lock::Head).unwrap();
        follows.join().unwrap().unwrap();
    });
    assert_eq!(follower.read().table(TABLE).unwrap().len(), 1);
}

#[test]
fn who_follows_is_told_if_another_stays_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.annals");
    let first = options().open(&path).unwrap();
    first.write(define).unwrap();
    let follower = options().open(&path).unwrap();
    first.restart(Older::Kept, Duration::ZERO).unwrap();
    first.close().unwrap();
    let alone = Database::open(&path).unwrap();
    let refused =
        follower.write(|tx| tx.insert(TABLE, &[ValueRef::Int64(1)]).map(drop)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Busy, "{refused}");
    alone.close().unwrap();
    follower.write(|tx| tx.insert(TABLE, &[ValueRef::Int64(1)]).map(drop)).unwrap();
}
