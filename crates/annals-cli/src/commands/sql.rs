//! `annals sql`: asks with SQL.

use std::io::{IsTerminal, Read as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use annals::{Error, Reader, Result};
use annals_sql::Connection;
use clap::Args;

use crate::output::Output;
use crate::remote::Access;
use crate::shell::sql::{Asking, Format, Printing, Sink, interactive, parameters, script, to_file};
use crate::{Outcome, progress};

/// Ask with SQL, of now, of the past and of the history
///
/// SQLite's SQL, over the tables as they are. It only reads. Each statement sees one state of the database, those between
/// BEGIN and COMMIT the same one. For each table T there are also T_at(MOMENT), T_history(ID), T_changes(A, B) and
/// T_blame(ID); for the database annals_log, annals_schema and annals_txid(). A moment is the number of a transaction,
/// 'time:2024-02-29T12:00:00Z' or 'comment:TEXT'.
///
/// Without SQL it reads statements from standard input. At a terminal it is a dialog: a statement ends with `;`, Tab
/// completes, Ctrl-C ends a query, Ctrl-D leaves, and `.help` tells more.
///
/// Of a database on a server the server answers, up to its limits of time and rows.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals sql people.annals 'SELECT name, born FROM person ORDER BY born LIMIT 3'
  annals sql people.annals 'SELECT * FROM person_history(7)' --format json
  annals sql people.annals 'SELECT count(*) FROM person WHERE born < :year' --param year=1990
  annals sql people.annals 'SELECT * FROM person_at(7)' --format parquet -o then.parquet")]
pub(crate) struct Arguments {
    /// The database: a file, or the URL of one on a server
    file: PathBuf,
    /// The statements, with `;` between them; a line such as `.tables` or `.mode csv` is a command
    sql: Option<String>,
    /// How to print the rows
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// The output file, which is replaced if it exists; standard output if left out
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// The value of a parameter, in order, or NAME=VALUE for `:NAME`: a number, NULL, or a text
    #[arg(long = "param", value_name = "VALUE")]
    parameters: Vec<String>,
    /// Print no line with the names of the columns
    #[arg(long)]
    no_header: bool,
    /// Don't remember what is typed at a terminal
    #[arg(long)]
    no_history: bool,
    #[command(flatten)]
    access: Access,
}

/// Opens a file, or prepares a connection to a URL.
fn open(path: &Path, access: &Access) -> Result<Asking> {
    #[cfg(feature = "net")]
    if let Some(url) = crate::remote::url(path)
        && crate::remote::archive(path).is_none()
    {
        return Ok(Asking::Server(Box::new(access.http(url)?)));
    }
    let opened = access.open(&progress::options(), path)?;
    Ok(Asking::File(Box::new(Connection::open(Reader::clone(&opened))?)))
}

/// Returns the statements that standard input has; also to a command that is run again.
fn piped() -> Result<String> {
    static READ: OnceLock<String> = OnceLock::new();
    if READ.get().is_none() {
        let mut sql = String::new();
        let read = std::io::stdin().lock().read_to_string(&mut sql);
        read.map_err(|error| Error::io("cannot read the statements", error))?;
        let _ = READ.set(sql);
    }
    Ok(READ.get().cloned().unwrap_or_default())
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let mut asking = open(&arguments.file, &arguments.access)?;
    let sink = Sink::new(arguments.format, !arguments.no_header);
    let mut printing = Printing { sink, once: None };
    let sql = match &arguments.sql {
        Some(sql) => sql.clone(),
        None if std::io::stdin().is_terminal() && arguments.output.is_none() => {
            interactive::run(&mut asking, printing, !arguments.no_history)?;
            return Ok(Outcome::Done);
        }
        None => piped()?,
    };
    let parameters = parameters(&arguments.parameters)?;
    let mut ask =
        |output: &mut Output| script::run(&sql, &mut asking, &mut printing, &parameters, output);
    match &arguments.output {
        Some(path) => to_file(path, sink, ask)?,
        None => {
            let mut output = Output::new();
            ask(&mut output)?;
            output.flush()?;
        }
    }
    Ok(Outcome::Done)
}
