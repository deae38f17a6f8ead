//! An index: a tree of keys, each followed by the id of its row.
//!
//! Invariants
//! 1. There is one entry for each row of the table, and no other.
//! 2. Outside transactions, a unique index has no two entries with equal keys that contain no null.

use annals_schema::{Index, IndexNumber, RowId, ValueRef};

use crate::store::btree::Tree;
use crate::store::columns::fetched::Fetched;
use crate::store::index::key;
use crate::store::pages::load::Loader;
use crate::store::pages::page::Epoch;
use crate::store::pages::save::{Saved, Saver};
use crate::store::table::Table;
use crate::{Error, Result};

/// An index of a table.
#[derive(Clone, Debug)]
pub(in crate::store) struct IndexTree {
    pub(in crate::store) number: IndexNumber,
    pub(in crate::store) tree: Tree,
    pub(in crate::store) table: usize,
    /// The places of its fields among the table's columns.
    pub(in crate::store) fields: Box<[usize]>,
    pub(in crate::store) unique: bool,
}

impl IndexTree {
    /// Makes an index without entries.
    pub(in crate::store) fn new(index: &Index, table: &annals_schema::Table) -> Self {
        Self {
            number: index.number,
            tree: Tree::new(0),
            table: index.table.0 as usize,
            fields: index.fields.iter().filter_map(|&field| table.place_of(field)).collect(),
            unique: index.unique,
        }
    }

    /// Hands the index over to be saved.
    pub(in crate::store) fn save(&self, out: &mut Saver) {
        self.tree.save(out);
    }

    /// Loads what `save` wrote.
    ///
    /// # Errors
    /// It is no tree.
    pub(in crate::store) fn load(
        input: &mut Loader<'_>,
        index: &Index,
        table: &annals_schema::Table,
    ) -> Result<Self> {
        Ok(Self { tree: Tree::load(input, 0)?, ..Self::new(index, table) })
    }

    /// Goes on from the base that was stored.
    pub(in crate::store) fn rebase(&mut self, saved: &Saved) {
        self.tree.rebase(saved);
    }

    /// Notes that the column at a place, which isn't one of its own, is gone.
    pub(in crate::store) fn forget_column(&mut self, place: usize) {
        for field in self.fields.iter_mut().filter(|field| **field > place) {
            *field -= 1;
        }
    }

    /// Writes the key of a row, given the value of each of its fields; tells whether it is one that
    /// no other row may have.
    ///
    /// # Errors
    /// Those of `value`.
    #[inline]
    pub(in crate::store) fn key<'v>(
        &self,
        table: &Table,
        value: impl Fn(usize) -> Result<Fetched<'v>>,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        out.clear();
        let mut counts = self.unique;
        for &field in &self.fields {
            let fetched = value(field)?;
            let value = fetched.as_ref();
            counts &= !matches!(value, ValueRef::Null);
            key::encode(out, table.is_nullable(field), value);
        }
        Ok(counts)
    }

    /// Gives a row that has the key.
    pub(in crate::store) fn holder(&self, key: &[u8]) -> Result<Option<RowId>> {
        self.tree.first_with(key, |entry, _| key::id_of(entry))
    }

    /// Gives two rows that have the same key, if there are.
    pub(in crate::store) fn holders(&self, key: &[u8]) -> Result<Option<(RowId, RowId)>> {
        let upper = key::successor(key.to_vec());
        let mut entries = self.tree.range(key, upper.as_deref())?;
        let first = entries.next_with(|entry, _| key::id_of(entry))?;
        Ok(first.zip(entries.next_with(|entry, _| key::id_of(entry))?))
    }

    /// Adds the entry of a row; `key` has its id appended afterwards.
    #[inline]
    pub(in crate::store) fn insert(
        &mut self,
        key: &mut Vec<u8>,
        id: RowId,
        epoch: &Epoch,
    ) -> Result<()> {
        key::encode_id(key, id);
        self.tree.insert(key, &[], epoch)
    }

    /// Removes the entry of a row; `key` has its id appended afterwards.
    #[inline]
    pub(in crate::store) fn remove(
        &mut self,
        key: &mut Vec<u8>,
        id: RowId,
        epoch: &Epoch,
    ) -> Result<()> {
        key::encode_id(key, id);
        self.remove_entry(key, epoch)
    }

    /// Removes an entry, which there is for each row.
    pub(in crate::store) fn remove_entry(&mut self, entry: &[u8], epoch: &Epoch) -> Result<()> {
        if self.tree.remove(entry, epoch)? { Ok(()) } else { Err(no_entry(key::id_of(entry))) }
    }

    /// Adds the entries of all rows of a table, in order; gives the first two rows with a key that
    /// only one may have.
    pub(in crate::store) fn build(
        &mut self,
        table: &Table,
        epoch: &Epoch,
    ) -> Result<Result<(), (RowId, RowId)>> {
        let mut entries: Vec<(Box<[u8]>, Option<usize>)> = Vec::new();
        let mut key = Vec::new();
        for row in table.rows.iter() {
            let (id, slot) = row?;
            let counts = self.key(table, |field| table.value(field, slot), &mut key)?;
            let len = key.len();
            key::encode_id(&mut key, id);
            entries.push((key.as_slice().into(), counts.then_some(len)));
        }
        entries.sort_unstable();
        let mut last: Option<&(Box<[u8]>, Option<usize>)> = None;
        for entry in &entries {
            if let (Some((before, Some(a))), (here, Some(b))) = (last, entry)
                && before.get(..*a) == here.get(..*b)
            {
                return Ok(Err((key::id_of(before), key::id_of(here))));
            }
            self.tree.insert(&entry.0, &[], epoch)?;
            last = Some(entry);
        }
        Ok(Ok(()))
    }
}

/// Says that an index of an image doesn't belong to its table: ours lose no entry.
#[cold]
fn no_entry(id: RowId) -> Error {
    Error::corrupt(format!(
        "an index has no entry for row {}: the image was written like this; delete it",
        id.0
    ))
}
