//! `annals clone`: begins a replica of a database on a server, or brings one up.

use std::path::PathBuf;

use annals::{Error, Result};
use annals_replica::{Patience, Replica};
use clap::Args;

use crate::output::{Output, count, plain};
use crate::remote::{self, Access};
use crate::{Outcome, progress};

/// Copy a database from a server, or fetch what is new
///
/// FILE gets all history that the server has, transaction by transaction, each verified and applied before it is
/// written. If FILE is such a copy already, only what is new is fetched. It is a database of its own from the first
/// transaction on: programs read it without the network.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals clone http://127.0.0.1:8080/v1/library library.annals")]
pub(crate) struct Arguments {
    /// The URL of the database
    url: String,
    /// The copy
    file: PathBuf,
    #[command(flatten)]
    access: Access,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let url = arguments.url.as_ref();
    if remote::url(url).or_else(|| remote::archive(url)).is_none() {
        let message =
            format!("{:?} isn't a URL: to copy a file, use `annals backup`", arguments.url);
        return Err(Error::invalid(message));
    }
    let before = match arguments.file.try_exists() {
        Ok(true) => annals::inspect(&arguments.file)?.end.txid.0,
        _ => 0,
    };
    let connection = arguments.access.connect(&arguments.url)?;
    let options = progress::options();
    let replica =
        Replica::connect_with(connection, &arguments.file, &options, Patience::default())?;
    // Its end may be older than the answer to a server that couldn't be reached.
    replica.pull()?;
    let end = replica.cursor();
    replica.close()?;
    let fetched = count(end.txid.0.saturating_sub(before), "transaction");
    let mut output = Output::new();
    let file = arguments.file.display();
    output.line(&plain(&format!("{file}: fetched {fetched}, up to transaction {}", end.txid)))?;
    output.flush()?;
    Ok(Outcome::Done)
}
