//! The memory of a reader is what `Options::memory` allows, the image's directory, and little besides.

use std::fs;

use annals::{BackfillMode, FieldNumber, Level, Options, RowId, TableNumber};

use crate::costs::{Database, plain};
use crate::counting::alone;

const ROWS: u64 = 3_000_000;
/// What a reader may hold besides, in bytes: chunks that have room, buffers, what the allocator keeps.
const BESIDES: u64 = 8 << 20;

/// Returns how many bytes of memory the process has now, and had at most since [`forget_peak`].
fn resident() -> (u64, u64) {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
    };
    (value("VmRSS:"), value("VmHWM:"))
}

fn forget_peak() {
    fs::write("/proc/self/clear_refs", "5").unwrap();
}

#[test]
fn a_reader_holds_no_more_than_it_may() {
    let _turn = alone();
    // More of them take minutes to fill.
    let asked = std::env::var("ANNALS_TEST_ROWS").ok().and_then(|rows| rows.parse().ok());
    let rows: u64 = asked.unwrap_or(ROWS);
    // A quarter of the pages.
    let memory = rows * 6;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counted.annals");
    let options = || Options::new().background(false).level(Level::Soft).memory(memory);
    let db = Database::open_with(&path, &options()).unwrap();
    // They have no bits in common, which the image would leave out.
    let values: Vec<_> = (0..10_000_i64).map(|n| n.wrapping_mul(0x5851_F42D_4C95_7F2D)).collect();
    let names = vec!["TOTO"; values.len()];
    for _ in 0..rows / 10_000 {
        db.write(|tx| Ok(tx.insert_vector(plain::Columns { name: &names, value: &values })?))
            .unwrap();
    }
    db.backfill(BackfillMode::Full).unwrap();
    let live = db.live_bytes().unwrap();
    db.close().unwrap();
    assert!(live > memory + memory / 2, "{live}");
    forget_peak();
    let (before, _) = resident();
    let db = Database::open_with(&path, &options()).unwrap();
    let held = |what: &str| {
        let peak = resident().1 - before;
        let most = memory + live / 100 + BESIDES;
        assert!(peak < most, "{what}: {peak} bytes of {memory}, and {most} at most");
    };
    held("opening");
    let now = db.read();
    let table = now.as_dynamic().table(TableNumber(0)).unwrap();
    let mut id = 1_u64;
    let mut sum = 0_i64;
    for _ in 0..500_000 {
        id = id.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let row = table.get(RowId((id >> 33) % rows)).unwrap();
        sum = sum.wrapping_add(row.read::<i64>(FieldNumber(1)));
    }
    held("reads by id");
    for row in table.rows() {
        sum = sum.wrapping_add(row.unwrap().read::<i64>(FieldNumber(1)));
    }
    held("a walk over rows");
    let slices = table.vector(FieldNumber(1), RowId(0), rows).unwrap();
    for chunk in slices.chunks::<i64>().unwrap() {
        sum = chunk.unwrap().iter().fold(sum, |sum, value| sum.wrapping_add(*value));
    }
    held("a walk over slices");
    assert_ne!(sum, 0);
}
