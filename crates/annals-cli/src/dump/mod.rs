//! The present state of a database as text: a script, SQL, or JSON; and its history as SQL.

use annals::{Command, Schema};

mod json;
pub(crate) mod sql;
mod text;

pub(crate) use json::json;
pub(crate) use sql::{Dialect, HistorySql, sql};
pub(crate) use text::text;

/// Returns the commands after the rows: the tables of a single row, those that the history index leaves out, and the
/// indexes, which are then built at once.
pub(crate) fn finishing(schema: &Schema) -> Vec<Command> {
    let singles = schema.tables().iter().filter(|table| table.single_row);
    let singles = singles.map(|table| Command::SetSingleRow { table: table.number, single: true });
    let left_out = schema.tables().iter().filter(|table| !table.history_index);
    let left_out =
        left_out.map(|table| Command::SetHistoryIndex { table: table.number, indexed: false });
    let indexes = schema.indexes().iter().map(|index| index.creating());
    singles.chain(left_out).chain(indexes).collect()
}
