//! Commits of one row: beside the raw floor of the disk, by several threads, and beside SQLite where
//! nothing is flushed.

use std::cell::{Cell, RefCell};
use std::path::Path;

use annals::{Level, Options};

use crate::engines::annals::Small;
use crate::engines::sqlite::{Journal, Sqlite};
use crate::engines::{self, Engine as _, Failure, Level as Promise, Names, Shape, Table, Writer};
use crate::floor::Floor;
use crate::race::{self, Compared, Course, Outcome, Runner};
use crate::workload::settle;

/// Commits of each runner in a slice where all of them flush.
const DURABLE_SLICE: u64 = 50;
/// The same where space ahead is used up fast: what happens in the background must fall into it.
const LARGE_SLICE: u64 = 500;
/// The same for threads: starting eight of them mustn't show.
const THREADS_SLICE: u64 = 400;
/// The same for soft commits: SQLite brings its table up to date about once in so many.
const SOFT_SLICE: u64 = 1_000;
/// The length of the name in all rows but long ones.
const SHORT: usize = 4;
const ROUNDS: usize = 20;

type Race = fn(&Path, usize) -> Result<Outcome, Failure>;
const RACES: [(&str, Race); 5] = [
    ("durable", durable),
    ("levels", levels),
    ("large", large),
    ("threads", threads),
    ("soft", soft),
];

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

/// A database, and a floor that writes as many bytes.
struct Pair<'a> {
    database: &'a Small,
    text: String,
    level: Level,
    floor: RefCell<Floor>,
    /// How often the level flushes for a commit.
    flushes: u64,
    /// The bytes of a commit in the journal, as the last slice told.
    length: Cell<u64>,
}

impl<'a> Pair<'a> {
    /// Makes the floor, at a path, of commits of one row with a text of this length.
    fn new(
        database: &'a Small,
        (path, flushes): (&Path, u64),
        (text, level): (usize, Level),
    ) -> Result<Self, Failure> {
        let pair = Self {
            database,
            text: "T".repeat(text),
            level,
            floor: RefCell::new(Floor::create(path)?),
            flushes,
            length: Cell::new(0),
        };
        pair.commit(1)?;
        Ok(pair)
    }

    fn commit(&self, count: u64) -> Result<(), Failure> {
        let before = self.database.position();
        self.database.commit_each(count, &self.text, self.level)?;
        self.length.set((self.database.position() - before).div_ceil(count));
        Ok(())
    }

    /// Gives the two runners, the first of which will have this place.
    fn runners(
        &self,
        place: usize,
        names: [&'static str; 2],
        target: &'static str,
    ) -> [Runner<'_>; 2] {
        // Rows become longer by a few bytes as their values grow.
        let space = |count| 2 * count * self.flushes * self.length.get();
        let floor = |count| self.floor.borrow_mut().commit(count * self.flushes, self.length.get());
        let prepare = Box::new(move |count| self.floor.borrow_mut().prepare(space(count)));
        [
            Runner { prepare, ..Runner::new(names[0], (place, ""), floor) },
            Runner::new(names[1], (place, target), |count| self.commit(count)),
        ]
    }
}

fn durable(folder: &Path, turns: usize) -> Result<Outcome, Failure> {
    let open = |name: &str, options| Small::open(&folder.join(name), &options);
    let database = open("checksummed.annals", Options::new())?;
    let alone = open("alone.annals", Options::new().background(false))?;
    let small = (SHORT, Level::Checksummed);
    let pair = Pair::new(&database, (&folder.join("once"), 1), small)?;
    let wal = Sqlite { journal: Journal::Ahead }.create(folder, Shape::Small)?;

    let names = ["write, flush", "Annals, checksummed"];
    let mut runners = Vec::from(pair.runners(0, names, "at most 1.25"));
    runners.push(Runner::new("Annals, nothing in the background", (0, ""), |count| {
        alone.commit_each(count, "TOTO", Level::Checksummed)
    }));
    let mut writer = writer(&*wal, Promise::Durable)?;
    runners.push(Runner::new("SQLite WAL, FULL", (0, ""), move |count| {
        writer.insert(0..count, &Names::SHORT)
    }));
    let course = Course { turns, rounds: ROUNDS, slice: DURABLE_SLICE };
    race::run("Durable commits of one row beside the floor", (Compared::Time, course), &mut runners)
}

fn writer(table: &dyn Table, level: Promise) -> Result<Box<dyn Writer + Send + '_>, Failure> {
    table.writer(level)?.ok_or_else(|| "there is no such level".into())
}

fn levels(folder: &Path, turns: usize) -> Result<Outcome, Failure> {
    let open = |name: &str| Small::open(&folder.join(name), &Options::new());
    let (half, two_phase) = (open("half.annals")?, open("two_phase.annals")?);
    let floor = |name: &str| folder.join(name);
    let half = Pair::new(&half, (&floor("half"), 1), (SHORT, Level::Half))?;
    let two_phase = Pair::new(&two_phase, (&floor("two_phase"), 2), (SHORT, Level::TwoPhase))?;
    let mut runners = Vec::new();
    runners.extend(half.runners(0, ["write, flush", "Annals, half"], ""));
    let names = ["write, flush, write, flush", "Annals, two-phase"];
    runners.extend(two_phase.runners(2, names, ""));
    let course = Course { turns, rounds: ROUNDS, slice: DURABLE_SLICE };
    race::run("Half and two-phase commits of one row", (Compared::Time, course), &mut runners)
}

/// Longer commits use up the space ahead faster.
fn large(folder: &Path, turns: usize) -> Result<Outcome, Failure> {
    let open = |name: &str| Small::open(&folder.join(name), &Options::new());
    let (thousand, four) = (open("1000.annals")?, open("4000.annals")?);
    let floor = |name: &str| folder.join(name);
    let thousand = Pair::new(&thousand, (&floor("1000"), 1), (1_000, Level::Checksummed))?;
    let four = Pair::new(&four, (&floor("4000"), 1), (4_000, Level::Checksummed))?;
    let mut runners = Vec::new();
    let names = ["write, flush of as much", "Annals, checksummed, 1,000 bytes"];
    runners.extend(thousand.runners(0, names, ""));
    let names = ["write, flush of as much", "Annals, checksummed, 4,000 bytes"];
    runners.extend(four.runners(2, names, ""));
    let course = Course { turns, rounds: ROUNDS, slice: LARGE_SLICE };
    race::run("Durable commits of one long row", (Compared::Time, course), &mut runners)
}

fn threads(folder: &Path, turns: usize) -> Result<Outcome, Failure> {
    let table = engines::find("annals")?.create(folder, Shape::Small)?;
    let by = |threads: u64| {
        let table = &table;
        move |count: u64| {
            std::thread::scope(|scope| {
                let threads: Vec<_> = (0..threads)
                    .map(|_| {
                        let mut writer = writer(&**table, Promise::Durable)?;
                        Ok(scope.spawn(move || {
                            let inserted = writer.insert(0..count / threads, &Names::SHORT);
                            inserted.map_err(|error| error.to_string())
                        }))
                    })
                    .collect::<Result<_, Failure>>()?;
                for thread in threads {
                    thread.join().map_err(|_| "a thread panicked")??;
                }
                Ok(())
            })
        }
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
    let annals = Small::open(&folder.join("soft.annals"), &Options::new())?;
    let wal = Sqlite { journal: Journal::Ahead }.create(folder, Shape::Small)?;
    let mut normal = writer(&*wal, Promise::Soft)?;
    let mut runners = [
        Runner::new("SQLite WAL, NORMAL", (0, ""), move |count| {
            normal.insert(0..count, &Names::SHORT)
        }),
        Runner::new("Annals, soft", (0, "at least 5"), |count| {
            annals.commit_each(count, "TOTO", Level::Soft)
        }),
    ];
    let course = Course { turns, rounds: ROUNDS, slice: SOFT_SLICE };
    race::run("Soft commits of one row beside SQLite", (Compared::Rate, course), &mut runners)
}
