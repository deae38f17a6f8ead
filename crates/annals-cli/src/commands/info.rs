//! `annals info`: what a file holds, in a few lines.

use std::fmt::Write;
use std::path::PathBuf;

use annals::event::Event;
use annals::{Committed, Inspection, Options, Result, Schema, Sink, View};
use clap::Args;

use crate::Outcome;
use crate::output::{Output, count};

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
    let inspection = annals::inspect(&arguments.file)?;
    let mut output = Output::new();
    output.line(&format!("file: {}", arguments.file.display()))?;
    print_journal(&inspection, &mut output)?;
    print_history(&history, &mut output)?;
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

/// Prints what the journal says of itself.
fn print_journal(inspection: &Inspection, output: &mut Output) -> Result<()> {
    let Inspection { version, journal_id, segment, created, len, end, hard, .. } = inspection;
    let id = journal_id.iter().fold(String::new(), |mut id, byte| {
        // Writing to a string can't fail.
        let _infallible = write!(id, "{byte:02x}");
        id
    });
    output.line(&format!("format version: {version}"))?;
    output.line(&format!("journal: {id}, segment {segment}, created {created}"))?;
    output.line(&format!("size: {len} bytes"))?;
    output.line(&format!("txid: {}, chain {:016x}", end.txid, end.chain))?;
    output.line(&format!("position: {}", end.position))?;
    output.line(&format!("known to be durable up to: {hard}"))?;
    for (number, slot) in inspection.slots.iter().enumerate() {
        let state = slot.as_ref().map_or_else(
            || "damaged".to_owned(),
            |slot| format!("txid {}, position {}", slot.point.txid, slot.point.position),
        );
        output.line(&format!("slot {number}: {state}"))?;
    }
    if inspection.damaged_headers > 0 {
        output.line(&format!("damaged copies of the header: {}", inspection.damaged_headers))?;
    }
    if inspection.uncommitted_frames > 0 {
        output.line(&format!("uncommitted frames: {}", inspection.uncommitted_frames))?;
    }
    if let Some(tail) = inspection.tail {
        output.line(&format!("something that doesn't verify begins at: {tail}"))?;
    }
    // The process may have ended without closing, so that this doesn't say that it still runs.
    match (inspection.holder, inspection.closed) {
        (Some(pid), _) => output.line(&format!("closed: no, opened by process {pid}")),
        (None, true) => output.line("closed: yes"),
        (None, false) => output.line("closed: no"),
    }
}

fn print_history(history: &History, output: &mut Output) -> Result<()> {
    output.line(&format!("transactions: {}", history.transactions))?;
    output.line(&format!("events: {}", history.events))?;
    let (Some(first), Some(last)) = (history.first, history.last) else { return Ok(()) };
    output.line(&format!("first commit: {}", first.time))?;
    let level = last.level.name();
    output.line(&format!("last commit: {} at level {level}", last.time))
}

fn print_state(view: &View, output: &mut Output) -> Result<()> {
    for table in view.schema().tables() {
        let rows = view.table(table.number)?;
        output.line(&format!(
            "table {}: {}, {}, next id {}",
            table.name,
            count(table.fields.len(), "field"),
            count(rows.len(), "row"),
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
