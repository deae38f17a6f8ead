//! Work over a large table: the sum of a column, and the replay of its journal at an opening.

use super::child::Run;
use super::read::{LOADED, rest};
use super::target::{Bound, Target};
use super::{ROWS, Workload, is_engine};
use crate::disk;
use crate::engines::{self, Engine, Failure, Names, Shape, Table};

/// How often all rows are summed in a turn.
const SCANS: u64 = 3;

const SLICE: &str = "a plain slice";

pub(super) const WORKLOADS: &[Workload] = &[SCAN, REPLAY, ORDERED];

const SCAN: Workload = Workload {
    key: "scan",
    title: "Sums of a column of a table that was closed and opened",
    unit: ("row", "ns"),
    count: SCANS * ROWS,
    slice: None,
    filled: Some(Shape::Small),
    engines: is_engine,
    work: opened,
    beside: &[(LOADED, loaded), (SLICE, slice)],
    targets: &[
        Target::time(
            "at least 70% of the rate of a plain slice (1.43x its time)",
            &[SLICE],
            Bound::TimesAtMost(1.0 / 0.7),
        ),
        Target {
            text: "the same, just loaded",
            own: (LOADED, "time"),
            beside: &[SLICE],
            bound: Bound::TimesAtMost(1.0 / 0.7),
        },
    ],
};
const REPLAY: Workload = Workload {
    key: "replay",
    title: "Openings without an image, which replay the journal",
    count: ROWS,
    engines: |key| key == "replay",
    work: replay,
    beside: &[],
    targets: &[Target {
        text: "at least 20 million rows a second (50 ns a row)",
        own: ("Annals, full replay", "time"),
        beside: &[],
        bound: Bound::AtMost(50.0),
    }],
    ..SCAN
};

const ORDERED: Workload = Workload {
    key: "ordered",
    title: "Walks over an index in its order, with a look at each row, of a table just loaded",
    count: 1_000_000,
    filled: None,
    work: ordered,
    beside: &[],
    targets: &[Target::time("ahead of every peer", &[], Bound::FasterAtLeast(1.0))],
    ..SCAN
};

fn ordered(engine: &dyn Engine, run: &mut Run<'_>) -> Result<(), Failure> {
    let mut table = engine.create(run.folder, Shape::Named)?;
    table.insert(0..run.count, &Shape::Named.names(0..run.count))?;
    rest(run.rows);
    let (expected, mut sum) = (table.scan_by_name()?, 0); // and makes everything warm
    run.slices(|_| {
        sum = table.scan_by_name()?;
        Ok(())
    })?;
    if sum != expected {
        return Err(format!("{sum} was read, after {expected}").into());
    }
    run.check(sum);
    table.close()
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
    let (rows, mut sum) = (run.rows, table.scan()?); // makes everything warm
    run.slices(|summed| {
        for _ in 0..(summed.end - summed.start) / rows {
            sum = sum.wrapping_add(table.scan()?);
        }
        Ok(())
    })?;
    run.check(sum);
    table.close()
}

fn slice(run: &mut Run<'_>) -> Result<(), Failure> {
    let values: Vec<_> = (0..run.rows.cast_signed()).collect();
    let rows = run.rows;
    let sum_of = |values: &[i64]| values.iter().fold(0i64, |sum, value| sum.wrapping_add(*value));
    let mut sum = sum_of(&values);
    run.slices(|summed| {
        for _ in 0..(summed.end - summed.start) / rows {
            // The summed column is unknown to the compiler each time.
            sum = sum.wrapping_add(sum_of(std::hint::black_box(&values)));
        }
        Ok(())
    })?;
    run.check(sum);
    Ok(())
}

fn replay(engine: &dyn Engine, run: &mut Run<'_>) -> Result<(), Failure> {
    engine.forget(run.folder)?;
    disk::warm(run.folder)?;
    let mut table = None;
    let folder = run.folder;
    run.slices(|_| {
        table = Some(engine.open(folder, Shape::Small)?);
        Ok(())
    })?;
    let mut table = table.ok_or("nothing was opened")?;
    let (sum, rows) = (table.scan()?, run.rows.cast_signed());
    if sum != rows * (rows - 1) / 2 {
        return Err(format!("the rows' sum is {sum}").into());
    }
    run.check(sum);
    table.close()
}
