//! The checkpointer: a thread that does work before and after commits for which no commit should wait.
//!
//! Every 10 ms while something is written, it zeroes space ahead, flushes the frames of a long transaction, and
//! publishes the end of the journal. After 100 ms without a write it advances a slot; after a second it sleeps until
//! the next commit wakes it. It never fails a commit: its errors that matter are latched.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::db::present::segment::Current;
use crate::journal::{Point, lock};

const ROUND: Duration = Duration::from_millis(10);
const ROUNDS_UNTIL_IDLE: u32 = 10;
const ROUNDS_UNTIL_ASLEEP: u32 = 100;

/// The handle of the thread, which starts at the first transaction.
#[derive(Debug)]
pub(in crate::db) struct Checkpointer {
    shared: Arc<Shared>,
    thread: OnceLock<Mutex<Option<JoinHandle<()>>>>,
}

#[derive(Debug)]
struct Shared {
    segment: Arc<Current>,
    /// Held while it does something.
    working: Arc<Mutex<()>>,
    asleep: AtomicBool,
    stopping: Mutex<bool>,
    signal: Condvar,
}

impl Checkpointer {
    /// Begins; while `working` is held, it does nothing.
    pub(in crate::db) fn new(segment: Arc<Current>, working: Arc<Mutex<()>>) -> Self {
        let shared = Shared {
            segment,
            working,
            asleep: AtomicBool::new(false),
            stopping: Mutex::new(false),
            signal: Condvar::new(),
        };
        Self { shared: Arc::new(shared), thread: OnceLock::new() }
    }

    /// Records that a transaction begins or was committed. Takes a few nanoseconds, unless the thread sleeps.
    pub(in crate::db) fn wake(&self) {
        self.thread.get_or_init(|| {
            let shared = Arc::clone(&self.shared);
            // Without the thread everything still works; commits only find less space ahead.
            let named = std::thread::Builder::new().name("annals".to_owned());
            Mutex::new(named.spawn(move || shared.run()).ok())
        });
        if self.shared.asleep.load(Ordering::Acquire) {
            let _stopping = lock(&self.shared.stopping);
            self.shared.signal.notify_one();
        }
    }

    /// Ends the thread, after its current work.
    pub(in crate::db) fn stop(&self) {
        *lock(&self.shared.stopping) = true;
        self.shared.signal.notify_one();
        if let Some(thread) = self.thread.get().and_then(|thread| lock(thread).take()) {
            // It can't have panicked in the middle of a change: every step is independent.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self) {
        let look = || {
            let checkpoints = &self.segment.load().checkpoints;
            (checkpoints.acknowledged(), checkpoints.streamed())
        };
        let (mut idle_rounds, mut seen) = (0, look());
        while self.wait(idle_rounds, seen.0) {
            let now = look();
            idle_rounds = if now == seen { idle_rounds + 1 } else { 0 };
            seen = now;
            // A failed flush is latched and met by the next commit; the rest is tried again.
            let _working = lock(&self.working);
            let checkpoints = Arc::clone(&self.segment.load().checkpoints);
            let _ = checkpoints.prefill();
            let _ = checkpoints.flush_ahead();
            let _ = checkpoints.harden_lagging();
            let _ = checkpoints.tell();
            if idle_rounds == ROUNDS_UNTIL_IDLE {
                let _ = checkpoints.advance_slot();
            }
        }
    }

    /// Waits for the next round; `false` if there is none.
    fn wait(&self, idle_rounds: u32, seen: Point) -> bool {
        let stopping = lock(&self.stopping);
        if *stopping {
            return false;
        }
        let stopping = if idle_rounds < ROUNDS_UNTIL_ASLEEP {
            let waited = self.signal.wait_timeout(stopping, ROUND);
            waited.unwrap_or_else(PoisonError::into_inner).0
        } else {
            self.asleep.store(true, Ordering::Release);
            // A commit before the line above wakes no thread. A commit after this one sees that line: both take the
            // lock of the acknowledged state.
            if self.segment.load().checkpoints.acknowledged() != seen {
                self.asleep.store(false, Ordering::Release);
                return true;
            }
            let waited = self.signal.wait(stopping);
            self.asleep.store(false, Ordering::Release);
            waited.unwrap_or_else(PoisonError::into_inner)
        };
        !*stopping
    }
}

#[cfg(test)]
mod tests {
    use annals_schema::Txid;

    use super::*;
    use crate::db::present::segment::{JournalFile, Segment};
    use crate::journal::{Checkpoints, Settled};
    use crate::storage::{Directory, MemoryDirectory};

    #[test]
    fn a_commit_just_before_falling_asleep_is_not_slept_over() {
        let directory = MemoryDirectory::new();
        let storage = directory.create("journal").unwrap();
        let file = JournalFile::new(Arc::clone(&storage), 0, Arc::new(directory), "journal");
        let point = |txid| Point { position: 16384, txid, chain: 0 };
        let checkpoints = Checkpoints::new(
            storage,
            "",
            0,
            0,
            point(Txid(1)),
            &Settled::new_journal(point(Txid(1)), [0; 16]),
        );
        let shared = Shared {
            segment: Arc::new(Current::from_pointee(Segment {
                checkpoints: Arc::new(checkpoints),
                file: Arc::new(file),
                turns: None,
                is_named: AtomicBool::new(true),
            })),
            working: Arc::default(),
            asleep: AtomicBool::new(false),
            stopping: Mutex::new(false),
            signal: Condvar::new(),
        };
        // It saw transaction 0, and 1 was acknowledged since; nothing will wake it.
        assert!(shared.wait(ROUNDS_UNTIL_ASLEEP, point(Txid(0))));
        assert!(!shared.asleep.load(Ordering::Acquire));
    }
}
