//! The recipe of a commit, from the checks to the acknowledgement.
//!
//! | step                                                  | if it fails                                     |
//! |-------------------------------------------------------|-------------------------------------------------|
//! | 1. keys are unique, and references lead to rows       | the transaction is rolled back                  |
//! | 2. the commit frame is written                        | the same; what was written of it is cut off     |
//! | 3. the store's changes become a view                  | it can't                                        |
//! | 4. the group takes the commit over; the next transaction may begin | it can't                           |
//! | 5. a thread of those that wait leads: it flushes, once for all that is written | `UnknownOutcome` for all of these |
//! |    and waits until the backup has them, if there is one | it waits, until the handle is closed            |
//! | 6. the views are published in order, and the commits acknowledged | it can't                            |
//!
//! A soft commit is published in step 4, unless it waits for an earlier one. `docs/crash.md` argues the result of a
//! crash after each step; the flushes of each level are [`Checkpoints::reach`](crate::journal::Checkpoints::reach).
//! (Group commit is as old as DeWitt et al., 1984; the leader among the waiting threads is as in InnoDB and RocksDB.)

use crate::db::write::spill;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

use crate::db::present::segment::JournalFile;
use crate::db::present::snapshot::{Published, Snapshot};
use crate::db::present::threads::this_thread;
use crate::db::write::core::{Core, Writing};
use crate::db::write::group::{Group, Queue, Waiting};
use crate::journal::{Level, Point, lock};
use crate::store::View;
use crate::trace::event;
use crate::{Error, ErrorKind, Result};
use annals_storage::step;

/// Stands for all threads that commit what others wrote: else each would wait for those before it.
const FOREIGN: usize = 0;

/// The request of a transaction to its commit.
#[derive(Clone, Copy, Debug)]
pub(in crate::db) struct Request {
    pub(in crate::db) level: Level,
    /// The time of the commit in microseconds, instead of the clock's.
    pub(in crate::db) time: Option<i64>,
    /// True if a part of the transaction is in the image.
    pub(in crate::db) is_spilled: bool,
    /// True for what others wrote: that comes in sequence, by whatever threads, and no further one comes before this is
    /// acknowledged.
    pub(in crate::db) is_foreign: bool,
}

/// A commit that was written.
#[derive(Clone, Copy, Debug)]
pub(in crate::db) struct Written {
    pub(in crate::db) point: Point,
    /// True if it is acknowledged already.
    pub(in crate::db) is_acknowledged: bool,
}

/// Commits the events since the last commit: steps 1 to 4. [`Group::wait`] does the rest.
///
/// # Errors
/// `Unique`, `Reference`, `Unsupported`, `Io`: nothing was committed, and the caller rolls back. `UnknownOutcome`.
pub(in crate::db) fn commit(
    core: &Core,
    writing: &mut Writing,
    request: Request,
) -> Result<Written> {
    check(writing)?;
    let committed = writing.writer.commit(request.level, request.time);
    let point = committed.map_err(|error| core.advise_space(error))?;
    Ok(hand_over(core, writing, point, request))
}

/// Checks what only the end of a transaction can: step 1.
pub(in crate::db) fn check(writing: &Writing) -> Result<()> {
    writing.store.check_available()?;
    writing.store.check_constraints()
}

/// Makes a view after the commit that was written up to `point`, and lets the group take it over: steps 3 and 4.
pub(in crate::db) fn hand_over(
    core: &Core,
    writing: &mut Writing,
    point: Point,
    request: Request,
) -> Written {
    let view = commit_store(core, writing);
    let is_acknowledged = core.group.add(point, request, view);
    if request.is_spilled {
        spill::commit_spilled(core);
    }
    Written { point, is_acknowledged }
}

/// Makes a view of the store's changes, over the newest root of the image.
fn commit_store(core: &Core, writing: &mut Writing) -> Arc<View> {
    let Some(image_state) = core.image() else { return writing.store.commit() };
    image_state.install(&mut writing.store);
    let view = writing.store.commit();
    image_state.note_published(&view);
    view
}

impl Group {
    /// Takes a written commit over; returns whether that acknowledges it already. The caller holds the writer's
    /// lock.
    fn add(&self, point: Point, request: Request, view: Arc<View>) -> bool {
        let thread = if request.is_foreign { FOREIGN } else { this_thread() };
        // What another place has must not get lost here.
        let level = match (request.level, self.witness.get()) {
            (Level::Soft, Some(_)) => Level::Checksummed,
            (level, _) => level,
        };
        let mut queue = lock(&self.queue);
        step!(FailedFlushForgotten, else queue.failure = None);
        // A soft commit waits only for those before it.
        if level == Level::Soft && queue.waiting.is_empty() {
            self.acknowledge(view, point, 1, false);
            return true;
        }
        queue.waiting.push_back(Waiting { point, level, view, thread });
        self.publish(&mut queue, Point { position: 0, ..point });
        queue.waiting.is_empty()
    }

    /// Returns when a commit is acknowledged; does the missing steps if no other thread does.
    pub(in crate::db) fn wait(&self, point: Point) -> Result<()> {
        let mut queue = lock(&self.queue);
        loop {
            if self.segment.load().checkpoints.acknowledged().txid >= point.txid {
                return Ok(());
            }
            if let Some(failure) = &queue.failure {
                return Err(unknown_outcome(point, failure));
            }
            queue = if queue.is_led {
                self.led.wait(queue).unwrap_or_else(PoisonError::into_inner)
            } else {
                self.lead(queue)
            };
        }
    }

    /// Leads: reaches the levels of all that wait by now, and publishes them.
    fn lead<'q>(&'q self, mut queue: MutexGuard<'q, Queue>) -> MutexGuard<'q, Queue> {
        queue.is_led = true;
        let mut queue = self.gather(queue);
        let levels = queue.waiting.iter().map(|waiting| waiting.level);
        let level = strongest(levels);
        let Some(&Waiting { point: target, .. }) = queue.waiting.back() else {
            queue.is_led = false;
            return queue;
        };
        queue.before = std::mem::take(&mut queue.last);
        queue.last = queue.waiting.iter().map(|waiting| waiting.thread).collect();
        step!(SeenBeforeFlush, else self.publish(&mut queue, target));
        drop(queue);

        let leading = Leading(self);
        let begun = self.clock.elapsed();
        let segment = self.segment.load_full();
        let reached = segment.checkpoints.reach(level, target);
        let took = self.clock.elapsed().saturating_sub(begun);
        let reached = reached.and_then(|()| self.confirm(&segment.file, target));
        drop(leading);

        if level.flushes() {
            event!(TRACE, "flushed", txid = target.txid.0, micros = took.as_micros());
            self.counts.add_flush(took);
        }
        let mut queue = lock(&self.queue);
        queue.took = took;
        queue.is_led = false;
        match reached {
            Ok(()) => self.publish(&mut queue, target),
            Err(error) => step!(
                FailedGroupAcknowledged,
                queue.failure = Some(error.to_string()),
                else self.publish(&mut queue, target)
            ),
        }
        self.led.notify_all();
        queue
    }

    /// Returns once the witness, if there is one, has all up to `target`.
    fn confirm(&self, file: &Arc<JournalFile>, target: Point) -> Result<()> {
        let Some(witness) = self.witness.get() else { return Ok(()) };
        let (view, file) = (Arc::clone(&self.published().view), Arc::clone(file));
        witness.confirm(&Snapshot::new(Arc::new(Published { view, point: target, file })))
    }

    /// Publishes, in order, all commits up to `target`, and soft commits right after.
    fn publish(&self, queue: &mut Queue, target: Point) {
        let (mut last, mut count, mut flushed) = (None, 0, false);
        while let Some(first) = queue.waiting.front() {
            let is_reached = first.point.position <= target.position;
            let is_soft = |waiting: &Waiting| waiting.level == Level::Soft;
            let is_due = is_reached || is_soft(first);
            if !step!(
                SoftOvertakes,
                is_due,
                else is_due || queue.waiting.back().is_some_and(is_soft)
            ) {
                break;
            }
            count += 1;
            flushed |= first.level.flushes();
            last = queue.waiting.pop_front();
        }
        self.written.store(queue.waiting.len(), Ordering::Relaxed);
        let Some(Waiting { point, view, .. }) = last else { return };
        self.acknowledge(view, point, count, flushed);
    }

    /// Publishes the state after `count` commits, and counts them.
    fn acknowledge(&self, view: Arc<View>, point: Point, count: u64, flushed: bool) {
        let segment = self.segment.load();
        let file = Arc::clone(&segment.file);
        self.let_see(view, point, file);
        self.feed().tell(|| self.published());
        segment.checkpoints.acknowledge(point, count, flushed);
        self.counts.add_commits(count);
    }
}

/// A thread that is the leader. If it panics (in a foreign storage), no thread waits for it for ever.
struct Leading<'g>(&'g Group);

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let cause = "the thread that flushed panicked";
        self.0.segment.load().checkpoints.poison(cause);
        let mut queue = lock(&self.0.queue);
        queue.is_led = false;
        queue.failure.get_or_insert_with(|| cause.to_owned());
        self.0.led.notify_all();
    }
}

/// Returns a level whose steps reach all of these.
fn strongest(levels: impl Iterator<Item = Level>) -> Level {
    let steps = |level: &Level| match level {
        Level::Soft => 0,
        Level::Checksummed => 1,
        Level::Half => 2,
        Level::TwoPhase => 3,
    };
    levels.max_by_key(steps).unwrap_or(Level::Soft)
}

fn unknown_outcome(point: Point, cause: &str) -> Error {
    Error::new(
        ErrorKind::UnknownOutcome,
        format!(
            "transaction {} (chain {:016x}) was written, but whether it is durable is not known \
             ({cause}): reopen the database, and see whether it is there",
            point.txid, point.chain
        ),
    )
}
