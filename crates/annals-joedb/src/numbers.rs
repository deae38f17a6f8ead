//! joedb's numbers of tables, fields and rows, which begin at 1.

use annals::{Error, Field, FieldNumber, Result, RowId, Schema, Table, TableNumber};

/// Returns joedb's number of a row.
pub(crate) fn row_number(table: &Table, id: RowId) -> Result<u64> {
    super::writer::row_of(id).ok_or_else(|| {
        let (name, id) = (&table.name, id.0);
        Error::invalid(format!("table {name}: joedb's files have no room for the id {id}"))
    })
}

/// Returns joedb's number of a table.
pub(crate) fn number_of(table: TableNumber) -> u64 {
    u64::from(table.0) + 1
}

/// Returns joedb's number of a field.
pub(crate) fn place_of(field: FieldNumber) -> u64 {
    u64::from(field.0) + 1
}

/// Finds the table that an event is about.
pub(crate) fn find_table(schema: &Schema, number: TableNumber) -> Result<&Table> {
    schema
        .table(number)
        .ok_or_else(|| Error::corrupt("an event speaks of a table that isn't there"))
}

/// Finds the field that an event is about.
pub(crate) fn find_field(table: &Table, number: FieldNumber) -> Result<&Field> {
    table.field(number).ok_or_else(|| Error::corrupt("an event speaks of a field that isn't there"))
}
