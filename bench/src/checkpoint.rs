//! Updating the read structures with commits: the same random updates, each engine's own checkpoint of them, the
//! bytes that it writes.

use std::path::Path;

use annals::{BackfillMode, Options};

use crate::disk;
use crate::engines::annals::Annals;
use crate::engines::sqlite::{Journal, LOG, Sqlite};
use crate::engines::{self, Engine as _, Failure, Shape, Table as _};
use crate::figures::{Figure, Measured, nanoseconds, settle};
use crate::random::Random;

/// Updates of a transaction.
const AT_ONCE: usize = 100;
/// The table.
const SHAPE: Shape = Shape::Named;

/// The checkpointed updates.
#[derive(clap::Args)]
pub(crate) struct Work {
    /// Rows of the table.
    #[arg(long, default_value_t = 1_000_000, value_parser = engines::count())]
    pub(crate) rows: u64,
    /// Random rows that are updated before each checkpoint.
    #[arg(long, default_value_t = 100_000, value_parser = engines::count())]
    pub(crate) changed: u64,
}

/// The cost of one checkpoint.
struct Cost {
    nanoseconds: f64,
    /// Bytes written, where the operating system counts them.
    written: Option<u64>,
    /// Bytes of the log that it processed.
    log: u64,
    /// Bytes written according to the engine, if it reports them.
    told: Option<u64>,
}

/// Updates these rows to a version, and makes a checkpoint.
type Turn = Box<dyn FnMut(&[u64], u32) -> Result<Cost, Failure>>;

/// Fills a database with rows in a folder.
type Prepare = fn(&Path, u64) -> Result<Turn, Failure>;

/// The engines.
const CONTESTANTS: [(&str, Prepare); 2] =
    [("Annals", annals), ("SQLite wal_checkpoint(FULL)", sqlite)];

/// Runs the turns of all engines.
pub(crate) fn run(work: &Work, turns: usize) -> Result<Vec<Figure>, Failure> {
    let all = tempfile::tempdir()?;
    let mut contestants = Vec::new();
    for (name, prepare) in CONTESTANTS {
        let folder = all.path().join(name);
        std::fs::create_dir_all(&folder)?;
        contestants.push((name, prepare(&folder, work.rows)?));
    }
    let mut measured = Measured::default();
    let mut random = Random::new(work.rows);
    for number in 0..turns {
        let ids: Vec<_> = (0..work.changed).map(|_| random.below(work.rows)).collect();
        let version = u32::try_from(number)? + 1;
        for (name, turn) in &mut contestants {
            let cost = turn(&ids, version)?;
            add(&mut measured, name, &cost, work.changed);
        }
    }
    Ok(measured.medians())
}

#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn add(measured: &mut Measured, name: &'static str, cost: &Cost, changed: u64) {
    let each = |bytes: u64| bytes as f64 / changed as f64;
    measured.add(name, ("checkpoint", "ms"), cost.nanoseconds / 1e6);
    measured.add(name, ("log before it", "bytes/update"), each(cost.log));
    if let Some(written) = cost.written {
        measured.add(name, ("written by it", "bytes/update"), each(written));
        let rate = written as f64 / cost.nanoseconds * 1e9 / f64::from(1 << 20);
        measured.add(name, ("written by it", "MiB/s"), rate);
    }
    if let Some(told) = cost.told {
        measured.add(name, ("written, as it says", "bytes/update"), each(told));
    }
}

/// Times a checkpoint. Earlier dirty pages are on disk, so that its pages count when they change.
fn cost(log: u64, checkpoint: impl FnOnce() -> Result<(), Failure>) -> Result<Cost, Failure> {
    settle();
    let before = disk::written();
    let nanoseconds = nanoseconds(1, checkpoint)?;
    let written = disk::written().zip(before).map(|(after, before)| after - before);
    Ok(Cost { nanoseconds, written, log, told: None })
}

/// Annals with backfills on request only.
fn annals(folder: &Path, rows: u64) -> Result<Turn, Failure> {
    let mut items = Annals::connect(folder, &Options::new().background(false))?;
    items.insert(0..rows, &SHAPE.names(0..rows))?;
    items.backfill(BackfillMode::Full)?;
    Ok(Box::new(move |ids, version| {
        let before = items.position();
        for ids in ids.chunks(AT_ONCE) {
            items.update(ids, version)?;
        }
        let mut told = None;
        let cost = cost(items.position() - before, || {
            told = Some(items.backfill(BackfillMode::Full)?.bytes);
            Ok(())
        })?;
        Ok(Cost { told, ..cost })
    }))
}

/// SQLite with checkpoints on request only.
fn sqlite(folder: &Path, rows: u64) -> Result<Turn, Failure> {
    let engine = Sqlite { journal: Journal::Ahead };
    engine.fill(folder, SHAPE, rows)?;
    let mut items = engine.connect(folder)?;
    items.connection()?.pragma_update(None, "wal_autocheckpoint", 0)?;
    let log = folder.join(LOG);
    Ok(Box::new(move |ids, version| {
        for ids in ids.chunks(AT_ONCE) {
            items.update(ids, version)?;
        }
        let cost = cost(std::fs::metadata(&log)?.len(), || {
            let busy: i64 =
                items
                    .connection()?
                    .query_row("PRAGMA wal_checkpoint(FULL)", (), |row| row.get(0))?;
            if busy == 0 { Ok(()) } else { Err("SQLite's checkpoint was busy".into()) }
        })?;
        // The next turn's log begins with nothing, so that its length is what the turn wrote.
        items.connection()?.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))?;
        Ok(cost)
    }))
}
