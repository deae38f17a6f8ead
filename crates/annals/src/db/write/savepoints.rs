//! The savepoints that a transaction has set, in order.

use annals_schema::Timestamp;

use crate::db::follow::spill::SpillMark;
use crate::journal::Level;
use crate::store;
use crate::{Error, Result};

/// A moment of a [`Transaction`](crate::Transaction), to which
/// [`roll_back_to`](crate::Transaction::roll_back_to) returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Savepoint(u64);

/// The state of a transaction at a savepoint.
pub(in crate::db) struct Saved {
    pub(in crate::db) store: store::Savepoint,
    /// The pages spilled before it, if there are any.
    pub(in crate::db) spilled: Option<SpillMark>,
    pub(in crate::db) level: Level,
    pub(in crate::db) time: Option<Timestamp>,
}

/// All savepoints that are set.
#[derive(Default)]
pub(in crate::db) struct Savepoints {
    set: Vec<(Savepoint, Saved)>,
    /// How many there were so far.
    count: u64,
}

impl Savepoints {
    /// Adds the next one.
    pub(in crate::db) fn add(&mut self, saved: Saved) -> Savepoint {
        let savepoint = Savepoint(self.count);
        self.count += 1;
        self.set.push((savepoint, saved));
        savepoint
    }

    /// Forgets those after the first `count`.
    pub(in crate::db) fn truncate(&mut self, count: usize) {
        self.set.truncate(count);
    }

    /// Returns the place of one.
    pub(in crate::db) fn place_of(&self, savepoint: Savepoint) -> Result<usize> {
        self.set.iter().position(|(set, _)| *set == savepoint).ok_or_else(|| {
            Error::invalid(
                "the savepoint isn't set any more: it was released, or the transaction was rolled back to an earlier \
                 one; set another",
            )
        })
    }

    /// Returns the state at the last one.
    pub(in crate::db) fn last(&self) -> Option<&Saved> {
        self.set.last().map(|(_, saved)| saved)
    }
}
