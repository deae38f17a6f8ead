//! Point reads by id, of random rows of a large table, all of it warm.

use std::time::Duration;

use super::child::Run;
use super::target::{Bound, Target};
use super::{Workload, is_engine};
use crate::engines::{self, Engine, Failure, Names, Shape, Table, value};
use crate::figures::settle;
use crate::random::Random;

/// Reads before another engine continues.
const SLICE: u64 = 50_000;
/// Longer than any engine waits before it does something in the background.
const A_WHILE: Duration = Duration::from_secs(1);

const VEC: &str = "Vec of structs";
/// Without anything of an image.
pub(super) const LOADED: &str = "Annals, just loaded";

pub(super) const WORKLOADS: &[Workload] = &[Workload {
    key: "read",
    title: "Point reads by id, random ones, of a table that was closed and opened",
    unit: ("read", "ns"),
    count: 1_000_000,
    slice: Some(SLICE),
    filled: Some(Shape::Small),
    engines: is_engine,
    work: opened,
    beside: &[(LOADED, loaded), (VEC, structs)],
    targets: &[
        Target::time("at most 2x a Vec of structs", &[VEC], Bound::TimesAtMost(2.0)),
        Target {
            text: "the same, just loaded",
            own: (LOADED, "time"),
            beside: &[VEC],
            bound: Bound::TimesAtMost(2.0),
        },
        Target::time("at least 8x faster than every peer", &[], Bound::FasterAtLeast(8.0)),
    ],
}];

/// Returns random ids of a table, each row's any number of times.
pub(super) fn random_ids(count: u64, rows: u64) -> Result<Vec<u64>, Failure> {
    let mut random = Random::new(7);
    let mut ids = Vec::with_capacity(usize::try_from(count)?);
    ids.extend((0..count).map(|_| random.below(rows)));
    Ok(ids)
}

/// Waits for the disk, and for background work of an engine, to finish.
pub(super) fn rest(rows: u64) {
    settle();
    #[allow(clippy::disallowed_methods, reason = "what is done in the background takes time")]
    std::thread::sleep(A_WHILE.min(Duration::from_micros(10 * rows)));
}

fn opened(engine: &dyn Engine, run: &mut Run<'_>) -> Result<(), Failure> {
    measure(engine.open(run.folder, Shape::Small)?, run)
}

fn loaded(run: &mut Run<'_>) -> Result<(), Failure> {
    let mut table = engines::find("annals")?.create(run.folder, Shape::Small)?;
    table.insert(0..run.rows, &Names::SHORT)?;
    rest(run.rows);
    measure(table, run)
}

fn measure(mut table: Box<dyn Table>, run: &mut Run<'_>) -> Result<(), Failure> {
    let ids = random_ids(run.count, run.rows)?;
    let expected = table.read(&ids)?; // and makes all of them warm
    let mut sum = 0i64;
    run.slices(|part| {
        let part = usize::try_from(part.start)?..usize::try_from(part.end)?;
        sum = sum.wrapping_add(table.read(&ids[part])?);
        Ok(())
    })?;
    if sum != expected {
        return Err(format!("{sum} was read, after {expected}").into());
    }
    run.check(sum);
    table.close()
}

/// The equivalent in a program without a database.
struct Row {
    name: String,
    value: i64,
}

fn structs(run: &mut Run<'_>) -> Result<(), Failure> {
    let row = |id| Row { name: "TOTO".to_owned(), value: value(id, 0) };
    let rows: Vec<_> = (0..run.rows).map(row).collect();
    let ids = random_ids(run.count, run.rows)?;
    let mut sum = 0i64;
    run.slices(|part| {
        for &id in &ids[usize::try_from(part.start)?..usize::try_from(part.end)?] {
            let row = rows.get(usize::try_from(id)?).ok_or("no such row")?;
            sum = sum.wrapping_add(row.value);
        }
        Ok(())
    })?;
    if rows.iter().any(|row| row.name != "TOTO") {
        return Err("a row has another name".into());
    }
    run.check(sum);
    Ok(())
}
