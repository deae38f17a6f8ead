//! Changing runs of rows: everything is checked first, then everything is changed.

use std::ops::Range;

use annals_schema::{FieldNumber, RowId, TableNumber, ValueRef};

use crate::ahead::len_of;
use crate::blobs::Blobs;
use crate::change::{bad_id, bad_value, fits, no_field, single_row};
use crate::columns::column::Column;
use crate::table::Table;
use crate::view::{no_row, no_table};
use crate::writer::as_corrupt;
use crate::{Error, Result};
use crate::{Store, Values};
use annals_event::{MAX_VECTOR, Vector, width};

/// The facts of a checked run of values.
#[derive(Clone, Copy, Debug)]
pub struct Checked {
    /// How many there are.
    pub count: u64,
    /// True if all are the values of rows before anything is set.
    pub is_zero: bool,
    /// About how many bytes they have.
    pub bytes: usize,
}

impl Store {
    /// Inserts rows of zero values at free ids from `id` on, at most [`MAX_VECTOR`]. On error nothing has changed.
    /// With `watch`, constraints that only the commit can check are noted.
    pub fn insert_vector(
        &mut self,
        table: TableNumber,
        id: RowId,
        count: u64,
        watch: bool,
    ) -> Result<()> {
        check_count(count)?;
        self.check_free(table, id, count)?;
        self.add_rows(table, id, count)?;
        if watch {
            self.note_references(table, None, id.0..id.0 + count, false)?;
        }
        self.index_run(table.0 as usize, id.0..id.0 + count, None, watch)
    }

    /// Sets a field of rows with ids from `id` on, at most [`MAX_VECTOR`]. On error nothing has changed. With
    /// `watch`, constraints that only the commit can check are noted.
    pub fn update_vector(
        &mut self,
        table: TableNumber,
        id: RowId,
        field: FieldNumber,
        values: Vector<'_>,
        watch: bool,
    ) -> Result<()> {
        let checked = self.check_vector(table, id, field, &Values::from(values))?;
        check_count(checked.count)?;
        self.set_rows(table, id, field, values, watch)
    }

    /// Deletes rows with ids from `id` on, the last one first. On error nothing has changed.
    pub fn delete_vector(&mut self, number: TableNumber, id: RowId, count: u64) -> Result<()> {
        check_count(count)?;
        self.check_there(number, id, count)?;
        if self.table(number)?.single {
            return Err(single_row(&self.working, number));
        }
        (id.0..id.0 + count).rev().try_for_each(|id| self.delete(number, RowId(id)))
    }

    fn table(&self, number: TableNumber) -> Result<&Table> {
        let table = self.working.tables.get(number.0 as usize);
        table.map(|table| &**table).ok_or_else(|| no_table(number))
    }

    /// Fails unless rows can be inserted at ids from `id` on.
    #[doc(hidden)]
    pub fn check_free(&self, number: TableNumber, id: RowId, count: u64) -> Result<()> {
        let table = self.table(number)?;
        if table.single {
            return Err(single_row(&self.working, number));
        }
        let last = id.0.saturating_add(count.saturating_sub(1));
        if last > RowId::MAX.0 {
            return Err(bad_id(&self.working, number, RowId(last)));
        }
        match table.rows.first_in(id.0, count)? {
            Some(used) => Err(bad_id(&self.working, number, RowId(used))),
            None => Ok(()),
        }
    }

    /// Fails unless there are rows with ids from `id` on.
    #[doc(hidden)]
    #[inline]
    pub fn check_there(&self, number: TableNumber, id: RowId, count: u64) -> Result<()> {
        match self.table(number)?.first_missing(id.0, count)? {
            Some(missing) => Err(no_row(&self.working, number, RowId(missing))),
            None => Ok(()),
        }
    }

    /// Fails unless a field of the rows from `id` on can take these values.
    #[doc(hidden)]
    pub fn check_vector(
        &self,
        number: TableNumber,
        id: RowId,
        field: FieldNumber,
        values: &Values<'_>,
    ) -> Result<Checked> {
        let checked = self.check_values(number, field, values)?;
        self.check_there(number, id, checked.count)?;
        Ok(checked)
    }

    /// Fails unless a field can take these values.
    #[doc(hidden)]
    pub fn check_values(
        &self,
        number: TableNumber,
        field: FieldNumber,
        values: &Values<'_>,
    ) -> Result<Checked> {
        let column = self.table(number)?.column(field);
        let column = column.ok_or_else(|| no_field(&self.working, number, field))?;
        let Some(count) = values.len(column.ty()) else {
            let what = "the given vector is not one of values of its type";
            return Err(Error::invalid(format!("{}: {what}", self.name_of(number, field))));
        };
        let (mut is_zero, mut bytes) = (true, 0);
        values.each(column.ty(), 0..count, |_, piece| {
            is_zero = is_zero && holds_zeros(column, piece);
            bytes += bytes_of(column, piece);
            match first_bad(column, piece, &self.working.blobs) {
                Some(value) => Err(bad_value(&self.working, number, field, &value)),
                None => Ok(()),
            }
        })?;
        Ok(Checked { count: count as u64, is_zero, bytes })
    }

    /// Fails unless a field can take these values, which the program made once more after it had made
    /// them for [`check_values`](Self::check_values).
    #[doc(hidden)]
    pub fn check_again(
        &self,
        number: TableNumber,
        field: FieldNumber,
        values: Vector<'_>,
    ) -> Result<()> {
        let column = self.table(number)?.column(field);
        match column.and_then(|column| first_bad(column, values, &self.working.blobs)) {
            Some(value) => Err(bad_value(&self.working, number, field, &value)
                .within("a value was another one when it was asked for again")),
            None => Ok(()),
        }
    }

    fn name_of(&self, table: TableNumber, field: FieldNumber) -> String {
        let field = self.working.field_name(table, field);
        format!("table `{}`, field `{field}`", self.working.table_name(table))
    }

    /// Adds rows of zero values, which were checked, without their entries in indexes.
    #[doc(hidden)]
    #[inline]
    pub fn add_rows(&mut self, number: TableNumber, id: RowId, count: u64) -> Result<()> {
        self.begin_change();
        let Some(table) = self.working.tables.get_mut(number.0 as usize) else { return Ok(()) };
        self.doubts.note_filled(number, None, id.0..id.0 + count);
        let table = table.make_mut();
        table.begin(&self.epoch);
        table.insert_run(id, count, &self.epoch)
    }

    /// Adds the entries of rows that were added, and notes constraints that only the commit can check.
    #[doc(hidden)]
    #[inline]
    pub fn index_rows(&mut self, number: TableNumber, id: RowId, count: u64) -> Result<()> {
        self.note_references(number, None, id.0..id.0 + count, false)?;
        self.index_run(number.0 as usize, id.0..id.0 + count, None, true)
    }

    /// Inserts a run of rows with consecutive ids, in replay, given the values of each field: as many single inserts
    /// would.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    #[doc(hidden)]
    pub fn apply_rows(
        &mut self,
        number: TableNumber,
        first: RowId,
        count: u64,
        columns: &[Vec<ValueRef<'_>>],
    ) -> Result<()> {
        self.insert_columns(number, first, count, columns).map_err(as_corrupt)
    }

    fn insert_columns(
        &mut self,
        number: TableNumber,
        first: RowId,
        count: u64,
        columns: &[Vec<ValueRef<'_>>],
    ) -> Result<()> {
        self.check_free(number, first, count)?;
        let at = number.0 as usize;
        let Some(table) = self.working.tables.get(at) else { return Ok(()) };
        let blobs = &self.working.blobs;
        for (column, values) in table.columns.iter().zip(columns) {
            if let Some(value) = values.iter().find(|value| !fits(column, value, blobs)) {
                let field = column.field();
                return Err(bad_value(&self.working, number, field, value));
            }
        }
        self.begin_change();
        self.doubts.note_filled(number, None, first.0..first.0 + count);
        let Some(table) = self.working.tables.get_mut(at) else { return Ok(()) };
        let table = table.make_mut_of(|| self.previous.table(at));
        table.begin(&self.epoch);
        table.insert_columns(first, count, columns, &self.epoch)?;
        match table.indexes.is_empty() {
            true => Ok(()),
            false => self.index_columns(at, first, count, columns),
        }
    }

    /// Sets a field of rows that were added and have no entries in indexes yet.
    #[doc(hidden)]
    pub fn fill_rows(
        &mut self,
        number: TableNumber,
        id: RowId,
        field: FieldNumber,
        values: Vector<'_>,
    ) -> Result<()> {
        if let Some((place, ids)) = self.write_rows(number, field, id, values, true)? {
            self.note_references(number, Some(place), ids, false)?;
        }
        Ok(())
    }

    /// Sets a field of rows. The values were checked before.
    #[doc(hidden)]
    pub fn set_rows(
        &mut self,
        number: TableNumber,
        id: RowId,
        field: FieldNumber,
        values: Vector<'_>,
        watch: bool,
    ) -> Result<()> {
        self.settle()?;
        let at = number.0 as usize;
        let Some(table) = self.working.tables.get(at) else { return Ok(()) };
        let Some(place) = table.place_of(field) else { return Ok(()) };
        let count = table.columns.get(place).and_then(|column| values.len(column.ty()));
        let ids = id.0..id.0 + count.unwrap_or(0) as u64;
        self.unindex_run(at, ids.clone(), Some(place))?;
        self.write_rows(number, field, id, values, false)?;
        self.index_run(at, ids.clone(), Some(place), watch)?;
        if watch {
            self.note_references(number, Some(place), ids, false)?;
        }
        Ok(())
    }

    /// Writes a field of rows; returns the place of the field, and the ids of the rows.
    fn write_rows(
        &mut self,
        number: TableNumber,
        field: FieldNumber,
        id: RowId,
        values: Vector<'_>,
        new: bool,
    ) -> Result<Option<(usize, Range<u64>)>> {
        self.begin_change();
        let Some(table) = self.working.tables.get_mut(number.0 as usize) else { return Ok(None) };
        let Some(place) = table.place_of(field) else { return Ok(None) };
        let count = table.columns.get(place).and_then(|column| values.len(column.ty()));
        let Some(count) = count else { return Ok(None) };
        let table = table.make_mut();
        table.begin(&self.epoch);
        table.write_run(place, id.0, values, new, &self.epoch)?;
        let ids = id.0..id.0 + count as u64;
        self.doubts.note_filled(number, Some(field), ids.clone());
        Ok(Some((place, ids)))
    }
}

fn check_count(count: u64) -> Result<()> {
    if (1..=MAX_VECTOR).contains(&count) {
        return Ok(());
    }
    Err(Error::invalid(format!("a vector of {count} rows is none: it has 1 to {MAX_VECTOR}")))
}

/// Finds the first value that a column doesn't take.
fn first_bad<'v>(column: &Column, values: Vector<'v>, blobs: &Blobs) -> Option<ValueRef<'v>> {
    match values {
        Vector::Cells(cells) => {
            let at = column.first_bad_cell(cells, blobs)?;
            values.iter(column.ty()).nth(at)
        }
        Vector::Values(values) => values.iter().find(|value| !fits(column, value, blobs)).copied(),
    }
}

/// Returns about how many bytes values of a column have: of values of different lengths one in eight is counted.
fn bytes_of(column: &Column, values: Vector<'_>) -> usize {
    match values {
        Vector::Cells(cells) => cells.len(),
        Vector::Values(values) => {
            let each = width(column.ty()).unwrap_or(16);
            let counted = values.iter().step_by(8);
            counted.map(|value| 8 * (each + len_of(*value))).sum()
        }
    }
}

/// True if all values equal those of a row before anything is set, bit for bit.
fn holds_zeros(column: &Column, values: Vector<'_>) -> bool {
    let nullable = column.takes_null();
    match values {
        Vector::Cells(cells) => !nullable && cells.iter().all(|&byte| byte == 0),
        Vector::Values(values) => values.iter().all(|value| match value {
            ValueRef::Null => nullable,
            ValueRef::String(text) => !nullable && text.is_empty(),
            ValueRef::Bytes(bytes) => !nullable && bytes.is_empty(),
            _ => false,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorKind, Uniqueness, View};
    use annals_schema::{Command, Type};

    const TABLE: TableNumber = TableNumber(0);

    /// Reads all of a view of which each number is `round`, and each text too.
    fn read(view: &View, rows: u64, round: i64) {
        let table = view.table(TABLE).unwrap();
        let numbers = table.vector(FieldNumber(0), RowId(0), rows).unwrap();
        let mut count = 0;
        for chunk in numbers.chunks::<i64>().unwrap() {
            let chunk = chunk.unwrap();
            assert!(chunk.iter().all(|&number| number == round));
            count += chunk.len() as u64;
        }
        let texts = table.vector(FieldNumber(1), RowId(0), rows).unwrap();
        assert!(texts.strings().unwrap().all(|text| text.unwrap() == round.to_string().repeat(8)));
        assert_eq!((count, table.len()), (rows, rows));
    }

    /// Small enough for Miri, which looks for races between the writer and the readers.
    #[test]
    fn readers_go_on_while_runs_are_appended_and_rewritten() {
        let mut store = Store::new();
        store.apply_command(&Command::CreateTable { name: "t".to_owned() }).unwrap();
        for (name, ty, nullable) in [("a", Type::Int64, false), ("b", Type::String, true)] {
            let (name, table) = (name.to_owned(), TABLE);
            let command = Command::AddField { table, name, ty, nullable, default: None };
            store.apply_command(&command).unwrap();
        }
        let (mut next, mut threads) = (0, Vec::new());
        for round in 0..6_i64 {
            store.insert_vector(TABLE, RowId(next), 150, true).unwrap();
            let count = next + 150;
            let cells = round.to_le_bytes().repeat(usize::try_from(count).unwrap());
            let number = FieldNumber(0);
            store.update_vector(TABLE, RowId(0), number, Vector::Cells(&cells), true).unwrap();
            let text = round.to_string().repeat(8);
            let texts = vec![ValueRef::String(&text); usize::try_from(count).unwrap()];
            let values = Vector::Values(&texts);
            store.update_vector(TABLE, RowId(0), FieldNumber(1), values, true).unwrap();
            if round % 3 == 2 {
                store.rollback();
                continue;
            }
            next = count;
            let view = store.commit();
            threads.push(std::thread::spawn(move || read(&view, count, round)));
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        store.view().check().unwrap();
    }

    /// Makes a store with a table of a number and a text that may be null, which has a row 5.
    fn with_row() -> Store {
        let mut store = Store::new();
        store.apply_command(&Command::CreateTable { name: "t".to_owned() }).unwrap();
        for (name, ty, nullable) in [("a", Type::Int64, false), ("b", Type::String, true)] {
            let (name, table) = (name.to_owned(), TABLE);
            let command = Command::AddField { table, name, ty, nullable, default: None };
            store.apply_command(&command).unwrap();
        }
        let values = [ValueRef::Int64(1), ValueRef::Null];
        store.insert(TABLE, RowId(5), &values, Uniqueness::AtOnce).unwrap();
        store.commit();
        store
    }

    #[test]
    fn a_run_that_no_writer_made_is_refused_and_leaves_nothing() {
        let mut store = with_row();
        let numbers = vec![ValueRef::Int64(2); 3];
        let texts = vec![ValueRef::String("x"), ValueRef::Null, ValueRef::String("y")];
        let wrong = vec![ValueRef::Int64(2), ValueRef::Null, ValueRef::Int64(2)];
        let good = [numbers.clone(), texts.clone()];
        let cases = [
            (TABLE, 3, good.clone()),
            (TABLE, 5, good.clone()),
            (TABLE, RowId::MAX.0 - 1, good.clone()),
            (TABLE, u64::MAX - 1, good.clone()),
            (TableNumber(1), 6, good.clone()),
            (TABLE, 6, [wrong, texts]),
            (TABLE, 6, [numbers.clone(), numbers]),
        ];
        for (number, (table, id, columns)) in cases.into_iter().enumerate() {
            let refused = store.apply_rows(table, RowId(id), 3, &columns).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Corrupt, "case {number}: {refused}");
            store.rollback();
            store.view().check().unwrap();
            assert_eq!(store.view().table(TABLE).unwrap().len(), 1);
        }
        store.apply_rows(TABLE, RowId(6), 3, &good).unwrap();
        assert_eq!(store.commit().table(TABLE).unwrap().len(), 4);
        store.view().check().unwrap();
    }

    #[test]
    fn a_table_of_one_row_gets_no_second_one_behind_it() {
        let mut store = with_row();
        let values = [ValueRef::Int64(2), ValueRef::Null];
        // There is room after the last row.
        for id in 6..10 {
            store.insert(TABLE, RowId(id), &values, Uniqueness::AtOnce).unwrap();
        }
        (6..10).for_each(|id| store.delete(TABLE, RowId(id)).unwrap());
        let command = Command::SetSingleRow { table: TABLE, single: true };
        store.apply_command(&command).unwrap();
        for id in [4, 6, 10] {
            let refused = store.insert(TABLE, RowId(id), &values, Uniqueness::AtOnce);
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
        }
        let columns = values.map(|value| vec![value; 2]);
        assert!(store.apply_rows(TABLE, RowId(10), 2, &columns).is_err());
        assert_eq!(store.commit().table(TABLE).unwrap().len(), 1);
    }
}
