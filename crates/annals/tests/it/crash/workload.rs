//! Small mixed workloads: what is done to a database until something goes wrong.

use annals::Level;
use annals::storage::simulated::Rng;

/// One thing that a program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Creates a table, fields and an index, or adds a field.
    Define(Level),
    /// Changes this many rows in one transaction.
    Write { rows: u64, level: Level },
    /// The same, rolled back.
    RollBack { rows: u64 },
    /// Writes so much that data frames stream out before the commit.
    Stream(Level),
    /// The same, rolled back.
    StreamBack,
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
}

use Step::{
    Define, Empty, HardCheckpoint, Reopen, Rest, RollBack, SoftCheckpoint, Stream, StreamBack,
    Write,
};

const SOFT: Level = Level::Soft;
const HARD: Level = Level::Checksummed;

/// Gives a random workload; the same seed gives the same one.
pub(super) fn mixed(seed: u64) -> Vec<Step> {
    let mut rng = Rng::new(seed);
    // Some workloads are mostly soft, some mostly durable.
    let soft = 20 + 30 * (seed % 3);
    let level = |rng: &mut Rng| if rng.percent(soft) { SOFT } else { HARD };
    let mut steps = vec![Define(level(&mut rng))];
    for _ in 0..9 {
        steps.push(match rng.below(20) {
            0 => Define(level(&mut rng)),
            1 => Empty(level(&mut rng)),
            2 | 3 => RollBack { rows: 1 + rng.below(4) },
            4 | 5 => Rest,
            6 => Reopen,
            16 => SoftCheckpoint,
            17 | 18 => HardCheckpoint,
            19 => Define(level(&mut rng)),
            7 => Write { rows: 40, level: level(&mut rng) },
            _ => Write { rows: 1 + rng.below(6), level: level(&mut rng) },
        });
    }
    steps
}

/// Gives the workloads with transactions of more than a frame.
pub(super) fn streaming(seed: u64) -> Vec<Step> {
    let write = |level| Write { rows: 2, level };
    match seed % 4 {
        0 => vec![Define(HARD), write(SOFT), StreamBack, write(SOFT), write(HARD)],
        1 => vec![Define(SOFT), Stream(HARD), write(HARD), write(SOFT), HardCheckpoint, Rest],
        2 => vec![Define(SOFT), write(SOFT), Stream(SOFT), write(SOFT), Reopen, write(HARD)],
        _ => vec![Define(HARD), StreamBack, Stream(SOFT), StreamBack, Reopen],
    }
}

/// Gives a workload by the name that places have.
pub(super) fn named(name: &str) -> Vec<Step> {
    let (kind, seed) = name.split_once('-').unwrap();
    let seed = seed.parse().unwrap();
    if kind == "streaming" { streaming(seed) } else { mixed(seed) }
}
