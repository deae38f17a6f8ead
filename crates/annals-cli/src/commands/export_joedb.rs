//! `annals export joedb`: the whole history as a joedb file.

use std::path::PathBuf;

use annals::event::Event;
use annals::{Committed, Error, ErrorKind, Result, Schema, Sink, Timestamp};
use clap::Args;

use crate::files::{NewFile, cannot};
use crate::joedb::{Export, Exported};
use crate::output::{Output, count};
use crate::{Outcome, progress};

/// Write the whole history as a joedb file
///
/// OUT is a file of joedb's format 5, all of it below a hard checkpoint. Each event of FILE becomes an entry of it, an
/// insert one for the row and one for each field that isn't zero. Types that joedb doesn't have become the next larger
/// ones (uint8 becomes int16, timestamp becomes int64, bytes becomes string), null becomes 0 or empty, indexes and rules
/// of references are left out: what was changed so is counted and told. A value that has no room is an error. OUT
/// appears only when it is complete.
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
    /// Write the time of each commit as a timestamp in front of what it committed
    #[arg(long)]
    times: bool,
    /// Replace OUT if it is there
    #[arg(long)]
    force: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let Arguments { from, to, strict, times, force } = arguments;
    let is_there = to.try_exists().map_err(|error| cannot("look for", to, error))?;
    if is_there && !force {
        let message =
            format!("{}: there is such a file already; say --force to replace it", to.display());
        return Err(Error::new(ErrorKind::InUse, message));
    }
    let mut when = Times(Vec::new());
    if *times {
        progress::options().scan(from, &mut when)?;
    }
    let open = || Ok(progress::options().open_read_only(from)?.read());
    let shown = to.display().to_string();
    let mut export = Export::new(NewFile::create(to)?, shown, *strict, &open)?.with_times(when.0);
    progress::options().scan(from, &mut export)?;
    let (file, Exported { events, transactions, notes }) = export.finish()?;
    file.finish()?;
    for note in notes {
        eprintln!("note: {}", crate::output::plain(&note));
    }
    let mut output = Output::new();
    let (events, transactions) = (count(events, "event"), count(transactions, "transaction"));
    output.line(&format!("exported {events} of {transactions}"))?;
    output.flush()?;
    Ok(Outcome::Done)
}

/// Takes the time of each transaction.
struct Times(Vec<Timestamp>);

impl Sink for Times {
    fn event(&mut self, _: &Schema, _: &Event<'_>) -> Result<()> {
        Ok(())
    }

    fn commit(&mut self, _: &Schema, committed: &Committed) -> Result<()> {
        self.0.push(committed.time);
        Ok(())
    }
}
