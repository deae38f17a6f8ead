//! `annals revert`: undoes a transaction by a new one.

use std::path::PathBuf;
use std::time::Duration;

use annals::{Commit, Result};
use annals_tools::Undo as _;
use clap::Args;

use crate::output::Output;
use crate::{Outcome, commands};

/// Undo a transaction by a new one
///
/// Rows that the transaction inserted are deleted, rows that it deleted are inserted again with their ids, and fields
/// that it changed get their values from before. The new transaction has the comment `revert of transaction N`;
/// reverting that one restores the first. The history keeps all of them.
///
/// It refuses, and changes nothing, if later changes stand against it. They are printed, each with its table, row,
/// field and transaction: a later transaction changed the same field, deleted the row, inserted it again or took its
/// unique key, or a row refers to an inserted row by `restrict`, `cascade` or `set_null`. A transaction that changed
/// the schema can't be reverted.
///
/// Prints `committed txid=N position=P level=L`.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals revert people.annals 17
  annals history people.annals person 3
  annals revert people.annals 17 --shared --timeout 60")]
pub(crate) struct Arguments {
    /// The database
    file: PathBuf,
    /// The number of the transaction
    txid: u64,
    /// Let other processes write the file meanwhile; all that write it must open it so
    #[arg(long)]
    shared: bool,
    /// How many seconds to wait for the other writers, with --shared
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    timeout: u64,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let timeout = Duration::from_secs(arguments.timeout);
    let database = commands::open_to_maintain(&arguments.file, arguments.shared, timeout)?;
    let reverted = database.begin().and_then(|mut transaction| {
        transaction.revert(annals::Txid(arguments.txid))?;
        transaction.commit()
    });
    let closed = database.close();
    let Commit { txid, position, level, .. } = reverted?;
    let mut output = Output::new();
    output.line(&format!("committed txid={txid} position={position} level={}", level.name()))?;
    output.flush()?;
    closed?;
    Ok(Outcome::Done)
}
