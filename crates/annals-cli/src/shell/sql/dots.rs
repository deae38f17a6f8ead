//! The commands that begin with a dot, as in SQLite's shell.

use std::path::PathBuf;

use annals::{Error, Result};
use annals_sql::Parameters;
use clap::ValueEnum as _;

use super::format::Format;
use super::{Asking, Printing, Sink};
use crate::output::Output;

/// What `.help` prints.
const HELP: &str = "\
.help                 these lines
.headers on|off       print the names of columns, or don't
.mode FORMAT          table, line, csv, tabs, list, markdown, json, ndjson, parquet or arrow
.once FILE            write the next answer to a file
.quit                 leave; so does Ctrl-D
.schema [TABLE]       the columns of tables and their types
.tables               the tables

Each table T is also T_at(MOMENT), T_history(ID), T_changes(A, B), T_blame(ID); the database has
annals_log, annals_schema and annals_txid(). BEGIN keeps the present state until COMMIT.";

/// The names of the commands, for completion.
pub(super) const NAMES: [&str; 7] =
    [".help", ".headers", ".mode", ".once", ".quit", ".schema", ".tables"];

/// True if the dialog goes on.
pub(super) type GoesOn = bool;

/// Runs a command.
pub(super) fn run(
    line: &str,
    asking: &mut Asking,
    printing: &mut Printing,
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
        [".headers" | ".header", switch @ ("on" | "off")] => {
            printing.sink.has_header = *switch == "on"
        }
        [".mode", name] => {
            printing.sink.format = Format::from_str(name, true).map_err(|_| {
                Error::invalid(format!(".mode {name}: write one of {}", Format::names()))
            })?;
        }
        [".once", ..] => printing.once = Some(file_of(line)?),
        _ => {
            return Err(Error::invalid(format!("{line}: no such command; `.help` lists them")));
        }
    }
    Ok(true)
}

/// Returns the file of `.once`, whose name may have spaces, and quotes around it.
fn file_of(line: &str) -> Result<PathBuf> {
    let name = line.strip_prefix(".once").unwrap_or_default().trim();
    let quoted = |quote| name.strip_prefix(quote)?.strip_suffix(quote);
    match quoted('"').or_else(|| quoted('\'')).unwrap_or(name) {
        "" => Err(Error::invalid(".once: write the name of a file after it")),
        name => Ok(name.into()),
    }
}

/// Prints the columns of a table, or of all.
fn schema(table: Option<&str>, asking: &mut Asking, output: &mut Output) -> Result<()> {
    let value = table.map(|table| annals_sql::Value::Text(table.to_owned()));
    let parameters = Parameters::Listed(vec![value.unwrap_or(annals_sql::Value::Null)]);
    let query = "SELECT \"table\", kind, name, type, nullable, \"references\" FROM annals_schema \
                 WHERE kind <> 'table' AND coalesce(\"table\" = ?1, 1)";
    asking.ask(query, &parameters, &Sink::new(Format::Table, true), output)
}
