//! What has to hold between rows: unique keys, and references.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use annals::model::OnDelete;
use annals::{ErrorKind, Type, Value};

use super::model::{Answer, Index, Model, Table};
use crate::locales::value_cmp;

/// Table, row and field of a reference, and the table and row where it leads.
pub(super) type Reference = ((u32, u64, u32), (u32, u64));

impl Index {
    /// Compares values of a field, by its place in the index.
    pub(super) fn value_cmp(&self, at: usize, a: &Value, b: &Value) -> Ordering {
        let mut collated = self.collated.iter().filter(|(field, _)| *field == self.fields[at]);
        value_cmp(collated.next().map(|(_, locale)| locale.as_str()), a, b)
    }

    /// Compares keys, or their first fields, as if none was in descending order.
    pub(super) fn key_cmp(&self, a: &[Value], b: &[Value]) -> Ordering {
        let pairs = a.iter().zip(b).enumerate().map(|(at, (a, b))| self.value_cmp(at, a, b));
        pairs.fold(Ordering::Equal, Ordering::then)
    }
}

pub(super) fn key(table: &Table, fields: &[u32], row: &[Value]) -> Vec<Value> {
    fields.iter().map(|&field| row[table.place(field).unwrap()].clone()).collect()
}

impl Model {
    /// Returns key and id of all rows in the order of an index.
    pub(super) fn sorted(&self, index: &Index) -> Vec<(Vec<Value>, u64)> {
        let table = self.table(index.table);
        let keys = table.rows.iter().map(|(&id, row)| (key(table, &index.fields, row), id));
        let mut keys: Vec<_> = keys.collect();
        keys.sort_by(|a, b| index.key_cmp(&a.0, &b.0).then(a.1.cmp(&b.1)));
        keys
    }

    /// True if two rows have the same key, which has no null in it.
    pub(super) fn is_doubled(&self, index: &Index) -> bool {
        let sorted = self.sorted(index);
        let has_null = |key: &[Value]| key.iter().any(|value| matches!(value, Value::Null));
        let mut pairs = sorted.windows(2);
        pairs.any(|pair| index.key_cmp(&pair[0].0, &pair[1].0).is_eq() && !has_null(&pair[0].0))
    }

    pub(super) fn unique_indexes(&self, table: u32) -> impl Iterator<Item = &Index> {
        self.indexes.values().filter(move |index| index.unique && index.table == table)
    }

    /// True if a row that isn't there yet has a unique key that another one has.
    pub(super) fn is_taken(&self, table: u32, row: &[Value]) -> bool {
        self.unique_indexes(table).any(|index| {
            let table = self.table(table);
            let new = key(table, &index.fields, row);
            let has_null = new.iter().any(|value| matches!(value, Value::Null));
            let same =
                |row: &Vec<Value>| index.key_cmp(&new, &key(table, &index.fields, row)).is_eq();
            !has_null && table.rows.values().any(same)
        })
    }

    /// Returns all references by some of the rules.
    pub(super) fn references(&self, wanted: impl Fn(OnDelete) -> bool) -> Vec<Reference> {
        let mut found = Vec::new();
        for (&number, table) in &self.tables {
            for (place, field) in table.fields.iter().enumerate() {
                let Type::Reference(target, rule) = field.ty else { continue };
                for (&id, row) in table.rows.iter().filter(|_| wanted(rule)) {
                    if let Value::Reference(to) = row[place] {
                        found.push(((number, id, field.number), (target.0, to.0)));
                    }
                }
            }
        }
        found
    }

    /// Deletes rows, and does what the rules of the references say.
    pub(super) fn delete(&mut self, table: u32, id: u64, count: u64) -> Answer {
        if count == 0 {
            return Ok(());
        }
        self.table(table).there(id, count)?;
        let mut gone: BTreeSet<_> = (id..id + count).map(|id| (table, id)).collect();
        let cascading = self.references(|rule| rule == OnDelete::Cascade);
        loop {
            let before = gone.len();
            for ((table, id, _), to) in &cascading {
                if gone.contains(to) {
                    gone.insert((*table, *id));
                }
            }
            if gone.len() == before {
                break;
            }
        }
        if gone.iter().any(|&(table, _)| self.table(table).single) {
            return Err(ErrorKind::Invalid);
        }
        for ((table, id, field), to) in self.references(|rule| rule == OnDelete::SetNull) {
            if gone.contains(&to) {
                self.table_mut(table).set(id, field, Value::Null);
            }
        }
        for (table, id) in gone {
            self.table_mut(table).rows.remove(&id);
        }
        Ok(())
    }

    /// Counts the references that lead to no row and don't have to, by table and field.
    pub(super) fn dangling(&self) -> Vec<(u32, u32, u64)> {
        let mut counts = std::collections::BTreeMap::new();
        for ((table, _, field), (target, id)) in self.references(|_| true) {
            if !self.has(target, id) {
                *counts.entry((table, field)).or_insert(0) += 1;
            }
        }
        counts.into_iter().map(|((table, field), count)| (table, field, count)).collect()
    }

    /// Says how a commit ends.
    pub(super) fn verdict(&self) -> Answer {
        if self.indexes.values().any(|index| index.unique && self.is_doubled(index)) {
            return Err(ErrorKind::Unique);
        }
        let enforced = self.references(OnDelete::is_enforced);
        if enforced.iter().any(|&(_, (table, id))| !self.has(table, id)) {
            return Err(ErrorKind::Reference);
        }
        Ok(())
    }
}
