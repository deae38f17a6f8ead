//! `annals check`: looks for damage.

use std::path::{Path, PathBuf};

use annals::{Error, ErrorKind, Options, Result};
use clap::Args;

use crate::Outcome;
use crate::commands::info::History;
use crate::output::Output;

/// Look for damage
///
/// Verifies every frame of the journal, replays the history and checks the tables and indexes that
/// it gives. Prints `ok: ..` and ends with status 0, or the first damage and status 2.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals check people.annals && echo sound")]
pub(crate) struct Arguments {
    /// The database
    file: PathBuf,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    match check(&arguments.file) {
        Ok(summary) => {
            let mut output = Output::new();
            output.line(&summary)?;
            output.flush()?;
            Ok(Outcome::Done)
        }
        Err(error) if is_damage(&error) => {
            eprintln!("error: {error}");
            Ok(Outcome::Damaged)
        }
        Err(error) => Err(error),
    }
}

/// Tells whether it is the file that is wrong, rather than that it couldn't be looked at.
fn is_damage(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Corrupt | ErrorKind::NotAJournal | ErrorKind::NeedsRecovery
    )
}

/// Runs all checks; gives what was looked at.
fn check(path: &Path) -> Result<String> {
    let mut history = History::default();
    annals::scan(path, &mut history)?;
    let snapshot = Options::new().open_read_only(path)?.read();
    let mut rows = 0;
    for table in snapshot.schema().tables() {
        rows += snapshot.table(table.number)?.len();
    }
    Ok(format!(
        "ok: {} transactions, {} events, {} tables, {rows} rows, {} indexes",
        history.transactions,
        history.events,
        snapshot.schema().tables().len(),
        snapshot.schema().indexes().len(),
    ))
}
