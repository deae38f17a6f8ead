//! Durable commits at levels that only Annals has, and of long rows, beside the raw floor of the disk.

use std::cell::{Cell, RefCell};
use std::path::Path;

use annals::{Level, Options};

use crate::engines::Failure;
use crate::engines::annals::Small;
use crate::figures::settle;
use crate::floor::Floor;
use crate::race::{self, Course, Outcome, Runner};

/// Commits of each runner in a slice where all of them flush.
const DURABLE_SLICE: u64 = 50;
/// The same where space ahead is used up fast: what happens in the background must fall into it.
const LARGE_SLICE: u64 = 500;
/// The length of the name in all rows but long ones.
const SHORT: usize = 4;
const ROUNDS: usize = 20;

type Race = fn(&Path, usize) -> Result<Outcome, Failure>;
const RACES: [(&str, Race); 2] = [("levels", levels), ("large", large)];

/// Returns the names of the races.
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
    /// The bytes of a commit in the journal, from the last slice.
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

    /// Makes the two runners, the first of which will have this place.
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
    race::run("Half and two-phase commits of one row", course, &mut runners)
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
    race::run("Durable commits of one long row", course, &mut runners)
}
