//! `annals retain`: forgets the history that rules of retention don't keep.

use std::path::PathBuf;
use std::time::Duration;

use annals::journal::{Plan, SegmentFacts};
use annals::reports::Forgotten;
use annals::{BackfillMode, Database, Error, Result, Retention, Timestamp};
use clap::Args;
use serde_json::{Value, json};

use super::backfill::{forgotten, forgotten_object};
use crate::output::{Output, count, plain};
use crate::{Outcome, commands};

/// Forget the history that rules of retention don't keep
///
/// The rules say how much of the history is kept; what any of them asks for is. Nothing else is ever forgotten, and
/// nothing without a rule. The forgotten history is printed, and can't be restored.
///
/// History is removed in pieces: up to a file of the journal that begins with the state itself, all tables, rows and
/// blobs as of that time. Where one is needed, the journal continues in such a file. A removal must be at least as
/// large as the live state; so must the growth of the journal since the last such file, before a new one is begun. So
/// somewhat more than the rules ask for is kept. Files in use by readers are kept too, and all newer ones.
///
/// A program that keeps a database open for long does the same by itself with `Options::retention`.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals retain people.annals --days 30
  annals retain people.annals --bytes 10GiB --transactions 1000000
  annals retain people.annals --days 30 --dry-run")]
pub(crate) struct Arguments {
    /// The database
    file: PathBuf,
    /// Keep at least this many bytes of history: a number, or one with KiB, MiB, GiB or TiB after it
    #[arg(long, alias = "keep-bytes", value_name = "SIZE", value_parser = super::size)]
    bytes: Option<u64>,
    /// Keep at least the commits of this many days
    #[arg(long, alias = "keep-days", value_name = "NUMBER")]
    days: Option<u32>,
    /// Keep at least this many transactions
    #[arg(long, alias = "keep-transactions", value_name = "NUMBER")]
    transactions: Option<u64>,
    /// Print what would be done, and only update the image
    #[arg(long)]
    dry_run: bool,
    /// How many seconds to wait for writers at most
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    timeout: u64,
    /// Let other processes write the file meanwhile; all that write it must open it so
    #[arg(long)]
    shared: bool,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

/// The actions, done or planned.
struct Done {
    /// The size of the live state in bytes.
    live: u64,
    /// True if the journal continues in a file that begins with the state.
    begins_with_state: bool,
    forgotten: Option<Forgotten>,
    /// The rest.
    left: Vec<SegmentFacts>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let path = &arguments.file;
    let rules = rules(arguments)?;
    let timeout = Duration::from_secs(arguments.timeout);
    let database = commands::open_to_maintain(path, arguments.shared, timeout)?;
    let done = match arguments.dry_run {
        true => plan(&database, &rules),
        false => retain(&database, &rules, timeout),
    };
    let closed = database.close();
    let done = done?;
    closed?;
    let mut output = Output::new();
    if arguments.json {
        let object = object(&path.display().to_string(), &done, arguments.dry_run);
        output.line(&object.to_string())?;
    } else {
        for line in lines(&done, arguments.dry_run) {
            output.line(&plain(&line))?;
        }
    }
    output.flush()?;
    Ok(Outcome::Done)
}

fn rules(arguments: &Arguments) -> Result<Retention> {
    let day = Duration::from_secs(24 * 60 * 60);
    let rules = Retention {
        bytes: arguments.bytes,
        time: arguments.days.map(|days| day * days),
        transactions: arguments.transactions,
    };
    if rules == Retention::default() {
        return Err(Error::invalid(
            "without a rule all history is kept: say --bytes, --days or --transactions",
        ));
    }
    Ok(rules)
}

fn retain(database: &Database, rules: &Retention, timeout: Duration) -> Result<Done> {
    let newest = |segments: &[SegmentFacts]| segments.last().map(|facts| facts.number);
    let before = database.segments()?;
    let forgotten = database.retain(rules, timeout)?;
    let left = database.segments()?;
    let begins_with_state = newest(&before) != newest(&left);
    Ok(Done { live: database.live_bytes()?, begins_with_state, forgotten, left })
}

/// Prints the actions of the rules in the present state.
fn plan(database: &Database, rules: &Retention) -> Result<Done> {
    database.backfill(BackfillMode::Full)?;
    let (live, segments) = (database.live_bytes()?, database.segments()?);
    let Plan { forget_before, begin_with_state } = database.plan_retention(live, rules)?;
    let (gone, left) = match forget_before {
        Some(before) => segments.into_iter().partition(|facts| facts.number < before),
        None => (Vec::new(), segments),
    };
    let forgotten =
        gone.first().zip(gone.last()).zip(left.first()).map(|((first, last), next)| Forgotten {
            segments: gone.len() as u64,
            bytes: gone.iter().map(|facts| facts.bytes).sum(),
            transactions: (first.first_txid, last.last_txid),
            times: (Timestamp(first.begun), Timestamp(next.begun)),
        });
    Ok(Done { live, begins_with_state: begin_with_state, forgotten, left })
}

fn lines(done: &Done, is_planned: bool) -> Vec<String> {
    let would = if is_planned { "would be " } else { "" };
    let mut lines = vec![format!("live state: {}", count(done.live, "byte"))];
    if done.begins_with_state {
        lines.push(match is_planned {
            true => {
                "the journal would go on in a new segment that begins with the state".to_owned()
            }
            false => "the journal goes on in a new segment that begins with the state".to_owned(),
        });
    }
    lines.push(match &done.forgotten {
        Some(gone) => format!("{would}forgotten: {}", forgotten(gone)),
        None => format!("{would}forgotten: nothing"),
    });
    let (first, last) = (done.left.first(), done.left.last());
    if let Some((first, last)) = first.zip(last) {
        let bytes: u64 = done.left.iter().map(|facts| facts.bytes).sum();
        lines.push(format!(
            "{would}kept: transactions {} to {}, {} in {}, from {}",
            first.first_txid,
            last.last_txid,
            count(bytes, "byte"),
            count(done.left.len() as u64, "segment"),
            Timestamp(first.begun)
        ));
    }
    for facts in done.left.iter().filter(|facts| facts.is_pinned) {
        lines.push(format!(
            "somebody reads segment {}: it can't go before that has ended",
            facts.number
        ));
    }
    lines
}

/// Returns the same for programs.
fn object(file: &str, done: &Done, is_planned: bool) -> Value {
    let segment = |facts: &SegmentFacts| {
        json!({
            "number": facts.number,
            "size": facts.bytes,
            "transactions": [facts.first_txid.0, facts.last_txid.0],
            "begins_with_state": facts.begins_with_state,
            "begun": Timestamp(facts.begun).to_string(),
            "read": facts.is_pinned,
        })
    };
    json!({
        "file": file,
        "dry_run": is_planned,
        "live_bytes": done.live,
        "new_segment": done.begins_with_state,
        "forgotten": done.forgotten.as_ref().map(forgotten_object),
        "kept": done.left.iter().map(segment).collect::<Vec<_>>(),
    })
}
