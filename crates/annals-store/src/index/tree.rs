//! An index: a tree of keys, each followed by the id of its row.
//!
//! Invariants
//! 1. There is one entry for each row of the table, and no other.
//! 2. Outside transactions, a unique index has no two entries with equal keys that contain no null.

use std::sync::Arc;

use annals_schema::{Index, IndexNumber, RowId, ValueRef};

use crate::btree::{Spot, Tree};
use crate::collation::{Sorter, sorter_of};
use crate::columns::fetched::Fetched;
use crate::index::key::{self, Out};
use crate::pages::load::Loader;
use crate::pages::page::Epoch;
use crate::pages::paged::Counted;
use crate::pages::refresh::refresh;
use crate::pages::save::{Saved, Saver};
use crate::table::Table;
use crate::{Error, ErrorKind, Result};

/// An index of a table.
#[derive(Clone, Debug)]
pub(crate) struct IndexTree {
    pub(crate) number: IndexNumber,
    /// Empty if it is unavailable.
    pub(crate) entries: Tree,
    /// Why it can't be read, if so.
    reason: Option<Reason>,
    pub(crate) table: usize,
    /// The places of its fields among the table's columns.
    pub(crate) fields: Box<[usize]>,
    /// The order of each of them; empty if all are in the order of their type.
    orders: Box<[Order]>,
    pub(crate) unique: bool,
}

refresh!(IndexTree { entries; number, reason, table, fields, orders, unique });

/// Why an index can't be read.
#[derive(Clone, Debug)]
enum Reason {
    /// It is unavailable.
    Unavailable(Arc<str>),
    /// What it owed couldn't be settled.
    Unsettled(Arc<Error>),
}

impl IndexTree {
    /// Makes an index without entries. If the library doesn't have the version of a collation, the index is
    /// unavailable: it stays without entries, and reading it is an error.
    pub(crate) fn new(index: &Index, table: &annals_schema::Table) -> Self {
        let (orders, reason) = orders(index);
        Self {
            number: index.number,
            entries: Tree::new(0),
            reason: reason.map(|reason| Reason::Unavailable(Arc::from(reason))),
            table: index.table.0 as usize,
            fields: index.fields.iter().filter_map(|&field| table.place_of(field)).collect(),
            orders,
            unique: index.unique,
        }
    }

    /// Stands for an index that doesn't exist yet: reading it is an error with this reason.
    pub(crate) fn missing(reason: String) -> Self {
        Self {
            number: IndexNumber(u32::MAX),
            entries: Tree::new(0),
            reason: Some(Reason::Unavailable(Arc::from(reason))),
            table: usize::MAX,
            fields: Box::default(),
            orders: Box::default(),
            unique: false,
        }
    }

    /// Returns the same index, without entries.
    pub(crate) fn emptied(&self) -> Self {
        let (fields, orders) = (self.fields.clone(), self.orders.clone());
        Self { entries: Tree::new(0), reason: None, fields, orders, ..*self }
    }

    /// Hands the index over to be saved.
    pub(crate) fn save(&self, out: &mut Saver) {
        self.entries.save(out);
    }

    /// Loads the output of `save`.
    ///
    /// # Errors
    /// It is no tree.
    pub(crate) fn load(
        input: &mut Loader<'_>,
        index: &Index,
        table: &annals_schema::Table,
    ) -> Result<Self> {
        Ok(Self { entries: Tree::load(input, 0)?, ..Self::new(index, table) })
    }

    /// Returns the reason why the index can't be read, if it can't.
    pub(crate) fn unavailable(&self) -> Option<&str> {
        match &self.reason {
            Some(Reason::Unavailable(reason)) => Some(reason),
            Some(Reason::Unsettled(_)) | None => None,
        }
    }

    /// Makes reading it an error: an entry can't be added.
    pub(crate) fn fail(&mut self, error: Error) {
        self.reason = Some(Reason::Unsettled(Arc::new(error)));
    }

    /// Continues from the stored base.
    pub(crate) fn rebase(&mut self, saved: &Saved) {
        if self.reason.is_none() {
            self.entries.rebase(saved); // else nothing of it is stored
        }
    }

    /// Returns the entries, to read them.
    ///
    /// # Errors
    /// The index is unavailable.
    #[inline]
    pub(crate) fn tree(&self) -> Result<&Tree> {
        match &self.reason {
            None => Ok(&self.entries),
            Some(Reason::Unavailable(reason)) => Err(Error::new(ErrorKind::Unsupported, &**reason)),
            Some(Reason::Unsettled(error)) => Err(error.again()),
        }
    }

    /// Adds an entry.
    #[inline]
    pub(crate) fn insert(&mut self, entry: &[u8], epoch: &Epoch) -> Result<()> {
        self.entries.insert(entry, &[], epoch)
    }

    /// Removes an entry, which it has.
    #[inline]
    pub(crate) fn remove(&mut self, entry: &[u8], epoch: &Epoch) -> Result<()> {
        if self.entries.remove(entry, epoch)? { Ok(()) } else { Err(no_entry(key::id_of(entry))) }
    }

    /// Returns how much memory it takes, in bytes.
    pub(crate) fn memory(&self, what: Counted) -> usize {
        self.entries.memory(what)
    }

    /// Adjusts to the drop of the column at a place, which isn't a separate one.
    pub(crate) fn forget_column(&mut self, place: usize) {
        for field in self.fields.iter_mut().filter(|field| **field > place) {
            *field -= 1;
        }
    }

    /// Writes the key of a row, given the value of each of its fields; returns true if no other row
    /// may have that key.
    ///
    /// # Errors
    /// Those of `value`.
    #[inline]
    pub(crate) fn key<'v>(
        &self,
        table: &Table,
        value: impl Fn(usize) -> Result<Fetched<'v>>,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        out.clear();
        let mut counts = self.unique;
        for (at, &field) in self.fields.iter().enumerate() {
            let fetched = value(field)?;
            let value = fetched.as_ref();
            counts &= !matches!(value, ValueRef::Null);
            self.encode(at, table.is_nullable(field), value, out);
        }
        Ok(counts)
    }

    /// Appends the value of one of the key's fields.
    #[inline]
    pub(crate) fn encode(
        &self,
        at: usize,
        nullable: bool,
        value: ValueRef<'_>,
        out: &mut impl Out,
    ) {
        match self.orders.get(at) {
            None => key::encode(out, nullable, value),
            Some(order) => order.encode(nullable, value, out),
        }
    }

    /// True if one of the key's fields is in descending order.
    #[inline]
    pub(crate) fn is_descending(&self, at: usize) -> bool {
        self.orders.get(at).is_some_and(|order| order.is_descending)
    }

    /// True if one of the key's fields is sorted by a collation.
    pub(crate) fn is_collated(&self, at: usize) -> bool {
        self.orders.get(at).is_some_and(|order| order.sorter.is_some())
    }

    /// Returns a row that has the key; if there is none, returns the spot for its entry, if that is simple to
    /// determine.
    #[inline]
    pub(crate) fn holder_or_spot(&self, key: &[u8]) -> Result<(Option<RowId>, Option<Spot>)> {
        self.tree()?.first_or_spot(key, |entry, _| key::id_of(entry))
    }

    /// Returns a row that has the key.
    #[inline]
    pub(crate) fn holder(&self, key: &[u8]) -> Result<Option<RowId>> {
        self.tree()?.first_with(key, |entry, _| key::id_of(entry))
    }

    /// Returns two rows that have the same key, if there are.
    pub(crate) fn holders(&self, key: &[u8]) -> Result<Option<(RowId, RowId)>> {
        let mut entries = self.tree()?.range(key, key::successor(key.to_vec()).as_deref())?;
        let first = entries.next_with(|entry, _| key::id_of(entry))?;
        Ok(first.zip(entries.next_with(|entry, _| key::id_of(entry))?))
    }

    /// Adds the entries of all rows of a table, in order; returns the first two rows with a key that
    /// only one may have.
    pub(crate) fn build(
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
            self.insert(&entry.0, epoch)?;
            last = Some(entry);
        }
        Ok(Ok(()))
    }
}

/// The order of a field, if it isn't that of its type.
#[derive(Clone, Debug, Default)]
struct Order {
    is_descending: bool,
    sorter: Option<Arc<Sorter>>,
}

impl Order {
    /// Appends the value of the field.
    #[cold]
    #[inline(never)]
    fn encode(&self, nullable: bool, value: ValueRef<'_>, out: &mut impl Out) {
        let mut sort_key = Vec::new();
        let value = match (&self.sorter, value) {
            (Some(sorter), ValueRef::String(text)) => {
                sorter.put(text, &mut sort_key);
                ValueRef::Bytes(&sort_key)
            }
            _ => value,
        };
        match self.is_descending {
            false => key::encode(out, nullable, value),
            true => key::put_flipped(out, |flipped| key::encode(flipped, nullable, value)),
        }
    }
}

/// Returns the order of each field of an index; and the reason if the library doesn't have one of them.
fn orders(index: &Index) -> (Box<[Order]>, Option<String>) {
    if index.descending.is_empty() && index.collated.is_empty() {
        return (Box::default(), None);
    }
    let mut reason = None;
    let order = |field| {
        let is_descending = index.descending.contains(field);
        let sorter = index.collation(*field).map(|collated| sorter_of(index, collated));
        let sorter = sorter.transpose().unwrap_or_else(|error| {
            reason = Some(error);
            None
        });
        Order { is_descending, sorter }
    };
    (index.fields.iter().map(order).collect(), reason)
}

/// Returns the error that an index of an image doesn't match its table: our own lose no entry.
#[cold]
fn no_entry(id: RowId) -> Error {
    Error::ill_written(format!("an index has no entry for row {}", id.0))
}
