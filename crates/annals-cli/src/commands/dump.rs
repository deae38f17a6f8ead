//! `annals dump`: the present state, or that of an earlier moment, as a script, as SQL, as JSON, or as CSV files.

use std::path::PathBuf;

use annals::{Moment, Result, Snapshot};
use clap::{Args, ValueEnum};

use crate::dump::Dialect;
use crate::exchange::csv;
use crate::output::Output;
use crate::present::Present;
use crate::remote::Access;
use crate::{Outcome, dump, files, progress};

/// Print the present state, or that of any moment before
///
/// As text it is a script: run through `annals shell` it builds a file with the same schema, rows, ids and next ids,
/// but without the history. As SQL it is a script that SQLite and PostgreSQL read, or one of them. As JSON it is one
/// object with an array of rows for each table, for reading; it holds the names of blobs, as in `blob:7`, where all
/// other formats hold their bytes. (`annals export json` writes everything.) As CSV it is a file for each table in a
/// directory, as `annals export csv` writes them.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals dump people.annals | annals shell copy.annals
  annals dump people.annals --format sql | sqlite3 people.sqlite
  annals dump people.annals --format sql | psql --set ON_ERROR_STOP=1 people
  annals dump people.annals --format json | jq '.person[].name'
  annals dump people.annals --format csv people-csv
  annals dump people.annals --at txid:17
  annals dump people.annals --at time:2024-02-29T12:00:00Z --format json
  annals dump people.annals --at 'comment:before the fair'")]
pub(crate) struct Arguments {
    /// The database: a file, the URL of one on a server, or of a file on a web server (https://HOST/NAME.annals)
    file: PathBuf,
    /// The state at that moment, with its schema: after a transaction (txid:NUMBER), after the last one whose time
    /// isn't later (time:RFC3339), or after the last one with this comment (comment:TEXT)
    #[arg(long, value_name = "MOMENT")]
    at: Option<Moment>,
    /// How to print it
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// The database that reads the SQL
    #[arg(long, value_enum, default_value = "both")]
    dialect: Dialect,
    /// The directory for the CSV files; it is created if it doesn't exist
    #[arg(required_if_eq("format", "csv"))]
    dir: Option<PathBuf>,
    #[command(flatten)]
    access: Access,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// A script for `annals shell`
    Text,
    /// A script for SQLite and PostgreSQL
    Sql,
    /// One object: an array of rows for each table
    Json,
    /// A file for each table in DIR
    Csv,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    if let (Format::Text | Format::Sql | Format::Json, Some(dir)) =
        (arguments.format, &arguments.dir)
    {
        return Err(annals::Error::invalid(format!(
            "a directory ({}) is for --format csv only",
            dir.display()
        )));
    }
    let reader = arguments.access.open(&progress::options_for_a_pass(), &arguments.file)?;
    let snapshot = match &arguments.at {
        Some(moment) => reader.as_it_was(moment.clone())?,
        None => reader.read(),
    };
    let dumped = match (arguments.format, &arguments.dir) {
        (Format::Csv, Some(dir)) => {
            let permissions = files::permissions(&arguments.file)?;
            csv::write_folder(&Present::Committed(snapshot), dir, permissions, &csv::FORMAT)
        }
        (Format::Json, _) => print(snapshot, dump::json),
        (Format::Sql, _) => {
            print(snapshot, |present, output| dump::sql(present, arguments.dialect, output))
        }
        _ => print(snapshot, dump::text),
    };
    crate::notes::tell_damage(&reader.image_damage());
    dumped.map(|()| Outcome::Done)
}

fn print(
    snapshot: Snapshot,
    how: impl FnOnce(&Present<'_>, &mut Output) -> Result<()>,
) -> Result<()> {
    let mut output = Output::new();
    how(&Present::Committed(snapshot), &mut output)?;
    output.flush()
}
