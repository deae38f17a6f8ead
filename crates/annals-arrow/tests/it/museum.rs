//! Bugs of others about streams of rows, as tests of ours.

use std::sync::Arc;

use annals::{BackfillMode, Options, RowId, Snapshot, ValueRef};
use annals_arrow::TableBatches;
use annals_simulated::{ReadFault, SimulatedClock, SimulatedDisk};
use arrow_array::RecordBatch;

const ROWS: i64 = 8_000;

/// All batches, or an error, after which there is nothing.
fn all<E: std::fmt::Display>(
    mut batches: impl Iterator<Item = Result<RecordBatch, E>>,
) -> Result<Vec<RecordBatch>, String> {
    let mut found = Vec::new();
    for batch in batches.by_ref() {
        match batch {
            Ok(batch) => found.push(batch),
            Err(error) => {
                assert!(batches.next().is_none(), "it goes on after {error}");
                return Err(error.to_string());
            }
        }
    }
    Ok(found)
}

type Ask<'a> = &'a dyn Fn(&Snapshot) -> Result<Vec<RecordBatch>, String>;

/// redb: an iterator went on after an error, as if there were no more rows.
/// <https://github.com/cberner/redb/blob/master/CHANGELOG.md>, 4.3
#[test]
fn redb_4_3_a_stream_ends_with_the_error() {
    let disk = SimulatedDisk::new(5);
    let open = |memory: u64| {
        let clock = Arc::new(SimulatedClock::new(1));
        let options = Options::new().memory(memory).background(false);
        options.open_in(Arc::new(disk.clone()), "journal", clock).unwrap()
    };
    let schema = "create_table t\nadd_field t name string\nadd_field t number int64\n";
    let schema = annals_schema::parse(schema).unwrap().schema;
    let table = schema.tables()[0].number;
    let db = open(1 << 30);
    db.upgrade(&schema, &mut |_, _| unreachable!("there is none")).unwrap();
    db.write(|tx| {
        (0..ROWS).try_for_each(|number| {
            let name = format!("a name that no cell has room for, of number {number}");
            tx.insert(table, &[ValueRef::String(&name), ValueRef::Int64(number)]).map(drop)
        })
    })
    .unwrap();
    db.backfill(BackfillMode::Full).unwrap();
    db.close().unwrap();
    let db = open(1 << 17);
    let told = |error: annals::Error| error.to_string();
    let in_order = |now: &Snapshot| all(TableBatches::of(now, table).map_err(told)?);
    let copied = |now: &Snapshot| {
        let options = annals_arrow::Options::for_transport();
        all(TableBatches::range(now, table, 0..u64::MAX, options).map_err(told)?)
    };
    let by_ids = |now: &Snapshot| {
        let ids = (0..ROWS.unsigned_abs()).rev().map(RowId).collect();
        let options = annals_arrow::Options::for_transport();
        all(TableBatches::rows(now, table, ids, options).map_err(told)?)
    };
    let doors: [(&str, Ask<'_>); 3] =
        [("in order", &in_order), ("copied", &copied), ("by ids", &by_ids)];
    for (door, ask) in doors {
        let begun = disk.reads();
        let whole = ask(&db.read()).unwrap();
        let reads = disk.reads() - begun;
        let rows =
            |batches: &[RecordBatch]| batches.iter().map(RecordBatch::num_rows).sum::<usize>();
        assert_eq!(rows(&whole), usize::try_from(ROWS).unwrap(), "{door}");
        let mut failed = 0;
        // One read fails, or all.
        for (part, count) in (0..8).flat_map(|part| [(part, 1), (part, 1 << 16)]) {
            let first = disk.reads() + reads * part / 8;
            (first..first + count).for_each(|read| disk.fail_read_at(read, ReadFault::Io));
            let found = ask(&db.read());
            disk.clear_plan();
            failed += usize::from(found.is_err());
            assert!(found.is_err() || found.is_ok_and(|found| found == whole), "{door}, {part}");
        }
        assert!(failed > 0, "{door}: all was in memory");
        assert!(ask(&db.read()).unwrap() == whole, "{door}: afterwards");
    }
}
