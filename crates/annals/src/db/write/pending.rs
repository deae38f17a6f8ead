//! Commits that were written, and may have to wait for their levels.

use annals_schema::Txid;

use crate::Result;
use crate::db::write::inner::Inner;
use crate::debug::brief;
use crate::journal::{Level, Point};
use crate::trace::event;

/// The result of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The transaction's number.
    pub txid: Txid,
    /// The chain after it: with the number it says of which history it is.
    pub chain: u64,
    /// The end of its commit frame in the journal, in bytes.
    pub position: u64,
    /// The level that it reached.
    pub level: Level,
}

/// A commit that was written, and that may still have to reach its level.
///
/// Dropped without [`wait`](Self::wait), it is acknowledged together with a later one, or when the database closes:
/// an error of that is lost.
#[must_use = "nothing is promised before `wait` has returned"]
pub struct Pending<'db> {
    pub(in crate::db) database: &'db Inner,
    pub(in crate::db) point: Point,
    pub(in crate::db) level: Level,
    pub(in crate::db) is_empty: bool,
    /// True if nothing is missing any more.
    pub(in crate::db) is_acknowledged: bool,
}

brief!(Pending<'_>, "Pending", "txid": |it| it.point.txid, "level": |it| it.level);

impl Pending<'_> {
    /// Returns once the commit is acknowledged: it is visible, and its level's promise holds, and so are all before
    /// it. Does the missing steps itself, or waits for the thread that does.
    ///
    /// # Errors
    /// `UnknownOutcome` if a flush failed: reopen the database to see whether the transaction survived. `Poisoned` or
    /// `Io` if a transaction without events can't make earlier commits durable.
    pub fn wait(self) -> Result<Commit> {
        let Self { database, level, .. } = self;
        database.check_origin()?;
        if self.is_acknowledged {
            // Done by `submit`.
        } else if !self.is_empty {
            database.group.wait(self.point)?;
            // It may have fallen asleep in the meantime.
            database.wake_checkpointer();
        } else if database.sharing.is_some() {
            // Done by `submit`, before the turn ended.
        } else if level.flushes() {
            database.harden()?;
        } else {
            // The state that the transaction saw must not be taken back.
            database.group.settle()?;
        }
        if !self.is_empty {
            let Point { txid, position, .. } = self.point;
            event!(DEBUG, "committed", txid = txid.0, position = position, level = level.name());
        }
        let Point { txid, chain, position } = self.point;
        Ok(Commit { txid, chain, position, level })
    }
}
