//! A table: its row map and its columns.
//!
//! Invariants
//! 1. Each live slot of the row map has a value in each column.
//! 2. A slot that is not live holds nothing in a column's heap.

use std::sync::Arc;

use annals_schema::{Field, FieldNumber, RowId, ValueRef};

use crate::Result;
use crate::columns::column::Column;
use crate::columns::fetched::Fetched;
use crate::pages::cells::place;
use crate::pages::load::Loader;
use crate::pages::page::Epoch;
use crate::pages::paged::Counted;
use crate::pages::refresh::refresh;
use crate::pages::resident_blocks::ResidentBlocks;
use crate::pages::save::{Saved, Saver};
use crate::reference::{Referrer, target_of};
use crate::rows::RowMap;
use annals_event::{Vector, width};

/// The number of fields that are prefetched: reading more profits less from each.
const ASKED: usize = 4;

/// A table.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) rows: RowMap,
    pub(super) columns: Vec<Column>,
    /// The numbers of its indexes.
    pub(super) indexes: Vec<usize>,
    /// The enforced references to it.
    pub(super) referrers: Vec<Referrer>,
    /// True if it has an enforced reference itself.
    pub(super) refers: bool,
    /// True if it always has exactly one row.
    pub(super) single: bool,
    /// The transaction that last changed it.
    epoch: u64,
    /// The rows whose cells of all columns stay in memory, over its bases.
    resident: Arc<ResidentBlocks>,
    /// The rows whose strings and bytes are also all in their cells, and valid.
    short: Arc<ResidentBlocks>,
}

refresh!(Table { rows, columns, resident, short; indexes, referrers, refers, single, epoch });

impl Table {
    /// Makes a table without fields.
    pub(super) fn new() -> Self {
        Self {
            rows: RowMap::new(0),
            columns: Vec::new(),
            indexes: Vec::new(),
            referrers: Vec::new(),
            refers: false,
            single: false,
            epoch: 0,
            resident: Arc::default(),
            short: Arc::default(),
        }
    }

    /// Prepares the table to be changed by a transaction.
    #[inline]
    pub(super) fn begin(&mut self, epoch: &Epoch) {
        if self.epoch != epoch.number() {
            self.epoch = epoch.number();
            self.rows.begin();
        }
    }

    /// Finds a column by its field.
    #[inline]
    pub(super) fn column(&self, field: FieldNumber) -> Option<&Column> {
        self.columns.get(self.place_of(field)?)
    }

    /// Finds the place of a field's column, which is the field's number as long as no field was dropped.
    #[inline]
    pub(super) fn place_of(&self, field: FieldNumber) -> Option<usize> {
        let place = field.0 as usize;
        match self.columns.get(place) {
            Some(column) if column.field() == field => Some(place),
            _ => self.search(field),
        }
    }

    #[cold]
    fn search(&self, field: FieldNumber) -> Option<usize> {
        self.columns.binary_search_by_key(&field, Column::field).ok()
    }

    /// Drops a column.
    pub(super) fn drop_field(&mut self, place: usize) {
        self.columns.remove(place);
        // Views that still have the column must not use the record made without it.
        (self.resident, self.short) = Default::default();
        self.note_refers();
    }

    /// Makes room for null in a column, which its field may not be: a value of it was erased.
    pub(super) fn make_room_for_null(&mut self, place: usize) {
        if let Some(column) = self.columns.get_mut(place) {
            column.make_room_for_null();
            // Views without that room must not use the record made with it, nor the reverse.
            (self.resident, self.short) = Default::default();
        }
    }

    /// True if a field may be null, or values of it were erased.
    #[inline]
    pub(super) fn is_nullable(&self, field: usize) -> bool {
        self.columns.get(field).is_some_and(Column::is_nullable)
    }

    /// Returns the value of a field in a slot.
    #[inline]
    pub(super) fn value(&self, field: usize, slot: usize) -> Result<Fetched<'_>> {
        match self.columns.get(field) {
            Some(column) => column.get(slot),
            None => Ok(Fetched::Here(ValueRef::Null)),
        }
    }

    /// Adds a column; existing rows get the field's default.
    pub(super) fn add_field(&mut self, field: &Field) {
        self.columns.push(Column::new(field, self.rows.slots()));
        self.note_refers();
    }

    fn note_refers(&mut self) {
        self.refers = self.columns.iter().any(|column| target_of(column.ty()).is_some());
    }

    /// True if a new row of that id needs only its cells: it is after all others, no index and no reference concerns
    /// it, and more than one row is allowed.
    #[inline]
    pub(super) fn is_appended(&self, id: u64) -> bool {
        self.rows.is_next(id) && self.indexes.is_empty() && !self.refers && !self.single
    }

    /// Adds a row after all others, as [`Self::is_appended`] says. The row's values were checked before.
    #[inline]
    pub(super) fn append(&mut self, values: &[ValueRef<'_>], epoch: &Epoch) -> Result<()> {
        let (slot, write) = self.rows.append(epoch)?;
        for (column, &value) in self.columns.iter_mut().zip(values) {
            column.insert(slot, value, write)?;
        }
        Ok(())
    }

    /// Adds a row that doesn't exist. The row's values were checked before.
    #[inline]
    pub(super) fn insert(
        &mut self,
        id: RowId,
        values: &[ValueRef<'_>],
        epoch: &Epoch,
    ) -> Result<()> {
        let slot = self.rows.insert(id, epoch)?;
        let write = self.rows.write_at(slot, epoch);
        for (column, &value) in self.columns.iter_mut().zip(values) {
            column.insert(slot, value, write)?;
        }
        let moves = self.rows.crowd(id, slot, epoch)?;
        self.move_rows(&moves, epoch)
    }

    /// Adds rows of zero values that aren't there, with ids from `id` on.
    pub(super) fn insert_run(&mut self, id: RowId, count: u64, epoch: &Epoch) -> Result<()> {
        let (mut id, end) = (id.0, id.0 + count);
        while id < end {
            if let Some((slot, len)) = self.rows.insert_run(id, end - id, epoch)? {
                for part in self.rows.write_parts(slot, place(len), epoch) {
                    for column in &mut self.columns {
                        column.zero_run(part.slot, part.len, part.write)?;
                    }
                }
                id += len;
            } else {
                let zeros: Vec<_> = self.columns.iter().map(Column::zero_value).collect();
                self.insert(RowId(id), &zeros, epoch)?;
                id += 1;
            }
        }
        Ok(())
    }

    /// Adds rows that aren't there, given the values of each column, which were checked. Everything is placed as if
    /// they had been added one by one: rebuilding a page relies on that.
    pub(super) fn insert_columns(
        &mut self,
        first: RowId,
        count: u64,
        values: &[Vec<ValueRef<'_>>],
        epoch: &Epoch,
    ) -> Result<()> {
        let mut done = 0;
        while done < count {
            let id = first.0 + done;
            if !self.rows.is_next(id) {
                let row = values.iter().filter_map(|values| values.get(place(done)).copied());
                self.insert(RowId(id), &row.collect::<Vec<_>>(), epoch)?;
                done += 1;
                continue;
            }
            let (slot, len) = self.rows.append_many(count - done, epoch)?;
            let mut begin = place(done);
            for part in self.rows.write_parts(slot, place(len), epoch) {
                for (column, values) in self.columns.iter_mut().zip(values) {
                    let values = values.get(begin..begin + part.len).unwrap_or_default();
                    column.write_values(part.slot, values, true, part.write)?;
                }
                begin += part.len;
            }
            done += len;
        }
        Ok(())
    }

    /// Finds the first of `count` rows from `id` on that doesn't exist.
    pub(super) fn first_missing(&self, id: u64, count: u64) -> Result<Option<u64>> {
        let mut present = 0;
        for run in self.runs(id, count) {
            present += run?.1;
        }
        Ok((present < count).then_some(id.saturating_add(present)))
    }

    /// Returns the slots of rows with ids from `id` on, all of which exist: the first slot and the number of each
    /// run. It ends at an error.
    pub(super) fn runs(&self, id: u64, count: u64) -> impl Iterator<Item = Result<(usize, u64)>> {
        let (mut id, end) = (id, id.saturating_add(count));
        std::iter::from_fn(move || {
            let run =
                if id < end { self.rows.run_at(id, end - id).transpose()? } else { return None };
            id = run.as_ref().map_or(end, |&(_, len)| id + len);
            Some(run)
        })
    }

    /// Changes the values of a field in existing rows. The values were checked before. If `new`, the rows hold zeros.
    pub(super) fn write_run(
        &mut self,
        field: usize,
        id: u64,
        values: Vector<'_>,
        new: bool,
        epoch: &Epoch,
    ) -> Result<()> {
        let Self { rows, columns, .. } = self;
        let Some(column) = columns.get_mut(field) else { return Ok(()) };
        let Some(count) = values.len(column.ty()) else { return Ok(()) };
        let (mut id, end) = (id, id + count as u64);
        let mut left = values;
        while let Some((slot, len)) = rows.run_at(id, end - id)? {
            for part in rows.write_parts(slot, place(len), epoch) {
                left = match left {
                    Vector::Cells(cells) => {
                        let bytes = part.len * width(column.ty()).unwrap_or(1);
                        let (cells, rest) = cells.split_at(bytes);
                        column.write_run(part.slot, cells, part.write)?;
                        Vector::Cells(rest)
                    }
                    Vector::Values(values) => {
                        let (values, rest) = values.split_at(part.len);
                        column.write_values(part.slot, values, new, part.write)?;
                        Vector::Values(rest)
                    }
                };
            }
            id += len;
            if id == end {
                break;
            }
        }
        Ok(())
    }

    /// Changes a value, which was checked before.
    pub(super) fn update(
        &mut self,
        slot: usize,
        field: usize,
        value: ValueRef<'_>,
        epoch: &Epoch,
    ) -> Result<()> {
        let write = self.rows.write_at(slot, epoch);
        match self.columns.get_mut(field) {
            Some(column) => column.replace(slot, value, write),
            None => Ok(()),
        }
    }

    /// Removes a row.
    pub(super) fn delete(&mut self, id: RowId, slot: usize, epoch: &Epoch) -> Result<()> {
        for column in &mut self.columns {
            column.clear(slot, epoch)?;
        }
        let moves = self.rows.remove(id, slot, epoch)?;
        self.move_rows(&moves, epoch)
    }

    #[inline]
    fn move_rows(&mut self, moves: &[(usize, usize)], epoch: &Epoch) -> Result<()> {
        if !moves.is_empty() && self.rows.has_base() {
            // Unchecked slots get values, while the record claims more.
            (self.resident, self.short) = Default::default();
        }
        for &(from, to) in moves {
            let write = self.rows.write_at(to, epoch);
            for column in &mut self.columns {
                column.move_cell(from, to, write)?;
            }
        }
        Ok(())
    }

    /// Prefetches the first fields of a row that is about to be read, if an addition suffices to find it; returns its
    /// slot.
    #[inline]
    pub(super) fn ask_for_cells(&self, id: RowId) -> Option<usize> {
        let slot = self.rows.slot_in_tail(id.0)?;
        self.columns.iter().take(ASKED).for_each(|column| column.ask_for_cell(slot));
        Some(slot)
    }

    /// Prefetches the strings that are checked when the row of a slot is loaded.
    #[inline]
    pub(super) fn ask_for_texts(&self, slot: usize) {
        if self.rows.has_base() {
            self.columns.iter().take(ASKED).for_each(|column| column.ask_for_text(slot));
        }
    }

    /// True if the values of a slot can be read without loading anything, and without an error. It may be so even if
    /// this returns false.
    #[inline(always)]
    pub(super) fn is_at_hand(&self, slot: usize) -> bool {
        !self.rows.has_base() || self.short.has(slot) || self.texts_are_at_hand(slot)
    }

    #[inline(never)] // so that reading rows of short texts stays short
    fn texts_are_at_hand(&self, slot: usize) -> bool {
        self.resident.has(slot) && self.columns.iter().all(|column| column.text_is_at_hand(slot))
    }

    /// Returns true if the values of a slot can be read again without loading anything, and without an error.
    /// Loads them, if that wasn't done yet.
    ///
    /// # Errors
    /// Those of reading them.
    pub(super) fn values_stay(&self, slot: usize) -> Result<bool> {
        for column in &self.columns {
            if !column.cells_stay(slot)? {
                return Ok(false);
            }
        }
        // The item under a change may still have to be loaded for views without that change.
        let is_known = self.resident.has(slot);
        if !is_known && self.columns.iter().all(|column| column.cells_stay_below(slot)) {
            self.resident.note(slot);
            // Once, when the first row of a block is read: rows after it are then known by a bit.
            let around = || ResidentBlocks::around(slot);
            if self.columns.iter().all(|column| column.texts_are_short_below(around())) {
                self.short.note(slot);
            }
        }
        for column in &self.columns {
            if !column.text_stays(slot)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Hands the table, of a published view, over to be saved.
    pub(super) fn save(&self, out: &mut Saver) {
        self.rows.save(out);
        let blanks = self.rows.blanks();
        self.columns.iter().for_each(|column| column.save(out, &blanks));
    }

    /// Loads the output of `save` for the rows and columns of a table. The caller updates other parts of the schema.
    /// `erased` are the fields with erased values.
    pub(super) fn load(
        input: &mut Loader<'_>,
        schema: &annals_schema::Table,
        erased: &[FieldNumber],
    ) -> Result<Self> {
        let rows = RowMap::load(input)?;
        let columns = schema.fields.iter();
        let columns =
            columns.map(|field| Column::load(input, field, erased.contains(&field.number)));
        let mut table = Self { columns: columns.collect::<Result<_>>()?, rows, ..Self::new() };
        table.note_refers();
        Ok(table)
    }

    /// Continues from the stored bases.
    pub(super) fn rebase(&mut self, saved: &Saved) {
        self.rows.rebase(saved);
        self.columns.iter_mut().for_each(|column| column.rebase(saved));
        (self.resident, self.short) = Default::default();
    }

    /// Returns how much memory it takes, in bytes.
    pub(super) fn memory(&self, what: Counted) -> usize {
        let columns: usize = self.columns.iter().map(|column| column.memory(what)).sum();
        size_of::<Self>() + self.rows.memory(what) + columns
    }
}
