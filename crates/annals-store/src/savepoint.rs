//! Savepoints: the state of the open transaction at a moment, to return there.
//!
//! Setting one shares the working view, as publishing it does, and moves the epoch on: pages that the transaction has
//! made are copied before they change again. Returning shares the kept view again.

use annals_schema::Blob;

use crate::reference::Doubts;
use crate::{Store, View};

/// The state of a store within a transaction.
#[derive(Debug)]
pub struct Savepoint {
    working: View,
    changed: bool,
    doubts: Doubts,
    open_blob: Option<(Blob, u64)>,
    rest: usize,
    rest_before: Option<usize>,
}

impl Store {
    /// Returns the present state of the transaction. Costs a reference count for each table and index, and a copy of
    /// the keys and references that the commit has to check.
    #[doc(hidden)]
    pub fn set_savepoint(&mut self) -> Savepoint {
        assert!(!self.owes(), "whoever allowed owing has settled before");
        self.epoch.advance();
        Savepoint {
            working: self.working.share(),
            changed: self.changed,
            doubts: self.doubts.clone(),
            open_blob: self.open_blob,
            rest: self.rest,
            rest_before: self.rest_before,
        }
    }

    /// Returns to a state of the open transaction.
    #[doc(hidden)]
    pub fn return_to(&mut self, savepoint: &Savepoint) {
        self.owed.clear();
        self.epoch.advance();
        self.previous.clear();
        self.working = savepoint.working.share();
        self.changed = savepoint.changed;
        self.doubts.clone_from(&savepoint.doubts);
        self.open_blob = savepoint.open_blob;
        if self.rest_before.is_some() {
            // Parts stored since are in memory alone again.
            (self.rest, self.rest_before) = (savepoint.rest, savepoint.rest_before);
            self.count_unsaved();
        }
    }
}
