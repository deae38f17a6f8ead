//! The handle of an open database.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use crate::db::follow::options::Options;
use crate::db::follow::unapplied::Unapplied;
use crate::db::image::background::Background;
use crate::db::present::segment::Segment;
use crate::db::present::snapshot::Snapshot;
use crate::db::present::threads::this_thread;
use crate::db::write::checkpointer::Checkpointer;
use crate::db::write::checks::{Checked, Checks, Proposed};
use crate::db::write::core::Core;
use crate::db::write::gate::Gate;
use crate::db::write::inner::Inner;
use crate::db::write::shared;
use crate::db::write::sharing::Sharing;
use crate::db::write::transaction::Transaction;
use crate::db::write::{reopening, spill};
use crate::debug::brief;
use crate::journal::{Level, Point, Recovered, lock};
use crate::storage::{MemoryDirectory, Origin, SystemClock};
use crate::{Error, Result};

/// A database, open for reading and writing.
///
/// It is a handle, `Send` and `Sync`: a clone costs one reference count, and is a handle of the same open database.
/// There is one writer at a time, and any number of readers, which never wait for it. Dropping the last handle closes
/// the database, and ignores errors of closing; [`Database::close`] closes it for all handles, and returns them.
/// Dropping waits 5 s at most for a backfill, and then ends it: the next opening replays more. Closing waits for it.
///
/// It belongs to the process that opened it. In a forked child all is an error, also reading the snapshots that
/// [`read`](Self::read) returns there, and the parent isn't affected. Of snapshots that were taken before the fork a child can read
/// what is in memory. The child opens the database again, when the parent has closed it, or opens it read-only.
#[derive(Clone)]
pub struct Database {
    inner: Arc<Inner>,
}

brief!(Database, "Database", "file": |it| it.inner().file().name, "level": |it| it.inner().level);

/// Begins a transaction, as [`Database::begin`] does. In shared mode it waits for other processes up to `timeout`, or
/// that of the options, and while `is_wanted`, which it asks all the time.
///
/// # Errors
/// Those of [`Database::begin`]; `Busy`; `Cancelled`: it isn't wanted any more.
pub fn begin_while<'db>(
    database: &'db Database,
    timeout: Option<Duration>,
    is_wanted: &dyn Fn() -> bool,
) -> Result<Transaction<'db>> {
    database.begin_by(|segment| segment.take_turn_while(timeout, is_wanted))
}

impl Database {
    pub(in crate::db) fn new(
        core: Arc<Core>,
        level: Level,
        sharing: Option<Sharing>,
        recovered: Recovered,
        works: bool,
    ) -> Self {
        let checkpointer =
            works.then(|| Checkpointer::new(Arc::clone(&core.segment), Arc::clone(&core.keeping)));
        // A problem of the image doesn't prevent opening: it is retried.
        spill::publish_spilled(&core);
        let background = works.then(|| Background::new(Arc::clone(&core)));
        let damage = core.image().map(|image_state| Arc::clone(image_state.damage()));
        let inner = Inner {
            core,
            background,
            checkpointer,
            recovered,
            owner: AtomicUsize::new(0),
            later_recoveries: Mutex::default(),
            unapplied: OnceLock::new(),
            follows: OnceLock::new(),
            sharing,
            level,
            origin: Origin::here(),
            damage: damage.unwrap_or_default(),
            has_fixed_schema: AtomicBool::new(false),
            gate: Gate::default(),
            checks: Checks::default(),
            is_closed: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Returns what transactions and the other rooms see of it.
    pub(in crate::db) fn inner(&self) -> &Inner {
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
    pub(in crate::db) fn fix_schema(self) -> Self {
        self.inner().has_fixed_schema.store(true, Ordering::Relaxed);
        self
    }

    /// Returns a snapshot of the last commit. Costs one reference count, and never waits, unless a read has failed with
    /// [`PageLost`](crate::ErrorKind::PageLost) since: then it opens the state again, without that page. After the database was closed
    /// it still returns the last commit before that. In a forked child each read of the snapshot is an error
    /// (`Poisoned`), and its numbers of rows mean nothing.
    #[must_use]
    pub fn read(&self) -> Snapshot {
        self.inner().read()
    }

    /// Begins a transaction; waits until the one before has ended or is on its way to permanent storage. It sees all
    /// earlier writes, also those that aren't acknowledged yet. Like [`read`](Self::read) it leaves lost pages.
    ///
    /// A transaction may move to another thread, and end there. Nesting is still judged by the thread that began it.
    ///
    /// # Errors
    /// `Invalid` in a thread that began a transaction which is open still, wherever that is now; `Closed`;
    /// `Poisoned` after a failed flush, or in a forked child; `Io` if the bytes that a failed transaction wrote
    /// can't be truncated.
    pub fn begin(&self) -> Result<Transaction<'_>> {
        self.begin_by(Segment::take_turn)
    }

    fn begin_by(&self, take: impl Fn(&Segment) -> Result<()>) -> Result<Transaction<'_>> {
        let inner = self.inner();
        inner.check_origin()?;
        inner.refuse_nesting()?;
        inner.group.arrive();
        let mut writing = inner.writing.lock();
        // With the lock: closing waits for it.
        let open = inner.check_open();
        let begun = open.and_then(|()| shared::take_turn_by(inner, &mut writing, take));
        let begun = begun.and_then(|()| {
            writing.writer.begin(inner.level).inspect_err(|_| shared::end_turn(inner))
        });
        begun.inspect_err(|_| inner.group.leave())?;
        if let Some(image_state) = inner.image() {
            image_state.install(&mut writing.store);
            if reopening::reopen_to_write(&inner.core, image_state, &mut writing) {
                inner.want_backfill();
            }
        }
        inner.wake_checkpointer();
        inner.owner.store(this_thread(), Ordering::Relaxed);
        Ok(Transaction::new(inner, writing, inner.level))
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
    /// [`Refused`](crate::ErrorKind::Refused), and [`Error::io_error`] has the program's own error; errors of the database keep
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
        self.inner().check_open()?;
        self.inner().refuse_nesting()?;
        let _writing = self.inner().writing.lock();
        self.inner().checks.add(name, Box::new(check))
    }

    /// Returns the report of opening.
    #[must_use]
    pub fn recovered(&self) -> &Recovered {
        &self.inner.recovered
    }

    /// Makes a soft checkpoint: publishes all commits to other processes; the operating system has their bytes.
    /// Returns the point that was reached. Costs a small write, unless they know (they do within 10 ms).
    ///
    /// # Errors
    /// `Poisoned` after a failed flush, or in a forked child; `Io` if the live block can't be written.
    pub fn soft_checkpoint(&self) -> Result<Point> {
        let inner = self.inner();
        let _entered = inner.enter()?;
        inner.group.settle()?;
        shared::in_turn(inner, || inner.checkpoints().soft())
    }

    /// Makes a hard checkpoint: flushes all commits to permanent storage, then writes a slot and flushes that too.
    /// Returns the point that was reached. Costs at most two flushes, and nothing if no commit followed the last one.
    ///
    /// # Errors
    /// `Poisoned` if a flush fails or has failed, or in a forked child; `Io` if a slot or the live
    /// block can't be written.
    pub fn hard_checkpoint(&self) -> Result<Point> {
        let inner = self.inner();
        let _entered = inner.enter()?;
        inner.group.settle()?;
        shared::in_turn(inner, || inner.checkpoints().hard())
    }

    /// Makes a hard checkpoint, truncates the space that was zeroed ahead, and closes. The next opening then has
    /// nothing to recover. Snapshots stay valid, and continue reading blobs.
    ///
    /// It closes the database for all its handles, after the open transaction and the running backfill of other
    /// threads. Then other handles get errors of kind [`Closed`](crate::ErrorKind::Closed), except that
    /// [`read`](Self::read) returns the last commit, and that subscriptions end after it. Closing another one does
    /// nothing.
    ///
    /// ```
    /// # fn main() -> annals::Result<()> {
    /// let db = annals::Database::in_memory()?;
    /// let handle = db.clone();
    /// db.close()?;
    /// assert_eq!(handle.begin().unwrap_err().kind(), annals::ErrorKind::Closed);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Invalid` if there are other handles, and this thread has a transaction open or is within a callback of a
    /// backfill: then it isn't closed. `Poisoned` or `Io`: commits acknowledged as durable are durable even so. In a forked child closing does
    /// nothing, and is `Poisoned`.
    pub fn close(self) -> Result<()> {
        self.inner.close()
    }

    /// Does at once the background work after a while without commits.
    ///
    /// # Errors
    /// As the background work would meet: `Poisoned` or `Io`.
    #[cfg(feature = "testing")]
    pub fn rest(&self) -> Result<()> {
        let _entered = self.inner().enter()?;
        shared::in_turn(self.inner(), || {
            let checkpoints = self.inner().checkpoints();
            checkpoints.prefill()?;
            checkpoints.tell()?;
            checkpoints.advance_slot()
        })
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
        self.inner().check_open()?;
        shared::pull(self.inner())
    }

    /// Returns the recoveries since the database was opened, in shared mode: when this process began a transaction,
    /// another one had been killed, or its flush had failed.
    #[must_use]
    pub fn recoveries(&self) -> Vec<Recovered> {
        lock(&self.inner().later_recoveries).clone()
    }

    /// Returns the commit that doesn't apply, if the journal holds one. Then the database shows the state before
    /// it, and every write is an error of kind `Unapplied`.
    #[must_use]
    pub fn unapplied(&self) -> Option<&Unapplied> {
        self.inner().unapplied.get()
    }
}
