//! How many instructions each operation takes, counted by valgrind: a number that doesn't move with the
//! load of the machine.
//!
//! A separate process, this program started by valgrind, does each operation a number of times and then twice as
//! often. Half of the difference is one operation, without start and preparation. `bench/instructions.txt` keeps what
//! was accepted last. Counts belong to the compiler and the C library: after a new one of these they are accepted
//! again.
//!
//! gungraun (once iai-callgrind) does the same in more ways. But it needs a separate program of exactly its version,
//! and compiles much more code.

mod accepted;
mod callgrind;
mod operations;

use std::path::PathBuf;

use crate::engines::Failure;
use accepted::{Accepted, Change};
use operations::{OPERATIONS, Operation};

/// The counted operations, and the use of the counts.
#[derive(clap::Args)]
pub(crate) struct Count {
    /// Only operations whose names contain one of these.
    only: Vec<String>,
    /// Keep what was counted as the accepted counts.
    #[arg(long)]
    accept: bool,
    /// The file with the accepted counts.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/instructions.txt"))]
    accepted: PathBuf,
}

/// The tasks of processes under valgrind.
#[derive(clap::Args)]
pub(crate) struct Counted {
    operation: String,
    folder: PathBuf,
    times: u64,
}

impl Counted {
    /// Does the operation so often.
    pub(crate) fn take(&self) -> Result<(), Failure> {
        let operation = OPERATIONS.iter().find(|known| known.name == self.operation);
        let operation = operation.ok_or_else(|| format!("no operation `{}`", self.operation))?;
        let database = (operation.run)(&self.folder, self.times)?;
        // Closing it, which depends on how much there is, isn't part of the operation.
        std::mem::forget(database);
        Ok(())
    }
}

/// Counts, prints each count beside the accepted one, and keeps them if that is wanted.
pub(crate) fn run(count: &Count, table: bool) -> Result<(), Failure> {
    let mut accepted = Accepted::read(&count.accepted)?;
    let tools = callgrind::tools()?;
    if let Some(other) = accepted.other_tools(&tools).filter(|_| !count.accept) {
        tell(&format!("the accepted counts are of other tools: {other}; these are {tools}"));
    }
    let wanted = |operation: &&Operation| {
        count.only.is_empty() || count.only.iter().any(|part| operation.name.contains(part))
    };
    let operations: Vec<_> = OPERATIONS.iter().filter(wanted).collect();
    if operations.is_empty() {
        return Err(format!("no operation is named so; there are: {}", names().join(", ")).into());
    }
    if table {
        println!("| operation | instructions | accepted | change |\n|---|---:|---:|---:|");
    }
    let mut worse = Vec::new();
    for operation in operations {
        let now = callgrind::each(operation)?;
        let change = Change { now, accepted: accepted.of(operation.name) };
        match table {
            true => println!("| {} | {} |", operation.name, change.cells().join(" | ")),
            false => println!("{}", change.json(operation.name)),
        }
        if change.is_worse() {
            worse.push(operation.name);
        }
        accepted.set(operation.name, now);
    }
    if count.accept {
        return accepted.write(&count.accepted, (&tools, &names()));
    }
    if worse.is_empty() {
        return Ok(());
    }
    Err(format!(
        "more than {}% worse than what was accepted: {}; find out why, or accept it with --accept",
        accepted::TOLERATED,
        worse.join(", ")
    )
    .into())
}

#[allow(clippy::print_stderr, reason = "who reads the counts doesn't read this")]
fn tell(what: &str) {
    eprintln!("{what}");
}

fn names() -> Vec<&'static str> {
    OPERATIONS.iter().map(|operation| operation.name).collect()
}
