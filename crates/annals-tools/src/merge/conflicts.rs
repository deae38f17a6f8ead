//! The resolution of rows of two files with the same key in a unique index.

use annals_schema::{RowId, Schema, Table, TableNumber, Type, ValueRef, write_value};

use annals::{Result, Transaction};

/// The treatment by [`merge`](super::merge) of a row with the key of a row of an earlier file, and of single rows
/// that differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// Writes nothing: an error names both rows and their files.
    #[default]
    Refuse,
    /// Keeps the row of the earlier file, and leaves the other out. References to it then refer to the row that is
    /// kept.
    Keep,
    /// Writes all values of the later row to the row of the earlier file, and leaves the later row out. The id stays,
    /// and references to both refer to it.
    Replace,
}

/// A row that has a key already.
pub(super) struct Clash {
    pub(super) index: String,
    /// The key, as text.
    pub(super) key: String,
    pub(super) id: RowId,
}

/// Finds the rows that have a key of these values, one for each unique index.
pub(super) fn clashes(
    tx: &Transaction<'_>,
    table: &Table,
    values: &[ValueRef<'_>],
) -> Result<Vec<Clash>> {
    let schema = tx.view().schema();
    let mut found = Vec::new();
    for index in schema.indexes().iter().filter(|index| index.table == table.number && index.unique)
    {
        let place = |number| table.fields.iter().position(|field| field.number == number);
        let key: Vec<_> =
            index.fields.iter().filter_map(|&number| values.get(place(number)?).copied()).collect();
        if key.contains(&ValueRef::Null) {
            continue;
        }
        if let Some(row) = tx.view().index(index.number)?.first(&key)? {
            let texts: Vec<_> = key.into_iter().map(text).collect();
            found.push(Clash { index: index.name.clone(), key: texts.join(", "), id: row.id() });
        }
    }
    Ok(found)
}

/// Returns the tables; referenced tables are before their referrers, except in circles.
pub(super) fn referenced_first(schema: &Schema) -> Vec<&Table> {
    let mut left: Vec<&Table> = schema.tables().iter().map(|table| &**table).collect();
    let mut order: Vec<&Table> = Vec::new();
    while !left.is_empty() {
        let waits = |table: &&Table| {
            let is_left = |to| to != table.number && left.iter().any(|left| left.number == to);
            targets(table).any(is_left)
        };
        let next = left.iter().position(|table| !waits(table)).unwrap_or(0);
        order.push(left.remove(next));
    }
    order
}

/// Returns the tables that a table refers to.
fn targets(table: &Table) -> impl Iterator<Item = TableNumber> {
    table.fields.iter().filter_map(|field| match field.ty {
        Type::Reference(to, _) => Some(to),
        _ => None,
    })
}

/// Returns a value as text.
pub(super) fn text(value: ValueRef<'_>) -> String {
    let mut text = String::new();
    // A text takes all of it.
    let _infallible = write_value(&mut text, value);
    text
}
