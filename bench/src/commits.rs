//! Commits of one row: beside the raw floor of the disk, by several threads, and beside SQLite where
//! nothing is flushed.

use std::cell::{Cell, RefCell};
use std::path::Path;

use annals::{Level, Options};

use crate::annals_engine::Database;
use crate::engine::{Engine, Failure};
use crate::floor::Floor;
use crate::race::{self, Compared, Course, Outcome, Runner};
use crate::sqlite_engine::Sqlite;
use crate::workload::settle;

/// Commits of each runner in a slice where all of them flush.
const DURABLE_SLICE: u64 = 50;
/// The same for threads: starting eight of them mustn't show.
const THREADS_SLICE: u64 = 400;
/// The same for soft commits: SQLite brings its table up to date about once in so many.
const SOFT_SLICE: u64 = 1_000;
const ROUNDS: usize = 20;

type Race = fn(&Path, usize) -> Result<Outcome, Failure>;
const RACES: [(&str, Race); 3] = [("durable", durable), ("threads", threads), ("soft", soft)];

/// Gives the names of the races.
pub(crate) fn names() -> [&'static str; RACES.len()] {
    RACES.map(|(name, _)| name)
}

/// Runs the races of these names; all if there is none.
pub(crate) fn run(names: &[String], turns: usize) -> Result<Vec<Outcome>, Failure> {
    // Removing files makes flushes slow for a while on some disks, so all stay until the end.
    let all = tempfile::tempdir()?;
    let mut outcomes = Vec::new();
    let wanted = |(name, _): &(&str, Race)| names.is_empty() || names.iter().any(|own| own == name);
    for (name, race) in RACES.into_iter().filter(wanted) {
        let folder = all.path().join(name);
        std::fs::create_dir_all(&folder)?;
        settle();
        outcomes.push(race(&folder, turns)?);
    }
    Ok(outcomes)
}

fn durable(folder: &Path, turns: usize) -> Result<Outcome, Failure> {
    let open = |name: &str, options| Database::open(&folder.join(name), options);
    let checksummed = open("checksummed.annals", Options::new())?;
    let alone = open("alone.annals", Options::new().background(false))?;
    let once = RefCell::new(Floor::create(&folder.join("once"))?);
    let sqlite = Sqlite { journal: "wal", name: "SQLite WAL, FULL" };
    let mut wal = sqlite.create(folder)?;

    // The floor writes as many bytes as a commit of Annals does: it is told by the first slice.
    checksummed.commit_each(1, Level::Checksummed)?;
    let frame = Cell::new(0);
    let measured = |count: u64| -> Result<(), Failure> {
        let before = checksummed.position();
        checksummed.commit_each(count, Level::Checksummed)?;
        frame.set((checksummed.position() - before).div_ceil(count));
        Ok(())
    };
    measured(1)?;

    let mut runners = [
        Runner {
            prepare: Box::new(|count| once.borrow_mut().prepare(2 * count * frame.get())),
            ..Runner::new("write, flush", (0, ""), |count| {
                once.borrow_mut().commit(count, frame.get())
            })
        },
        Runner::new("Annals, checksummed", (0, "at most 1.25"), measured),
        Runner::new("Annals, checksummed, nothing in the background", (0, ""), |count| {
            alone.commit_each(count, Level::Checksummed)
        }),
        Runner::new(sqlite.name, (0, ""), |count| wal.commit_rows(count)),
    ];
    let course = Course { turns, rounds: ROUNDS, slice: DURABLE_SLICE };
    race::run("Durable commits of one row beside the floor", (Compared::Time, course), &mut runners)
}

fn threads(folder: &Path, turns: usize) -> Result<Outcome, Failure> {
    let database = Database::open(&folder.join("threads.annals"), Options::new())?;
    let by = |threads: u64| {
        let database = &database;
        move |count: u64| database.commit_by_threads(threads, count / threads)
    };
    let mut runners = [
        Runner::new("1 thread", (0, ""), by(1)),
        Runner::new("2 threads", (0, ""), by(2)),
        Runner::new("4 threads", (0, "at least 2"), by(4)),
        Runner::new("8 threads", (0, ""), by(8)),
    ];
    let course = Course { turns, rounds: ROUNDS, slice: THREADS_SLICE };
    race::run("Durable commits of one row by threads", (Compared::Rate, course), &mut runners)
}

fn soft(folder: &Path, turns: usize) -> Result<Outcome, Failure> {
    let annals = Database::open(&folder.join("soft.annals"), Options::new())?;
    let normal = Sqlite { journal: "wal", name: "SQLite WAL, NORMAL" };
    let mut wal = normal.create(folder)?;
    let mut runners = [
        Runner::new(normal.name, (0, ""), |count| wal.commit_rows_soft(count).map(drop)),
        Runner::new("Annals, soft", (0, "at least 5"), |count| {
            annals.commit_each(count, Level::Soft)
        }),
    ];
    let course = Course { turns, rounds: ROUNDS, slice: SOFT_SLICE };
    race::run("Soft commits of one row beside SQLite", (Compared::Rate, course), &mut runners)
}
