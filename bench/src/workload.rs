//! The workloads, and the turns in which engines do them.

use std::path::Path;
use std::time::Instant;

use crate::disk;
use crate::engines::{self, Engine, Failure, Level, Names, Shape};
use crate::random::Random;

/// Durable commits are slow on some disks, so there are only so many of them.
const DURABLE_COMMITS: u64 = 500;
const SOFT_COMMITS: u64 = 50_000;

/// One number of one engine: the median of its turns.
#[derive(Debug)]
pub(crate) struct Figure {
    pub(crate) workload: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) engine: &'static str,
    pub(crate) value: f64,
}

/// All numbers of all turns.
#[derive(Default)]
pub(crate) struct Measured(Vec<Figure>);

impl Measured {
    pub(crate) fn add(
        &mut self,
        engine: &'static str,
        (workload, unit): (&'static str, &'static str),
        value: f64,
    ) {
        self.0.push(Figure { workload, unit, engine, value });
    }

    /// Gives the median of each workload and engine, the engines of a workload together, in the order
    /// of their first turn.
    pub(crate) fn medians(self) -> Vec<Figure> {
        let mut medians: Vec<(Figure, Vec<f64>)> = Vec::new();
        for figure in self.0 {
            let same = |(known, _): &&mut (Figure, Vec<f64>)| {
                (known.workload, known.unit, known.engine)
                    == (figure.workload, figure.unit, figure.engine)
            };
            match medians.iter_mut().find(same) {
                Some((_, values)) => values.push(figure.value),
                None => {
                    let values = vec![figure.value];
                    medians.push((figure, values));
                }
            }
        }
        let median = |(mut figure, mut values): (Figure, Vec<f64>)| {
            values.sort_by(f64::total_cmp);
            figure.value = values[values.len() / 2];
            figure
        };
        let mut figures: Vec<_> = medians.into_iter().map(median).collect();
        let mut order: Vec<&'static str> = Vec::new();
        for figure in &figures {
            if !order.contains(&figure.workload) {
                order.push(figure.workload);
            }
        }
        figures.sort_by_key(|figure| order.iter().position(|known| *known == figure.workload));
        figures
    }
}

/// Lets every engine have its turns.
pub(crate) fn run(rows: u64, turns: usize) -> Result<Vec<Figure>, Failure> {
    let keys = ["annals", "sqlite", "sqlite-rollback"];
    let engines = keys.into_iter().map(engines::find).collect::<Result<Vec<_>, _>>()?;
    let ids = random_ids(rows);
    let mut measured = Measured::default();
    // Removing files makes flushes slow for a while on some disks, so all stay until the end.
    let all = tempfile::tempdir()?;
    for number in 0..turns {
        for &engine in &engines {
            let folder = all.path().join(format!("{number} {}", engine.name()));
            turn(engine, rows, (&ids, &folder), &mut measured)?;
        }
    }
    Ok(measured.medians())
}

fn turn(
    engine: &dyn Engine,
    rows: u64,
    (ids, folder): (&[u64], &Path),
    measured: &mut Measured,
) -> Result<(), Failure> {
    settle();
    let bulk = folder.join("bulk");
    std::fs::create_dir_all(&bulk)?;
    let mut table = engine.create(&bulk, Shape::Small)?;
    let name = engine.name();

    let insert = nanoseconds(rows, || table.insert(0..rows, &Names::SHORT))?;
    measured.add(name, ("insert row by row, one durable commit", "ns/row"), insert);
    let before = table.memory();
    let read = nanoseconds(ids.len() as u64, || {
        let expected = ids.iter().fold(0i64, |sum, &id| sum.wrapping_add(id.cast_signed()));
        match table.read(ids)? {
            sum if sum == expected => Ok(()),
            sum => Err(format!("{name} read {sum}, not {expected}").into()),
        }
    })?;
    measured.add(name, ("point read by random id", "ns/read"), read);
    if let Some(memory) = before {
        measured.add(name, ("resident in the store", "bytes/row"), ratio(memory, rows));
    }
    table.close()?;
    measured.add(name, ("on disk, closed", "bytes/row"), ratio(disk::length(&bulk)?, rows));

    settle();
    let columns = folder.join("columns");
    std::fs::create_dir_all(&columns)?;
    let mut table = engine.create(&columns, Shape::Small)?;
    let mut has_columns = false;
    // A program has its columns before it inserts them.
    let names = vec!["TOTO"; usize::try_from(rows)?];
    let values: Vec<_> = (0..i64::try_from(rows)?).collect();
    let insert = nanoseconds(rows, || {
        has_columns = table.insert_columns(&names, &values)?;
        Ok(())
    })?;
    if has_columns {
        measured.add(name, ("insert by vectors, one durable commit", "ns/row"), insert);
    }
    table.close()?;

    settle();
    let small = folder.join("small");
    std::fs::create_dir_all(&small)?;
    let table = engine.create(&small, Shape::Small)?;
    let end = SOFT_COMMITS + DURABLE_COMMITS;
    let kinds = [
        (Level::Soft, 0..SOFT_COMMITS, "soft commit, one row each"),
        (Level::Durable, SOFT_COMMITS..end, "durable commit, one row each"),
    ];
    for (level, ids, workload) in kinds {
        let Some(mut writer) = table.writer(level)? else { continue };
        let each = nanoseconds(ids.end - ids.start, || writer.insert(ids, &Names::SHORT))?;
        measured.add(name, (workload, "us/commit"), each / 1e3);
    }
    table.close()
}

/// Lets the disk finish what the engine before left to it, so that nobody pays for another. Where
/// there is no such command, the turns are only less even.
pub(crate) fn settle() {
    let _ = std::process::Command::new("sync").status();
}

/// Gives the wall time of each of `count` things.
pub(crate) fn nanoseconds(
    count: u64,
    work: impl FnOnce() -> Result<(), Failure>,
) -> Result<f64, Failure> {
    #[allow(clippy::disallowed_methods, reason = "a benchmark measures with the real clock")]
    let start = Instant::now();
    work()?;
    #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    Ok(start.elapsed().as_secs_f64() * 1e9 / count as f64)
}

#[allow(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
fn ratio(bytes: u64, rows: u64) -> f64 {
    bytes as f64 / rows as f64
}

/// Gives as many ids as there are rows, each row's any number of times.
fn random_ids(rows: u64) -> Vec<u64> {
    let mut random = Random::new(7);
    (0..rows).map(|_| random.below(rows)).collect()
}
