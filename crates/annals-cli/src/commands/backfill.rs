//! `annals backfill`: updates the image.

use std::path::PathBuf;
use std::time::Duration;

use annals::reports::{
    BackfillOutcome, BackfillPhases, Forgotten, OldestReader, Restarted, Restarting,
};
use annals::{BackfillMode, Backfilled, Result};
use clap::Args;
use serde_json::{Value, json};

use crate::output::{Output, count, plain};
use crate::{Outcome, commands, language, progress};

/// Update the image, so that opening has less to replay
///
/// The image is the file FILE-image beside the journal: it holds the tables and indexes as of a transaction, and
/// opening the database starts from it. It holds nothing that the journal doesn't: deleting it loses nothing. An open
/// database does this by itself when its journal has grown, and when it is closed. This command does it now, for
/// databases of any size, and prints a report.
///
/// The mode `passive` never waits; `full` waits for the open transaction, if this process has one. After `restart`
/// the journal continues in a new file; the old one is sealed, and kept as history beside it as FILE-segment-NUMBER.
/// It waits for the readers of older states of the image, whose space can be used again then. `truncate` does the
/// same, and returns the image's free space back: its unused end, and all of it if that is most of it.
///
/// With --forget-history, and never else, `truncate` removes the history: the new file begins with all tables, rows
/// and blobs as they are now, and older files go. The forgotten history is printed, and can't be restored.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals backfill people.annals
  annals backfill people.annals --mode full --json
  annals backfill people.annals --mode restart
  annals backfill people.annals --mode truncate --forget-history")]
pub(crate) struct Arguments {
    /// The database
    file: PathBuf,
    /// What to do besides: passive, full, restart or truncate
    #[arg(long, value_name = "MODE", default_value = "passive")]
    #[arg(value_parser = language::backfill_mode_option)]
    mode: BackfillMode,
    /// Remove all history before this state, with the mode truncate
    #[arg(long)]
    forget_history: bool,
    /// How many seconds to wait at most: with --shared for the other writers, and in the modes restart and
    /// truncate for writers and readers
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    timeout: u64,
    /// Let other processes write the file meanwhile; all that write it must open it so
    #[arg(long)]
    shared: bool,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let path = &arguments.file;
    let timeout = Duration::from_secs(arguments.timeout);
    let database = commands::open_to_maintain(path, arguments.shared, timeout)?;
    let how = Restarting { timeout, forget_history: arguments.forget_history };
    let done = database.backfill_with(arguments.mode, how, &mut progress::of_backfill());
    crate::notes::tell_damage(&database.image_damage());
    let closed = database.close();
    let done = done?;
    closed?;
    let mut output = Output::new();
    if arguments.json {
        output.line(&object(&path.display().to_string(), &done).to_string())?;
    } else {
        for line in lines(&done) {
            output.line(&plain(&line))?;
        }
    }
    output.flush()?;
    Ok(Outcome::Done)
}

/// Prints the report of a backfill.
fn lines(done: &Backfilled) -> Vec<String> {
    let Backfilled { txid, position, segment, journal_bytes, .. } = done;
    let of = if *segment == 0 { String::new() } else { format!("segment {segment} of ") };
    let up_to = format!("transaction {txid}, position {position} of {of}the journal");
    let image = format!("image: {}", count(done.image_bytes, "byte"));
    let reader = reader(done.oldest_reader.as_ref());
    if done.outcome != BackfillOutcome::Advanced {
        let what = match done.outcome {
            BackfillOutcome::UpToDate => "nothing to do: the image has",
            _ => "nothing done: the open transaction has to end first; the image has",
        };
        let restarted = done.restarted.iter().flat_map(restarted);
        return [format!("{what} {up_to}"), image, reader].into_iter().chain(restarted).collect();
    }
    let mut lines = vec![
        format!("advanced: the image has {up_to}"),
        format!("journal: {} further than before", count(*journal_bytes, "byte")),
        pages(done),
        format!("written: {} in {}", count(done.bytes, "byte"), count(done.runs, "write")),
        image,
        reader,
        times(&done.phases),
    ];
    lines.extend(done.restarted.iter().flat_map(restarted));
    lines
}

/// Prints the report of a restart, and the forgotten history.
fn restarted(restarted: &Restarted) -> Vec<String> {
    let Restarted { segment, is_new, bytes, .. } = restarted;
    let mut lines = vec![match is_new {
        true => format!(
            "restarted: the journal goes on in segment {segment}, {}",
            count(*bytes, "byte")
        ),
        false => format!("restarted: nothing was committed since segment {segment} was begun"),
    }];
    if let Some(gone) = &restarted.forgotten {
        lines.push(format!("forgotten: {}", forgotten(gone)));
    }
    if let Some(pinned) = restarted.pinned {
        lines.push(format!(
            "not forgotten: somebody reads segment {pinned}; try again when that has ended"
        ));
    }
    lines
}

/// Prints the forgotten history.
pub(super) fn forgotten(forgotten: &Forgotten) -> String {
    let ((first, last), (from, to)) = (forgotten.transactions, forgotten.times);
    format!(
        "transactions {first} to {last}, {} in {}, from {from} to {to}",
        count(forgotten.bytes, "byte"),
        count(forgotten.segments, "segment")
    )
}

/// Returns the forgotten history as an object.
pub(super) fn forgotten_object(forgotten: &Forgotten) -> Value {
    json!({
        "segments": forgotten.segments,
        "bytes": forgotten.bytes,
        "transactions": [forgotten.transactions.0.0, forgotten.transactions.1.0],
        "times": [forgotten.times.0.to_string(), forgotten.times.1.to_string()],
    })
}

/// Prints the number of pages, and their sources.
fn pages(done: &Backfilled) -> String {
    let Backfilled { pages, from_memory, copied, .. } = *done;
    let share = ((from_memory + copied) * 100).checked_div(pages).unwrap_or(100);
    let nodes = count(done.nodes, "node");
    format!(
        "pages: {pages}, {share}% of them from memory ({from_memory} as they were, {copied} copied first); \
         {nodes} of the directory"
    )
}

fn reader(reader: Option<&OldestReader>) -> String {
    let Some(reader) = reader else { return "oldest reader: none of an older root".to_owned() };
    let pid = reader.pid.map_or("a process".to_owned(), |pid| format!("process {pid}"));
    let age = reader.age.map(|age| format!(", replaced {} ago", time(age))).unwrap_or_default();
    let root = reader.root;
    format!("oldest reader: {pid} reads root {root}{age}: its space isn't used again before")
}

/// Prints the duration of each phase that took noticeable time.
fn times(phases: &BackfillPhases) -> String {
    let parts = named(phases).map(|(name, took)| format!("{name} {}", time(took)));
    format!("time: {} ({})", time(phases.total()), parts.join(", "))
}

/// Returns the phases in their order.
const fn named(phases: &BackfillPhases) -> [(&'static str, Duration); 7] {
    [
        ("wait", phases.wait),
        ("harden", phases.harden),
        ("collect", phases.collect),
        ("write", phases.write),
        ("publish", phases.publish),
        ("install", phases.install),
        ("free", phases.free),
    ]
}

fn time(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds >= 1.0 => format!("{seconds:.1} s"),
        seconds => format!("{:.1} ms", seconds * 1e3),
    }
}

/// Returns the same for programs.
fn object(file: &str, done: &Backfilled) -> Value {
    let reader = |reader: OldestReader| {
        let age = reader.age.map(|age| age.as_secs_f64());
        json!({ "pid": reader.pid, "root": reader.root, "age": age })
    };
    let restart = |restarted: &Restarted| {
        let forgotten = restarted.forgotten.as_ref().map(forgotten_object);
        json!({
            "segment": restarted.segment,
            "new": restarted.is_new,
            "bytes": restarted.bytes,
            "forgotten": forgotten,
            "pinned": restarted.pinned,
        })
    };
    let seconds = named(&done.phases).map(|(name, took)| (name.to_owned(), took.as_secs_f64()));
    json!({
        "file": file,
        "mode": done.mode.name(),
        "outcome": match done.outcome {
            BackfillOutcome::Advanced => "advanced",
            BackfillOutcome::UpToDate => "up_to_date",
            _ => "postponed",
        },
        "txid": done.txid.0,
        "segment": done.segment,
        "position": done.position,
        "journal_bytes": done.journal_bytes,
        "pages": done.pages,
        "from_memory": done.from_memory,
        "copied": done.copied,
        "nodes": done.nodes,
        "bytes": done.bytes,
        "writes": done.runs,
        "image_bytes": done.image_bytes,
        "oldest_reader": done.oldest_reader.map(reader),
        "restarted": done.restarted.as_ref().map(restart),
        "seconds": Value::Object(seconds.into_iter().map(|(name, took)| (name, took.into())).collect()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done() -> Backfilled {
        let path = tempfile::tempdir().unwrap();
        let database = annals::Database::open(path.path().join("a.annals")).unwrap();
        database.write(|transaction| transaction.comment("so that there is one")).unwrap();
        database.backfill(BackfillMode::Full).unwrap()
    }

    #[test]
    fn times_have_a_unit_that_fits() {
        assert_eq!(time(Duration::from_micros(123)), "0.1 ms");
        assert_eq!(time(Duration::from_micros(45_678)), "45.7 ms");
        assert_eq!(time(Duration::from_millis(61_234)), "61.2 s");
    }

    #[test]
    fn the_reader_of_an_older_root_is_named() {
        let mut done = done();
        assert!(lines(&done).contains(&"oldest reader: none of an older root".to_owned()));
        assert_eq!(object("f", &done)["oldest_reader"], Value::Null);
        let age = Some(Duration::from_millis(1500));
        done.oldest_reader = Some(OldestReader { pid: Some(7), root: 3, age });
        assert!(lines(&done).contains(
            &"oldest reader: process 7 reads root 3, replaced 1.5 s ago: its space isn't used again before"
                .to_owned()
        ));
        assert_eq!(object("f", &done)["oldest_reader"], json!({"pid": 7, "root": 3, "age": 1.5}));
    }

    #[test]
    fn shares_are_of_all_pages() {
        let done = Backfilled { pages: 4, from_memory: 2, copied: 1, nodes: 1, ..done() };
        let told = "pages: 4, 75% of them from memory (2 as they were, 1 copied first); 1 node of the directory";
        assert_eq!(pages(&done), told);
        let none = Backfilled { pages: 0, from_memory: 0, copied: 0, ..done };
        assert!(pages(&none).starts_with("pages: 0, 100% of them from memory"));
    }
}
