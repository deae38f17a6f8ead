//! `annals import joedb`: a joedb file, with its whole history.

use std::io::BufReader;
use std::path::PathBuf;
use std::sync::Arc;

use annals::storage::SystemClock;
use annals::{Level, Result};
use annals_joedb::{Choices, Imported};
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;

use crate::exchange::arrival;
use crate::output::{Output, count};
use crate::{Outcome, files, progress};

/// Take in a joedb file, with its whole history
///
/// Each entry of IN becomes an event of OUT, which is new: rows keep their ids, and comments, timestamps, valid-data
/// marks, names of custom functions and blobs stay where they are in the history. joedb's programs end a transaction
/// with marks, the timestamp last. So a commit is made after each timestamp, and after a comment or valid-data mark
/// that no other mark follows. Its time is that of the timestamp, or else of the next one in IN. Entries after the
/// last checkpoint of IN are left out. After an error there is no OUT.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals import joedb people.joedb people.annals
  annals import joedb --until end broken.joedb people.annals")]
pub(crate) struct Arguments {
    /// The joedb file
    #[arg(value_name = "IN")]
    from: PathBuf,
    /// The new database
    #[arg(value_name = "OUT")]
    to: PathBuf,
    /// Up to where IN counts
    #[arg(long, value_enum, default_value = "checkpoint")]
    until: Until,
    /// Change or leave out what can't be held, and say how often: text that isn't UTF-8, blobs of other files,
    /// values of vectors for rows that aren't there
    #[arg(long)]
    lossy: bool,
    /// Let N rows be inserted as vectors; 65536 and one for each byte of IN if left out
    #[arg(long, value_name = "N")]
    max_rows: Option<u64>,
}

/// Up to where a file is imported.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Until {
    /// Up to the last checkpoint, hard or soft, as joedb opens it
    Checkpoint,
    /// Up to the last hard checkpoint: what was flushed to the disk
    Hard,
    /// Up to the last entry that is whole, whatever the checkpoints say
    End,
}

impl From<Until> for annals_joedb::Until {
    fn from(until: Until) -> Self {
        match until {
            Until::Checkpoint => Self::Checkpoint,
            Until::Hard => Self::Hard,
            Until::End => Self::End,
        }
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let Arguments { from, to, until, lossy, max_rows } = arguments;
    let choices = Choices { until: (*until).into(), lossy: *lossy, max_rows: *max_rows };
    let bar = files::progress(files::length(from));
    let buffered = |bar: ProgressBar| -> Result<_> {
        Ok(BufReader::with_capacity(1 << 16, bar.wrap_read(files::open_plain(from)?)))
    };
    let (mut input, mut ahead) = (buffered(bar.clone())?, buffered(ProgressBar::hidden())?);
    let imported = arrival::named(to, |directory, name| {
        let create = || {
            let clock = Arc::new(SystemClock);
            let options = progress::options().level(Level::Soft);
            let opened = options.open_in(Arc::clone(directory), name, clock);
            opened.map_err(|error| {
                error.within(format_args!("{}: nothing was written", to.display()))
            })
        };
        let imported = annals_joedb::import(&mut input, &mut ahead, choices, create);
        let (database, imported) = imported.map_err(|error| error.within(from.display()))?;
        database.close().map(|()| imported)
    });
    bar.finish_and_clear();
    let Imported { entries, transactions, notes } = imported?;
    for note in notes {
        crate::notes::note(&format!("{}: {note}", from.display()));
    }
    let mut output = Output::new();
    let entries = format!("{entries} {}", if entries == 1 { "entry" } else { "entries" });
    output.line(&format!("imported {entries} in {}", count(transactions, "transaction")))?;
    output.flush()?;
    Ok(Outcome::Done)
}
