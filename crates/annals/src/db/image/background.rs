//! The thread that brings the image forward by itself.
//!
//! It is asked to look after each commit, and begins when the tail is so long that a backfill is worth its writes
//! (`tail_due` in `db/core.rs` says when). It also begins when the changes that are in memory alone are a large part
//! of what may be kept there, or were written ahead by a transaction that is committed now. After a backfill it keeps
//! the rules of retention, if there are any. An error is reported by `Database::image_error`, and the backfill is tried
//! again when the tail has doubled: no commit fails by it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::report::{BackfillMode, BackfillOutcome};
use crate::db::core::Core;
use crate::db::retain::PATIENCE;
use crate::journal::lock;

/// The handle of the thread, which starts at the first tail that is long enough.
#[derive(Debug)]
pub(in crate::db) struct Background {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    core: Arc<Core>,
    /// The position of the journal at which the next backfill begins.
    due: AtomicU64,
    /// How many bytes of changes in memory alone are worth one.
    unsaved_due: AtomicUsize,
    state: Mutex<State>,
    signal: Condvar,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Idle,
    Wanted,
    Stopping,
}

impl Background {
    /// Begins; the image stands for the journal up to `position`.
    pub(in crate::db) fn new(core: Arc<Core>) -> Self {
        let due = AtomicU64::new(core.image_due());
        let unsaved_due = AtomicUsize::new(core.unsaved_due());
        let (state, signal) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { core, due, unsaved_due, state, signal });
        Self { shared, thread: Mutex::default() }
    }

    /// Notes how long the journal is. A load and a comparison, unless a backfill is due.
    #[inline]
    pub(in crate::db) fn note(&self, position: u64) {
        if position >= self.shared.due.load(Ordering::Relaxed) {
            self.want();
        }
    }

    /// Tells at how many bytes of changes in memory alone a backfill is due.
    #[inline]
    pub(in crate::db) fn unsaved_due(&self) -> usize {
        self.shared.unsaved_due.load(Ordering::Relaxed)
    }

    /// Asks for a backfill now.
    #[cold]
    pub(in crate::db) fn want(&self) {
        self.shared.due.store(u64::MAX, Ordering::Relaxed);
        self.shared.unsaved_due.store(usize::MAX, Ordering::Relaxed);
        let mut state = lock(&self.shared.state);
        if *state == State::Idle {
            *state = State::Wanted;
        }
        drop(state);
        self.shared.signal.notify_one();
        let mut thread = lock(&self.thread);
        if thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let run = move || shared.run();
            // Without the thread the image stays as it is until the database is closed.
            *thread = std::thread::Builder::new().name("annals-image".to_owned()).spawn(run).ok();
        }
    }

    /// Ends the thread, once the backfill that it runs is over.
    pub(in crate::db) fn stop(self) {
        *lock(&self.shared.state) = State::Stopping;
        self.shared.signal.notify_one();
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            // It can't have panicked with anything half done that a reopening would not see.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self) {
        let mut failed_at = self.core.unsaved_due();
        while self.wait() {
            let done = self.core.backfill(BackfillMode::Passive);
            let usual = self.core.unsaved_due();
            let (due, unsaved_due) = match done {
                Ok(done) if done.outcome == BackfillOutcome::Postponed => {
                    (self.core.image_due_later(), usual)
                }
                Ok(_) => {
                    self.core.forget_image_error();
                    self.core.index_history(usize::MAX, || *lock(&self.state) != State::Stopping);
                    if let Err(error) = self.core.keep_the_rules(PATIENCE) {
                        self.core.note_image_error(&error);
                    }
                    (self.core.image_due(), usual)
                }
                Err(error) => {
                    self.core.note_image_error(&error);
                    (self.core.image_due_later(), failed_at.saturating_mul(2))
                }
            };
            failed_at = unsaved_due;
            self.due.store(due, Ordering::Relaxed);
            self.unsaved_due.store(unsaved_due, Ordering::Relaxed);
        }
    }

    /// Waits until a backfill is wanted; `false` if there will be none.
    fn wait(&self) -> bool {
        let mut state = lock(&self.state);
        loop {
            match *state {
                State::Stopping => return false,
                State::Wanted => {
                    *state = State::Idle;
                    return true;
                }
                State::Idle => {
                    state = self.signal.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}
