//! A table: its row map and its columns.
//!
//! Invariants
//! 1. Each live slot of the row map has a value in each column.
//! 2. A slot that is not live holds nothing in a column's heap.

use annals_schema::{Field, FieldNumber, RowId, ValueRef};

use super::column::Column;
use super::page::Epoch;
use super::rows::RowMap;

/// A table.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) rows: RowMap,
    pub(super) columns: Vec<Column>,
    /// The numbers of its indexes.
    pub(super) indexes: Vec<usize>,
    /// The transaction that last changed it.
    epoch: u64,
}

impl Table {
    /// Makes a table without fields.
    pub(super) fn new() -> Self {
        Self { rows: RowMap::new(), columns: Vec::new(), indexes: Vec::new(), epoch: 0 }
    }

    /// Prepares the table to be changed by a transaction.
    #[inline]
    pub(super) fn begin(&mut self, epoch: &Epoch) {
        if self.epoch != epoch.number() {
            self.epoch = epoch.number();
            self.rows.begin();
        }
    }

    /// Finds a column by its field: at that place, as long as no field was dropped.
    #[inline]
    pub(super) fn column(&self, field: FieldNumber) -> Option<&Column> {
        match self.columns.get(field.0 as usize) {
            Some(column) if column.field() == field => Some(column),
            _ => self.columns.get(self.place_of(field)?),
        }
    }

    /// Finds the place of a field's column.
    pub(super) fn place_of(&self, field: FieldNumber) -> Option<usize> {
        self.columns.binary_search_by_key(&field, Column::field).ok()
    }

    /// Drops a column.
    pub(super) fn drop_field(&mut self, place: usize) {
        self.columns.remove(place);
    }

    /// Tells whether a field may be null.
    #[inline]
    pub(super) fn is_nullable(&self, field: usize) -> bool {
        self.columns.get(field).is_some_and(Column::is_nullable)
    }

    /// Gives the value of a field in a slot.
    #[inline]
    pub(super) fn value(&self, field: usize, slot: usize) -> ValueRef<'_> {
        self.columns.get(field).map_or(ValueRef::Null, |column| column.get(slot))
    }

    /// Adds a column; existing rows get the field's default.
    pub(super) fn add_field(&mut self, field: &Field) {
        self.columns.push(Column::new(field, self.rows.slots()));
    }

    /// Adds a row that isn't there; its values were checked.
    #[inline]
    pub(super) fn insert(&mut self, id: RowId, values: &[ValueRef<'_>], epoch: &Epoch) {
        let slot = self.rows.insert(id, epoch);
        let fresh = self.rows.is_fresh(slot);
        for (column, &value) in self.columns.iter_mut().zip(values) {
            column.insert(slot, value, fresh, epoch);
        }
        let moves = self.rows.crowd(id, slot, epoch);
        self.move_rows(&moves, epoch);
    }

    /// Changes a value; it was checked.
    pub(super) fn update(&mut self, slot: usize, field: usize, value: ValueRef<'_>, epoch: &Epoch) {
        let fresh = self.rows.is_fresh(slot);
        if let Some(column) = self.columns.get_mut(field) {
            column.replace(slot, value, fresh, epoch);
        }
    }

    /// Removes a row.
    pub(super) fn delete(&mut self, id: RowId, slot: usize, epoch: &Epoch) {
        for column in &mut self.columns {
            column.clear(slot, epoch);
        }
        let moves = self.rows.remove(id, slot, epoch);
        self.move_rows(&moves, epoch);
    }

    #[inline]
    fn move_rows(&mut self, moves: &[(usize, usize)], epoch: &Epoch) {
        for &(from, to) in moves {
            let fresh = self.rows.is_fresh(to);
            for column in &mut self.columns {
                column.move_cell(from, to, fresh, epoch);
            }
        }
    }

    /// Tells how much memory it takes, in bytes.
    pub(super) fn memory(&self) -> usize {
        let columns: usize = self.columns.iter().map(Column::memory).sum();
        size_of::<Self>() + self.rows.memory() + columns
    }
}
