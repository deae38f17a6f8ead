//! A step in a separate process: this program, started by itself.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::{Subcommand, ValueEnum};

use super::SHAPE;
use crate::engines::{self, Engine, Failure};
use crate::random::Random;

/// Rows of a transaction before a process is killed.
const AT_ONCE: u64 = 100;
/// Updates of the same row in a transaction.
const REWRITTEN_AT_ONCE: u64 = 10_000;

/// Which engine does what, and where.
#[derive(clap::Args)]
pub(crate) struct Step {
    engine: String,
    folder: PathBuf,
    #[command(subcommand)]
    deed: Deed,
}

#[derive(Subcommand)]
enum Deed {
    /// Creates a database with rows.
    Fill { rows: u64 },
    /// Updates row 0 so often, and closes.
    Rewrite { times: u64 },
    /// Opens, reads a row, prints the nanoseconds until then; checks that a row has a value.
    #[command(allow_negative_numbers = true)]
    Open { by: By, row: u64, checked: Option<u64>, value: Option<i64> },
    /// Appends rows, pauses, prints the last row, and waits.
    Append { first: u64, rows: u64, version: u32, idle: u64 },
    /// Updates random rows, pauses, prints the last row, and waits.
    Update { rows: u64, times: u64, version: u32, idle: u64 },
}

/// How the first row is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum By {
    /// Through the index.
    Index,
    /// By its id.
    Id,
}

impl By {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Index => "index",
            Self::Id => "id",
        }
    }
}

fn command(
    (key, folder): (&str, &Path),
    deed: &str,
    arguments: &[String],
) -> Result<Command, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["step", key]).arg(folder).arg(deed).args(arguments);
    Ok(command)
}

/// Runs a step in a separate process, which ends; returns its output.
pub(super) fn run(own: (&str, &Path), deed: &str, arguments: &[String]) -> Result<String, Failure> {
    let output = command(own, deed, arguments)?.stderr(Stdio::inherit()).output()?;
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout)?.trim_end().to_owned()),
        false => Err(format!("{}: {deed} {arguments:?}: {}", own.0, output.status).into()),
    }
}

/// Runs a step in a separate process, and kills it as soon as it printed a line; returns that line.
pub(super) fn run_and_kill(
    own: (&str, &Path),
    deed: &str,
    arguments: &[String],
) -> Result<String, Failure> {
    let mut child =
        command(own, deed, arguments)?.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    let output = child.stdout.take().ok_or("the child has no output")?;
    let read = BufReader::new(output).read_line(&mut line);
    child.kill()?;
    child.wait()?;
    match (read?, line.strip_suffix('\n')) {
        (_, Some(line)) => Ok(line.to_owned()),
        _ => Err(format!("{}: {deed} {arguments:?}: died by itself", own.0).into()),
    }
}

impl Step {
    /// Takes the step.
    pub(crate) fn take(&self) -> Result<(), Failure> {
        let (engine, folder) = (engines::find(&self.engine)?, &*self.folder);
        match self.deed {
            Deed::Fill { rows } => engine.fill(folder, SHAPE, rows),
            Deed::Rewrite { times } => rewrite(engine, folder, times),
            Deed::Open { by, row, checked, value } => {
                open(engine, folder, (by, row), checked.zip(value))
            }
            Deed::Append { first, rows, idle, .. } => {
                append(engine, folder, first..first + rows, idle)
            }
            Deed::Update { rows, times, version, idle } => {
                update(engine, folder, (rows, times, version), idle)
            }
        }
    }
}

fn open(
    engine: &dyn Engine,
    folder: &Path,
    (by, row): (By, u64),
    check: Option<(u64, i64)>,
) -> Result<(), Failure> {
    let name = [engines::name(row)];
    #[allow(clippy::disallowed_methods, reason = "a benchmark measures with the real clock")]
    let start = Instant::now();
    let mut table = engine.open(folder, SHAPE)?;
    let value = match by {
        By::Index => table.find(&name)?,
        By::Id => table.read(&[row])?,
    };
    let elapsed = start.elapsed();
    if !engines::is_value_of(row, value) {
        return Err(format!("{}: row {row} can't be {value}", engine.name()).into());
    }
    if let Some((id, expected)) = check {
        let value = table.read(&[id])?;
        if value != expected {
            return Err(format!("{}: row {id} is {value}, not {expected}", engine.name()).into());
        }
    }
    table.close()?;
    println!("{}", elapsed.as_nanos());
    Ok(())
}

fn rewrite(engine: &dyn Engine, folder: &Path, times: u64) -> Result<(), Failure> {
    let mut table = engine.open(folder, SHAPE)?;
    for first in (0..times).step_by(usize::try_from(REWRITTEN_AT_ONCE)?) {
        let rows = vec![0; usize::try_from(REWRITTEN_AT_ONCE.min(times - first))?];
        table.update(&rows, u32::try_from(first / REWRITTEN_AT_ONCE)? + 1)?;
    }
    table.close()
}

fn append(
    engine: &dyn Engine,
    folder: &Path,
    ids: std::ops::Range<u64>,
    idle: u64,
) -> Result<(), Failure> {
    let mut table = engine.open(folder, SHAPE)?;
    for first in ids.clone().step_by(usize::try_from(AT_ONCE)?) {
        let ids = first..ids.end.min(first + AT_ONCE);
        table.insert(ids.clone(), &SHAPE.names(ids))?;
    }
    tell_and_wait(ids.end - 1, idle)
}

fn update(
    engine: &dyn Engine,
    folder: &Path,
    (rows, times, version): (u64, u64, u32),
    idle: u64,
) -> Result<(), Failure> {
    let mut table = engine.open(folder, SHAPE)?;
    let mut random = Random::new(u64::from(version));
    let mut last = 0;
    for first in (0..times).step_by(usize::try_from(AT_ONCE)?) {
        let ids: Vec<_> = (first..times.min(first + AT_ONCE)).map(|_| random.below(rows)).collect();
        table.update(&ids, version)?;
        last = *ids.last().unwrap_or(&last);
    }
    tell_and_wait(last, idle)
}

/// With the database open, pauses, prints the last row, and waits to be killed; ends if its parent has ended.
fn tell_and_wait(last: u64, idle: u64) -> Result<(), Failure> {
    #[allow(
        clippy::disallowed_methods,
        reason = "what an engine does in the background takes time"
    )]
    std::thread::sleep(Duration::from_millis(idle));
    println!("{last}");
    std::io::stdout().flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Err("nobody is left to kill this process".into())
}
