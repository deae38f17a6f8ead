//! The commands that begin with a dot, as in SQLite's shell.

use annals::{Error, Result};
use annals_sql::Parameters;
use clap::ValueEnum as _;

use super::answer::Format;
use super::{Asking, Sink};
use crate::output::Output;

/// What `.help` prints.
const HELP: &str = "\
.help                 these lines
.headers on|off       print the names of columns, or don't
.mode FORMAT          table, line, csv, json or ndjson
.quit                 leave; so does Ctrl-D
.schema [TABLE]       the columns of tables and their types
.tables               the tables

Each table T is also T_at(MOMENT), T_history(ID), T_changes(A, B), T_blame(ID); the database has
annals_log, annals_schema and annals_txid(). BEGIN keeps the present state until COMMIT.";

/// The names of the commands, for completion.
pub(super) const NAMES: [&str; 6] = [".help", ".headers", ".mode", ".quit", ".schema", ".tables"];

/// True if the dialog goes on.
pub(super) type GoesOn = bool;

/// Runs a command.
pub(super) fn run(
    line: &str,
    asking: &mut Asking,
    sink: &mut Sink,
    output: &mut Output,
) -> Result<GoesOn> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        [".quit" | ".exit" | ".q"] => return Ok(false),
        [".help" | ".h"] => output.line(HELP)?,
        [".tables"] => {
            for name in asking.list(
                "SELECT DISTINCT \"table\" FROM annals_schema WHERE kind = 'table' ORDER BY 1",
            )? {
                output.line(&name)?;
            }
        }
        [".schema"] => schema(None, asking, output)?,
        [".schema", table] => schema(Some(table.trim_end_matches(';')), asking, output)?,
        [".headers" | ".header", switch @ ("on" | "off")] => sink.has_header = *switch == "on",
        [".mode", "column" | "box"] => sink.format = Format::Table,
        [".mode", name] => {
            sink.format = Format::from_str(name, true).map_err(|_| {
                Error::invalid(format!(".mode {name}: write table, line, csv, json or ndjson"))
            })?;
        }
        _ => {
            return Err(Error::invalid(format!("{line}: no such command; `.help` lists them")));
        }
    }
    Ok(true)
}

/// Prints the columns of a table, or of all.
fn schema(table: Option<&str>, asking: &mut Asking, output: &mut Output) -> Result<()> {
    let value = table.map(|table| annals_sql::Value::Text(table.to_owned()));
    let parameters = Parameters::Listed(vec![value.unwrap_or(annals_sql::Value::Null)]);
    let query = "SELECT \"table\", kind, name, type, nullable, \"references\" FROM annals_schema \
                 WHERE kind <> 'table' AND coalesce(\"table\" = ?1, 1)";
    asking.ask(query, &parameters, &Sink::new(Format::Table, true), output)
}
