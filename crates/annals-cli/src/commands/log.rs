//! `annals log`: the whole history, as a script or as JSON.

use std::path::PathBuf;

use annals::event::{Event, Script};
use annals::{Committed, Result, Schema, Sink};
use clap::{Args, ValueEnum};

use crate::output::Output;
use crate::{Outcome, json, progress};

/// Print the whole history
///
/// As text it is a script: run through `annals shell` it gives a file with the same history, times
/// and comments included. As JSON it is one object a line for each transaction. What did not commit
/// is not shown.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals log people.annals | annals shell copy.annals
  annals log people.annals --format json | jq 'select(.txid == 3)'")]
pub(crate) struct Arguments {
    /// The database
    file: PathBuf,
    /// How to print it
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// A script for `annals shell`
    Text,
    /// One object a line for each transaction
    Json,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let output = Output::new();
    match arguments.format {
        Format::Text => print(output, |sink| progress::options().scan(&arguments.file, sink))?,
        Format::Json => {
            let mut sink = Json { output, events: 0, text: String::new() };
            let scanned = progress::options().scan(&arguments.file, &mut sink);
            let flushed = sink.output.flush();
            scanned.and(flushed)?;
        }
    }
    Ok(Outcome::Done)
}

/// Prints what `scan` gives as a script.
pub(crate) fn print(output: Output, scan: impl FnOnce(&mut Text) -> Result<()>) -> Result<()> {
    let mut sink = Text { output, script: Script::new(), line: String::new() };
    let scanned = scan(&mut sink);
    // What was read before the damage is worth printing, too.
    let flushed = sink.output.flush();
    scanned.and(flushed)
}

/// Prints each event as a line, so that a transaction of any size needs no memory.
pub(crate) struct Text {
    output: Output,
    script: Script,
    line: String,
}

impl Sink for Text {
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        self.line.clear();
        self.script.push(schema, event, &mut self.line)?;
        self.output.line(&self.line)
    }

    fn commit(&mut self, _schema: &Schema, committed: &Committed) -> Result<()> {
        let level = committed.level.name();
        self.output.line(&format!("commit {level} at {}", committed.time))
    }
}

/// Prints each transaction as an object. The events come first in it, because txid, time, level and
/// position are known only at its end, and a transaction may be larger than memory.
struct Json {
    output: Output,
    events: u64,
    text: String,
}

impl Sink for Json {
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        self.text.clear();
        self.text.push_str(if self.events == 0 { "{\"events\":[" } else { "," });
        json::push_event(&mut self.text, schema, event)?;
        self.events += 1;
        self.output.write(&self.text)
    }

    fn commit(&mut self, _schema: &Schema, committed: &Committed) -> Result<()> {
        let start = if self.events == 0 { "{\"events\":[" } else { "" };
        self.events = 0;
        self.output.line(&format!(
            "{start}],\"txid\":{},\"time\":\"{}\",\"level\":\"{}\",\"position\":{}}}",
            committed.txid,
            committed.time,
            committed.level.name(),
            committed.position,
        ))
    }
}
