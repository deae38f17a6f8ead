//! The handle of an open database.

use crate::db::engine::{rebuild, spill, trigger};
use crate::db::handle::checks::{Checked, Checks, Proposed};
use crate::db::handle::inner::Inner;
use crate::db::handle::shared;
use crate::db::replay::unapplied::Unapplied;
use crate::db::threads::this_thread;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::db::engine::background::Background;
use crate::db::engine::checkpointer::Checkpointer;
use crate::db::engine::core::Rescuer;
use crate::db::engine::core::{Core, Working, Writing};
use crate::db::engine::group::Group;
use crate::db::handle::sharing::Sharing;
use crate::db::handle::transaction::Transaction;
use crate::db::history::keeping::Keeping;
use crate::db::image::ImageState;
use crate::db::options::Options;
use crate::db::present::segment::{Current, Segment};
use crate::db::present::snapshot::Snapshot;
use crate::debug::brief;
use crate::journal::{Level, Point, Recovered, Retention, Writer, lock};
use crate::storage::{Clock, Lock, MemoryDirectory, Origin, SystemClock};
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
    inner: Inner,
    /// Rebuilds the state for snapshots that need a lost page.
    rescuer: Arc<Rescuer>,
    recovered: Recovered,
    closed: bool,
}

brief!(Database, "Database", "file": |it| it.inner.file().name, "level": |it| it.inner.level);

/// The parts of an open database.
pub(in crate::db) struct Setup {
    pub(in crate::db) writer: Writer,
    pub(in crate::db) segment: Segment,
    pub(in crate::db) clock: Arc<dyn Clock>,
    pub(in crate::db) store: Store,
    pub(in crate::db) view: Arc<View>,
    pub(in crate::db) recovered: Recovered,
    /// The state of the image; `None` if there can be none.
    pub(in crate::db) image_state: Option<Arc<ImageState>>,
    pub(in crate::db) level: Level,
    pub(in crate::db) background: bool,
    /// How long a read or a write waits for the rebuild of a damaged page.
    pub(in crate::db) rebuild_timeout: Duration,
    /// The rules of retention.
    pub(in crate::db) retention: Retention,
    /// True if backfills extend the history index.
    pub(in crate::db) history: bool,
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
        let core =
            Core::new(group, writing, Arc::clone(&segment), (setup.image_state, keeps), &works);
        let rescuer = core.with_rescuer();
        let checkpointer =
            background.then(|| Checkpointer::new(segment, Arc::clone(&core.keeping)));
        // A problem of the image doesn't prevent opening: it is retried.
        spill::publish_spilled(&core);
        let background = background.then(|| Background::new(Arc::clone(&core)));
        let inner = Inner {
            core,
            background,
            checkpointer,
            clock: setup.clock,
            owner: AtomicUsize::new(0),
            later_recoveries: Mutex::default(),
            unapplied: OnceLock::new(),
            sharing: setup.sharing,
            level: setup.level,
            origin: Origin::here(),
            has_fixed_schema: false,
            checks: Checks::default(),
        };
        Self { inner, rescuer, recovered: setup.recovered, closed: false }
    }

    /// Returns what transactions and the other rooms see of it.
    pub(in crate::db) const fn inner(&self) -> &Inner {
        &self.inner
    }

    /// Opens or creates a database with the default [`Options`].
    ///
    /// # Errors
    /// See [`Options::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Options::new().open(path)
    }

    /// Makes an empty database in memory, for tests and for data that nobody needs later: dropping it drops all.
    /// It does what one in a file does, at the speed of memory: the past, histories and subscriptions too. Nothing is
    /// done in the background, so its journal grows until it is dropped.
    ///
    /// Each call makes another one. [`Options::open_in`] with one
    /// [`MemoryDirectory`](crate::storage::MemoryDirectory) is for tests that close a database and open it again.
    ///
    /// # Errors
    /// None that is known: those of [`Options::open`], whose files are in memory.
    pub fn in_memory() -> Result<Self> {
        let (directory, clock) = (Arc::new(MemoryDirectory::new()), Arc::new(SystemClock));
        Options::new().background(false).level(Level::Soft).open_in(directory, "memory", clock)
    }

    /// Refuses every change of the schema from now on.
    pub(in crate::db) fn fix_schema(mut self) -> Self {
        self.inner.has_fixed_schema = true;
        self
    }

    /// Returns a snapshot of the last commit. Never waits; costs one reference count.
    #[must_use]
    pub fn read(&self) -> Snapshot {
        Snapshot::new(self.inner.core.group.published())
    }

    /// Begins a transaction; waits until the one before has ended or is on its way to permanent storage. It sees all
    /// earlier writes, also those that aren't acknowledged yet.
    ///
    /// # Errors
    /// `Invalid` in a thread that has a transaction open already (it would wait for itself);
    /// `Poisoned` after a failed flush, or in a forked child; `Io` if the bytes that a failed transaction wrote
    /// can't be truncated.
    pub fn begin(&self) -> Result<Transaction<'_>> {
        self.inner.check_origin()?;
        self.inner.refuse_nesting()?;
        self.inner.core.group.arrive();
        let mut writing = lock(&self.inner.core.writing);
        let begun = shared::take_or_join_turn(&self.inner, &mut writing).and_then(|()| {
            writing.writer.begin(self.inner.level).inspect_err(|_| shared::end_turn(&self.inner))
        });
        begun.inspect_err(|_| self.inner.core.group.leave())?;
        if let Some(image_state) = self.inner.core.image() {
            image_state.install(&mut writing.store);
            rebuild::see_to_damage(&self.inner.core, image_state, &mut writing);
            if writing.store.view().lies_over_image() {
                self.inner.core.let_rescue(&mut writing);
            }
        }
        self.inner.wake_checkpointer();
        self.inner.owner.store(this_thread(), Ordering::Relaxed);
        Ok(Transaction::new(&self.inner, writing, self.inner.level))
    }

    /// Runs `change` in a transaction and commits it, at the level of the [`Options`] or the one
    /// that `change` sets. An `Err` rolls everything back. A transaction whose errors are the
    /// program's own is run by [`transact`](Self::transact).
    ///
    /// # Errors
    /// The error of `change`, and those of [`Transaction::commit`] and [`Database::begin`].
    pub fn write<T>(&self, change: impl FnOnce(&mut Transaction<'_>) -> Result<T>) -> Result<T> {
        self.transact(change)
    }

    /// Does what [`write`](Self::write) does, with any error type of the program.
    ///
    /// # Errors
    /// The error of `change`, and those of [`Transaction::commit`] and [`Database::begin`].
    pub fn transact<T, E: From<Error>>(
        &self,
        change: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut transaction = self.begin()?;
        let value = change(&mut transaction)?;
        transaction.commit()?;
        Ok(value)
    }

    /// Registers a check that every later commit of this handle must pass, until the database is closed. Waits for
    /// the transaction of another thread to end.
    ///
    /// It runs after the checks of the schema, in the thread that commits. If it returns an error, the commit fails
    /// with that error, which names the check, and the transaction is rolled back. The kind is
    /// [`Refused`](ErrorKind::Refused), and [`Error::io_error`] has the program's own error; errors of the database keep
    /// their kind.
    ///
    /// Not checked are commits of other processes and of copies, replay, and what was committed before.
    ///
    /// Cost: a transaction notes the rows that it touches, 24 bytes for each run of them. The rest is what the check
    /// reads. Without a check a commit costs nothing more.
    ///
    /// # Errors
    /// `Invalid`: there is a check of this name already, or this thread has a transaction open.
    pub fn check_commits(
        &self,
        name: &str,
        check: impl Fn(&Proposed<'_>) -> Checked + Send + Sync + 'static,
    ) -> Result<()> {
        self.inner.check_origin()?;
        self.inner.refuse_nesting()?;
        let _writing = lock(&self.inner.core.writing);
        self.inner.checks.add(name, Box::new(check))
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
        self.inner.check_origin()?;
        self.inner.core.group.settle()?;
        shared::in_turn(&self.inner, || self.inner.checkpoints().soft())
    }

    /// Makes a hard checkpoint: flushes all commits to permanent storage, then writes a slot and flushes that too.
    /// Returns the point that was reached. Costs at most two flushes, and nothing if no commit followed the last one.
    ///
    /// # Errors
    /// `Poisoned` if a flush fails or has failed, or in a forked child; `Io` if a slot or the live
    /// block can't be written.
    pub fn hard_checkpoint(&self) -> Result<Point> {
        self.inner.check_origin()?;
        self.inner.core.group.settle()?;
        shared::in_turn(&self.inner, || self.inner.checkpoints().hard())
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
        shared::in_turn(&self.inner, || {
            let checkpoints = self.inner.checkpoints();
            checkpoints.prefill()?;
            checkpoints.tell()?;
            checkpoints.advance_slot()
        })
    }

    fn close_once(&mut self, patience: Duration) -> Result<()> {
        if std::mem::replace(&mut self.closed, true) {
            return Ok(());
        }
        let (checkpointer, background) =
            (self.inner.checkpointer.take(), self.inner.background.take());
        if let Err(error) = self.inner.check_origin() {
            // Their threads aren't in this process, and locks that they held at the fork are never released.
            std::mem::forget((checkpointer, background));
            return Err(error);
        }
        if let Some(image_state) = self.inner.core.image() {
            // Else the next opening would do it. Not for ever: it may wait for a transaction that was forgotten.
            image_state.rebuilding().stop(PATIENCE);
        }
        self.rescuer.close();
        let is_imaged = background.is_none_or(|background| background.stop(patience));
        if let Some(checkpointer) = checkpointer {
            checkpointer.stop();
        }
        let checkpoints = self.inner.checkpoints();
        let closed = match checkpoints.check_usable() {
            Err(error) if error.kind() == ErrorKind::Unapplied => Ok(()), // nothing is written any more
            // In shared mode the end of the turn noted that.
            Err(error) if self.inner.sharing.is_some() => Err(error),
            Err(error) => {
                // Marks for the next opening that the last flush failed; ignores an error of that. In shared mode
                // that was marked in the turn in which it failed.
                if self.inner.sharing.is_none() {
                    let _ = checkpoints.tell();
                }
                Err(Error::new(ErrorKind::Poisoned, error.to_string()))
            }
            Ok(()) if self.inner.sharing.is_some() => shared::close_shared(&self.inner),
            Ok(()) => self.close_journal(is_imaged.then_some(patience)),
        };
        self.inner.core.group.feed().close();
        // Snapshots keep the file open, to read blobs; they must not keep others from writing.
        let file = self.inner.file();
        let unlocked = file.storage.unlock(Lock::Head);
        closed.and(
            unlocked.map_err(|error| {
                Error::io(format!("{}: can't let go of its lock", file.name), error)
            }),
        )
    }

    /// Loads the commits of other processes since, and returns a snapshot of them. Takes no lock of the file; it
    /// waits while another thread has a transaction of this handle open, or waits for its turn. In exclusive mode
    /// there is nothing to load.
    ///
    /// Cost: reads the new part of the journal, and replays it.
    ///
    /// # Errors
    /// `Invalid` in a thread that has a transaction open; `NotFound` if the file was removed or replaced. `Unapplied`
    /// if a commit doesn't apply: all before it was loaded. `SchemaMismatch` if another program upgraded the schema
    /// that this one's code relies on; `Corrupt`; `Io`.
    pub fn pull(&self) -> Result<Snapshot> {
        shared::pull(&self.inner)
    }

    /// Returns the recoveries since the database was opened, in shared mode: when this process began a transaction,
    /// another one had been killed, or its flush had failed.
    #[must_use]
    pub fn recoveries(&self) -> Vec<Recovered> {
        lock(self.inner.later_recoveries()).clone()
    }

    /// Returns the commit that doesn't apply, if the journal holds one. Then the database shows the state before
    /// it, and every write is an error of kind `Unapplied`.
    #[must_use]
    pub fn unapplied(&self) -> Option<&Unapplied> {
        self.inner.unapplied.get()
    }
}

impl Database {
    /// Closes a journal that no other process writes. `patience` limits the time to update the image; with `None` it
    /// isn't updated.
    fn close_journal(&mut self, patience: Option<Duration>) -> Result<()> {
        // Not by its lock: a transaction that was forgotten (`mem::forget`) holds that for ever. The thread
        // that shared it has ended.
        if let Some(core) = Arc::get_mut(&mut self.inner.core) {
            let writing = core.writing.get_mut().unwrap_or_else(PoisonError::into_inner);
            writing.writer.rollback()?;
        }
        self.inner.core.group.settle()?;
        // A problem of the image doesn't prevent closing: the next opening replays more.
        let _ = patience.map(|patience| trigger::backfill_at_close(&self.inner.core, patience));
        self.inner.checkpoints().close()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // No caller can receive an error, and nothing acknowledged as durable depends on it.
        let _ = self.close_once(PATIENCE);
    }
}
