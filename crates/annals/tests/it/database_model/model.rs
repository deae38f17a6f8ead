//! The model: maps of rows, every rule by its definition.

use std::collections::{BTreeMap, BTreeSet};

use annals::model::OnDelete;
use annals::{ErrorKind, FieldNumber, Schema, Type, Value};

type Row = BTreeMap<u32, Value>;

/// Table, row and field of a reference, and the table and row where it leads.
type Reference = ((u32, u64, u32), (u32, u64));

#[derive(Clone, Default)]
pub(super) struct Rows {
    pub(super) rows: BTreeMap<u64, Row>,
    pub(super) next_id: u64,
}

#[derive(Clone, Default)]
pub(super) struct Model {
    pub(super) schema: Schema,
    pub(super) tables: BTreeMap<u32, Rows>,
}

impl Model {
    pub(super) fn table(&self, table: u32) -> &annals::Table {
        self.schema.table(annals::TableNumber(table)).unwrap()
    }

    pub(super) fn fields(&self, table: u32) -> Vec<annals::Field> {
        self.table(table).fields.clone()
    }

    pub(super) fn rows(&self, table: u32) -> &BTreeMap<u64, Row> {
        &self.tables[&table].rows
    }

    pub(super) fn has(&self, table: u32, id: u64) -> bool {
        self.tables.get(&table).is_some_and(|table| table.rows.contains_key(&id))
    }

    /// Says why rows can't be inserted at some ids.
    pub(super) fn free(&self, table: u32, id: u64, count: u64) -> Result<(), ErrorKind> {
        if self.table(table).single_row {
            return Err(ErrorKind::Invalid);
        }
        let taken = self.rows(table).range(id..id + count).next().is_some();
        if taken { Err(ErrorKind::InUse) } else { Ok(()) }
    }

    /// Says why there aren't all of some rows.
    pub(super) fn there(&self, table: u32, id: u64, count: u64) -> Result<(), ErrorKind> {
        let all = self.rows(table).range(id..id + count).count() as u64 == count;
        if all { Ok(()) } else { Err(ErrorKind::NotFound) }
    }

    pub(super) fn insert(&mut self, table: u32, id: u64, values: Vec<Value>) {
        let numbers: Vec<_> = self.fields(table).iter().map(|field| field.number.0).collect();
        let table = self.tables.get_mut(&table).unwrap();
        let row = numbers.into_iter().zip(values).collect();
        assert!(table.rows.insert(id, row).is_none());
        table.next_id = table.next_id.max(id + 1);
    }

    pub(super) fn insert_zeros(&mut self, table: u32, id: u64, count: u64) {
        let zeros: Vec<_> = self.fields(table).iter().map(annals::Field::zero_value).collect();
        (id..id + count).for_each(|id| self.insert(table, id, zeros.clone()));
    }

    pub(super) fn set(&mut self, table: u32, id: u64, field: FieldNumber, value: Value) {
        let rows = &mut self.tables.get_mut(&table).unwrap().rows;
        let before = rows.get_mut(&id).unwrap().insert(field.0, value);
        assert!(before.is_some());
    }

    /// Returns all references by a rule: table, row, field, and where it leads.
    fn references(&self, wanted: impl Fn(OnDelete) -> bool) -> Vec<Reference> {
        let mut found = Vec::new();
        for table in self.schema.tables() {
            for field in &table.fields {
                let Type::Reference(target, rule) = field.ty else { continue };
                for (&id, row) in self.rows(table.number.0).iter().filter(|_| wanted(rule)) {
                    if let Value::Reference(to) = row[&field.number.0] {
                        found.push(((table.number.0, id, field.number.0), (target.0, to.0)));
                    }
                }
            }
        }
        found
    }

    /// Deletes rows and what the rules say, or says why that can't be.
    pub(super) fn delete(&mut self, table: u32, id: u64, count: u64) -> Result<(), ErrorKind> {
        self.there(table, id, count)?;
        let mut gone: BTreeSet<_> = (id..id + count).map(|id| (table, id)).collect();
        let cascading = self.references(|rule| rule == OnDelete::Cascade);
        loop {
            let more = cascading.iter().filter(|(_, to)| gone.contains(to));
            let more: Vec<_> = more.map(|&((table, id, _), _)| (table, id)).collect();
            let before = gone.len();
            gone.extend(more);
            if gone.len() == before {
                break;
            }
        }
        if gone.iter().any(|&(table, _)| self.table(table).single_row) {
            return Err(ErrorKind::Invalid);
        }
        for ((table, id, field), to) in self.references(|rule| rule == OnDelete::SetNull) {
            if gone.contains(&to) && !gone.contains(&(table, id)) {
                self.set(table, id, FieldNumber(field), Value::Null);
            }
        }
        for (table, id) in gone {
            self.tables.get_mut(&table).unwrap().rows.remove(&id);
        }
        Ok(())
    }

    /// Deletes as many rows, of which there may be none.
    pub(super) fn delete_all(&mut self, table: u32, id: u64, count: u64) -> Result<(), ErrorKind> {
        if count == 0 { Ok(()) } else { self.delete(table, id, count) }
    }

    /// True if a new row has a unique key that another one has.
    pub(super) fn doubled_by(&mut self, table: u32, id: u64, values: &[Value]) -> bool {
        let indexes = self.schema.indexes().to_vec();
        let rows = self.rows(table).clone();
        self.insert(table, id, values.to_vec());
        let new = self.rows(table)[&id].clone();
        indexes.iter().filter(|index| index.unique && index.table.0 == table).any(|index| {
            let is_null = |field: &FieldNumber| matches!(new[&field.0], Value::Null);
            !index.fields.iter().any(is_null)
                && rows.values().any(|row| index.fields.iter().all(|f| row[&f.0] == new[&f.0]))
        })
    }

    /// True if rows of a table have the same key in a unique index on these fields.
    pub(super) fn is_doubled(&self, table: u32, fields: &[FieldNumber]) -> bool {
        let mut keys = Vec::new();
        for row in self.rows(table).values() {
            let key: Vec<_> = fields.iter().map(|field| row[&field.0].clone()).collect();
            if key.iter().all(|value| !matches!(value, Value::Null)) {
                keys.push(key);
            }
        }
        let order = |a: &Vec<Value>, b: &Vec<Value>| {
            let pairs = a.iter().zip(b).map(|(a, b)| a.as_ref().total_cmp(&b.as_ref()));
            pairs.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
        };
        keys.sort_by(order);
        keys.windows(2).any(|pair| order(&pair[0], &pair[1]).is_eq())
    }

    pub(super) fn is_table_doubled(&self, table: u32) -> bool {
        let indexes = self.schema.indexes().iter();
        let mut of_table = indexes.filter(|index| index.unique && index.table.0 == table);
        of_table.any(|index| self.is_doubled(table, &index.fields))
    }

    /// Says how a commit ends.
    pub(super) fn verdict(&self) -> Result<(), ErrorKind> {
        if self.tables.keys().any(|&table| self.is_table_doubled(table)) {
            return Err(ErrorKind::Unique);
        }
        let enforced = self.references(OnDelete::is_enforced);
        if enforced.iter().any(|&(_, (table, id))| !self.has(table, id)) {
            return Err(ErrorKind::Reference);
        }
        Ok(())
    }
}
