//! Executing the store's invariants.

use annals_schema::Type;

use super::View;
use super::change::same_key;
use super::index::IndexTree;
use super::key;
use super::table::Table;
use crate::{Error, Result};

impl View {
    /// Checks the invariants of all tables and indexes: row maps, text, entries of indexes against
    /// rows, order, uniqueness. The error says what is wrong. Reads everything.
    pub fn check(&self) -> Result<()> {
        for (table, schema) in self.tables.iter().zip(self.schema.tables()) {
            check_table(table)
                .map_err(|e| Error::corrupt(format!("table `{}`: {e}", schema.name)))?;
        }
        for schema in self.schema.indexes() {
            let number = schema.number.0 as usize;
            let wrong = |what: &str| Error::corrupt(format!("index `{}`: {what}", schema.name));
            let index = self.indexes.get(number).ok_or_else(|| wrong("it is missing"))?;
            let table = self.tables.get(index.table).ok_or_else(|| wrong("it has no table"))?;
            check_entries(index, table).map_err(|what| wrong(&what))?;
            self.check_keys(number, index, table)?;
        }
        Ok(())
    }

    /// Checks that no two rows have the same key in a unique index.
    fn check_keys(&self, number: usize, index: &IndexTree, table: &Table) -> Result<()> {
        let mut key = Vec::new();
        for (_, slot) in table.rows.iter().filter(|_| index.unique) {
            if index.key(table, |field| table.value(field, slot), &mut key)
                && let Some((a, b)) = index.holders(&key)
            {
                return Err(same_key(self, number, a, b));
            }
        }
        Ok(())
    }
}

fn check_table(table: &Table) -> Result<(), String> {
    table.rows.check()?;
    let mut count = 0;
    for (id, slot) in table.rows.iter() {
        count += 1;
        if table.rows.find(id.0) != Some(slot) {
            return Err(format!("row {} is not where the row map leads to", id.0));
        }
        for column in table.columns.iter().filter(|column| column.ty() == Type::String) {
            if let annals_schema::ValueRef::String(text) = column.get(slot)
                && std::str::from_utf8(text.as_bytes()).is_err()
            {
                return Err(format!("row {} has a string that is not UTF-8", id.0));
            }
        }
    }
    if count == table.rows.len() { Ok(()) } else { Err(format!("{count} rows can be walked")) }
}

fn check_entries(index: &IndexTree, table: &Table) -> Result<(), String> {
    index.tree.check()?;
    if index.tree.len() != table.rows.len() {
        return Err(format!("{} entries for {} rows", index.tree.len(), table.rows.len()));
    }
    let mut key = Vec::new();
    for (id, slot) in table.rows.iter() {
        index.key(table, |field| table.value(field, slot), &mut key);
        key::encode_id(&mut key, id);
        if index.tree.first_with(&key).is_none_or(|(entry, _)| entry != key) {
            return Err(format!("row {} has no entry", id.0));
        }
    }
    Ok(())
}
