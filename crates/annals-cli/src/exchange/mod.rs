//! Data from and for other programs: CSV, JSON, Parquet and Arrow, and SQLite's files.
//!
//! In reading order: `arrival` is the database that an import creates. `scalar` is a value of a format with fewer
//! types, the summary of a column of them, and the inferred type. `naming` makes valid names. Then there is a folder
//! for each format.
//!
//! `docs/exchange.md` has the conversions.

pub(crate) mod arrival;
pub(crate) mod csv;
pub(crate) mod json;
pub(crate) mod naming;
#[cfg(feature = "arrow")]
pub(crate) mod parquet;
pub(crate) mod scalar;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;

use annals::Schema;

use crate::dump::finishing;

/// Returns the lines of a schema, one command each, that make the same tables, fields and indexes with the same
/// numbers of tables and fields.
pub(crate) fn schema_lines(schema: &Schema) -> Vec<String> {
    let commands = schema.commands().iter().zip(schema.lines());
    let mut lines: Vec<String> =
        commands.filter(|(command, _)| command.is_ordered()).map(|(_, line)| line).collect();
    lines.extend(finishing(schema).iter().map(|command| schema.command_text(command)));
    lines
}
