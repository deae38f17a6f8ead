//! `annals import sqlite`.

use std::path::PathBuf;

use annals::Result;
use clap::Args;

use crate::Outcome;
use crate::exchange::arrival::To;
use crate::exchange::sqlite;

/// Make a database of one of SQLite
///
/// Tables, columns, defaults of one value, foreign keys to an INTEGER PRIMARY KEY, and indexes are imported; an
/// INTEGER PRIMARY KEY is the id of the row. A column has the type that its declaration asks for if all values fit,
/// else one that holds them all. Names get `_` for what a name can't hold here. Features without an equivalent are
/// reported: views, triggers, virtual tables, checks of expressions, keys of several columns.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals import sqlite people.sqlite people.annals")]
pub(crate) struct Arguments {
    /// The database of SQLite
    input: PathBuf,
    #[command(flatten)]
    to: To,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    sqlite::import(&arguments.input, &arguments.to)?.tell()
}
