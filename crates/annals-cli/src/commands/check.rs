//! `annals check`: looks for damage.

use std::path::{Path, PathBuf};

use annals::{Dangling, Error, ErrorKind, Inspection, Options, Result, View};
use clap::Args;

use crate::Outcome;
use crate::commands::info::History;
use crate::output::{Output, count, plain};

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
            eprintln!("error: {}", plain(&error.to_string()));
            Ok(Outcome::Damaged)
        }
        Err(error) => Err(error),
    }
}

/// Tells whether it is the file that is wrong, rather than that it couldn't be looked at.
fn is_damage(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::NotAJournal | ErrorKind::NeedsRecovery)
}

/// Runs all checks; gives what was looked at.
fn check(path: &Path) -> Result<String> {
    let mut history = History::default();
    annals::scan(path, &mut history)?;
    let snapshot = Options::new().open_read_only(path)?.read();
    snapshot.check().map_err(|error| error.within(path.display()))?;
    let inspection = annals::inspect(path)?;
    check_head(&inspection).map_err(|error| error.within(path.display()))?;
    let mut rows = 0;
    for table in snapshot.schema().tables() {
        rows += snapshot.table(table.number)?.len();
    }
    let mut summary = format!(
        "ok: {}, {}, {}, {}, {}",
        count(history.transactions, "transaction"),
        count(history.events, "event"),
        count(snapshot.schema().tables().len(), "table"),
        count(rows, "row"),
        count(snapshot.schema().indexes().len(), "index"),
    );
    summary.extend(dangling(&snapshot));
    summary.extend(unfinished(&inspection).map(|note| format!("\nnote: {note}")));
    Ok(summary)
}

/// Says where references that nothing enforces lead to no row.
fn dangling(view: &View) -> Vec<String> {
    let note = |dangling: Dangling| {
        let table = view.schema().table(dangling.table)?;
        let (name, field) = (&table.name, &table.field(dangling.field)?.name);
        let references = count(dangling.count, "reference");
        Some(format!("\nnote: {references} of `{name}` in the field `{field}` to no row"))
    };
    view.dangling_references().into_iter().filter_map(note).collect()
}

/// Checks what is written more than once, so that one copy can be wrong without any harm yet.
fn check_head(inspection: &Inspection) -> Result<()> {
    if let Some(damage) = &inspection.damage {
        return Err(Error::corrupt(damage.clone()));
    }
    let repair = "everything else is sound, and opening the file for writing repairs it";
    if inspection.damaged_headers > 0 {
        let damaged = inspection.damaged_headers;
        let message = format!("{damaged} of the 3 copies of the header are damaged; {repair}");
        return Err(Error::corrupt(message));
    }
    if let Some(slot) = inspection.slots.iter().position(Option::is_none) {
        let message = format!("slot {slot} is damaged: its two copies don't agree; {repair}");
        return Err(Error::corrupt(message));
    }
    Ok(())
}

/// Says what lies behind the last commit, where only zeros should.
fn unfinished(inspection: &Inspection) -> Option<String> {
    let Inspection { end, uncommitted_frames, tail, .. } = inspection;
    let first = if *uncommitted_frames > 0 { Some(end.position) } else { *tail };
    let first = first?;
    Some(format!(
        "what begins at position {first} did not commit: it is being written, or was when a \
         process ended; opening the file for writing cuts it off"
    ))
}
