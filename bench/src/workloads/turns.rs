//! The turns: which contestant is started when, and the kept results.
//!
//! In each turn every contestant does the whole workload once, in a separate process and folder, and each turn begins
//! with another one. If slices are short, all processes of a turn run at the same time and alternate, so that all see
//! the same conditions.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

use super::child::{ABSENT, READY, Turn};
use super::{ROWS, Workload, all};
use crate::disk;
use crate::engines::{self, Failure};
use crate::figures::settle;

/// The workload to run.
pub(crate) struct Course<'a> {
    /// The workloads, by their keys; all if there is none.
    pub(crate) only: &'a [String],
    /// The engines, by their keys; all if there is none.
    pub(crate) engines: &'a [String],
    /// Rows of a large table.
    pub(crate) rows: u64,
    pub(crate) turns: usize,
}

/// The result of one workload.
pub(crate) struct Outcome {
    pub(super) workload: Workload,
    /// How many were done in a turn.
    pub(super) count: u64,
    pub(super) contestants: Vec<Contestant>,
}

/// A contestant: an engine, or another one.
pub(super) struct Contestant {
    /// Its name on the command line of its process.
    key: String,
    pub(super) name: &'static str,
    /// True if the workload is the engine's own, and not another contestant's.
    pub(super) is_engine: bool,
    /// The figures of all turns.
    pub(super) turns: Vec<Vec<Figure>>,
}

/// One number.
pub(super) struct Figure {
    pub(super) measure: String,
    /// With what is counted, if it is for each of them.
    pub(super) unit: String,
    pub(super) value: f64,
}

/// Runs all workloads that are wanted.
pub(crate) fn run(course: &Course<'_>) -> Result<Vec<Outcome>, Failure> {
    // Removing files makes flushes slow for a while on some disks, so those of a workload stay until its end.
    let filled = tempfile::tempdir()?;
    let wanted = |key: &str| course.only.is_empty() || course.only.iter().any(|own| own == key);
    let mut outcomes = Vec::new();
    for workload in all().filter(|workload| wanted(workload.key)) {
        let folder = tempfile::tempdir()?;
        let course = (course, filled.path());
        outcomes.push(outcome(workload, course, folder.path()).map_err(|error| error.to_string())?);
    }
    Ok(outcomes)
}

fn outcome(
    workload: Workload,
    (course, filled): (&Course<'_>, &Path),
    folder: &Path,
) -> Result<Outcome, Failure> {
    let mut contestants = contestants(&workload, course)?;
    if let Some(shape) = workload.filled {
        for contestant in contestants.iter().filter(|contestant| contestant.is_engine) {
            let folder = filled.join(&contestant.key);
            if !folder.try_exists()? {
                std::fs::create_dir_all(&folder)?;
                engines::find(&contestant.key)?.fill(&folder, shape, course.rows)?;
            }
            disk::warm(&folder)?;
        }
    }
    let count = scaled(workload.count, course.rows, workload.slice);
    let mut outcome = Outcome { workload, count, contestants: Vec::new() };
    for turn in 0..course.turns {
        let part = contestants.len();
        contestants.rotate_left(usize::from(turn > 0).min(part));
        let places: Vec<_> = contestants
            .iter()
            .map(|contestant| {
                let is_filled = outcome.workload.filled.is_some() && contestant.is_engine;
                let own = folder.join(format!("{turn} {}", contestant.key));
                if is_filled { filled.join(&contestant.key) } else { own }
            })
            .collect();
        take(&outcome.workload, (count, course.rows), &mut contestants, &places)?;
        contestants.retain(|contestant| contestant.turns.len() == turn + 1);
    }
    contestants.sort_by_key(|contestant| order(&outcome.workload, contestant));
    outcome.contestants = contestants;
    Ok(outcome)
}

/// Returns who takes part, engines first.
fn contestants(workload: &Workload, course: &Course<'_>) -> Result<Vec<Contestant>, Failure> {
    let own = |key: &str| course.engines.iter().any(|own| own == key);
    // A replay is one of Annals.
    let wanted =
        |key: &&str| course.engines.is_empty() || own(key) || *key == "replay" && own("annals");
    let mut contestants = Vec::new();
    for key in engines::keys().into_iter().filter(|key| (workload.engines)(key)).filter(wanted) {
        let name = engines::find(key)?.name();
        let key = key.to_owned();
        contestants.push(Contestant { key, name, is_engine: true, turns: Vec::new() });
    }
    for (name, _) in workload.beside {
        let (key, is_engine) = ((*name).to_owned(), false);
        contestants.push(Contestant { key, name, is_engine, turns: Vec::new() });
    }
    Ok(contestants)
}

fn order(workload: &Workload, contestant: &Contestant) -> usize {
    let engine = engines::keys().iter().position(|key| *key == contestant.key);
    let beside = workload.beside.iter().position(|(name, _)| *name == contestant.name);
    match contestant.is_engine {
        true => engine.unwrap_or(usize::MAX),
        false => engines::keys().len() + beside.unwrap_or(0),
    }
}

/// Returns how many operations are done with that many rows: whole slices.
fn scaled(count: u64, rows: u64, slice: Option<u64>) -> u64 {
    let share = u128::from(count) * u128::from(rows) / u128::from(ROWS);
    let scaled = u64::try_from(share).unwrap_or(count).max(1);
    slice.map_or(scaled, |slice| scaled.next_multiple_of(slice))
}

/// Runs one turn of each contestant.
fn take(
    workload: &Workload,
    (count, rows): (u64, u64),
    contestants: &mut [Contestant],
    places: &[PathBuf],
) -> Result<(), Failure> {
    let mut sums = Vec::new();
    let start = |contestant: &Contestant, folder: &PathBuf| {
        std::fs::create_dir_all(folder)?;
        let own = (workload.key, &*contestant.key);
        Contender::start(&Turn::arguments(own, folder, (count, rows)))
    };
    let Some(slice) = workload.slice else {
        for (contestant, folder) in contestants.iter_mut().zip(places) {
            settle();
            if let Some(mut contender) = start(contestant, folder)? {
                contender.go(count)?;
                contender.end(contestant, workload, &mut sums)?;
            }
        }
        return agree(workload, &sums);
    };
    let mut contenders = Vec::new();
    for (contestant, folder) in contestants.iter().zip(places) {
        contenders.push(start(contestant, folder)?);
    }
    settle();
    for round in 0..usize::try_from(count / slice)? {
        for step in 0..contenders.len() {
            let place = (round + step) % contenders.len();
            if let Some(contender) = &mut contenders[place] {
                contender.go(slice)?;
            }
        }
    }
    for (contestant, contender) in contestants.iter_mut().zip(contenders) {
        if let Some(contender) = contender {
            contender.end(contestant, workload, &mut sums)?;
        }
    }
    agree(workload, &sums)
}

/// Fails unless everybody found the same sum.
fn agree(workload: &Workload, sums: &[(&'static str, i64)]) -> Result<(), Failure> {
    let Some((_, expected)) = sums.first() else { return Ok(()) };
    match sums.iter().all(|(_, sum)| sum == expected) {
        true => Ok(()),
        false => Err(format!("{}: not all have the same sum: {sums:?}", workload.key).into()),
    }
}

/// The process of a contestant in a turn.
struct Contender {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Contender {
    /// Starts it, and waits until it is ready; returns none if it can't do that.
    fn start(arguments: &[String]) -> Result<Option<Self>, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child =
            command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (input, output) = input.zip(output).ok_or("a process has no pipes")?;
        let mut contender = Self { child, input, output: BufReader::new(output) };
        match &*contender.line()? {
            READY => Ok(Some(contender)),
            ABSENT => contender.child.wait().map(|_| None).map_err(Failure::from),
            _ => Err(format!("{arguments:?} failed").into()),
        }
    }

    fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    /// Makes it do the given number of operations.
    fn go(&mut self, count: u64) -> Result<(), Failure> {
        writeln!(self.input, "{count}")?;
        self.input.flush()?;
        self.line()?.parse::<f64>()?;
        Ok(())
    }

    /// Makes it close, and keeps its report.
    fn end(
        mut self,
        contestant: &mut Contestant,
        workload: &Workload,
        sums: &mut Vec<(&'static str, i64)>,
    ) -> Result<(), Failure> {
        drop(self.input);
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        if !self.child.wait()?.success() {
            return Err(format!("{}: {} failed", workload.key, contestant.name).into());
        }
        let told: Value = serde_json::from_str(&line)?;
        sums.extend(told["sum"].as_i64().map(|sum| (contestant.name, sum)));
        let figures = told["figures"].as_array().ok_or("a process told no figures")?;
        contestant.turns.push(figures.iter().map(|told| figure(workload, told)).collect());
        Ok(())
    }
}

fn figure(workload: &Workload, told: &Value) -> Figure {
    let text = |key: &str| told[key].as_str().unwrap_or_default().to_owned();
    let mut unit = text("unit");
    if told["each"].as_bool() == Some(true) {
        unit = format!("{unit}/{}", workload.unit.0);
    }
    Figure { measure: text("measure"), unit, value: told["value"].as_f64().unwrap_or(f64::NAN) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_sum_fails_the_turn() {
        let workload = all().next().unwrap();
        assert!(agree(&workload, &[]).is_ok());
        assert!(agree(&workload, &[("one", 3), ("two", 3)]).is_ok());
        assert!(agree(&workload, &[("one", 3), ("two", 3), ("three", 4)]).is_err());
    }

    #[test]
    fn counts_are_a_share_of_the_rows_in_whole_slices() {
        assert_eq!(scaled(ROWS, 3_000, None), 3_000);
        assert_eq!(scaled(1_000_000, ROWS, Some(10_000)), 1_000_000);
        assert_eq!(scaled(2_000, 1_000, Some(50)), 50);
        assert_eq!(scaled(2_000, 1, None), 1);
    }
}
