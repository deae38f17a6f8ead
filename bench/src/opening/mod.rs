//! Opening up to the first point read: after a clean close, and after the process that wrote was killed.
//!
//! Every opening is timed in a separate process, so that nothing of an earlier one is left but the page cache, which
//! has all files. The clock starts before the engine is called and stops when the value is returned, so that work
//! deferred to the first read counts. Before, everything is on disk, so that no engine pays for another's dirty
//! pages. Engines take turns.

mod kill;
mod step;

use std::path::{Path, PathBuf};

use crate::disk;
use crate::engines::{self, Engine, Failure, Shape};
use crate::figures::{Figure, Measured, nanoseconds, settle};
use crate::floor::Floor;
use crate::random::Random;
use kill::{First, Session};
use step::By;
pub(crate) use step::Step;

/// The default engines.
const ENGINES: [&str; 6] = ["annals", "replay", "sqlite", "lmdb", "redb", "fjall"];

/// The table that is opened.
const SHAPE: Shape = Shape::Named;

/// The opened database.
#[derive(clap::Args)]
pub(crate) struct Course {
    /// Rows of the table; each number gives a separate table.
    #[arg(long, value_delimiter = ',', default_value = "1000000,10000000", value_parser = engines::count())]
    rows: Vec<u64>,
    /// Open a database whose only row was updated so often, instead.
    #[arg(long, num_args = 0..=1, default_missing_value = "10000000", conflicts_with = "rows")]
    #[arg(value_parser = engines::count())]
    updates: Option<u64>,
    /// Rows that are appended before the process is killed.
    #[arg(long, default_value_t = 10_000, value_parser = engines::count())]
    appended: u64,
    /// Random updates before the process is killed.
    #[arg(long, default_value_t = 100_000, value_parser = engines::count())]
    updated: u64,
    /// The engines.
    #[arg(long, alias = "peers", value_delimiter = ',', value_parser = engines::keys(), default_values = ENGINES)]
    engines: Vec<String>,
}

/// The content of a table of the report.
pub(crate) struct Opened {
    pub(crate) title: String,
    pub(crate) rows: u64,
    pub(crate) figures: Vec<Figure>,
}

/// One engine and its database.
struct Contestant {
    key: String,
    engine: &'static dyn Engine,
    folder: PathBuf,
}

impl Contestant {
    fn new(key: &str, all: &Path) -> Result<Self, Failure> {
        let folder = all.join(key);
        std::fs::create_dir_all(&folder)?;
        Ok(Self { key: key.to_owned(), engine: engines::find(key)?, folder })
    }

    fn step(&self, deed: &str, arguments: &[String]) -> Result<String, Failure> {
        step::run((&self.key, &self.folder), deed, arguments)
    }

    /// Opens in a separate process, reads a row, checks another if there is one to check, and closes; returns the
    /// microseconds up to the first value.
    fn open(&self, (by, row): (By, u64), check: Option<(u64, i64)>) -> Result<f64, Failure> {
        self.engine.forget(&self.folder)?;
        disk::warm(&self.folder)?;
        settle();
        let mut arguments = vec![by.name().to_owned(), row.to_string()];
        if let Some((id, value)) = check {
            arguments.extend([id.to_string(), value.to_string()]);
        }
        Ok(self.step("open", &arguments)?.parse::<f64>()? / 1e3)
    }
}

/// Opens everything that the course asks for.
pub(crate) fn run(course: &Course, turns: usize) -> Result<Vec<Opened>, Failure> {
    if let Some(updates) = course.updates {
        return Ok(vec![one_row(course, updates, turns)?]);
    }
    course.rows.iter().map(|&rows| many_rows(course, rows, turns)).collect()
}

/// Blocks that are written and flushed for the floor of a turn.
const FLUSHES: u64 = 20;
/// The bytes of a block.
const BLOCK: u64 = 4096;
const CLEAN: [&str; 2] = ["after a clean close, by the index", "after a clean close, by id"];

fn one_row(course: &Course, updates: u64, turns: usize) -> Result<Opened, Failure> {
    let all = tempfile::tempdir()?;
    let mut measured = Measured::default();
    let contestants = contestants(course, all.path())?;
    for contestant in &contestants {
        contestant.step("fill", &["1".to_owned()])?;
        contestant.step("rewrite", &[updates.to_string()])?;
        clean(contestant, 0, &mut Measured::default())?; // makes everything warm
    }
    for contestant in contestants.iter().cycle().take(contestants.len() * turns) {
        clean(contestant, 0, &mut measured)?;
    }
    let title = format!("Opening, one row that was updated {updates} times");
    Ok(Opened { title, rows: 1, figures: measured.medians() })
}

fn many_rows(course: &Course, rows: u64, turns: usize) -> Result<Opened, Failure> {
    let all = tempfile::tempdir()?;
    let mut measured = Measured::default();
    let contestants = contestants(course, all.path())?;
    for contestant in &contestants {
        contestant.step("fill", &[rows.to_string()])?;
        clean(contestant, 0, &mut Measured::default())?; // makes everything warm
    }
    let mut floor = Floor::create(&all.path().join("floor"))?;
    let mut random = Random::new(rows);
    for _ in 0..turns {
        flush(&mut floor, &mut measured)?;
        let row = random.below(rows);
        for contestant in &contestants {
            clean(contestant, row, &mut measured)?;
        }
    }
    #[allow(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
    for contestant in &contestants {
        let bytes = disk::length(&contestant.folder)? as f64 / rows as f64;
        measured.add(contestant.engine.name(), ("on disk, closed", "bytes/row"), bytes);
    }
    // Cases that grow with the sessions are last.
    let updates = Session::update(rows, course.updated);
    for mut session in [Session::append(rows, course.appended), updates] {
        for turn in 0..2 * turns {
            if turn == turns {
                session = session.then_idle();
            }
            session.next();
            let row = random.below(rows);
            for contestant in &contestants {
                killed(contestant, (&session, row), &mut measured)?;
            }
        }
    }
    let title = format!(
        "Opening, {rows} rows with an index; killed after {} appended rows or {} random updates",
        course.appended, course.updated
    );
    Ok(Opened { title, rows, figures: measured.medians() })
}

fn contestants(course: &Course, all: &Path) -> Result<Vec<Contestant>, Failure> {
    course.engines.iter().map(|key| Contestant::new(key, all)).collect()
}

fn clean(contestant: &Contestant, row: u64, measured: &mut Measured) -> Result<(), Failure> {
    for (by, workload) in [By::Index, By::Id].into_iter().zip(CLEAN) {
        let micros = contestant.open((by, row), None)?;
        measured.add(contestant.engine.name(), (workload, "us"), micros);
    }
    Ok(())
}

/// Measures what a write and a flush take at the moment: recovering is little else for some engines.
fn flush(floor: &mut Floor, measured: &mut Measured) -> Result<(), Failure> {
    settle();
    floor.prepare(FLUSHES * BLOCK)?;
    let each = nanoseconds(FLUSHES, || floor.commit(FLUSHES, BLOCK))?;
    measured.add("the disk", ("write and flush of a block", "us"), each / 1e3);
    Ok(())
}

/// Kills the process of a session, and opens, once for each way to read. The opening before it measures the existing
/// part.
#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn killed(
    contestant: &Contestant,
    (session, row): (&Session, u64),
    measured: &mut Measured,
) -> Result<(), Failure> {
    let Contestant { engine, folder, .. } = contestant;
    let name = engine.name();
    let clean = contestant.open((By::Index, row), None)?;
    let workloads = session.workloads();
    for (place, (first, workload)) in workloads.openings.iter().enumerate() {
        let before = engine.tail(folder)?;
        let last = session.run((&contestant.key, folder), place)?;
        let tail = engine.tail(folder)?;
        let asked = match first {
            First::ByIndex => (By::Index, row),
            First::ById => (By::Id, row),
            First::OfTheTail => (By::Index, last.0),
        };
        let micros = contestant.open(asked, Some(last))?;
        measured.add(name, (*workload, "us"), micros);
        let Some((before, tail)) = before.zip(tail) else { continue };
        measured.add(name, (workloads.tail, "bytes"), tail.bytes as f64);
        if let (First::ByIndex, Some(changes)) = (first, session.replayed()) {
            // The background may have backfilled some of them.
            let share = tail.bytes as f64 / (tail.end - before.end) as f64;
            // Without a difference there is nothing to count with.
            let rate = match micros > clean {
                true => changes * share.min(1.0) / (micros - clean) * 1e6,
                false => f64::INFINITY,
            };
            measured.add(name, ("random updates replayed", "updates/s"), rate);
        }
    }
    Ok(())
}
