//! The history index: a tree by table and row, which leads to the places in the journal where a row was changed.
//!
//! It is part of the image, and a cache: without it the same answers come from the journal. The store only keeps
//! it. What the places and the records mean is the business of those who read the journal.
//!
//! A node is one object of the image, of at most [`NODE`] bytes. A *leaf* has groups of entries, an inner node has
//! its children with the first key of each, and the end of the rows in it. A tree of ranges that may overlap is
//! searched as an augmented tree: every child whose range may have a row is visited. (Cormen and others,
//! "Introduction to Algorithms", interval trees.)
//!
//! Entries are added in the order of the journal. So within a key, later entries have later places, and adding is a
//! merge of two sorted sequences, leaf by leaf.
#![deny(clippy::indexing_slicing)]

mod add;
mod check;
mod find;
mod leaf;
mod node;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::pages::base::Form;
use crate::pages::load::Loader;
use crate::pages::packing::Packing;
use crate::pages::paged::{Counted, Paged};
use crate::pages::save::{Saved, Saver};
use crate::{Error, Result};

/// The most bytes of a node: one unit of the image.
pub const NODE: usize = 4096;

/// The tables with a lower number have records in place of entries, except the first.
pub const FIRST_TABLE: u64 = 8;

/// A row of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The number of the table.
    pub table: u64,
    /// The row.
    pub row: u64,
}

/// A place where consecutive rows were changed; or, if `count` is 0, one of the numbers of a record, which has no
/// other key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The first row.
    pub key: Key,
    /// The number of rows; 0: a number of a record.
    pub count: u64,
    /// The place, or the number.
    pub place: u64,
}

impl Entry {
    /// Returns the key after its last row.
    pub(crate) const fn end(&self) -> Key {
        let count = if self.count == 0 { 1 } else { self.count };
        Key { table: self.key.table, row: self.key.row.saturating_add(count) }
    }

    /// True if it belongs to the same group.
    fn is_of(&self, other: &Self) -> bool {
        self.key == other.key && self.count == other.count
    }
}

/// The tree, as of some point of the journal.
#[derive(Clone, Debug, Default)]
pub struct HistoryIndex {
    nodes: Paged<Arc<[u8]>>,
    /// The node on top; none if there is no entry.
    root: Option<u64>,
    /// How many steps the leaves are below it.
    height: u8,
    /// The next number of a node.
    next: u64,
    /// The number of entries.
    entries: u64,
    /// What its reader notes about it: how far it goes.
    about: Vec<u8>,
}

/// The highest tree: each node has two children at least.
const MOST_HEIGHT: u8 = 64;

impl HistoryIndex {
    /// Returns what its reader noted about it; empty if it was never made.
    #[must_use]
    pub fn about(&self) -> &[u8] {
        &self.about
    }

    /// Returns the number of entries, those of records included.
    #[must_use]
    pub const fn entries(&self) -> u64 {
        self.entries
    }

    /// Returns the number of nodes that it has had.
    #[must_use]
    pub const fn nodes(&self) -> u64 {
        self.next
    }

    /// True if it was never made.
    #[must_use]
    pub const fn is_missing(&self) -> bool {
        self.about.is_empty()
    }

    /// True if an image may have it after another one: all of its stored nodes are those of the other one, if there
    /// are any.
    #[must_use]
    pub fn is_over(&self, other: &Self) -> bool {
        let (own, others) = (self.nodes.base(), other.nodes.base());
        own.is_none_or(|own| others.is_some_and(|other| Arc::ptr_eq(own, other)))
    }

    fn node(&self, number: u64) -> Result<Arc<[u8]>> {
        let index = usize::try_from(number).map_err(|_| damaged())?;
        // A cache may have it from an array of other values.
        let node = self.nodes.get(index)?.filter(|node| node.len() <= NODE).ok_or_else(damaged)?;
        Ok(Arc::clone(&*node))
    }

    pub(crate) fn save(&self, out: &mut Saver) {
        out.bytes(&self.about);
        out.number(self.root.map_or(0, |root| root + 1));
        out.number(u64::from(self.height));
        out.number(self.next);
        out.number(self.entries);
        out.spares(&self.nodes);
    }

    pub(crate) fn load(input: &mut Loader<'_>) -> Result<Self> {
        let about = input.bytes()?.to_vec();
        let root = input.number()?.checked_sub(1);
        let height = u8::try_from(input.number()?).ok().filter(|height| *height <= MOST_HEIGHT);
        let height = height.ok_or_else(damaged)?;
        let (next, entries) = (input.number()?, input.number()?);
        let check = |node: &Arc<[u8]>| node.len() <= NODE;
        let nodes = input.spares(Form { check, packing: Packing::Bytes })?;
        Ok(Self { nodes, root, height, next, entries, about })
    }

    /// Continues from the stored base.
    pub(crate) fn rebase(&mut self, saved: &Saved) {
        saved.rebase_longs(&mut self.nodes);
    }

    pub(crate) fn memory(&self, what: Counted) -> usize {
        self.nodes.memory(what)
    }
}

#[cold]
fn damaged() -> Error {
    Error::corrupt(
        "the history index makes no sense: `annals backfill` makes it anew; no answer depends on it",
    )
}
