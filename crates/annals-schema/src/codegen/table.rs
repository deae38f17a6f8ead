//! A table's module: its rows, its writer, and the types of its indexes.

use super::names::{Names, TableNames};
use super::types::Column;
use super::{indent, index, join, row, writer};
use crate::{Schema, Table};

/// The most fields whose values `insert` takes one by one.
pub(super) const MOST_PARAMETERS: usize = 5;

/// Writes the module of a table.
pub(super) fn module(
    schema: &Schema,
    names: &Names,
    table: &Table,
    names_of_table: &TableNames,
) -> String {
    let columns: Vec<_> = table
        .fields
        .iter()
        .zip(&names_of_table.fields)
        .map(|(field, name)| Column::new(names, field, name))
        .collect();
    let mut items = vec![kind(table), row::row(table, &columns)];
    if has_new(table) {
        items.push(row::new_row(table, &columns));
    }
    items.push(row::values(table, &columns));
    if !table.single_row {
        items.extend(constants(&columns, &names_of_table.columns));
    }
    if has_columns(table) {
        items.push(row::columns(table, &columns));
    }
    items.push(writer::writer(table, &columns));
    for (index, names_of_index) in schema.indexes().iter().zip(&names.indexes) {
        if index.table == table.number {
            items.push(index::lookup(index, &names_of_index.ty, &columns));
        }
    }
    let what = if table.single_row { ", which has one row" } else { "" };
    format!(
        "/// The table `{}`{what}.\npub mod {} {{\n{}}}\n",
        table.name,
        names_of_table.name,
        indent(&join(&items))
    )
}

/// True if rows of a table are inserted as a struct of their values.
pub(super) fn has_new(table: &Table) -> bool {
    !table.single_row && !table.fields.is_empty()
}

/// True if many rows are inserted as a struct of their columns.
pub(super) fn has_columns(table: &Table) -> bool {
    has_new(table) && table.fields.len() > MOST_PARAMETERS
}

/// Writes the constants that name the fields.
fn constants(columns: &[Column<'_>], names: &[String]) -> Vec<String> {
    let constants = columns.iter().zip(names).map(|(column, name)| {
        let (field, ty, number) = (&column.field.name, column.column_type(), column.number());
        format!(
            "/// The column `{field}`, to be read and written in many rows at once.\n\
             pub const {name}: ::annals::typed::Column<Kind, {ty}> = \
             ::annals::typed::Column::new({number});\n"
        )
    });
    constants.collect()
}

/// Writes the marker of the table, and the types that are made with it.
fn kind(table: &Table) -> String {
    let (name, number) = (&table.name, table.number.0);
    format!(
        "\
/// The kind of rows that the table `{name}` holds.
#[derive(Clone, Copy, Debug)]
pub enum Kind {{}}

impl ::annals::typed::Record for Kind {{
    const TABLE: ::annals::TableNumber = ::annals::TableNumber({number});
    const NAME: &'static str = \"{name}\";
    type Row<'a> = Row<'a>;
}}

/// The id of a row of `{name}`.
pub type Id = ::annals::typed::Id<Kind>;

/// The table `{name}`, for reading.
pub type Table<'a> = ::annals::typed::Table<'a, Kind>;

/// What became of a row of `{name}`.
pub type Change = ::annals::typed::Change<Kind>;
"
    )
}
