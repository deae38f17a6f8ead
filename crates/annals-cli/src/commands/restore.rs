//! `annals restore`: makes a database of any moment from an archive.

use std::path::PathBuf;

use annals::{Moment, Result};
use annals_replica::archive::{self, Archive, Bucket};
use clap::Args;

use crate::output::{Output, plain};
use crate::{Outcome, progress};

/// Restore a database from an archive
///
/// FILE gets the whole history up to the moment: every frame is verified and applied, up to the chain that the archive
/// has for it. FILE appears only when that is done; until then the work is in FILE.restoring, and a restore that was
/// interrupted continues there.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals restore s3://backups/people people.annals
  annals restore s3://backups/people tuesday.annals --at time:2026-11-17T18:00:00Z")]
pub(crate) struct Arguments {
    /// The archive, as `annals archive` wrote it
    url: String,
    /// The database, which must not exist yet
    file: PathBuf,
    /// Up to this moment: txid:N, time:2024-02-29T12:00:00Z or comment:TEXT; all of it, if left out
    #[arg(long, value_name = "MOMENT")]
    at: Option<Moment>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let archive = Archive::new(Bucket::open(&arguments.url)?);
    let options = progress::options();
    let restored = archive::restore(archive, &arguments.file, arguments.at.clone(), &options)?;
    let mut output = Output::new();
    let (file, end) = (arguments.file.display(), restored.end);
    output.line(&plain(&format!(
        "{file}: restored up to transaction {}, verified to chain {:016x}",
        end.txid, end.chain
    )))?;
    output.flush()?;
    Ok(Outcome::Done)
}
