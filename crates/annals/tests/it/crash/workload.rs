//! Small mixed workloads: what is done to a database until something goes wrong.

use annals::reports::Older;
use annals::{BackfillMode, Level};
use annals_simulated::Rng;

/// One thing that a program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Creates a table, fields and an index, or adds a field.
    Define(Level),
    /// Changes this many rows in one transaction.
    Write { rows: u64, level: Level },
    /// The same, rolled back.
    RollBack { rows: u64 },
    /// Changes this many rows in each of several parts of a transaction, of which some are rolled back.
    Parts { rows: u64, level: Level },
    /// Writes one row of this many bytes.
    Sized { bytes: usize, level: Level },
    /// Deletes about half of the rows.
    Erase(Level),
    /// Brings the image forward.
    Backfill(BackfillMode),
    /// Does that while a transaction is open, which is rolled back if there is no level.
    Backfilling { rows: u64, level: Option<Level> },
    /// Keeps a snapshot, and looks at those that are kept.
    Hold,
    /// Hands in commits before others are acknowledged; up to about this many.
    Pipeline(u64),
    /// Brings the schema up to another, with a function that writes rows.
    Upgrade,
    /// Writes so much that data frames stream out before the commit.
    Stream(Level),
    /// The same, rolled back.
    StreamBack,
    /// Does that in several parts, of which some are rolled back.
    StreamParts(Level),
    /// Commits nothing.
    Empty(Level),
    /// Does what the background thread does.
    Rest,
    /// Makes a soft checkpoint.
    SoftCheckpoint,
    /// Makes a hard checkpoint.
    HardCheckpoint,
    /// Closes and opens.
    Reopen,
    /// Goes on in a new segment.
    Restart(Older),
    /// Does that after a backfill, and may forget the history.
    RestartBehind { forget: bool },
}

use Step::{
    Backfill, Backfilling, Define, Empty, Erase, HardCheckpoint, Hold, Parts, Pipeline, Reopen,
    Rest, Restart, RestartBehind, RollBack, Sized, SoftCheckpoint, Stream, StreamBack, StreamParts,
    Upgrade, Write,
};

const SOFT: Level = Level::Soft;
const HARD: Level = Level::Checksummed;

/// Returns a random workload; the same seed gives the same one.
fn mixed(seed: u64) -> Vec<Step> {
    let mut rng = Rng::new(seed);
    // Some workloads are mostly soft, some mostly durable.
    let soft = 20 + 30 * (seed % 3);
    let level = |rng: &mut Rng| level(rng, soft);
    let mut steps = vec![Define(level(&mut rng))];
    for _ in 0..9 {
        steps.push(match rng.below(20) {
            0 => Define(level(&mut rng)),
            1 => Empty(level(&mut rng)),
            2 => RollBack { rows: 1 + rng.below(4) },
            3 => Parts { rows: 1 + rng.below(3), level: level(&mut rng) },
            4 | 5 => Rest,
            6 => Reopen,
            16 => SoftCheckpoint,
            17 | 18 => HardCheckpoint,
            19 => Define(level(&mut rng)),
            7 => Write { rows: 40, level: level(&mut rng) },
            8 | 9 => Pipeline(4),
            _ => Write { rows: 1 + rng.below(6), level: level(&mut rng) },
        });
    }
    steps
}

/// Returns the workloads with transactions of more than a frame.
fn streaming(seed: u64) -> Vec<Step> {
    let write = |level| Write { rows: 2, level };
    match seed % 4 {
        0 => vec![Define(HARD), write(SOFT), StreamBack, write(SOFT), write(HARD)],
        1 => vec![Define(SOFT), StreamParts(HARD), write(HARD), write(SOFT), HardCheckpoint, Rest],
        2 => vec![Define(SOFT), write(SOFT), Stream(SOFT), write(SOFT), Reopen, write(HARD)],
        _ => vec![Define(HARD), StreamBack, StreamParts(SOFT), Reopen, write(HARD)],
    }
}

/// Returns a workload whose file grows, past space that was filled ahead and within it, by commits of
/// all sizes.
fn growing(seed: u64) -> Vec<Step> {
    let mut rng = Rng::new(seed);
    let mut steps = Vec::new();
    for _ in 0..9 {
        let level = level(&mut rng, 40);
        steps.push(match rng.below(12) {
            0 => Empty(level),
            1..4 => Rest,
            4 => HardCheckpoint,
            5 => RollBack { rows: 3 },
            6 if rng.percent(30) => Reopen,
            _ => Sized { bytes: size(&mut rng), level },
        });
    }
    steps
}

/// Returns a size at which something changes for a program or a disk, or about that.
fn size(rng: &mut Rng) -> usize {
    let sizes = [1, 300, 512, 4096, 30_000, 32_768, 65_536, 100_000];
    let size = sizes[rng.index(sizes.len())];
    if size < 512 { size } else { size - rng.index(300) }
}

/// Returns a workload whose commits carry the slots along.
fn slots(seed: u64) -> Vec<Step> {
    let mut rng = Rng::new(seed);
    let mut steps = vec![Define(HARD)];
    for _ in 0..3 {
        // Past the lag of a slot.
        let (level, bytes) = (level(&mut rng, 40), 900_000 + rng.index(300_000));
        steps.push(Sized { bytes, level });
        for _ in 0..1 + rng.below(3) {
            let level = self::level(&mut rng, 30);
            steps.push(match rng.below(8) {
                0 => HardCheckpoint,
                1 => Rest,
                2 => RollBack { rows: 1 },
                _ => Write { rows: 1 + rng.below(3), level },
            });
        }
    }
    steps
}

/// Returns a workload that upgrades the schema, also more than once.
fn upgrading(seed: u64) -> Vec<Step> {
    let mut rng = Rng::new(seed);
    let mut steps = Vec::new();
    for _ in 0..7 {
        let level = level(&mut rng, 40);
        steps.push(match rng.below(8) {
            0..3 => Upgrade,
            3 => Define(level),
            4 => Reopen,
            5 => Rest,
            _ => Write { rows: 1 + rng.below(5), level },
        });
    }
    steps.push(Upgrade);
    steps
}

/// Returns a workload whose journal continues in new segments, and forgets old ones.
fn restarting(seed: u64) -> Vec<Step> {
    let mut rng = Rng::new(seed);
    let mut steps = vec![Define(level(&mut rng, 40))];
    for _ in 0..6 {
        let level = level(&mut rng, 40);
        steps.push(match rng.below(9) {
            0..4 => Restart(older(&mut rng)),
            4 => Reopen,
            5 => Rest,
            6 => Define(level),
            _ => Write { rows: 1 + rng.below(3), level },
        });
    }
    steps
}

/// Draws what becomes of older segments.
pub(super) fn older(rng: &mut Rng) -> Older {
    [Older::Kept, Older::Kept, Older::NotNeeded, Older::Forgotten][rng.index(4)]
}

/// Returns a workload in which most commits are handed in before others are acknowledged.
fn pipelined(seed: u64) -> Vec<Step> {
    let mut rng = Rng::new(seed);
    let mut steps = Vec::new();
    for _ in 0..5 {
        let level = level(&mut rng, 40);
        steps.push(match rng.below(10) {
            0 => Reopen,
            1 => Empty(level),
            2 => HardCheckpoint,
            3 => Write { rows: 1 + rng.below(3), level },
            _ => Pipeline(3 + rng.below(5)),
        });
    }
    steps
}

/// Returns a workload of small commits at all levels, and of none but a level.
fn levels(seed: u64) -> Vec<Step> {
    let mut rng = Rng::new(seed);
    let mut steps = Vec::new();
    for _ in 0..8 {
        let level = level(&mut rng, 20);
        steps.push(match rng.below(10) {
            0..4 => Empty(level),
            4 => HardCheckpoint,
            5 => RollBack { rows: 1 },
            _ => Write { rows: 1, level },
        });
    }
    steps
}

/// Returns a workload that restarts the journal after backfills of the image, and forgets history.
fn truncating(seed: u64) -> Vec<Step> {
    let mut rng = Rng::new(seed);
    let mut steps = vec![Define(level(&mut rng, 40))];
    for _ in 0..7 {
        let level = level(&mut rng, 40);
        steps.push(match rng.below(12) {
            0..4 => RestartBehind { forget: rng.percent(50) },
            4 => Restart(older(&mut rng)),
            5 => Reopen,
            6 => Backfill(BackfillMode::Full),
            7 => Hold,
            8 => Erase(level),
            _ => Write { rows: 1 + rng.below(3), level },
        });
    }
    steps
}

/// Returns a workload whose image is brought forward between and within transactions of all kinds.
fn imaged(seed: u64) -> Vec<Step> {
    const MODES: [BackfillMode; 2] = [BackfillMode::Passive, BackfillMode::Full];
    let mut rng = Rng::new(seed);
    let soft = 20 + 30 * (seed % 3);
    let first = level(&mut rng, soft);
    let mut steps = vec![Define(first), Write { rows: 6, level: first }];
    for number in 0..14 {
        let level = level(&mut rng, soft);
        // Every other one has a backfill after each change.
        if seed % 2 == 1 && number % 2 == 1 {
            steps.push(Backfill(MODES[rng.index(2)]));
            continue;
        }
        steps.push(match rng.below(30) {
            0..9 => Backfill(MODES[rng.index(2)]),
            9..12 => Backfilling { rows: 1 + rng.below(4), level: Some(level) },
            12 => Backfilling { rows: 1 + rng.below(4), level: None },
            13..16 => Hold,
            16 | 17 => Reopen,
            18 => Define(level),
            19 => Sized { bytes: 15_000 + rng.index(20_000), level },
            20 | 21 => Erase(level),
            22 => RollBack { rows: 1 + rng.below(4) },
            23 => Upgrade,
            24 => Pipeline(4),
            25 => Parts { rows: 1 + rng.below(3), level },
            26 => HardCheckpoint,
            _ => Write { rows: 1 + rng.below(6), level },
        });
    }
    steps
}

/// Draws a level: the lowest with this chance of 100.
pub(super) fn level(rng: &mut Rng, soft: u64) -> Level {
    match rng.below(10) {
        _ if rng.percent(soft) => SOFT,
        0..4 => HARD,
        4..7 => Level::Half,
        _ => Level::TwoPhase,
    }
}

/// Returns a workload by the name that places have.
pub(super) fn named(name: &str) -> Vec<Step> {
    let (kind, seed) = name.split_once('-').unwrap();
    let seed = seed.parse().unwrap();
    match kind {
        "mixed" | "padded" => mixed(seed),
        "streaming" => streaming(seed),
        "growing" => growing(seed),
        "slots" => slots(seed),
        "pipelined" => pipelined(seed),
        "levels" => levels(seed),
        "upgrading" => upgrading(seed),
        "restarting" => restarting(seed),
        "imaged" => imaged(seed),
        "truncating" => truncating(seed),
        _ => panic!("there are no workloads called {kind}"),
    }
}
