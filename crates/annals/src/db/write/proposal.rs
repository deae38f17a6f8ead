//! A transaction whose frames are complete, and not in the journal yet.

use std::sync::Arc;

use annals_storage::Spool;

use crate::db::present::snapshot::{Published, Snapshot};
use crate::db::write::commit;
use crate::db::write::commit::{Request, Written};
use crate::db::write::core::Writing;
use crate::db::write::inner::Inner;
use crate::db::write::pending::{Commit, Pending};
use crate::db::write::transaction::Transaction;
use crate::debug::brief;
use crate::journal::{Cursor, Level, Point};
use crate::{Error, ErrorKind, Result};

/// One or more transactions as frames, in memory or in a spool: seen by nobody, and not in the journal. Dropped, they
/// never were. It holds the writer's lock of its database.
pub struct Proposal<'db> {
    tx: Transaction<'db>,
    from: Point,
    end: Point,
}

brief!(Proposal<'_>, "Proposal", "from": |it| it.from.txid, "to": |it| it.end.txid);

/// Keeps the frames of a transaction beside the journal, until [`propose`] and [`Proposal::accept`]: to be called
/// before its first change.
///
/// # Errors
/// `Unsupported`: other processes write the journal, too; `Invalid`: it has changes.
pub fn hold(tx: &mut Transaction<'_>) -> Result<()> {
    if tx.database.sharing.is_some() {
        let message = "a replica's journal has one writer: open it without shared mode";
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    if !tx.is_empty() {
        return Err(Error::invalid("a transaction is held from its beginning, or not at all"));
    }
    tx.writing.writer.hold(spool(tx.database));
    // What the other side promises when it accepts them.
    tx.set_level(Level::Checksummed);
    Ok(())
}

/// Ends a transaction that was [held](hold), as [`Transaction::commit`] does, but doesn't write it; `None` if it has no
/// events.
///
/// # Errors
/// `Unique`, `Reference`, `Refused`, `Io`: it is rolled back, with all others of the proposal that it extends.
pub fn propose(mut tx: Transaction<'_>) -> Result<Option<Proposal<'_>>> {
    tx.usable()?;
    tx.forget_savepoints(0);
    if !tx.is_empty() {
        tx.settle()?;
        tx.pass_checks()?;
        tx.end_held()?;
    }
    let proposal = Proposal::of(tx);
    Ok(Some(proposal).filter(|proposal| proposal.end != proposal.from))
}

/// Begins another transaction after those of a proposal: proposed, they are one proposal.
#[must_use]
pub fn extend(proposal: Proposal<'_>) -> Transaction<'_> {
    let Proposal { mut tx, .. } = proposal;
    tx.begin_next();
    tx
}

/// Returns the cursor that a transaction without changes follows.
#[must_use]
pub fn end_of(tx: &Transaction<'_>) -> Cursor {
    tx.writing.writer.committed().into()
}

impl<'db> Transaction<'db> {
    /// Returns the committed state that it began with, which may not be acknowledged yet.
    #[doc(hidden)]
    #[must_use]
    pub fn base(&self) -> Snapshot {
        let Writing { writer, store, file, .. } = &*self.writing;
        let (view, file) = (Arc::clone(store.published()), Arc::clone(file));
        Snapshot::new(Arc::new(Published { view, point: writer.committed(), file }))
    }

    /// Ends one of several transactions that are held together; the next one begins. All of them are proposed, or none.
    ///
    /// # Errors
    /// `Unique`, `Reference`; `Io`: all that is left is to roll back.
    #[doc(hidden)]
    pub fn end_one(&mut self) -> Result<()> {
        self.usable()?;
        self.check_held()?;
        self.settle()?;
        self.end_held()?;
        self.writing.store.end_blob();
        self.statements += 1;
        self.time = None;
        Ok(())
    }

    fn end_held(&mut self) -> Result<()> {
        commit::check(&self.writing)?;
        let Request { level, time, .. } = self.request();
        self.writing.writer.commit(level, time).map(drop)
    }

    /// Refuses a transaction whose frames are written: what ends in it would be in the file and not in the store.
    fn check_held(&self) -> Result<()> {
        match self.writing.writer.held() {
            Some(_) => Ok(()),
            None => Err(Error::invalid(
                "the frames of this transaction aren't held: begin it with `hold`",
            )),
        }
    }

    /// Ends a transaction into which frames were taken: they make a proposal.
    ///
    /// # Errors
    /// `Refused` by a check.
    #[doc(hidden)]
    pub fn propose_taken(mut self) -> Result<Proposal<'db>> {
        self.usable()?;
        self.check_held()?;
        self.pass_checks()?;
        Ok(Proposal::of(self))
    }
}

/// Returns an empty spool for frames of a journal.
pub(super) fn spool(database: &Inner) -> Spool {
    let file = database.file();
    let name = format!("{}-spool-{:016x}", file.journal, database.clock().random());
    Spool::new(file.directory.again(), name, 0)
}

impl<'db> Proposal<'db> {
    fn of(tx: Transaction<'db>) -> Self {
        let (from, end) = (tx.writing.writer.end_of_file(), tx.writing.writer.committed());
        Self { tx, from, end }
    }

    /// Returns the cursor before it.
    #[must_use]
    pub fn from(&self) -> Cursor {
        self.from.into()
    }

    /// Returns the cursor after it.
    #[must_use]
    pub fn end(&self) -> Cursor {
        self.end.into()
    }

    /// Returns its frames.
    #[must_use]
    pub fn frames(&self) -> Option<&Spool> {
        self.tx.writing.writer.held()
    }

    /// Writes the frames to the journal as they are, and returns once they are acknowledged at the level of the
    /// database's options.
    ///
    /// # Errors
    /// Those of [`Transaction::commit`].
    pub fn accept(self) -> Result<Commit> {
        let Self { mut tx, .. } = self;
        let database = tx.database;
        let released = tx.writing.writer.release();
        let point = released.map_err(|error| database.advise_space(error))?;
        let request = Request { level: database.level, is_foreign: true, ..tx.request() };
        let written = commit::hand_over(database, &mut tx.writing, point, request);
        let Written { point, is_acknowledged } = written;
        tx.note_written(point);
        drop(tx);
        let level = request.level;
        let pending = Pending { database, point, level, is_empty: false, is_acknowledged };
        let commit = pending.wait()?;
        if level.flushes() {
            // Its frames prove nothing about this file: only a slot does. They are history whatever comes of that: an error
            // here would deny it. What fails is tried again in the background.
            let _ = database.checkpoints().advance_slot();
        }
        Ok(commit)
    }
}
