//! The past, as methods of the handles of a database.

use crate::journal::lock;
use std::sync::{Arc, Weak};

use crate::Result;
use crate::db::changes::moment::Moment;
use crate::db::handle::database::Database;
use crate::db::history::txid_of;
use crate::db::past::at::{Present, Through};
use crate::db::present::snapshot::Snapshot;
use crate::db::reader::Reader;
use crate::storage::SystemClock;
use crate::store::{Rescue, Shown};

impl Database {
    /// Returns the last problem of the history index since the database was opened: it was rebuilt, or nothing could
    /// be added. The history index is the file beside the journal that records in which parts of it a row was
    /// changed. Nothing is lost by that, and it is tried again after the next backfill.
    #[must_use]
    pub fn history_error(&self) -> Option<String> {
        lock(&self.core().history.problem).clone()
    }

    /// Returns the state at an earlier moment: after a transaction, at a time, or at a comment. It is read through
    /// the present schema, by the numbers of tables and fields: later tables are empty, and later fields have their
    /// default. A later unique index isn't unique there if the old rows have equal keys.
    ///
    /// Cost: for a transaction, the replay from the nearest older state that the image keeps
    /// ([`Options::key_frames`](crate::Options::key_frames)), of milliseconds where there is one; else that of all of
    /// the journal up to there. For a time or a comment also that of [`txid_of`](Self::txid_of). The replayed state
    /// is in memory as long as the snapshot.
    ///
    /// # Errors
    /// `NotFound` if there is no such moment, or it was forgotten; `Corrupt`, `Io`; `Poisoned` in a forked child.
    pub fn at(&self, moment: impl Into<Moment>) -> Result<Snapshot> {
        self.past(&moment.into(), Through::Present)
    }

    /// Does what [`at`](Self::at) does, with the schema of that time: it has tables and fields that were dropped
    /// since, with their old names.
    ///
    /// # Errors
    /// As [`at`](Self::at).
    pub fn as_it_was(&self, moment: impl Into<Moment>) -> Result<Snapshot> {
        self.past(&moment.into(), Through::Then)
    }

    /// Returns the number of the transaction at whose end a moment is; 0 before the first one. A number is itself, up to
    /// the last one.
    ///
    /// Cost: nothing for a number. Else with the history index a part of the journal of about 64 KiB, and the part
    /// that isn't in the index yet; without it reads the whole journal.
    ///
    /// # Errors
    /// `NotFound` if there is no such transaction, or no state is left that is so old; `Corrupt`, `Unsupported`,
    /// `Io`; `Poisoned` in a forked child.
    pub fn txid_of(&self, moment: impl Into<Moment>) -> Result<u64> {
        self.check_origin()?;
        txid_of(&self.read().published, &moment.into())
    }

    fn past(&self, moment: &Moment, through: Through) -> Result<Snapshot> {
        self.check_origin()?;
        let (published, clock) = (self.read().published, &*self.clock);
        let (budget, damage) = match self.core().image() {
            Some(imager) => (imager.budget(), Arc::clone(imager.damage())),
            None => (0, Arc::default()),
        };
        let then = Present { published, clock, budget, damage, watch: None }.at(moment, through)?;
        rescued(then, &self.core().rescue(), through)
    }
}

impl Reader {
    /// Returns the state at an earlier moment: see [`Database::at`](crate::Database::at).
    ///
    /// # Errors
    /// As there. Commits since the last [`pull`](Self::pull) aren't found.
    pub fn at(&self, moment: impl Into<Moment>) -> Result<Snapshot> {
        self.past(&moment.into(), Through::Present)
    }

    /// Returns the state at an earlier moment, with the schema of that time: see
    /// [`Database::as_it_was`](crate::Database::as_it_was).
    ///
    /// # Errors
    /// As [`at`](Self::at).
    pub fn as_it_was(&self, moment: impl Into<Moment>) -> Result<Snapshot> {
        self.past(&moment.into(), Through::Then)
    }

    /// Returns the number of the transaction at whose end a moment is: see
    /// [`Database::txid_of`](crate::Database::txid_of).
    ///
    /// # Errors
    /// As there. Commits since the last [`pull`](Self::pull) aren't found.
    pub fn txid_of(&self, moment: impl Into<Moment>) -> Result<u64> {
        txid_of(&self.read().published, &moment.into())
    }

    fn past(&self, moment: &Moment, through: Through) -> Result<Snapshot> {
        let (published, reading) = (self.read().published, &self.pulling().reading);
        let (budget, damage) = (reading.budget(), Arc::clone(reading.damage()));
        let present = Present { published, clock: &SystemClock, budget, damage, watch: None };
        rescued(present.at(moment, through)?, &self.pulling().me(), through)
    }
}

/// Sets the rescuer of a past state, which rebuilds it if a page is lost.
fn rescued(then: Snapshot, rescue: &Weak<dyn Rescue>, through: Through) -> Result<Snapshot> {
    let is_adapted = through == Through::Present;
    then.published.view.rescued_by(rescue, Shown { txid: then.txid(), is_adapted });
    Ok(then)
}
