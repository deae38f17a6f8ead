//! Executing the store's invariants.

use annals_schema::{FieldNumber, TableNumber, ValueRef};

use crate::View;
use crate::change::same_key;
use crate::enforcement::Reference;
use crate::index::key;
use crate::index::tree::IndexTree;
use crate::reference::{referrers, target_of};
use crate::table::Table;
use crate::{Error, Result};

/// Dangling references of one field.
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
    /// Checks the invariants of all tables and indexes: row maps, text, single rows, enforced references, entries of
    /// indexes against rows, order, uniqueness; the pieces of blobs. Unavailable indexes are left out. The error names
    /// the problem. Reads everything.
    /// Within a transaction, constraints that the commit checks may be violated.
    pub fn check(&self) -> Result<()> {
        if let Some(whole) = self.whole()? {
            return whole.check();
        }
        self.blobs.check().map_err(|error| error.within("blobs"))?;
        for (table, schema) in self.tables.iter().zip(self.schema.tables()) {
            self.check_one(table, schema)
                .map_err(|error| error.within(format_args!("table `{}`", schema.name)))?;
        }
        for schema in self.schema.indexes() {
            let number = schema.number.0 as usize;
            let wrong = |what| Error::corrupt(format!("index `{}`: {what}", schema.name));
            let index = self.indexes.get(number).ok_or_else(|| wrong("it is missing"))?;
            let table = self.tables.get(index.table).ok_or_else(|| wrong("it has no table"))?;
            if index.unavailable().is_some() {
                continue;
            }
            check_entries(index, table)
                .map_err(|error| error.within(format_args!("index `{}`", schema.name)))?;
            self.check_keys(number, index, table)?;
        }
        Ok(())
    }

    fn check_one(&self, table: &Table, schema: &annals_schema::Table) -> Result<()> {
        check_table(table)?;
        let rows = table.rows.len();
        if table.single != schema.single_row || (table.single && rows != 1) {
            return wrong(format!("it has {rows} rows, but should have exactly one"));
        }
        self.check_referrers(schema)?;
        for column in table.columns.iter().filter(|c| target_of(c.ty()).is_some()) {
            if let Some(Reference { to, row }) =
                self.dangling(table, column, 0..u64::MAX).next().transpose()?
            {
                return wrong(format!(
                    "row {row} refers to row {to} of another, which isn't there"
                ));
            }
        }
        Ok(())
    }

    /// Counts the dangling references of each field that has some: only those that aren't enforced can dangle. Walks
    /// over all rows of the tables that have references.
    ///
    /// # Errors
    /// A row can't be loaded.
    pub fn dangling_references(&self) -> Result<Vec<Dangling>> {
        if let Some(whole) = self.whole()? {
            return whole.dangling_references();
        }
        let mut found = Vec::new();
        for (table, schema) in self.tables.iter().zip(self.schema.tables()) {
            for column in &table.columns {
                let mut count = 0;
                for row in self.dangling(table, column, 0..u64::MAX) {
                    row?;
                    count += 1;
                }
                if count > 0 {
                    found.push(Dangling { table: schema.number, field: column.field(), count });
                }
            }
        }
        Ok(found)
    }

    /// Checks that a table has the enforced references to it.
    fn check_referrers(&self, schema: &annals_schema::Table) -> Result<()> {
        let Some(table) = self.tables.get(schema.number.0 as usize) else { return Ok(()) };
        let mut expected = referrers(&self.schema);
        expected.retain(|(to, _)| *to == schema.number);
        if expected.iter().map(|(_, referrer)| referrer).eq(&table.referrers) {
            return Ok(());
        }
        wrong("it doesn't know the references that lead to it")
    }

    /// Checks that no two rows have the same key in a unique index.
    fn check_keys(&self, number: usize, index: &IndexTree, table: &Table) -> Result<()> {
        let mut key = Vec::new();
        for row in table.rows.iter().filter(|_| index.unique) {
            let (_, slot) = row?;
            if index.key(table, |field| table.value(field, slot), &mut key)?
                && let Some((a, b)) = index.holders(&key)?
            {
                return Err(same_key(self, number, a, b));
            }
        }
        Ok(())
    }
}

fn wrong<T>(what: impl Into<String>) -> Result<T> {
    Err(Error::corrupt(what))
}

/// Reads each value of each row too: one that can't be read is an error.
fn check_table(table: &Table) -> Result<()> {
    table.rows.check()?;
    let mut count = 0;
    for row in table.rows.iter() {
        let (id, slot) = row?;
        count += 1;
        if table.rows.find(id.0)? != Some(slot) {
            return wrong(format!("row {} is not where the row map leads to", id.0));
        }
        for column in &table.columns {
            if let ValueRef::String(text) = column.get(slot)?.as_ref()
                && std::str::from_utf8(text.as_bytes()).is_err()
            {
                return wrong(format!("row {} has a string that is not UTF-8", id.0));
            }
        }
    }
    if count == table.rows.len() { Ok(()) } else { wrong(format!("{count} rows can be walked")) }
}

fn check_entries(index: &IndexTree, table: &Table) -> Result<()> {
    let tree = index.tree()?;
    tree.check()?;
    if tree.len() != table.rows.len() {
        return wrong(format!("{} entries for {} rows", tree.len(), table.rows.len()));
    }
    let mut key = Vec::new();
    for row in table.rows.iter() {
        let (id, slot) = row?;
        index.key(table, |field| table.value(field, slot), &mut key)?;
        key::encode_id(&mut key, id);
        if tree.first_with(&key, |entry, _| entry == key)? != Some(true) {
            return wrong(format!("row {} has no entry", id.0));
        }
    }
    Ok(())
}
