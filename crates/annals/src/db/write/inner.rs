//! An open database, as its transactions and the other rooms see it: what `Database` is the public side of.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crate::db::follow::unapplied::Unapplied;
use crate::db::image::background::Background;
use crate::db::present::snapshot::Snapshot;
use crate::db::present::threads::this_thread;
use crate::db::write::checkpointer::Checkpointer;
use crate::db::write::checks::Checks;
use crate::db::write::core::Core;
use crate::db::write::gate::{Entered, Gate};
use crate::db::write::reopening;
use crate::db::write::sharing::Sharing;
use crate::image::Damage;
use crate::journal::{Level, Recovered};
use crate::storage::Origin;
use crate::{Error, ErrorKind, Result};

/// An open database, which its handles share: the threads that work for it, and what only its handles need.
pub(in crate::db) struct Inner {
    pub(in crate::db) core: Arc<Core>,
    /// The thread for backfills; `None` without background work.
    pub(in crate::db) background: Option<Background>,
    pub(in crate::db) checkpointer: Option<Checkpointer>,
    /// The thread that has a transaction open, as [`this_thread`] names it; 0: none.
    pub(in crate::db) owner: AtomicUsize,
    /// The recoveries since it was opened, after other processes were interrupted.
    pub(in crate::db) later_recoveries: Mutex<Vec<Recovered>>,
    /// The commit that doesn't apply; then nothing is written any more.
    pub(in crate::db) unapplied: OnceLock<Unapplied>,
    pub(in crate::db) sharing: Option<Sharing>,
    pub(in crate::db) level: Level,
    pub(in crate::db) origin: Origin,
    /// The known damage of images, at hand for each snapshot.
    pub(in crate::db) damage: Arc<Damage>,
    /// True if a program's typed code relies on the schema.
    pub(in crate::db) has_fixed_schema: AtomicBool,
    /// What closing waits for.
    pub(in crate::db) gate: Gate,
    /// The checks that the program registered.
    pub(in crate::db) checks: Checks,
    /// The journal that this one follows, if it is a replica's, as messages name it.
    pub(in crate::db) follows: OnceLock<String>,
    /// The report of opening.
    pub(in crate::db) recovered: Recovered,
    /// True once it is closed; held while it is being closed.
    pub(in crate::db) is_closed: Mutex<bool>,
}

impl Deref for Inner {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.core
    }
}

impl Inner {
    /// Returns a snapshot of the last commit.
    #[inline]
    pub(in crate::db) fn read(&self) -> Snapshot {
        if self.origin.is_elsewhere() || self.damage.is_state_lost() {
            return self.read_anew();
        }
        Snapshot::new(self.core.group.published())
    }

    /// Does so in a forked child, or after a read of a lost page.
    #[cold]
    #[inline(never)]
    fn read_anew(&self) -> Snapshot {
        if self.origin.is_elsewhere() {
            return Snapshot::elsewhere(&self.group.published());
        }
        if let Some(_entered) = self.gate.enter()
            && reopening::reopen_to_read(&self.core)
        {
            self.want_backfill();
        }
        Snapshot::new(self.core.group.published())
    }

    /// Requests a backfill, if they are done in the background.
    pub(in crate::db) fn want_backfill(&self) {
        self.background.iter().for_each(Background::want);
    }

    /// True if a program's typed code relies on the schema.
    pub(in crate::db) fn has_fixed_schema(&self) -> bool {
        self.has_fixed_schema.load(Ordering::Relaxed)
    }

    /// Returns the thread that has a transaction open; 0: none.
    pub(in crate::db) fn owner(&self) -> usize {
        self.owner.load(Ordering::Relaxed)
    }

    /// Fails in a forked child, which has neither the file nor the threads of this database.
    #[inline]
    pub(in crate::db) fn check_origin(&self) -> Result<()> {
        if self.origin.is_elsewhere() { self.file().check_origin() } else { Ok(()) }
    }

    /// Makes everything that is written durable.
    pub(in crate::db) fn harden(&self) -> Result<()> {
        self.group.settle()?;
        self.checkpoints().harden()
    }

    /// Wakes the background work after a commit.
    pub(in crate::db) fn wake_checkpointer(&self) {
        if let Some(checkpointer) = &self.checkpointer {
            checkpointer.wake();
        }
    }

    /// Refuses to do something that only the owner of a history may do.
    pub(in crate::db) fn refuse_following(&self, what: &str) -> Result<()> {
        let Some(owner) = self.follows.get() else { return Ok(()) };
        let message = format!("{}: is a replica of {owner}: {what} there", self.file().name);
        Err(Error::new(ErrorKind::Unsupported, message))
    }

    /// Refuses to wait for a transaction of the same thread.
    pub(in crate::db) fn refuse_nesting(&self) -> Result<()> {
        if self.owner() != this_thread() {
            return Ok(());
        }
        Err(Error::invalid(
            "this thread has a transaction open already: use that one, or end it first \
             (transactions don't nest)",
        ))
    }

    /// Fails in a forked child, and after the database was closed.
    pub(in crate::db) fn check_open(&self) -> Result<()> {
        self.check_origin()?;
        if self.gate.is_closed() { Err(self.closed()) } else { Ok(()) }
    }

    /// Returns the error of handles of a closed database.
    #[cold]
    pub(in crate::db) fn closed(&self) -> Error {
        let message = format!(
            "{}: the database was closed by another of its handles: open it again, or close it only when all \
             other handles are done",
            self.file().name
        );
        Error::new(ErrorKind::Closed, message)
    }

    /// Begins an operation on the files, which closing waits for.
    ///
    /// # Errors
    /// Those of [`check_open`](Self::check_open).
    pub(in crate::db) fn enter(&self) -> Result<Entered<'_>> {
        self.check_origin()?;
        self.gate.enter().ok_or_else(|| self.closed())
    }

    /// Begins an operation that writes files. Fails also where a commit doesn't apply.
    pub(in crate::db) fn enter_to_write(&self) -> Result<Entered<'_>> {
        let entered = self.enter()?;
        self.refuse_unapplied().map(|()| entered)
    }

    /// Fails where a commit doesn't apply.
    pub(in crate::db) fn refuse_unapplied(&self) -> Result<()> {
        match self.unapplied.get() {
            None => Ok(()),
            Some(unapplied) => Err(unapplied.error(&self.file().name)),
        }
    }

    /// Writes nothing any more, since a commit doesn't apply that another process made; returns the error that
    /// says so.
    pub(in crate::db) fn stay_before(&self, unapplied: Unapplied) -> Error {
        let error = unapplied.error(&self.file().name);
        self.checkpoints().refuse(ErrorKind::Unapplied, error.to_string());
        let _ = self.unapplied.set(unapplied);
        error
    }
}
