//! Random statements on runs of rows.

use annals::event::Vector;
use annals::store::Values;
use annals::{ErrorKind, FieldNumber, RowId, TableNumber, Value};

use super::draw;
use super::model::Field;
use super::statements::{Step, agree};
use crate::store_model::refs;

/// Returns the cells of values that are all of a fixed size, and none of them null.
fn cells(values: &[Value]) -> Option<Vec<u8>> {
    let mut cells = Vec::new();
    for value in values {
        match *value {
            Value::Bool(v) => cells.push(u8::from(v)),
            Value::Int8(v) => cells.extend(v.to_le_bytes()),
            Value::Int16(v) => cells.extend(v.to_le_bytes()),
            Value::Int32(v) => cells.extend(v.to_le_bytes()),
            Value::Int64(v) | Value::Timestamp(v) => cells.extend(v.to_le_bytes()),
            Value::UInt8(v) => cells.push(v),
            Value::UInt16(v) => cells.extend(v.to_le_bytes()),
            Value::UInt32(v) => cells.extend(v.to_le_bytes()),
            Value::UInt64(v) => cells.extend(v.to_le_bytes()),
            Value::Float32(v) => cells.extend(v.to_le_bytes()),
            Value::Float64(v) => cells.extend(v.to_le_bytes()),
            Value::Reference(v) => cells.extend(v.0.to_le_bytes()),
            Value::Blob(v) => cells.extend(v.0.to_le_bytes()),
            _ => return None,
        }
    }
    Some(cells)
}

impl Step<'_, '_> {
    /// Draws how many rows: at times so many that they fill pages.
    fn count(&mut self, table: u32) -> u64 {
        let few = self.model.table(table).rows.len() < 3000;
        match self.random.below(60) {
            0 if few => 1500 + self.random.below(1500),
            1..5 => self.random.below(150),
            _ => self.random.below(6),
        }
    }

    pub(super) fn insert_vector(&mut self, table: u32) {
        let (count, next) = (self.count(table), self.model.table(table).next_id);
        let id = if self.random.chance(50) { next } else { self.id(table) };
        let expected = self.model.table(table).free(id, count);
        if id == next && self.random.chance(90) {
            let given = self.tx.insert_vector(TableNumber(table), count);
            assert!(given.as_ref().is_ok_and(|given| given.0 == id) || expected.is_err());
            agree(given, expected);
        } else {
            agree(self.tx.insert_vector_at(TableNumber(table), RowId(id), count), expected);
        }
        if expected.is_ok() {
            self.model.insert_zeros(table, id, count);
        }
        self.ended(expected, count);
    }

    fn ended(&mut self, ended: super::model::Answer, count: u64) {
        if ended.is_err() || count > 0 {
            self.done(ended);
        }
    }

    fn column(&mut self, field: &Field, count: u64) -> Vec<Value> {
        let one = self.random.chance(20).then(|| self.value(field));
        let mut field = field.clone();
        field.nullable = field.nullable && self.random.chance(50);
        (0..count).map(|_| one.clone().unwrap_or_else(|| self.value(&field))).collect()
    }

    /// Inserts whole rows by vectors, of which one may be of another length or hold a bad value.
    pub(super) fn insert_rows(&mut self, table: u32) {
        let fields = self.model.table(table).fields.clone();
        if fields.is_empty() {
            return;
        }
        let (count, id) = (self.count(table), self.id(table));
        let mut columns: Vec<_> = fields.iter().map(|field| self.column(field, count)).collect();
        let mut expected = self.model.table(table).free(id, count);
        if expected.is_ok() && self.random.chance(8) {
            let bad = &mut columns[0];
            let Field { ty, nullable, .. } = fields[0];
            match bad.last_mut() {
                Some(last) if fields.len() == 1 || self.random.chance(50) => {
                    *last = draw::bad_value(self.random, self.model, ty, nullable);
                    expected = Err(ErrorKind::Invalid);
                }
                _ if fields.len() > 1 => {
                    bad.push(super::model::zero(ty, nullable));
                    expected = Err(ErrorKind::Invalid);
                }
                _ => {}
            }
        }
        let plain: Vec<_> = columns.iter().map(|column| refs(column)).collect();
        let cells: Vec<_> = columns.iter().map(|column| cells(column)).collect();
        let bytes = expected.is_ok() && self.random.chance(50);
        let vectors = plain.iter().zip(&cells).map(|(plain, cells)| match cells {
            Some(cells) if bytes && !cells.is_empty() => Values::from(Vector::Cells(cells)),
            _ => Vector::Values(plain).into(),
        });
        let vectors: Vec<_> = vectors.collect();
        agree(self.tx.insert_rows_at(TableNumber(table), RowId(id), &vectors), expected);
        if expected.is_ok() {
            for row in 0..usize::try_from(count).unwrap() {
                let values = columns.iter().map(|column| column[row].clone()).collect();
                self.model.table_mut(table).insert(id + row as u64, values);
            }
        }
        self.ended(expected, count);
    }

    pub(super) fn update_vector(&mut self, table: u32) {
        let Some(field) = self.field(table) else { return };
        let id = self.id(table);
        let count = self.run_of(table, id);
        let mut column = self.column(&field, count);
        let mut expected = self.model.table(table).there(id, count);
        if expected.is_ok() && count > 0 && self.random.chance(5) {
            let bad = usize::try_from(self.random.below(count)).unwrap();
            column[bad] = draw::bad_value(self.random, self.model, field.ty, field.nullable);
            expected = Err(ErrorKind::Invalid);
        }
        let (number, place) = (TableNumber(table), FieldNumber(field.number));
        match cells(&column).filter(|_| expected.is_ok() && count > 0 && self.random.chance(60)) {
            Some(cells) => {
                let vector = Vector::Cells(&cells);
                agree(self.tx.update_vector(number, RowId(id), place, vector), expected);
            }
            None => {
                let plain = refs(&column);
                let vector = Vector::Values(&plain);
                agree(self.tx.update_vector(number, RowId(id), place, vector), expected);
            }
        }
        if expected.is_ok() {
            let table = self.model.table_mut(table);
            (id..).zip(column).for_each(|(id, value)| table.set(id, field.number, value));
        }
        self.ended(expected, count);
    }

    /// Draws how many rows from one on: mostly as many as are there without a gap, or fewer.
    fn run_of(&mut self, table: u32, id: u64) -> u64 {
        let rows = self.model.table(table).rows.range(id..).zip(id..);
        let run = rows.take_while(|((found, _), id)| **found == *id).count() as u64;
        match self.random.below(10) {
            0 => self.count(table),
            1..4 => run,
            _ => self.random.below(run + 1),
        }
    }

    pub(super) fn delete_vector(&mut self, table: u32) {
        let id = self.id(table);
        let count = self.run_of(table, id);
        let expected = self.model.delete(table, id, count);
        agree(self.tx.delete_vector(TableNumber(table), RowId(id), count), expected);
        self.ended(expected, count);
    }
}
