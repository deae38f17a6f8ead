//! Many rows in one transaction: row by row, and as columns.

use std::fs::File;
use std::io::Write as _;

use super::child::Run;
use super::target::{Bound, Target};
use super::{ROWS, Workload, is_engine};
use crate::engines::{Engine, Failure, Names, Shape};

/// The size of a row in the journal, if it is inserted alone.
const ROW: u64 = 9;
/// The bytes of a write of the disk alone.
const PIECE: usize = 1 << 20;

pub(super) const WORKLOADS: &[Workload] = &[BULK, VECTORS];

const BULK: Workload = Workload {
    key: "bulk",
    title: "Inserts row by row, one durable commit",
    unit: ("row", "ns"),
    count: ROWS,
    slice: None,
    filled: None,
    engines: is_engine,
    work: rows,
    beside: &[("write of 9 bytes a row, flush", disk)],
    targets: &[
        Target::time(
            "at least 8x faster than SQLite's best",
            &["SQLite WAL", "SQLite rollback"],
            Bound::FasterAtLeast(8.0),
        ),
        Target::time("at least 6x faster than LMDB", &["LMDB"], Bound::FasterAtLeast(6.0)),
        Target::time("at least 10x faster than redb", &["redb"], Bound::FasterAtLeast(10.0)),
        Target::at_most("at most 70 ns of CPU a row", "CPU", 70.0),
        Target::at_most("at most 12 bytes a row in the journal", "journal", 12.0),
        Target::at_most("at most 30 bytes a row in memory", "store", 30.0),
    ],
};
const VECTORS: Workload = Workload {
    key: "vectors",
    title: "Inserts by vectors, one durable commit",
    work: columns,
    targets: &[Target::at_most("at most 25 ns of CPU a row", "CPU", 25.0)],
    ..BULK
};

fn rows(engine: &dyn Engine, run: &mut Run<'_>) -> Result<(), Failure> {
    let mut table = engine.create(run.folder, Shape::Small)?;
    run.slices(|ids| table.insert(ids, &Names::SHORT))?;
    run.close(engine, table)
}

fn columns(engine: &dyn Engine, run: &mut Run<'_>) -> Result<(), Failure> {
    let mut table = engine.create(run.folder, Shape::Small)?;
    if !table.insert_columns(&[], &[])? {
        run.absent();
        return Ok(());
    }
    // A program has its columns before it inserts them.
    let names = vec!["TOTO"; usize::try_from(run.count)?];
    let values: Vec<_> = (0..run.count.cast_signed()).collect();
    run.slices(|_| table.insert_columns(&names, &values).map(drop))?;
    run.close(engine, table)
}

/// Writes as many bytes one after the other, and flushes once.
fn disk(run: &mut Run<'_>) -> Result<(), Failure> {
    #[allow(clippy::disallowed_methods, reason = "the limit has nothing between it and the file")]
    let mut file = File::create(run.folder.join("limit"))?;
    let bytes = vec![0x55; PIECE];
    run.slices(|rows| {
        let mut left = usize::try_from((rows.end - rows.start) * ROW)?;
        while left > 0 {
            let piece = left.min(PIECE);
            file.write_all(&bytes[..piece])?;
            left -= piece;
        }
        Ok(file.sync_data()?)
    })?;
    run.written();
    Ok(())
}
