//! `annals log`: the history, or a part of it, as a script, as SQL or as JSON.

use std::path::{Path, PathBuf};

use annals::event::{Event, Script};
use annals::{Committed, Events, Moment, Result, Schema, Tail, View};
use clap::{Args, ValueEnum};

use crate::commands::log_range::{Part, Printer, Range};
#[cfg(feature = "net")]
use crate::commands::{log_create, log_trim};
use crate::dump::HistorySql;
use crate::output::Output;
use crate::remote::{Access, Local};
use crate::{Outcome, commands, language, progress};

/// Print the whole history, or a part of it
///
/// As text it is a script: run through `annals shell` it builds a file with the same history, times and comments
/// included. As SQL it is a script for SQLite, which holds the same rows then; references and unique keys are not
/// watched over there. As JSON it is one object a line for each transaction: `events`, each with its `op`, then
/// `txid`, `time`, `level` and `position`. Uncommitted events are not shown.
///
/// A moment is the end of a transaction: `txid:17`, `time:2024-02-29T12:00:00Z` (the last one that isn't
/// later), or `comment:before the fair` (the last one that has this comment). So what is printed up to a
/// moment, and then from it, is the whole.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals log people.annals | annals shell copy.annals
  annals log people.annals --format json | jq 'select(.txid == 3)'
  annals log people.annals --from time:2024-02-29T00:00:00Z --table person
  annals log people.annals --format sql | sqlite3 people.sqlite
  annals log people.annals --from txid:17 --follow
  annals log http://127.0.0.1:8080/v1/people --follow
  annals log create nats://127.0.0.1:4222/people --replicas 3 --monitor http://127.0.0.1:8222")]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Arguments {
    #[cfg(feature = "net")]
    #[command(subcommand)]
    log: Option<SharedLog>,
    /// The database: a file, the URL of one on a server, or of a file on a web server (https://HOST/NAME.annals)
    #[arg(required = true)]
    file: Option<PathBuf>,
    /// How to print it
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Print only transactions after this moment
    #[arg(long, value_name = "MOMENT")]
    from: Option<Moment>,
    /// Print only transactions up to this moment
    #[arg(long, value_name = "MOMENT", conflicts_with = "follow")]
    to: Option<Moment>,
    /// Print only what concerns this table, as it is called now, and transactions in which something does
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// Also print new commits, of any process, until interrupted
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    access: Access,
}

/// What is done to a log that many machines share.
#[cfg(feature = "net")]
#[derive(Debug, clap::Subcommand)]
enum SharedLog {
    Create(log_create::Arguments),
    Trim(log_trim::Arguments),
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// A script for `annals shell`
    Text,
    /// A script for SQLite
    Sql,
    /// One object a line for each transaction
    Json,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    #[cfg(feature = "net")]
    match &arguments.log {
        Some(SharedLog::Create(create)) => return log_create::run(create),
        Some(SharedLog::Trim(trim)) => return log_trim::run(trim),
        None => {}
    }
    let file = arguments.file.as_deref().unwrap_or(Path::new(""));
    let local = arguments.access.fetch(file)?;
    let (range, events) = range(arguments, &local)?;
    let output = Output::new();
    match arguments.format {
        Format::Text => print_part(arguments, &local, Part::new(Text::new(output), range), events)?,
        Format::Sql => {
            print_part(arguments, &local, Part::new(HistorySql::new(output), range), events)?
        }
        Format::Json => {
            let json = Json { output, events: 0, text: String::new() };
            print_part(arguments, &local, Part::new(json, range), events)?;
        }
    }
    Ok(Outcome::Done)
}

/// Finds the requested transactions, and their events if that saves reading the history before.
fn range(arguments: &Arguments, file: &Path) -> Result<(Range, Option<Events>)> {
    let Arguments { from, to, table, follow, .. } = arguments;
    if from.is_none() && to.is_none() && table.is_none() {
        return Ok((Range::ALL, None));
    }
    let reader = commands::open_to_read(&progress::options(), file)?;
    let txid =
        |moment: &Option<Moment>| moment.as_ref().map(|m| reader.txid_of(m.clone())).transpose();
    let table = match table {
        Some(name) => Some(language::table(reader.read().schema(), name)?.number),
        None => None,
    };
    let (after, upto) = (txid(from)?, txid(to)?);
    let begin = after.filter(|&after| after > annals::Txid(0) && !follow);
    // If that isn't possible, everything is read, which reports the problem.
    let events = begin
        .and_then(|after| reader.read().events(after, upto.unwrap_or(annals::Txid(u64::MAX))).ok());
    Ok((Range { after, upto, table }, events))
}

fn print_part<P: Printer>(
    arguments: &Arguments,
    local: &Local,
    mut part: Part<P>,
    events: Option<Events>,
) -> Result<()> {
    let printed = match (arguments.follow, events) {
        (true, _) => follow(local, &mut part),
        (false, Some(events)) if part.begin_at(events.begin())? => events.read(&mut part),
        (false, _) => annals_tools::scan(&progress::options(), &**local, &mut part),
    };
    // Events read before the damage are printed, too.
    let flushed = part.printer.output().flush();
    printed.and(flushed)
}

/// Prints existing and new transactions until the reader closes the output.
fn follow<P: Printer>(local: &Local, part: &mut Part<P>) -> Result<()> {
    let mut tail = Tail::open(&**local)?;
    loop {
        tail.read(part)?;
        part.printer.output().flush()?;
        local.keep_up(tail.txid())?;
    }
}

/// Prints the events of `scan` as a script.
pub(crate) fn print(
    output: Output,
    scan: impl FnOnce(&mut Part<Text>) -> Result<()>,
) -> Result<()> {
    let mut part = Part::new(Text::new(output), Range::ALL);
    let scanned = scan(&mut part);
    let flushed = part.printer.output.flush();
    scanned.and(flushed)
}

/// Prints each event as a line, so that a transaction of any size needs no memory.
pub(crate) struct Text {
    output: Output,
    script: Script,
    line: String,
}

impl Text {
    fn new(output: Output) -> Self {
        Self { output, script: Script::new(), line: String::new() }
    }
}

impl Printer for Text {
    fn output(&mut self) -> &mut Output {
        &mut self.output
    }

    fn begin(&mut self, state: &View) -> Result<bool> {
        for table in state.schema().tables() {
            self.script.set_next_id(table.number, state.table(table.number)?.next_id());
        }
        Ok(true)
    }

    /// Whether an insert is written with its id depends on those before.
    fn skip(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        self.line.clear();
        self.script.push(schema, event, &mut self.line)
    }

    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        self.line.clear();
        self.script.push(schema, event, &mut self.line)?;
        self.output.line(&self.line)
    }

    fn commit(&mut self, committed: &Committed) -> Result<()> {
        let level = committed.level.name();
        self.output.line(&format!("commit {level} at {}", committed.time))
    }
}

/// Prints each transaction as an object. The events are first in it: txid, time, level and position are known only at
/// its end, and a transaction may be larger than memory.
struct Json {
    output: Output,
    events: u64,
    text: String,
}

impl Printer for Json {
    fn output(&mut self) -> &mut Output {
        &mut self.output
    }

    fn begin(&mut self, _: &View) -> Result<bool> {
        Ok(true)
    }

    fn skip(&mut self, _: &Schema, _: &Event<'_>) -> Result<()> {
        Ok(())
    }

    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        self.text.clear();
        self.text.push_str(if self.events == 0 { "{\"events\":[" } else { "," });
        annals_json::push_event(&mut self.text, schema, event)?;
        self.events += 1;
        self.output.write(&self.text)
    }

    fn commit(&mut self, committed: &Committed) -> Result<()> {
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

impl Printer for HistorySql {
    /// Its names of tables depend on all that there ever were.
    fn begin(&mut self, _: &View) -> Result<bool> {
        Ok(false)
    }

    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        Self::event(self, schema, event)
    }

    fn skip(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        Self::skip(self, schema, event)
    }

    fn commit(&mut self, committed: &Committed) -> Result<()> {
        Self::commit(self, committed)
    }

    fn output(&mut self) -> &mut Output {
        Self::output(self)
    }
}
