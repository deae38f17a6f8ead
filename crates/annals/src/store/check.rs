//! Executing the store's invariants.

use annals_schema::{FieldNumber, TableNumber, Type};

use crate::store::View;
use crate::store::change::same_key;
use crate::store::columns::column::Column;
use crate::store::index::key;
use crate::store::index::tree::IndexTree;
use crate::store::reference::{Referrer, number_in, target_of};
use crate::store::table::Table;
use crate::{Error, Result};

/// References of one field that lead to no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dangling {
    /// The table whose rows refer.
    pub table: TableNumber,
    /// The field.
    pub field: FieldNumber,
    /// How many rows.
    pub count: u64,
}

impl View {
    /// Checks the invariants of all tables and indexes: row maps, text, single rows, enforced
    /// references, entries of indexes against rows, order, uniqueness; the pieces of blobs. The error
    /// says what is wrong. Reads everything. Within a transaction, what only its commit must find in
    /// order may fail.
    pub fn check(&self) -> Result<()> {
        self.blobs.check().map_err(|e| Error::corrupt(format!("blobs: {e}")))?;
        for (table, schema) in self.tables.iter().zip(self.schema.tables()) {
            let wrong = |what| Error::corrupt(format!("table `{}`: {what}", schema.name));
            check_table(table).map_err(wrong)?;
            let rows = table.rows.len();
            if table.single != schema.single_row || (table.single && rows != 1) {
                return Err(wrong(format!("it has {rows} rows, but should have exactly one")));
            }
            self.check_referrers(schema).map_err(wrong)?;
            for column in table.columns.iter().filter(|c| target_of(c.ty()).is_some()) {
                if let Some((row, to)) = self.dangling(table, column).next() {
                    let what =
                        format!("row {row} refers to row {to} of another, which isn't there");
                    return Err(wrong(what));
                }
            }
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

    /// Counts the references that lead to no row, for each field that has some: only those that
    /// nothing enforces can. Walks over all rows of the tables that have references.
    #[must_use]
    pub fn dangling_references(&self) -> Vec<Dangling> {
        let mut found = Vec::new();
        for (table, schema) in self.tables.iter().zip(self.schema.tables()) {
            for column in &table.columns {
                let count = self.dangling(table, column).count() as u64;
                if count > 0 {
                    found.push(Dangling { table: schema.number, field: column.field(), count });
                }
            }
        }
        found
    }

    /// Gives the rows whose reference in a column leads to no row, and where it leads.
    fn dangling<'v>(
        &'v self,
        table: &'v Table,
        column: &'v Column,
    ) -> impl Iterator<Item = (u64, u64)> + use<'v> {
        let target = match column.ty() {
            Type::Reference(target, _) => Some(target),
            _ => None,
        };
        let rows = target.map(|_| table.rows.iter()).into_iter().flatten();
        let rows = rows.filter_map(move |(id, slot)| Some((id.0, number_in(column, slot)?)));
        rows.filter(move |&(_, to)| target.is_none_or(|target| !self.has_row(target, to)))
    }

    /// Checks that a table knows the enforced references that lead to it.
    fn check_referrers(&self, schema: &annals_schema::Table) -> Result<(), String> {
        let Some(table) = self.tables.get(schema.number.0 as usize) else { return Ok(()) };
        let mut expected = Vec::new();
        for from in self.schema.tables() {
            for field in &from.fields {
                if let Some((to, rule)) = target_of(field.ty)
                    && to == schema.number
                {
                    expected.push(Referrer { table: from.number, field: field.number, rule });
                }
            }
        }
        let known = |referrer| table.referrers.contains(referrer);
        if expected.len() == table.referrers.len() && expected.iter().all(known) {
            return Ok(());
        }
        Err("it doesn't know the references that lead to it".to_owned())
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
