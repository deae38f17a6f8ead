//! The handle of an open database.

use crate::db::engine::{backfill, index_history, rebuild, spill, trigger};
use crate::db::threads::this_thread;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::db::engine::background::Background;
use crate::db::engine::core::Rescuer;
use crate::db::engine::core::{Core, Working, Writing};
use crate::db::engine::group::Group;
use crate::db::engine::keeper::Keeper;
use crate::db::handle::sharing::Sharing;
use crate::db::handle::transaction::Transaction;
use crate::db::history::keeping::Keeping;
use crate::db::image::report::Restarting;
use crate::db::image::{BackfillMode, BackfillProgress, Backfilled, Imager};
use crate::db::options::{Options, Sizes};
use crate::db::present::segment::{Current, JournalFile, Segment};
use crate::db::present::snapshot::Snapshot;
use crate::debug::brief;
use crate::journal::{Checkpoints, Level, Point, Recovered, Retention, Writer, lock};
use crate::storage::{Clock, Lock, Origin};
use crate::store::{Store, View};
use crate::{Error, ErrorKind, Result};

/// How long dropping a database waits for a backfill, and closing it for the state to be rebuilt.
const PATIENCE: Duration = Duration::from_secs(5);

/// A database, open for reading and writing.
///
/// It is `Send` and `Sync`: share it by reference or in an `Arc`. There is one writer at a time, and any number of
/// readers, which never wait. Dropping it closes it, and ignores errors of closing; [`Database::close`] returns them.
/// Dropping waits 5 s at most for a backfill, and then ends it: the next opening replays more. Closing waits for it.
///
/// It belongs to the process that opened it. A forked child can read inherited snapshots, except their blobs; all
/// else is an error there, and the parent isn't affected. The child opens the database again, when the parent has
/// closed it, or opens it read-only.
pub struct Database {
    core: Arc<Core>,
    /// Rebuilds the state for snapshots that need a lost page.
    rescuer: Arc<Rescuer>,
    /// The thread for backfills; `None` without background work.
    background: Option<Background>,
    /// The thread that has a transaction open, as [`this_thread`] names it; 0: none.
    owner: AtomicUsize,
    keeper: Option<Keeper>,
    recovered: Recovered,
    /// The recoveries since, after other processes were interrupted.
    later_recoveries: Mutex<Vec<Recovered>>,
    /// The commit that doesn't apply; then nothing is written any more.
    pub(in crate::db) unapplied: OnceLock<crate::db::replay::unapplied::Unapplied>,
    sharing: Option<Sharing>,
    level: Level,
    pub(in crate::db) clock: Arc<dyn Clock>,
    closed: bool,
    origin: Origin,
    /// True if a program's typed code relies on the schema.
    has_fixed_schema: bool,
}

brief!(Database, "Database", "file": |it| it.file().name, "level": |it| it.level);

/// The parts of an open database.
pub(in crate::db) struct Setup {
    pub(in crate::db) writer: Writer,
    pub(in crate::db) segment: Segment,
    pub(in crate::db) clock: Arc<dyn Clock>,
    pub(in crate::db) store: Store,
    pub(in crate::db) view: Arc<View>,
    pub(in crate::db) recovered: Recovered,
    /// The state of the image; `None` if there can be none.
    pub(in crate::db) imager: Option<Arc<Imager>>,
    pub(in crate::db) level: Level,
    pub(in crate::db) background: bool,
    /// How long a read or a write waits for the rebuild of a damaged page.
    pub(in crate::db) rebuild_timeout: Duration,
    /// The rules of retention.
    pub(in crate::db) retention: Retention,
    /// How the history index is kept; none if there is to be none.
    pub(in crate::db) history: Option<Sizes>,
    /// The state of shared mode; `None` in exclusive mode.
    pub(in crate::db) sharing: Option<Sharing>,
}

impl Database {
    pub(in crate::db) fn new(setup: Setup) -> Self {
        // A process may not write outside of its turn, not even in the background.
        let background = setup.background && setup.sharing.is_none();
        let segment = Arc::new(Current::from_pointee(setup.segment));
        let file = Arc::clone(&segment.load().file);
        let group = Group::new(Arc::clone(&segment), Arc::clone(&setup.clock), setup.view);
        let group = match setup.sharing {
            // One turn, one commit: no other can join while one is waited for.
            Some(_) => group.without_patience(),
            None => group,
        };
        let writing = Writing { writer: setup.writer, store: setup.store, file };
        let history = Keeping::new(setup.history);
        let keeps = (Arc::clone(&setup.clock), setup.retention, history);
        let works = Working {
            rebuild_timeout: setup.rebuild_timeout,
            in_background: background,
            alone: setup.sharing.is_none(),
        };
        let core = Core::new(group, writing, Arc::clone(&segment), (setup.imager, keeps), &works);
        let rescuer = core.with_rescuer();
        let keeper = background.then(|| Keeper::new(segment, Arc::clone(&core.keeping)));
        // A problem of the image doesn't prevent opening: it is retried.
        spill::publish_spilled(&core);
        let background = background.then(|| Background::new(Arc::clone(&core)));
        Self {
            core,
            rescuer,
            background,
            clock: setup.clock,
            owner: AtomicUsize::new(0),
            keeper,
            recovered: setup.recovered,
            later_recoveries: Mutex::default(),
            unapplied: OnceLock::new(),
            sharing: setup.sharing,
            level: setup.level,
            closed: false,
            origin: Origin::here(),
            has_fixed_schema: false,
        }
    }

    /// Opens or creates a database with the default [`Options`].
    ///
    /// # Errors
    /// See [`Options::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Options::new().open(path)
    }

    /// Refuses every change of the schema from now on.
    pub(in crate::db) fn fix_schema(mut self) -> Self {
        self.has_fixed_schema = true;
        self
    }

    /// True if a program's typed code relies on the schema.
    pub(in crate::db) const fn has_fixed_schema(&self) -> bool {
        self.has_fixed_schema
    }

    /// Returns a snapshot of the last commit. Never waits; costs one reference count.
    #[must_use]
    pub fn read(&self) -> Snapshot {
        Snapshot::new(self.core.group.published())
    }

    /// Begins a transaction; waits until the one before has ended or is on its way to permanent storage. It sees all
    /// earlier writes, also those that aren't acknowledged yet.
    ///
    /// # Errors
    /// `Invalid` in a thread that has a transaction open already (it would wait for itself);
    /// `Poisoned` after a failed flush, or in a forked child; `Io` if the remains of a failed
    /// transaction can't be cut.
    pub fn begin(&self) -> Result<Transaction<'_>> {
        self.check_origin()?;
        self.refuse_nesting()?;
        self.core.group.arrive();
        let mut writing = lock(&self.core.writing);
        let begun = self
            .take_or_join_turn(&mut writing)
            .and_then(|()| writing.writer.begin(self.level).inspect_err(|_| self.end_turn()));
        begun.inspect_err(|_| self.core.group.leave())?;
        if let Some(imager) = self.core.image() {
            imager.install(&mut writing.store);
            rebuild::see_to_damage(&self.core, imager, &mut writing);
            if writing.store.view().lies_over_image() {
                self.core.let_rescue(&mut writing);
            }
        }
        self.wake_keeper();
        self.owner.store(this_thread(), Ordering::Relaxed);
        Ok(Transaction::new(self, writing, self.level))
    }

    /// Runs `change` in a transaction and commits it, at the level of the [`Options`] or the one
    /// that `change` sets. An `Err` rolls everything back. A transaction whose errors are the
    /// program's own is run by [`transact`](Self::transact).
    ///
    /// # Errors
    /// The error of `change`; else see [`Transaction::commit`] and [`Database::begin`].
    pub fn write<T>(&self, change: impl FnOnce(&mut Transaction<'_>) -> Result<T>) -> Result<T> {
        self.transact(change)
    }

    /// Does what [`write`](Self::write) does, with any error type of the program.
    ///
    /// # Errors
    /// The error of `change`; else see [`Transaction::commit`] and [`Database::begin`].
    pub fn transact<T, E: From<Error>>(
        &self,
        change: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut transaction = self.begin()?;
        let value = change(&mut transaction)?;
        transaction.commit()?;
        Ok(value)
    }

    /// Returns the report of opening.
    #[must_use]
    pub const fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    /// Makes a soft checkpoint: publishes all commits to other processes; the operating system has their bytes.
    /// Returns the point that was reached. Costs a small write, unless they know (they do within 10 ms).
    ///
    /// # Errors
    /// `Poisoned` after a failed flush, or in a forked child; `Io` if the live block can't be written.
    pub fn soft_checkpoint(&self) -> Result<Point> {
        self.check_origin()?;
        self.core.group.settle()?;
        self.in_turn(|| self.checkpoints().soft())
    }

    /// Makes a hard checkpoint: flushes all commits to permanent storage, then writes a slot and flushes that too.
    /// Returns the point that was reached. Costs at most two flushes, and nothing if no commit followed the last one.
    ///
    /// # Errors
    /// `Poisoned` if a flush fails or has failed, or in a forked child; `Io` if a slot or the live
    /// block can't be written.
    pub fn hard_checkpoint(&self) -> Result<Point> {
        self.check_origin()?;
        self.core.group.settle()?;
        self.in_turn(|| self.checkpoints().hard())
    }

    /// Updates the image, the page file beside the journal, to the newest commit, so that the next opening has less
    /// to replay. It also happens in the background when the journal has grown; this does it now.
    ///
    /// Readers and writers continue meanwhile; with [`BackfillMode::Full`] it waits for the open transaction. In
    /// shared mode it doesn't happen in the background, but when the last handle is closed. It takes a turn. If
    /// another process has updated the image meanwhile, it first starts again from there, which costs a replay of the
    /// journal after it. Cost: makes the journal hard (a flush), writes each page that changed since the last one,
    /// and flushes the image once.
    ///
    /// # Errors
    /// `Unsupported` on a raw device, which has no image. `Invalid` in a thread that has a transaction open, if the
    /// mode would wait for it, or within a callback of a backfill. `Poisoned` after a failed flush, or in a forked
    /// child. `Io`. In shared mode, unless it is passive, `Busy` if a backfill of another process takes too long.
    /// Commits and readers are not concerned, and nothing is lost.
    pub fn backfill(&self, mode: BackfillMode) -> Result<Backfilled> {
        self.backfill_watched(mode, &mut |_| ControlFlow::Continue(()))
    }

    /// Does what [`backfill`](Self::backfill) does, and reports its progress: at its beginning, and after each write
    /// of a few dozen MiB. An answer of `Break` ends it; the image is unchanged, and nothing is lost.
    ///
    /// # Errors
    /// As [`backfill`](Self::backfill); `Cancelled` after `Break`.
    pub fn backfill_watched(
        &self,
        mode: BackfillMode,
        watch: &mut dyn FnMut(BackfillProgress) -> ControlFlow<()>,
    ) -> Result<Backfilled> {
        self.check_writable()?;
        self.refuse_nested_backfill()?;
        if mode != BackfillMode::Passive {
            self.refuse_nesting()?;
        }
        if mode.restarts() {
            return self.backfill_with(mode, Restarting::default(), watch);
        }
        match &self.sharing {
            Some(_) => self.backfill_among_others(mode, watch),
            None => {
                let done = backfill::backfill_watched(&self.core, mode, watch)?;
                index_history::index_history(&self.core, usize::MAX, || true);
                Ok(done)
            }
        }
    }

    /// Refuses to wait for a backfill that this thread watches.
    pub(in crate::db) fn refuse_nested_backfill(&self) -> Result<()> {
        self.core.image().map_or(Ok(()), Imager::refuse_nesting)
    }

    /// Returns the problem of the image in the background since the last backfill; nothing is lost by that.
    #[must_use]
    pub fn image_error(&self) -> Option<String> {
        self.core.image_error()
    }

    /// Returns the damage of the image, the page file beside the journal, found since it was opened, and the action
    /// for each: one sentence each, at most a hundred. Nothing is lost by that.
    ///
    /// Data that doesn't verify when it is read isn't used any more. The state is rebuilt in the background, from an
    /// older root of the image or from the journal. Reads and writes that don't need the damaged pages continue;
    /// others wait for the rebuild, for [`Options::rebuild_timeout`] at most, and then fail with kind
    /// [`ErrorKind::PageLost`]. A transaction that has changed something already is one in any case.
    #[must_use]
    pub fn image_damage(&self) -> Vec<String> {
        self.core.image().map(|imager| imager.damage().findings()).unwrap_or_default()
    }

    /// Makes a hard checkpoint, truncates the space that was zeroed ahead, and closes. The next opening then has
    /// nothing to recover. Snapshots stay valid, and continue reading blobs.
    ///
    /// # Errors
    /// `Poisoned` or `Io`: commits acknowledged as durable are durable even so. In a forked child closing does
    /// nothing, and is `Poisoned`.
    pub fn close(mut self) -> Result<()> {
        self.close_once(Duration::MAX)
    }

    /// Does at once the background work after a while without commits.
    ///
    /// # Errors
    /// As the background work would meet: `Poisoned` or `Io`.
    #[cfg(feature = "testing")]
    pub fn rest(&self) -> Result<()> {
        self.in_turn(|| {
            let checkpoints = self.checkpoints();
            checkpoints.prefill()?;
            checkpoints.tell()?;
            checkpoints.advance_slot()
        })
    }

    /// Returns the checkpoints of the current segment.
    pub(in crate::db) fn checkpoints(&self) -> Arc<Checkpoints> {
        self.core.checkpoints()
    }

    /// Returns the segment that is written now; it changes only while the writer's lock is held.
    pub(in crate::db) fn segment(&self) -> &Current {
        &self.core.segment
    }

    pub(in crate::db) fn writing(&self) -> &Mutex<Writing> {
        &self.core.writing
    }

    pub(in crate::db) fn file(&self) -> Arc<JournalFile> {
        self.core.file()
    }

    pub(in crate::db) const fn sharing(&self) -> Option<&Sharing> {
        self.sharing.as_ref()
    }

    pub(in crate::db) const fn later_recoveries(&self) -> &Mutex<Vec<Recovered>> {
        &self.later_recoveries
    }

    /// Returns the thread that has a transaction open; 0: none.
    pub(in crate::db) fn owner(&self) -> usize {
        self.owner.load(Ordering::Relaxed)
    }

    /// Fails in a forked child, which has neither the file nor the threads of this database.
    #[inline]
    pub(in crate::db) fn check_origin(&self) -> Result<()> {
        self.origin.check().map_err(|error| self.forked(&error))
    }

    #[cold]
    fn forked(&self, error: &std::io::Error) -> Error {
        Error::new(ErrorKind::Poisoned, format!("{}: {error}", self.file().name))
    }

    /// Returns the group, which acknowledges commits.
    pub(in crate::db) fn group(&self) -> &Group {
        &self.core.group
    }

    /// Makes everything that is written durable.
    pub(in crate::db) fn harden(&self) -> Result<()> {
        self.core.group.settle()?;
        self.checkpoints().harden()
    }

    /// Notes that a transaction has been written, or has ended otherwise: the next may begin.
    pub(in crate::db) fn disown(&self) {
        if self.origin.is_elsewhere() {
            return; // the turn is the parent's, and its locks may be held for ever here
        }
        self.end_turn();
        self.owner.store(0, Ordering::Relaxed);
        self.core.group.leave();
    }

    /// Returns the thread for backfills, if there is one.
    pub(in crate::db) const fn background(&self) -> Option<&Background> {
        self.background.as_ref()
    }

    /// Returns the state that threads share.
    pub(in crate::db) fn core(&self) -> &Core {
        &self.core
    }

    /// Wakes the background work after a commit.
    pub(in crate::db) fn wake_keeper(&self) {
        if let Some(keeper) = &self.keeper {
            keeper.wake();
        }
    }

    fn close_once(&mut self, patience: Duration) -> Result<()> {
        if std::mem::replace(&mut self.closed, true) {
            return Ok(());
        }
        let (keeper, background) = (self.keeper.take(), self.background.take());
        if let Err(error) = self.check_origin() {
            // Their threads aren't in this process, and locks that they held at the fork are never released.
            std::mem::forget((keeper, background));
            return Err(error);
        }
        if let Some(imager) = self.core.image() {
            // Else the next opening would do it. Not for ever: it may wait for a transaction that was forgotten.
            imager.rebuilding().stop(PATIENCE);
        }
        self.rescuer.close();
        let is_imaged = background.is_none_or(|background| background.stop(patience));
        if let Some(keeper) = keeper {
            keeper.stop();
        }
        let checkpoints = self.checkpoints();
        let closed = match checkpoints.check_usable() {
            Err(error) if error.kind() == ErrorKind::Unapplied => Ok(()), // nothing is written any more
            // In shared mode the end of the turn noted that.
            Err(error) if self.sharing.is_some() => Err(error),
            Err(error) => {
                // Marks for the next opening that the last flush failed; ignores an error of that. In shared mode
                // that was marked in the turn in which it failed.
                if self.sharing.is_none() {
                    let _ = checkpoints.tell();
                }
                Err(Error::new(ErrorKind::Poisoned, error.to_string()))
            }
            Ok(()) if self.sharing.is_some() => self.close_shared(),
            Ok(()) => self.close_journal(is_imaged.then_some(patience)),
        };
        self.core.group.feed().close();
        // Snapshots keep the file open, to read blobs; they must not keep others from writing.
        let file = self.file();
        let unlocked = file.storage.unlock(Lock::Head);
        closed.and(
            unlocked.map_err(|error| {
                Error::io(format!("{}: can't let go of its lock", file.name), error)
            }),
        )
    }
}

impl Database {
    /// Closes a journal that no other process writes. Without `patience` the image isn't updated.
    fn close_journal(&mut self, patience: Option<Duration>) -> Result<()> {
        // Not by its lock: a transaction that was forgotten (`mem::forget`) holds that for ever. The thread
        // that shared it has ended.
        if let Some(core) = Arc::get_mut(&mut self.core) {
            let writing = core.writing.get_mut().unwrap_or_else(PoisonError::into_inner);
            writing.writer.rollback()?;
        }
        self.core.group.settle()?;
        // A problem of the image doesn't prevent closing: the next opening replays more.
        let _ = patience.map(|patience| trigger::backfill_at_close(&self.core, patience));
        self.checkpoints().close()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // No caller can receive an error, and nothing acknowledged as durable depends on it.
        let _ = self.close_once(PATIENCE);
    }
}
