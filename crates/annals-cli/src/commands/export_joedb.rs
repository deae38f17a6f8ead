//! `annals export joedb`: the whole history as a joedb file.

use std::path::PathBuf;

use annals::Result;
use annals_joedb::{Export, Exported, Manner, Plan};
use clap::Args;

use crate::new_file::NewFile;
use crate::notes::note;
use crate::output::{Output, count};
use crate::{Outcome, commands, files, progress};

/// Write the whole history as a joedb file
///
/// OUT is a file of joedb's format 5, all of it below a hard checkpoint. Each event of FILE becomes an entry of it,
/// an insert one for the row and one for each field that isn't zero. Types that joedb doesn't have become the next
/// larger ones (uint8 becomes int16, timestamp becomes int64, bytes becomes string). Null becomes 0 or empty; indexes
/// and rules of references are left out. Such changes are counted and printed. A value that has no room is an error.
/// OUT appears only when it is complete.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals export joedb people.annals people.joedb
  annals export joedb --times --strict people.annals people.joedb")]
pub(crate) struct Arguments {
    /// The database
    #[arg(value_name = "FILE")]
    from: PathBuf,
    /// The new joedb file
    #[arg(value_name = "OUT")]
    to: PathBuf,
    /// Refuse what joedb can't hold as it is
    #[arg(long)]
    strict: bool,
    /// Write the time of each commit as a timestamp after its changes
    #[arg(long)]
    times: bool,
    /// Write rows of zeros as joedb does, so that a file from joedb keeps its bytes: at ids that were used before,
    /// joedb's interpreter shows there what the deleted rows had
    #[arg(long)]
    same_bytes: bool,
    /// Replace OUT if it exists
    #[arg(long)]
    force: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let Arguments { from, to, strict, times, same_bytes, force } = arguments;
    let new = NewFile::like(files::permissions(from)?, to, (!force).then_some("--force"))?;
    let manner = Manner { strict: *strict, times: *times, same_bytes: *same_bytes };
    let mut plan = Plan::default();
    annals_tools::scan(&progress::options(), from, &mut plan)?;
    let open = || Ok(commands::open_to_read(&progress::options_for_a_pass(), from)?.read());
    let shown = to.display().to_string();
    let mut export = Export::new(new, shown, plan, manner, &open)?;
    annals_tools::scan(&progress::options(), from, &mut export)?;
    let (file, Exported { events, transactions, notes }) = export.finish()?;
    file.finish()?;
    for text in notes {
        note(&text);
    }
    let mut output = Output::new();
    let (events, transactions) = (count(events, "event"), count(transactions, "transaction"));
    output.line(&format!("exported {events} of {transactions}"))?;
    output.flush()?;
    Ok(Outcome::Done)
}
