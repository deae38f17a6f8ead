//! Updates of one field of random rows, in one transaction or in one each, in a table that was loaded just
//! before.

use super::child::Run;
use super::read::{random_ids, rest};
use super::target::{Bound, Target};
use super::{Workload, is_engine};
use crate::engines::{Engine, Failure, Level, Names, Shape};

/// Updates before another engine continues, where each is committed.
const SLICE: u64 = 10_000;

pub(super) const WORKLOADS: &[Workload] = &[UPDATE, EACH];

const UPDATE: Workload = Workload {
    key: "update",
    title: "Updates of one field of as many random rows as there are, one durable commit",
    unit: ("update", "ns"),
    count: 1_000_000,
    slice: None,
    filled: None,
    engines: is_engine,
    work: update,
    beside: &[],
    targets: &[Target::time("at least 15x every peer", &[], Bound::FasterAtLeast(15.0))],
};

const EACH: Workload = Workload {
    key: "update-soft",
    title: "Soft commits, one update of a random row each",
    unit: ("commit", "us"),
    count: 100_000,
    slice: Some(SLICE),
    work: each,
    targets: &[Target::time("ahead of every peer", &[], Bound::FasterAtLeast(1.0))],
    ..UPDATE
};

fn update(engine: &dyn Engine, run: &mut Run<'_>) -> Result<(), Failure> {
    let mut table = engine.create(run.folder, Shape::Small)?;
    table.insert(0..run.count, &Names::SHORT)?;
    let ids = random_ids(run.count, run.count)?;
    rest(run.rows);
    run.slices(|_| table.update(&ids, 1))?;
    run.close(engine, table)
}

fn each(engine: &dyn Engine, run: &mut Run<'_>) -> Result<(), Failure> {
    let mut table = engine.create(run.folder, Shape::Small)?;
    table.insert(0..run.count, &Names::SHORT)?;
    let ids = random_ids(run.count, run.count)?;
    rest(run.rows);
    let Some(mut writer) = table.writer(Level::Soft)? else {
        run.absent();
        return Ok(());
    };
    run.slices(|part| {
        writer.update(&ids[usize::try_from(part.start)?..usize::try_from(part.end)?], 1)
    })?;
    drop(writer);
    run.close(engine, table)
}
