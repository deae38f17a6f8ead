//! `annals info`: what a file holds, in a few lines.

use std::path::{Path, PathBuf};

use annals::event::Event;
use annals::{Committed, Options, Result, Schema, Sink, View};
use clap::Args;

use crate::output::Output;
use crate::{Outcome, files, language};

/// Tell what a file holds: sizes, times, tables and indexes
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals info people.annals")]
pub(crate) struct Arguments {
    /// The database
    file: PathBuf,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let mut history = History::default();
    annals::scan(&arguments.file, &mut history)?;
    let snapshot = Options::new().open_read_only(&arguments.file)?.read();
    let mut output = Output::new();
    print_journal(&arguments.file, &history, &mut output)?;
    print_state(&snapshot, &mut output)?;
    output.flush()?;
    Ok(Outcome::Done)
}

/// What is worth counting in a history.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct History {
    /// Events of all transactions.
    pub(crate) events: u64,
    /// Transactions.
    pub(crate) transactions: u64,
    /// The first transaction.
    pub(crate) first: Option<Committed>,
    /// The last transaction.
    pub(crate) last: Option<Committed>,
}

impl Sink for History {
    fn event(&mut self, _schema: &Schema, _event: &Event<'_>) -> Result<()> {
        self.events += 1;
        Ok(())
    }

    fn commit(&mut self, _schema: &Schema, committed: &Committed) -> Result<()> {
        self.transactions += 1;
        self.first.get_or_insert(*committed);
        self.last = Some(*committed);
        Ok(())
    }
}

/// Prints what is known of the journal itself.
fn print_journal(path: &Path, history: &History, output: &mut Output) -> Result<()> {
    output.line(&format!("file: {}", path.display()))?;
    output.line(&format!("size: {} bytes", files::length(path)))?;
    output.line(&format!("transactions: {}", history.transactions))?;
    output.line(&format!("events: {}", history.events))?;
    let (Some(first), Some(last)) = (history.first, history.last) else { return Ok(()) };
    output.line(&format!("first commit: {}", first.time))?;
    output.line(&format!("last commit: {}", last.time))?;
    output.line(&format!("txid: {}", last.txid))?;
    output.line(&format!("position: {}", last.position))?;
    output.line(&format!("level: {}", language::level_name(last.level)))?;
    output.line(&format!("chain: {:016x}", last.chain))
}

fn print_state(view: &View, output: &mut Output) -> Result<()> {
    for table in view.schema().tables() {
        let rows = view.table(table.number)?;
        output.line(&format!(
            "table {}: {} fields, {} rows, next id {}",
            table.name,
            table.fields.len(),
            rows.len(),
            rows.next_id(),
        ))?;
    }
    for index in view.schema().indexes() {
        let Some(table) = view.schema().table(index.table) else { continue };
        let fields: Vec<&str> = index
            .fields
            .iter()
            .filter_map(|&number| table.field(number))
            .map(|field| field.name.as_str())
            .collect();
        let unique = if index.unique { "unique index" } else { "index" };
        output.line(&format!("{unique} {}: {} {}", index.name, table.name, fields.join(",")))?;
    }
    Ok(())
}
