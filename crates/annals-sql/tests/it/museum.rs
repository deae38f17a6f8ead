//! Bugs of others in SQL, as tests of ours.

use std::sync::Arc;

use annals::{BackfillMode, Options, ValueRef};
use annals_simulated::{ReadFault, SimulatedClock, SimulatedDisk};
use annals_sql::Connection;

use crate::shop::text;

const ROWS: i64 = 8_000;

/// redb: an iterator went on after an error, as if there were no more rows.
/// <https://github.com/cberner/redb/blob/master/CHANGELOG.md>, 4.3
#[test]
fn redb_4_3_rows_after_an_error_are_not_left_out() {
    let disk = SimulatedDisk::new(3);
    let open = |memory: u64| {
        let clock = Arc::new(SimulatedClock::new(1));
        let options = Options::new().memory(memory).background(false);
        options.open_in(Arc::new(disk.clone()), "journal", clock).unwrap()
    };
    let schema = "create_table t\nadd_field t name string\nadd_field t number int64\n\
                  create_index t_by_number t number\n";
    let schema = annals_schema::parse(schema).unwrap().schema;
    let table = schema.tables()[0].number;
    let db = open(1 << 30);
    db.upgrade(&schema, &mut |_, _| unreachable!("there is none")).unwrap();
    db.write(|tx| {
        (0..ROWS).try_for_each(|number| {
            let name = format!("a name that no cell has room for, of number {number}");
            tx.insert(table, &[ValueRef::String(&name), ValueRef::Int64(-number)]).map(drop)
        })
    })
    .unwrap();
    db.write(|tx| tx.delete(table, annals::RowId(7))).unwrap();
    db.backfill(BackfillMode::Full).unwrap();
    db.close().unwrap();
    // With little memory each walk reads pages.
    let db = open(1 << 17);
    let mut sql = Connection::open(db).unwrap();
    for query in [
        "SELECT count(*), sum(length(name)) FROM t",
        "SELECT count(*), sum(length(name)) FROM t WHERE number BETWEEN -6000 AND -1000",
        "SELECT number, length(name) FROM t ORDER BY number DESC",
        "SELECT sum(length(b.name)) FROM t a JOIN t b ON b.number = a.number WHERE a.id % 16 = 0",
        "SELECT count(*), sum(length(name)) FROM t_at(2)",
        "SELECT count(*), sum(length(new_name)) FROM t_history",
        "SELECT count(*), sum(length(new_name)) FROM t_changes(1, 2)",
        "SELECT count(*), sum(changes) FROM annals_log",
    ] {
        let begun = disk.reads();
        let whole = text(&mut sql, query);
        assert!(!whole.starts_with("error"), "{query}: {whole}");
        let reads = disk.reads() - begun;
        assert!(reads > 0, "{query}");
        let mut failed = 0;
        // One read fails, or all.
        for (part, count) in (0..8).flat_map(|part| [(part, 1), (part, 1 << 16)]) {
            let first = disk.reads() + reads * part / 8;
            (first..first + count).for_each(|read| disk.fail_read_at(read, ReadFault::Io));
            let found = text(&mut sql, query);
            disk.clear_plan();
            // The rows before it may have been printed.
            let is_error = found.lines().last().is_some_and(|line| line.starts_with("error"));
            assert!(
                is_error || found == whole,
                "{query}, {part}: {} of {}",
                found.len(),
                whole.len()
            );
            failed += u64::from(is_error);
        }
        assert!(failed > 0, "{query}: all was in memory");
        assert_eq!(text(&mut sql, query), whole, "{query}: afterwards");
    }
}
