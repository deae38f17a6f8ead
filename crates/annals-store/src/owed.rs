//! Entries that a transaction owes to its indexes: collected while it loads rows, and merged into the trees in the order
//! of their keys. So a leaf is loaded and copied once for many rows.
//!
//! Invariants
//! 1. The working view's indexes and what is owed have an entry for each row together. Only indexes that aren't unique owe
//!    any, so a key can be looked up in a unique one at any time.
//! 2. Nobody sees the working view without them: [`Store::view`] returns another view, in which they are settled, and each
//!    change but an insertion settles them first. Only [`Store::unsettled`] is that view itself.
//! 3. `aside` is that other view, until the next change. Then the indexes that owed have its trees, and owe nothing.
//! 4. Settling again what was settled in part changes nothing: entries that a tree has are left out.

use std::cell::OnceCell;
use std::ops::Range;

use crate::btree::Tree;
use crate::entries::Entries;
use crate::index::tree::IndexTree;
use crate::pages::page::Epoch;
use crate::table::Table;
use crate::view::View;
use crate::{Result, Store};

/// After so many rows were inserted one after another, the entries of the next ones are owed.
const BEGIN: u64 = 256;

/// So many rows may owe their entries.
pub(crate) const MOST_ROWS: u64 = 1 << 16;

/// So many bytes of entries may be owed at most.
const MOST_BYTES: usize = 16 << 20;

/// What is owed.
#[derive(Debug, Default)]
pub(crate) struct Owed {
    /// How many bytes of entries may be owed. 0 unless the store's owner settles all before it commits.
    most: usize,
    /// How many rows were inserted since the last other change, or since the last reading of what was owed.
    run: u64,
    /// How many rows owe entries, and how many bytes these have.
    rows: u64,
    bytes: usize,
    parts: Vec<Part>,
    aside: OnceCell<Box<Aside>>,
}

/// What an index owes.
#[derive(Debug)]
struct Part {
    /// The number of the index.
    number: usize,
    entries: Entries,
    is_sorted: bool,
    /// So many of the sorted entries are settled.
    done: usize,
}

/// A view of the same state as the working one, in which all is settled.
#[derive(Debug)]
struct Aside {
    view: View,
    /// How many bytes of pages were made for it.
    made: usize,
    /// True if an index can't be read, because it couldn't be settled.
    is_partial: bool,
}

impl Owed {
    /// Notes that rows are about to be inserted; returns true if their entries may be owed. Then all of them count, in
    /// whatever table, with indexes or without.
    #[inline]
    pub(crate) const fn begin_rows(&mut self, count: u64) -> bool {
        self.run = self.run.saturating_add(count);
        let may_owe = self.most > 0 && self.run > BEGIN;
        if may_owe {
            self.rows = self.rows.saturating_add(count);
        }
        may_owe
    }

    /// Adds an entry of an index.
    #[inline]
    pub(crate) fn push(&mut self, number: usize, entry: &[u8]) {
        let entries = self.of(number);
        entries.push(entry, false);
        self.bytes += entry.len();
    }

    /// Adds the entries of existing rows to those of an index.
    pub(crate) fn collect(
        &mut self,
        index: &IndexTree,
        table: &Table,
        ids: Range<u64>,
        key: &mut Vec<u8>,
    ) -> Result<()> {
        let entries = self.of(index.number.0 as usize);
        let before = entries.memory();
        entries.collect(index, table, ids, key)?;
        self.bytes += self.of(index.number.0 as usize).memory().saturating_sub(before);
        Ok(())
    }

    /// Returns the entries of an index, to add some.
    #[inline]
    fn of(&mut self, number: usize) -> &mut Entries {
        let at = self.parts.iter().position(|part| part.number == number);
        let at = at.unwrap_or_else(|| {
            let entries = Entries::default();
            self.parts.push(Part { number, entries, is_sorted: false, done: 0 });
            self.parts.len() - 1
        });
        let part = &mut self.parts[at];
        if part.is_sorted {
            part.entries.forget_first(part.done);
            (part.is_sorted, part.done) = (false, 0);
        }
        &mut part.entries
    }

    #[inline]
    const fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Forgets all: the view that owed it is dropped, or has it.
    pub(crate) fn clear(&mut self) {
        *self = Self { most: self.most, ..Self::default() };
    }
}

impl Part {
    /// Merges entries into the tree of their index, until `is_enough` says so; returns true if none is left.
    fn settle(
        &mut self,
        tree: &mut Tree,
        epoch: &Epoch,
        is_enough: impl Fn() -> bool,
    ) -> Result<bool> {
        if !self.is_sorted {
            self.entries.sort();
            self.is_sorted = true;
        }
        let all = self.entries.iter().len();
        let mut keys = self.entries.iter().map(|(entry, _)| entry).skip(self.done).peekable();
        while keys.peek().is_some() {
            if is_enough() {
                self.done = all - keys.len();
                return Ok(false);
            }
            tree.merge_next(&mut keys, epoch)?;
        }
        Ok(true)
    }
}

impl Store {
    /// Allows owing entries of indexes, about so many bytes of them and 16 MiB at most, from some hundred insertions in a
    /// row on: whoever allows it settles them before a commit and a savepoint.
    #[doc(hidden)]
    pub fn allow_owing(&mut self, most: usize) {
        self.owed.most = most.min(MOST_BYTES);
    }

    /// True if entries are owed.
    #[doc(hidden)]
    #[inline]
    pub const fn owes(&self) -> bool {
        !self.owed.is_empty()
    }

    /// True if so many are owed that they are to be settled.
    #[doc(hidden)]
    #[inline]
    pub const fn owes_much(&self) -> bool {
        self.owes() && (self.owed.rows >= MOST_ROWS || self.owed.bytes >= self.owed.most)
    }

    /// Returns the working view itself, whose indexes may lack entries that are owed: for its schema and its tables.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub const fn unsettled(&self) -> &View {
        &self.working
    }

    /// Merges all entries that are owed into their indexes.
    ///
    /// # Errors
    /// A page can't be loaded: all that is left is to roll back.
    #[doc(hidden)]
    #[inline]
    pub fn settle(&mut self) -> Result<()> {
        self.owed.run = 0;
        if self.owes() { self.settle_some(usize::MAX) } else { Ok(()) }
    }

    /// Does as [`settle`](Self::settle), until about so many bytes of pages were made. Then [`owes`](Self::owes) says whether
    /// some are left.
    ///
    /// # Errors
    /// As there.
    #[doc(hidden)]
    #[cold]
    pub fn settle_some(&mut self, most: usize) -> Result<()> {
        self.take_aside();
        self.owed.run = 0;
        let Self { working, previous, owed, epoch, .. } = self;
        let begun = epoch.made();
        let is_enough = || epoch.made().saturating_sub(begun) > most;
        while let Some(part) = owed.parts.last_mut() {
            if let Some(index) = working.indexes.get_mut(part.number) {
                let index = index.make_mut_of(|| previous.index(part.number));
                if !part.settle(&mut index.entries, epoch, is_enough)? {
                    return Ok(());
                }
            }
            owed.parts.pop();
        }
        owed.clear();
        Ok(())
    }

    /// Notes that the working view is about to change, other than by what a change has settled.
    #[inline]
    pub(crate) fn begin_change(&mut self) {
        self.changed = true;
        if self.owed.aside.get().is_some() {
            self.take_aside();
        }
    }

    /// Lets the working view have the indexes that were settled for a reader, and forgets what was made for it.
    #[cold]
    pub(crate) fn take_aside(&mut self) {
        let Some(aside) = self.owed.aside.take() else { return };
        self.owed.run = 0;
        let Aside { view, made, is_partial } = *aside;
        if is_partial {
            return; // what is owed is owed still
        }
        for part in &self.owed.parts {
            let settled = view.indexes.get(part.number);
            if let Some((index, settled)) = self.working.indexes.get_mut(part.number).zip(settled) {
                *index = settled.share();
            }
        }
        self.epoch.note_made(made);
        self.owed.clear();
    }

    /// Returns a view of the state that the transaction sees, if its working view owes entries.
    #[cold]
    pub(crate) fn settled(&self) -> &View {
        &self.owed.aside.get_or_init(|| Box::new(self.make_aside())).view
    }

    fn make_aside(&self) -> Aside {
        let (mut view, epoch) = (self.working.share(), Epoch::apart());
        let mut is_partial = false;
        for part in &self.owed.parts {
            let Some(index) = view.indexes.get_mut(part.number) else { continue };
            let index = index.make_mut();
            if let Err(error) = settle_apart(part, index, &epoch) {
                index.fail(error);
                is_partial = true;
            }
        }
        Aside { view, made: epoch.made(), is_partial }
    }
}

/// Merges the entries of a part, which stay there, into another handle of their index.
fn settle_apart(part: &Part, index: &mut IndexTree, epoch: &Epoch) -> Result<()> {
    let sorted = part.entries.sorted();
    let mut keys = sorted.into_iter().peekable();
    while keys.peek().is_some() {
        index.entries.merge_next(&mut keys, epoch)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
