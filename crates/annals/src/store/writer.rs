//! The writer's side of the store: transactions.
//!
//! Invariants
//! 1. The working view is the published one and the changes of the current transaction.
//! 2. The epoch moves on whenever the working view is published or dropped.
//! 3. `suspects` has every key of a unique index that this transaction gave to a second row.

use std::sync::Arc;

use super::page::Epoch;
use super::view::View;
use crate::event::Event;
use crate::{Error, Result};

/// When a unique index refuses a key that another row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uniqueness {
    /// The statement is an error.
    AtOnce,
    /// The commit is, if the two rows still have the same key then.
    AtCommit,
}

/// The writer's side of the store: a working view that becomes a snapshot at commit.
#[derive(Debug)]
pub struct Store {
    pub(super) working: View,
    published: Arc<View>,
    pub(super) epoch: Epoch,
    pub(super) changed: bool,
    /// Numbers of indexes, and keys.
    pub(super) suspects: Vec<(usize, Box<[u8]>)>,
    /// Where keys are made, so that making one allocates nothing.
    pub(super) key: Vec<u8>,
    pub(super) old_key: Vec<u8>,
}

impl Default for Store {
    fn default() -> Self {
        Self::new()
    }
}

impl Store {
    /// Makes an empty store, with an empty schema.
    #[must_use]
    pub fn new() -> Self {
        Self {
            working: View::new(),
            published: Arc::new(View::new()),
            epoch: Epoch::first(),
            changed: false,
            suspects: Vec::new(),
            key: Vec::new(),
            old_key: Vec::new(),
        }
    }

    /// Gives the working view: what the current transaction sees.
    #[must_use]
    pub fn view(&self) -> &View {
        &self.working
    }

    /// Gives the view that was published last.
    #[must_use]
    pub fn published(&self) -> &Arc<View> {
        &self.published
    }

    /// Applies an event of the journal, in replay: nothing is checked that the writer checked.
    /// Errors are of kind `Corrupt`: no such table, row or field; an id in use.
    pub fn apply(&mut self, event: &Event<'_>) -> Result<()> {
        let applied = match *event {
            Event::Schema(command) => self.apply_command(command),
            Event::Insert { table, id, values } => self.insert_row(table, id, values, None),
            Event::Update { table, id, field, value } => {
                self.update_row(table, id, (field, value), false)
            }
            Event::Delete { table, id } => self.delete(table, id),
            Event::Comment(_) | Event::Timestamp(_) => Ok(()),
        };
        applied.map_err(|error| Error::corrupt(error.to_string()))
    }

    /// Ends the transaction: the working view becomes the published one. Costs a reference count
    /// for each table and index.
    pub fn commit(&mut self) -> Arc<View> {
        self.suspects.clear();
        if self.changed {
            self.changed = false;
            self.published = Arc::new(self.working.share());
            self.epoch.advance();
        }
        Arc::clone(&self.published)
    }

    /// Ends the transaction: the working view becomes what was last published.
    pub fn rollback(&mut self) {
        self.suspects.clear();
        if self.changed {
            self.changed = false;
            self.working = self.published.share();
            self.epoch.advance();
        }
    }
}
