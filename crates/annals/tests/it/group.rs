//! Commits that are written while another one is being flushed, which takes a disk whose flushes wait.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use annals::storage::{Access, Clock, Directory, Hold, Lock};
use annals::{Database, ErrorKind, Level, Options, Result, Transaction, ValueRef};
use annals_simulated::{Fault, SimulatedClock, SimulatedDisk};

use crate::shared::{TABLE, define, open, options};
use crate::watched::{Watched, Watcher};

/// Lets flushes of files through, one at a time if it is closed.
#[derive(Debug, Default)]
struct Gate {
    state: Mutex<(bool, u64)>,
    changed: Condvar,
}

impl Gate {
    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        state.1 += 1;
        self.changed.notify_all();
        drop(self.changed.wait_while(state, |(closed, _)| *closed).unwrap());
    }

    fn set_closed(&self, closed: bool) {
        *self.state.lock().unwrap() = (closed, 0);
        self.changed.notify_all();
    }

    /// Returns when somebody waits at the gate.
    fn wait_for_flush(&self) {
        let state = self.state.lock().unwrap();
        drop(self.changed.wait_while(state, |(_, came)| *came == 0).unwrap());
    }
}

impl Watcher for Gate {
    fn before_flush(&self) {
        self.pass();
    }
}

fn begin(database: &Database, level: Level) -> Transaction<'_> {
    let mut tx = database.begin().unwrap();
    tx.set_level(level);
    tx.insert(TABLE, &[ValueRef::Int64(1)]).unwrap();
    tx
}

fn gated() -> (SimulatedDisk, Arc<Gate>, Database) {
    gated_by(&Options::new())
}

fn gated_by(options: &Options) -> (SimulatedDisk, Arc<Gate>, Database) {
    let (disk, gate) = (SimulatedDisk::new(1), Arc::new(Gate::default()));
    let directory = Watched::new(Arc::new(disk.clone()), Arc::clone(&gate));
    let clock = Arc::new(SimulatedClock::new(1));
    let options = options.clone().background(false);
    let database = options.open_in(Arc::new(directory), "journal", clock).unwrap();
    database.write(define).unwrap();
    (disk, gate, database)
}

/// Commits at `first` in a thread, and writes a commit at `second` while that is being flushed.
fn overlap<T>(
    (gate, database): (&Gate, &Database),
    first: Level,
    second: Level,
    then: impl FnOnce(annals::Pending<'_>) -> T,
) -> (Result<annals::Commit>, T) {
    gate.set_closed(true);
    std::thread::scope(|scope| {
        let committing = scope.spawn(|| begin(database, first).commit());
        gate.wait_for_flush();
        let before = database.read().txid();
        let pending = begin(database, second).submit().unwrap();
        assert_eq!(database.read().txid(), before, "neither is acknowledged");
        gate.set_closed(false);
        (committing.join().unwrap(), then(pending))
    })
}

#[test]
fn what_is_written_during_a_flush_is_not_covered_by_it() {
    for first in [Level::Checksummed, Level::Half, Level::TwoPhase] {
        for second in [Level::Checksummed, Level::Half, Level::TwoPhase] {
            let (disk, gate, database) = gated();
            for _ in 0..3 {
                let overlapping = (&*gate, &database);
                let (one, two) = overlap(overlapping, first, second, |pending| pending.wait());
                let (one, two) = (one.unwrap(), two.unwrap());
                assert_eq!(one.txid + 1, two.txid);
                let promised = two.txid;
                let states = disk.crash_states();
                for state in states.every().take(5000) {
                    let clock = Arc::new(SimulatedClock::new(2));
                    let opened = Options::new().open_in(Arc::new(state), "journal", clock);
                    let shown = opened.unwrap().read().txid();
                    assert!(shown >= promised, "{first:?}, {second:?}: {shown} of {promised}");
                }
            }
        }
    }
}

#[test]
fn a_failed_flush_leaves_all_that_wait_unknown() {
    let (disk, gate, database) = gated();
    let acknowledged = database.read().txid();
    let level = Level::Checksummed;
    disk.fail_from(disk.operations() + 2, Fault::Io);
    let (one, two) = overlap((&gate, &database), level, level, |pending| pending.wait());
    for outcome in [one, two] {
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::UnknownOutcome);
    }
    assert_eq!(database.read().txid(), acknowledged);
    assert_eq!(database.begin().unwrap_err().kind(), ErrorKind::Poisoned);
}

/// A clock that continues by a millisecond whenever it is read, and by 100 in each flush.
#[derive(Debug)]
struct SlowFlushes {
    reads: AtomicU64,
    gate: Arc<Gate>,
    clock: SimulatedClock,
}

impl Clock for SlowFlushes {
    fn now(&self) -> i64 {
        self.clock.now()
    }
    fn elapsed(&self) -> Duration {
        let flushes = self.gate.state.lock().unwrap().1;
        Duration::from_millis(self.reads.fetch_add(1, Ordering::Relaxed) + 100 * flushes)
    }
    fn pause(&self, time: Duration) {
        self.clock.pause(time);
    }
    fn random(&self) -> u64 {
        self.clock.random()
    }
}

#[test]
fn who_commits_alone_waits_for_nobody() {
    for shared in [false, true] {
        let gate = Arc::new(Gate::default());
        let clock = Arc::new(SlowFlushes {
            reads: AtomicU64::new(0),
            gate: Arc::clone(&gate),
            clock: SimulatedClock::new(1),
        });
        let directory = Arc::new(Watched::new(Arc::new(SimulatedDisk::new(1)), gate));
        let options = Options::new().background(false).shared(shared);
        let database = options.open_in(directory, "journal", Arc::<SlowFlushes>::clone(&clock));
        let database = database.unwrap();
        database.write(define).unwrap();
        let before = clock.reads.load(Ordering::Relaxed);
        for _ in 0..10 {
            begin(&database, Level::Checksummed).commit().unwrap();
        }
        let reads = clock.reads.load(Ordering::Relaxed) - before;
        assert!(reads <= 100, "shared: {shared}: {reads} looks at the clock for 10 commits");
    }
}

/// In shared mode: commits in a thread, and runs `meanwhile` during its flush.
fn during_a_turn<T>(
    (gate, database): (&Gate, &Database),
    meanwhile: impl FnOnce() -> T,
) -> (Result<annals::Commit>, T) {
    gate.set_closed(true);
    std::thread::scope(|scope| {
        let committing = scope.spawn(|| begin(database, Level::Checksummed).commit());
        gate.wait_for_flush();
        assert_eq!(database.read().table(TABLE).unwrap().len(), 0, "it isn't acknowledged");
        let done = meanwhile();
        gate.set_closed(false);
        (committing.join().unwrap(), done)
    })
}

#[test]
fn a_turn_lasts_until_its_commit_is_acknowledged() {
    let (disk, gate, database) = gated_by(&options());
    let other = open(&disk);
    let begun = || other.begin().map(drop).unwrap_err().kind();
    let (committed, refused) = during_a_turn((&gate, &database), begun);
    let committed = committed.unwrap();
    assert_eq!(refused, ErrorKind::Busy);
    for state in disk.crash_states().every().take(5000) {
        let opened =
            Options::new().open_in(Arc::new(state), "journal", Arc::new(SimulatedClock::new(2)));
        assert!(opened.unwrap().read().txid() >= committed.txid);
    }
    other.write(|tx| tx.insert(TABLE, &[ValueRef::Int64(2)]).map(drop)).unwrap();
    assert!(other.recoveries().is_empty());
    assert_eq!(database.pull().unwrap().table(TABLE).unwrap().len(), 2);
}

#[test]
fn a_thread_that_waits_for_the_turn_of_another_takes_its_own() {
    let (disk, gate, database) = gated_by(&options());
    // As another process does that is next.
    let waiting = disk.open("journal", Access::Write).unwrap();
    std::thread::scope(|scope| {
        let next = || {
            assert!(waiting.try_lock(Lock::Turn, Hold::Exclusive).unwrap());
            scope.spawn(|| database.begin().map(drop))
        };
        let (committed, second) = during_a_turn((&gate, &database), next);
        committed.unwrap();
        assert_eq!(second.join().unwrap().unwrap_err().kind(), ErrorKind::Busy);
    });
    waiting.unlock(Lock::Turn).unwrap();
    drop(database.begin().unwrap());
}

#[test]
fn a_failed_flush_in_shared_mode_leaves_the_commit_unknown_and_is_recovered_next() {
    let (disk, gate, database) = gated_by(&options());
    let other = open(&disk);
    let fail = || disk.fail_at(disk.operations(), Fault::Io);
    let (committed, ()) = during_a_turn((&gate, &database), fail);
    assert_eq!(committed.unwrap_err().kind(), ErrorKind::UnknownOutcome);
    assert_eq!(database.begin().unwrap_err().kind(), ErrorKind::Poisoned);
    disk.clear_transcript();
    other.write(|tx| tx.insert(TABLE, &[ValueRef::Int64(2)]).map(drop)).unwrap();
    let transcript = disk.transcript();
    assert!(transcript.contains("flush journal"), "it recovers first:\n{transcript}");
    assert_eq!(other.read().table(TABLE).unwrap().len(), 2);
}
