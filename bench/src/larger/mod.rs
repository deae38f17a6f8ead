//! Tables larger than memory: events with three indexes, and questions about them, with the same limit of memory for
//! each engine that has one.
//!
//! One process loads the events and closes the database. Another one for each question opens it, so that nothing of it
//! is in the memory of the engine; the operating system may have its files. Every engine must find the same.

mod annals;
mod clock;
mod events;
mod lmdb;
mod redb;
mod sqlite;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::disk;
use crate::engines::{self, Failure};
use clock::Clock;
use events::{Events, GAP};

/// How large it is.
#[derive(clap::Args)]
pub(crate) struct Work {
    /// Events.
    #[arg(long = "events", default_value_t = 5_000_000, value_parser = engines::count())]
    rows: u64,
    /// The memory for each engine, in MiB: a table for each; 0 is no limit.
    #[arg(long, value_delimiter = ',', default_value = "64,256,1024,0")]
    memory: Vec<u64>,
    /// Only these engines.
    #[arg(long, value_delimiter = ',', value_parser = ENGINES.map(|(name, _)| name))]
    engines: Vec<String>,
}

/// The tasks of child processes.
#[derive(clap::Args)]
pub(crate) struct Step {
    engine: String,
    task: String,
    folder: PathBuf,
    rows: u64,
    /// The memory, in MiB; 0 is no limit.
    memory: u64,
}

/// An engine's table of events.
trait Table {
    /// Adds all events: 50,000 a transaction, each durable.
    fn load(&mut self, events: Events) -> Result<(), Failure>;
    /// Visits user and time of all events in their order.
    fn by_user(&self, visit: &mut dyn FnMut(u32, i64)) -> Result<(), Failure>;
    /// Visits user, time and value of all events, in the order of user and time.
    fn values_by_user(&self, visit: &mut dyn FnMut(u32, i64, f64)) -> Result<(), Failure>;
    /// Visits kind and value of all events, in any order.
    fn values(&self, visit: &mut dyn FnMut(u8, f64)) -> Result<(), Failure>;
    /// Visits the values of the events from a time up to another.
    fn values_within(&self, times: (i64, i64), visit: &mut dyn FnMut(f64)) -> Result<(), Failure>;
    /// Returns how many bytes of memory it says that it holds, if it says so.
    fn memory(&self) -> Option<u64> {
        None
    }
    /// Closes the database.
    fn close(self: Box<Self>) -> Result<(), Failure>;
}

/// Opens or creates an engine's table in a folder.
type Open = fn(&Path, u64) -> Result<Box<dyn Table>, Failure>;

const ENGINES: [(&str, Open); 5] = [
    ("Annals", annals::by_rows),
    ("Annals by vectors", annals::by_vectors),
    ("SQLite", sqlite::open),
    ("redb", redb::open),
    ("LMDB", lmdb::open),
];

/// What is asked, and how it is asked of a table. A number comes back that all engines must agree on.
type Question = fn(&dyn Table) -> Result<f64, Failure>;

const QUESTIONS: [(&str, Question); 4] = [
    ("sessions: a walk over the index (user, time)", sessions),
    ("the same with a field that isn't in the index", sums),
    ("percentiles: a scan of two fields", percentiles),
    ("a sum over a day, by the index on time", day),
];

fn sessions(table: &dyn Table) -> Result<f64, Failure> {
    let (mut count, mut last) = (0.0, None);
    table.by_user(&mut |user, time| {
        let goes_on = last.is_some_and(|(of, until)| of == user && time - until <= GAP);
        count += f64::from(u8::from(!goes_on));
        last = Some((user, time));
    })?;
    Ok(count)
}

fn sums(table: &dyn Table) -> Result<f64, Failure> {
    let (mut most, mut sum, mut last) = (0.0_f64, 0.0, None);
    table.values_by_user(&mut |user, time, value| {
        if !last.is_some_and(|(of, until)| of == user && time - until <= GAP) {
            sum = 0.0;
        }
        sum += value;
        most = most.max(sum);
        last = Some((user, time));
    })?;
    Ok(most)
}

fn percentiles(table: &dyn Table) -> Result<f64, Failure> {
    let mut values = vec![Vec::new(); events::KINDS];
    table.values(&mut |kind, value| {
        if let Some(values) = values.get_mut(usize::from(kind)) {
            values.push(value);
        }
    })?;
    let mut sum = 0.0;
    for mut values in values {
        for percent in [50, 95, 99] {
            let place = values.len() * percent / 100;
            if place < values.len() {
                sum += *values.select_nth_unstable_by(place, f64::total_cmp).1;
            }
        }
    }
    Ok(sum)
}

fn day(table: &dyn Table) -> Result<f64, Failure> {
    let mut sum = 0.0;
    table.values_within(events::day(), &mut |value| sum += value)?;
    Ok(sum)
}

/// The measurements of one engine, by what was measured.
type Measured = BTreeMap<String, f64>;

impl Step {
    /// Does it, and prints the measurements.
    pub(crate) fn take(&self) -> Result<(), Failure> {
        let (_, open) = ENGINES.iter().find(|(name, _)| *name == self.engine).ok_or("no engine")?;
        let clock = Clock::start();
        let mut table = open(&self.folder, self.memory << 20)?;
        let name = &self.task;
        match QUESTIONS.iter().find(|(question, _)| question == name) {
            Some((_, question)) => {
                let answer = question(&*table)?;
                println!("{answer} {ANSWER}{name}");
                clock.print(name);
                println!("{} {PEAK}{name}", clock::peak());
                table.close()?;
            }
            None => {
                table.load(Events::new(self.rows))?;
                clock.print(name);
                println!("{} {PEAK}{name}", clock::peak());
                println!("{} {HELD}", clock::held());
                if let Some(bytes) = table.memory() {
                    println!("{} {OF_THIS}", crate::memory::mib(bytes));
                }
                crate::memory::forget_peak();
                table.close()?;
                println!("{} {PEAK}closing", clock::peak());
                println!("{} {ON_DISK}", crate::memory::mib(disk::length(&self.folder)?));
            }
        }
        Ok(())
    }
}

const LOAD: &str = "load";
const PEAK: &str = "peak memory, MiB: ";
const HELD: &str = "held after it, MiB";
const OF_THIS: &str = "held after it by its own account, MiB";
const ON_DISK: &str = "on disk, closed, MiB";
const ANSWER: &str = "answer: ";

/// Takes each engine's turn, and prints a table for each limit.
pub(crate) fn run(work: &Work, table: bool) -> Result<(), Failure> {
    for &memory in &work.memory {
        let mut columns = Vec::new();
        for (engine, _) in ENGINES {
            if work.engines.is_empty() || work.engines.iter().any(|named| named == engine) {
                columns.push((engine, measure(engine, memory, work.rows)?));
            }
        }
        agree(&columns)?;
        match table {
            true => print_table(&columns, memory, work.rows),
            false => print_lines(&columns, memory, work.rows),
        }
    }
    Ok(())
}

fn measure(engine: &str, memory: u64, rows: u64) -> Result<Measured, Failure> {
    let folder = tempfile::tempdir()?;
    let mut measured = Measured::new();
    for task in std::iter::once(LOAD).chain(QUESTIONS.map(|(name, _)| name)) {
        crate::figures::settle();
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["larger-step", engine, task]).arg(folder.path());
        command.args([rows, memory].map(|number| number.to_string()));
        let output = command.stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            return Err(format!("{engine}, {task}: {}", output.status).into());
        }
        for line in String::from_utf8(output.stdout)?.lines() {
            let (value, what) = line.split_once(' ').ok_or("a line is no measurement")?;
            measured.insert(what.to_owned(), value.parse()?);
        }
    }
    Ok(measured)
}

/// An error unless all engines found the same. Sums are of the same numbers in the same order but for equal times.
fn agree(columns: &[(&str, Measured)]) -> Result<(), Failure> {
    let Some((first, found)) = columns.first() else { return Ok(()) };
    for (engine, other) in columns {
        for (what, value) in found.iter().filter(|(what, _)| what.starts_with(ANSWER)) {
            let theirs = other.get(what).ok_or("an answer is missing")?;
            if (value - theirs).abs() > value.abs() / 1e9 {
                let differ = format!("{what}: {value} by {first}, {theirs} by {engine}");
                return Err(differ.into());
            }
        }
    }
    Ok(())
}

/// Returns the names of all measurements, in the order in which they are shown.
fn names() -> Vec<String> {
    let mut names = Vec::new();
    for task in std::iter::once(LOAD).chain(QUESTIONS.map(|(name, _)| name)) {
        names.extend(clock::UNITS.map(|unit| format!("{task}, {unit}")));
        names.push(format!("{PEAK}{task}"));
        if task == LOAD {
            names.push(format!("{PEAK}closing"));
            names.extend([HELD, OF_THIS, ON_DISK].map(str::to_owned));
        }
    }
    names
}

fn print_table(columns: &[(&str, Measured)], memory: u64, rows: u64) {
    let limit = if memory == 0 { "no limit".to_owned() } else { format!("{memory} MiB") };
    print!("{rows} events, {limit}\n\n| |");
    for (engine, _) in columns {
        print!(" {engine} |");
    }
    println!("\n|---|{}", "---:|".repeat(columns.len()));
    for name in names() {
        print!("| {name} |");
        for (_, measured) in columns {
            match measured.get(&name) {
                Some(value) if *value < 1.0 => print!(" {value:.4} |"),
                Some(value) if *value < 100.0 => print!(" {value:.2} |"),
                Some(value) => print!(" {value:.0} |"),
                None => print!(" |"),
            }
        }
        println!();
    }
    println!();
}

fn print_lines(columns: &[(&str, Measured)], memory: u64, rows: u64) {
    for (engine, measured) in columns {
        for (what, value) in measured {
            let line = serde_json::json!({
                "engine": engine, "rows": rows, "memory": memory, "what": what, "value": value
            });
            println!("{line}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_finds_the_same() {
        let mut found: Vec<[f64; 4]> = Vec::new();
        for (_, open) in ENGINES {
            let folder = tempfile::tempdir().unwrap();
            let mut table = open(folder.path(), 8 << 20).unwrap();
            table.load(Events::new(60_000)).unwrap();
            found.push(QUESTIONS.map(|(_, question)| question(&*table).unwrap()));
            table.close().unwrap();
            let table = open(folder.path(), 8 << 20).unwrap();
            found.push(QUESTIONS.map(|(_, question)| question(&*table).unwrap()));
            table.close().unwrap();
        }
        assert!(found[0][0] > 1000.0 && found[0][3] > 0.0, "{found:?}");
        assert!(found.iter().all(|answers| *answers == found[0]), "{found:?}");
    }

    #[test]
    fn engines_that_differ_are_an_error() {
        let with = |value| Measured::from([(format!("{ANSWER}day"), value)]);
        assert!(agree(&[("A", with(1.0)), ("B", with(1.0))]).is_ok());
        assert!(agree(&[("A", with(1.0)), ("B", with(1.1))]).is_err());
    }
}
