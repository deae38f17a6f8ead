//! Group commit: commits are written in sequence, flushed together, and acknowledged in order.
//!
//! A transaction adds its written commit to the queue, and lets the next one begin, which builds on it. Then it
//! waits. One of the waiting threads is the leader: it does the steps of the levels once for all commits written by
//! then, and publishes them. (Group commit is as old as DeWitt et al., 1984; the leader among the waiting threads is
//! as in InnoDB and RocksDB.)
//!
//! Invariants
//! 1. `waiting` has all written commits that aren't acknowledged, in the order of their txids. They are added in this
//!    order, by the holder of the writer's lock.
//! 2. A commit is published when its level, and that of all before it, is reached.
//! 3. At most one thread is the leader. Its target was written before it began.
//! 4. Once a leader failed, nothing more is published.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;

use crate::Result;
use crate::db::present::segment::{Current, JournalFile};
use crate::db::present::snapshot::{Published, Snapshot};
use crate::db::write::counts::Counts;
use crate::db::write::feed::Feed;
use crate::db::write::feed::Slot;
use crate::journal::{Level, Point, lock};
use crate::storage::Clock;
use crate::store::View;

/// A leader waits for others at most this part of the time that the last flush took.
const PATIENCE: u32 = 4;

/// The last commit, and the pending ones.
#[derive(Debug)]
pub(in crate::db) struct Group {
    pub(super) segment: Arc<Current>,
    pub(super) clock: Arc<dyn Clock>,
    published: ArcSwap<Published>,
    /// Notifies subscribers of commits; always with the lock of `queue` held.
    feed: Arc<Feed>,
    pub(super) queue: Mutex<Queue>,
    /// Told whenever a leader has ended.
    pub(super) led: Condvar,
    /// How many transactions are open or about to begin.
    open: AtomicUsize,
    /// The number of waiting commits: a copy of `queue.waiting` for readers without its lock.
    pub(super) written: AtomicUsize,
    /// True if a leader may wait for others.
    is_patient: bool,
    pub(in crate::db) counts: Counts,
    /// Another place that must have a commit before it is acknowledged.
    pub(super) witness: OnceLock<Arc<dyn Witness>>,
}

/// A place elsewhere that must have each commit before it is acknowledged and seen here: a synchronous backup.
pub trait Witness: std::fmt::Debug + Send + Sync {
    /// Returns once that place has all up to the end of a snapshot, on permanent storage. The commits are flushed
    /// here, seen by nobody yet, and all later ones wait. The rows of the snapshot may be older.
    ///
    /// # Errors
    /// It never will: the outcome of the commits is unknown then, and nothing more can be written until the database
    /// is opened again. A place that can't be reached is no error, but is waited for.
    fn confirm(&self, written: &Snapshot) -> Result<()>;
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) waiting: VecDeque<Waiting>,
    /// True if there is a leader.
    pub(super) is_led: bool,
    /// Why nothing can be acknowledged any more.
    pub(super) failure: Option<String>,
    /// The threads whose commits were in the last group that was led, and in the one before.
    pub(super) last: Vec<usize>,
    pub(super) before: Vec<usize>,
    /// How long reaching the level took the last time.
    pub(super) took: Duration,
}

/// A commit that is written, but not acknowledged.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) point: Point,
    pub(super) level: Level,
    pub(super) view: Arc<View>,
    pub(super) thread: usize,
}

impl Group {
    /// Begins with a view of the segment's end; if it `is_patient`, leaders wait for the commits of others.
    pub(in crate::db) fn new(
        segment: Arc<Current>,
        clock: Arc<dyn Clock>,
        view: Arc<View>,
        is_patient: bool,
    ) -> Self {
        let now = segment.load_full();
        let point = now.checkpoints.acknowledged();
        let published = Published { view, point, file: Arc::clone(&now.file) };
        Self {
            segment,
            clock,
            published: ArcSwap::from_pointee(published),
            feed: Arc::default(),
            queue: Mutex::default(),
            led: Condvar::new(),
            open: AtomicUsize::new(0),
            written: AtomicUsize::new(0),
            is_patient,
            counts: Counts::default(),
            witness: OnceLock::new(),
        }
    }

    /// Acknowledges commits only when a witness has them, too. Its first caller decides.
    pub(in crate::db) fn confirm_by(&self, witness: Arc<dyn Witness>) {
        let _ = self.witness.set(witness);
    }

    /// Returns once the witness, if there is one, has all that is acknowledged, and the seals before.
    pub(super) fn settle_elsewhere(&self) -> Result<()> {
        let Some(witness) = self.witness.get() else { return Ok(()) };
        witness.confirm(&Snapshot::new(self.published()))
    }

    /// Publishes a view.
    pub(super) fn let_see(&self, view: Arc<View>, point: Point, file: Arc<JournalFile>) {
        let old = self.published.swap(Arc::new(Published { view, point, file }));
        self.counts.note_replaced(&old, || self.clock.elapsed());
    }

    /// Returns the last commit.
    pub(in crate::db) fn published(&self) -> Arc<Published> {
        self.published.load_full()
    }

    /// Returns the feed of commits.
    pub(in crate::db) const fn feed(&self) -> &Arc<Feed> {
        &self.feed
    }

    /// Adds a subscriber from the last commit on, which keeps its state in `slot`; returns that commit.
    pub(in crate::db) fn follow(&self, slot: &Arc<Slot>) -> Arc<Published> {
        let _queue = lock(&self.queue);
        let latest = self.published();
        self.feed.follow(Arc::clone(&latest), slot);
        latest
    }

    /// Shows the commits of other processes. Nothing waits then.
    pub(in crate::db) fn show(&self, view: Arc<View>, point: Point) {
        let _queue = lock(&self.queue);
        let file = Arc::clone(&self.segment.load().file);
        self.let_see(view, point, file);
        self.feed.tell(|| self.published());
    }

    /// Shows the state in a new segment, in which no commit has been written. Nothing waits then.
    pub(in crate::db) fn begin_segment(&self, view: Arc<View>, point: Point) {
        self.show(view, point);
    }

    /// Publishes the same state over another base. The caller is the writer, and `view` is the last one that the
    /// store published.
    pub(in crate::db) fn replace(&self, view: Arc<View>) {
        let mut queue = lock(&self.queue);
        match queue.waiting.back_mut() {
            Some(last) => last.view = view,
            None => {
                let Published { point, file, .. } = &*self.published.load_full();
                let (point, file) = (*point, Arc::clone(file));
                self.let_see(view, point, file);
            }
        }
        self.feed.replace(|| self.published());
    }

    /// Returns the points of the published commit and of those that wait, in order.
    pub(super) fn points(&self) -> Vec<Point> {
        let queue = lock(&self.queue);
        let waiting = queue.waiting.iter().map(|waiting| waiting.point);
        std::iter::once(self.published().point).chain(waiting).collect()
    }

    /// Publishes the same states over another base, of the published commit and of those that wait. The caller is the
    /// writer.
    pub(super) fn replace_all(&self, views: Vec<(Point, Arc<View>)>) {
        let mut queue = lock(&self.queue);
        for (point, view) in views {
            let published = self.published();
            match queue.waiting.iter_mut().find(|waiting| waiting.point == point) {
                Some(waiting) => waiting.view = view,
                None if published.point == point => {
                    self.let_see(view, point, Arc::clone(&published.file));
                }
                None => {} // a later one was published meanwhile
            }
        }
        self.feed.replace(|| self.published());
    }

    /// Records that a transaction is about to begin.
    pub(in crate::db) fn arrive(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that a transaction was written or rolled back.
    pub(in crate::db) fn leave(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns when everything that is written is acknowledged; flushes only if a level asks for it.
    pub(in crate::db) fn settle(&self) -> Result<()> {
        let last = lock(&self.queue).waiting.back().map(|waiting| waiting.point);
        let waited = last.map_or(Ok(()), |point| self.wait(point));
        // The caller has no commit of its own whose outcome could be unknown.
        waited.or_else(|error| self.segment.load().checkpoints.check_usable().and(Err(error)))
    }

    /// Waits a little for the commits of others, if there are any, so that they share the flush.
    pub(super) fn gather<'q>(&'q self, queue: MutexGuard<'q, Queue>) -> MutexGuard<'q, Queue> {
        let mut threads: Vec<usize> = queue.last.iter().chain(&queue.before).copied().collect();
        threads.extend(queue.waiting.iter().map(|waiting| waiting.thread));
        threads.sort_unstable();
        threads.dedup();
        let (expected, patience) = (threads.len(), queue.took / PATIENCE);
        let begun = self.clock.elapsed();
        let are_more = || {
            self.is_patient
                && (self.open.load(Ordering::Relaxed) > 0
                    || self.written.load(Ordering::Relaxed) < expected)
        };
        if !are_more() {
            return queue;
        }
        drop(queue);
        while are_more() && self.clock.elapsed().saturating_sub(begun) < patience {
            std::thread::yield_now();
        }
        lock(&self.queue)
    }
}
