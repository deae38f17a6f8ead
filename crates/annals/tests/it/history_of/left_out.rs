//! Tables that the history index leaves out: the same answers come from the journal.

use annals::event::Vector;
use annals::storage::MemoryDirectory;
use annals::{BackfillMode, Command, Database, Moment, RowId, TableNumber, ValueRef};
use annals_tools::Undo as _;

use super::indexed::fill;
use super::{CITY, PEOPLE, collect, compare, define, open};

fn set(database: &Database, table: TableNumber, indexed: bool) {
    let command = Command::SetHistoryIndex { table, indexed };
    database.write(|tx| tx.apply_command(&command)).unwrap();
}

fn entries(database: &Database) -> u64 {
    database.backfill(BackfillMode::Full).unwrap();
    annals_tools::check_history_index(&database.read(), false).unwrap().unwrap().inspection.entries
}

#[test]
fn a_backfill_drops_its_entries_and_makes_them_again() {
    let directory = MemoryDirectory::new();
    let database = open(&directory);
    fill(&database, 40, 3);
    let with = entries(&database);
    assert!(with > 4 * 40, "{with} entries");
    let read = |database: &Database| {
        let mut history = database.history_of(CITY, RowId(7)).unwrap();
        assert_eq!(history.by_ref().map(Result::unwrap).count(), 4);
        history.bytes_read()
    };
    let few = read(&database);
    set(&database, CITY, false);
    assert_eq!(read(&database), few, "its entries are there until the next backfill");
    compare(&directory, &database);
    // What is left are a mark every 4 KiB, and the commands of the schema.
    let without = entries(&database);
    assert!(without < 20, "{without} entries");
    assert_eq!(read(&database), few, "an index of one row was made");
    compare(&directory, &database);
    database.write(|tx| tx.update(CITY, RowId(7), PEOPLE, 9_u32.into())).unwrap();
    compare(&directory, &database);

    set(&database, CITY, true);
    compare(&directory, &database);
    assert!(entries(&database) > with);
    compare(&directory, &database);
    database.close().unwrap();
    compare(&directory, &open(&directory));
}

#[test]
fn a_table_that_is_left_out_from_the_beginning_costs_nothing() {
    let directory = MemoryDirectory::new();
    let database = open(&directory);
    define(&database);
    let before = entries(&database);
    set(&database, CITY, false);
    database
        .write(|tx| {
            for number in 0..3000_u32 {
                let name = format!("city {number}");
                tx.insert(CITY, &[ValueRef::String(&name), number.into()])?;
            }
            tx.insert_vector(CITY, 20_000).map(drop)?;
            let cells: Vec<u8> = (0..20_000_u32).flat_map(u32::to_le_bytes).collect();
            tx.update_vector(CITY, RowId(3000), PEOPLE, Vector::Cells(&cells))
        })
        .unwrap();
    let more = entries(&database) - before;
    assert!(more < 10, "{more} entries of a transaction of 20,000 rows");
    for id in [0, 2999, 3000, 22_999].map(RowId) {
        assert_eq!(collect(database.history_of(CITY, id)).len(), 1, "row {}", id.0);
    }
    assert_eq!(collect(database.history_of(CITY, RowId(23_000))), []);
    super::compare_each(&directory, &database, 1000);
}

/// Returns what the history of some rows says, asked in several ways, as text.
fn answers(database: &Database) -> Vec<String> {
    let mut all = Vec::new();
    for id in (0..30).map(RowId) {
        all.push(format!("{:?}", database.blame(CITY, id).unwrap()));
        for txid in [5, 31, 40, 77] {
            let then = database.at(Moment::Txid(annals::Txid(txid))).unwrap();
            let row = then.table(CITY).unwrap().get(id).map(|row| row.value(PEOPLE).to_value());
            all.push(format!("{:?}", row.map_err(|error| error.kind())));
        }
    }
    let now = database.read();
    all.push(format!("{:?}", now.differences(annals::Txid(20), annals::Txid(30)).unwrap()));
    all.push(format!("{:?}", now.differences(annals::Txid(60), annals::Txid(50)).unwrap()));
    let mut tx = database.begin().unwrap();
    tx.restore((CITY, RowId(3)), Moment::Txid(annals::Txid(31))).unwrap();
    tx.revert(annals::Txid(91)).unwrap();
    all.extend(tx.view().table(CITY).unwrap().rows().map(|row| {
        let row = row.unwrap();
        format!("{:?}", row.value(PEOPLE))
    }));
    tx.rollback().unwrap();
    all
}

#[test]
fn blame_past_rows_differences_and_undo_are_the_same() {
    let directory = MemoryDirectory::new();
    let database = open(&directory);
    fill(&database, 30, 2);
    database.backfill(BackfillMode::Full).unwrap();
    let expected = answers(&database);
    assert!(expected.iter().any(|row| *row == "UInt32(1)") && expected.len() == 30 * 5 + 32);
    set(&database, CITY, false);
    assert_eq!(answers(&database), expected, "before the backfill");
    assert!(entries(&database) < 20);
    assert_eq!(answers(&database), expected);
    set(&database, CITY, true);
    assert_eq!(answers(&database), expected);
    assert!(entries(&database) > 60);
    assert_eq!(answers(&database), expected);
}

#[test]
fn deletions_are_found_as_the_schema_says_and_not_as_the_last_backfill_left_it() {
    let database = open(&MemoryDirectory::new());
    fill(&database, 30, 2);
    database.write(|tx| tx.delete(CITY, RowId(7))).unwrap();
    let first_deleted = || {
        let now = database.read();
        let deletions = now.deletions(CITY).unwrap()?;
        let (row, version) = deletions.first_in(RowId(7)..RowId(9), now.txid()).unwrap().unwrap();
        Some((row, version.map(|version| version.txid)))
    };
    let deleted = Some((RowId(7), Some(database.read().txid())));
    assert_eq!(first_deleted(), deleted);
    for mode in [BackfillMode::Passive, BackfillMode::Full] {
        set(&database, CITY, false);
        assert_eq!(first_deleted(), None, "the index has its entries until the next backfill");
        database.backfill(mode).unwrap();
        assert_eq!(first_deleted(), None);
        set(&database, CITY, true);
        assert_eq!(first_deleted(), deleted, "the index has none until the next backfill");
        database.backfill(mode).unwrap();
        assert_eq!(first_deleted(), deleted);
    }
    let none = database.read().deletions(TableNumber(9)).map(drop).unwrap_err();
    assert_eq!(none.kind(), annals::ErrorKind::NotFound, "{none}");
}
