//! The background thread for backfills.
//!
//! It is woken after each commit, and begins once replaying the tail takes long ([`trigger`](crate::db::image::trigger) says how
//! long) and the last backfill is long enough ago. It begins at once when the changes in memory alone are a large part
//! of the limit, or when a committed transaction has written pages ahead. After a backfill it keeps the rules of
//! retention, if there are any. An error is reported by `Database::image_error`, and the backfill is tried again when the
//! replay takes twice as long: no commit fails by it.

use crate::db::image::trigger::ReplayTail;
use crate::db::image::{backfill, retain, trigger};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::db::follow::report::{BackfillMode, BackfillOutcome};
use crate::db::image::retain::PATIENCE;
use crate::db::write::core::{Core, Writing};
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
    /// How many bytes of changes in memory alone are worth one.
    unsaved_due: AtomicUsize,
    /// The tail of the journal, by which one may be due.
    tail: ReplayTail,
    /// When that may begin, by the clock in microseconds.
    soonest: AtomicU64,
    state: Mutex<WorkState>,
    signal: Condvar,
    /// The deadline of a backfill after `state` is to stop, by the clock in microseconds.
    deadline: AtomicU64,
    /// True if a backfill was ended then.
    is_cut: AtomicBool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum WorkState {
    #[default]
    Idle,
    /// Wanted once `soonest` has come.
    Soon,
    Wanted,
    Stopping,
}

impl Background {
    /// Makes the thread's state for a database. The thread doesn't run yet.
    pub(in crate::db) fn new(core: Arc<Core>) -> Self {
        let unsaved_due = AtomicUsize::new(trigger::unsaved_due(&core));
        let (state, signal) = (Mutex::default(), Condvar::new());
        let (deadline, is_cut) = (AtomicU64::new(u64::MAX), AtomicBool::new(false));
        let (tail, soonest) = (ReplayTail::of(&core), AtomicU64::new(0));
        let shared = Shared { core, unsaved_due, tail, soonest, state, signal, deadline, is_cut };
        Self { shared: Arc::new(shared), thread: Mutex::default() }
    }

    /// Returns at how many bytes of changes in memory alone a backfill is due.
    #[inline]
    pub(in crate::db) fn unsaved_due(&self) -> usize {
        self.shared.unsaved_due.load(Ordering::Relaxed)
    }

    /// Returns the tail of the journal.
    #[inline]
    pub(in crate::db) fn tail(&self) -> &ReplayTail {
        &self.shared.tail
    }

    /// Requests a backfill now.
    #[cold]
    pub(in crate::db) fn want(&self) {
        self.shared.unsaved_due.store(usize::MAX, Ordering::Relaxed);
        self.request(WorkState::Wanted);
    }

    /// Requests a backfill once the last one is long enough ago.
    #[cold]
    pub(in crate::db) fn want_soon(&self) {
        self.request(WorkState::Soon);
    }

    fn request(&self, wanted: WorkState) {
        self.shared.request(wanted);
        let mut thread = lock(&self.thread);
        if thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let run = move || shared.run();
            // Without the thread the image stays as it is until the database is closed.
            *thread = std::thread::Builder::new().name("annals-image".to_owned()).spawn(run).ok();
        }
    }

    /// Ends the thread, after its current backfill, or between two of its steps after `patience`. Returns true if it
    /// ended.
    pub(in crate::db) fn stop(&self, patience: Duration) -> bool {
        let deadline = self.shared.core.clock().elapsed().saturating_add(patience);
        self.shared.deadline.store(micros(deadline), Ordering::Relaxed);
        *lock(&self.shared.state) = WorkState::Stopping;
        self.shared.signal.notify_one();
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            // It can't have panicked with anything half done that a reopening would not see.
            let _ = thread.join();
        }
        !self.shared.is_cut.load(Ordering::Relaxed)
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl Shared {
    fn request(&self, wanted: WorkState) {
        self.tail.stop_watching();
        let mut state = lock(&self.state);
        if matches!(*state, WorkState::Idle | WorkState::Soon) {
            *state = wanted;
        }
        drop(state);
        self.signal.notify_one();
    }

    fn run(&self) {
        let mut failed_at = trigger::unsaved_due(&self.core);
        while self.wait() {
            let (begun, seen) = (self.core.clock().elapsed(), self.tail.seen());
            let done = backfill::backfill_watched(&self.core, BackfillMode::Passive, &mut |_| {
                self.go_on()
            });
            let mut unsaved_due = trigger::unsaved_due(&self.core);
            let is_done = matches!(&done, Ok(it) if it.outcome != BackfillOutcome::Postponed);
            if let Err(error) = done {
                self.core.note_image_error(&error);
                unsaved_due = failed_at.saturating_mul(2);
            } else if is_done {
                self.core.forget_image_error();
                if let Err(error) = retain::keep_the_rules(&self.core, PATIENCE) {
                    self.core.note_image_error(&error);
                }
            }
            failed_at = unsaved_due;
            let soonest = trigger::soonest(begun, self.core.clock().elapsed());
            self.soonest.store(micros(soonest), Ordering::Relaxed);
            self.unsaved_due.store(unsaved_due, Ordering::Relaxed);
            if self.tail.watch(&self.core, seen, is_done) {
                self.request(WorkState::Soon);
            }
        }
    }

    /// Returns whether a backfill may continue.
    fn go_on(&self) -> ControlFlow<()> {
        if micros(self.core.clock().elapsed()) < self.deadline.load(Ordering::Relaxed) {
            return ControlFlow::Continue(());
        }
        self.is_cut.store(true, Ordering::Relaxed);
        ControlFlow::Break(())
    }

    /// Waits until a backfill is wanted; `false` if there will be none.
    fn wait(&self) -> bool {
        let mut state = lock(&self.state);
        loop {
            match *state {
                WorkState::Stopping => return false,
                WorkState::Wanted => {
                    *state = WorkState::Idle;
                    return true;
                }
                WorkState::Soon => {
                    let soonest = Duration::from_micros(self.soonest.load(Ordering::Relaxed));
                    let left = soonest.saturating_sub(self.core.clock().elapsed());
                    if left.is_zero() {
                        *state = WorkState::Wanted;
                        continue;
                    }
                    let waited = self.signal.wait_timeout(state, left);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                WorkState::Idle => {
                    state = self.signal.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

impl Background {
    /// Wakes the thread if a backfill is due, by the time that a replay takes, or by the changes in memory alone.
    pub(in crate::db) fn note_commit(&self, to: &mut Writing, position: u64, statements: u64) {
        let end = to.file.reach(position);
        if self.tail().is_long_with(statements, end) {
            self.want_soon();
        }
        if to.store.has_unsaved(self.unsaved_due()) {
            self.want();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{Clock as _, MemoryDirectory, SystemClock};
    use crate::{Command, Database, Options, TableNumber, Type, ValueRef};
    use std::sync::mpsc::channel;

    fn filled() -> Database {
        let options = Options::new().background(false);
        let (directory, clock) = (MemoryDirectory::new(), SystemClock);
        let db = options.open_in(Arc::new(directory), "journal", Arc::new(clock)).unwrap();
        db.write(|tx| {
            let (table, nullable, default) = (TableNumber(0), false, None);
            tx.apply_command(&Command::CreateTable { name: "t".to_owned() })?;
            let (name, ty) = ("a".to_owned(), Type::Int64);
            tx.apply_command(&Command::AddField { table, name, ty, nullable, default })?;
            (0..1000).try_for_each(|n| tx.insert(table, &[ValueRef::Int64(n)]).map(drop))
        })
        .unwrap();
        db
    }

    #[test]
    fn a_backfill_that_runs_is_ended_once_patience_is_over() {
        let db = filled();
        let core = Arc::clone(&db.inner().core);
        let background = Background::new(Arc::clone(&core));
        background.shared.deadline.store(0, Ordering::Relaxed);
        background.want();
        while !background.shared.is_cut.load(Ordering::Relaxed) {
            SystemClock.pause(Duration::from_millis(1));
        }
        assert!(!background.stop(Duration::ZERO));
        assert_eq!(core.image().unwrap().segment(), None, "nothing was published");
        drop(core);
        db.close().unwrap();
    }

    #[test]
    fn who_asks_about_the_image_does_not_wait_for_a_backfill() {
        let db = filled();
        db.backfill(BackfillMode::Full).unwrap();
        let core = Arc::clone(&db.inner().core);
        let (sender, receiver) = channel();
        std::thread::scope(|scope| {
            let image_state = core.image().unwrap();
            let working = lock(&image_state.working);
            let core = &core;
            scope.spawn(move || {
                let image_state = core.image().unwrap();
                let point = (image_state.segment(), image_state.reached().unwrap());
                sender.send((image_state.end_in_journal(), point)).unwrap();
            });
            let asked = receiver.recv_timeout(Duration::from_secs(30));
            drop(working);
            assert!(asked.unwrap().1.1.is_some());
        });
    }
}
