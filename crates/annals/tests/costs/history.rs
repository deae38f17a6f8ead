//! Bytes of the history index.

use std::path::Path;

use annals::{
    BackfillMode, Command, Database, FieldNumber, Level, Options, RowId, TableNumber, Type,
    ValueRef,
};

use crate::counting::{alone, peak};

const TABLE: TableNumber = TableNumber(0);
const FIELDS: [(&str, Type); 3] =
    [("name", Type::String), ("number", Type::UInt32), ("price", Type::Float64)];

fn create(path: &Path) -> Database {
    let options = Options::new().background(false).level(Level::Soft);
    let db = options.open(path).unwrap();
    db.write(|tx| {
        tx.apply_command(&Command::CreateTable { name: "thing".to_owned() })?;
        for (name, ty) in FIELDS {
            let (name, table) = (name.to_owned(), TABLE);
            let (nullable, default) = (false, None);
            tx.apply_command(&Command::AddField { table, name, ty, nullable, default })?;
        }
        Ok(())
    })
    .unwrap();
    db
}

/// Returns how many bytes of the image the index has after a backfill.
fn index(db: &Database, path: &Path) -> u64 {
    db.backfill(BackfillMode::Full).unwrap();
    annals_tools::inspect(&Options::new(), path).unwrap().history.unwrap().nodes * 4096
}

#[test]
fn a_single_change_takes_at_most_13_bytes_of_the_history_index() {
    const ROWS: u64 = 100_000;
    const ROUNDS: u64 = 10;
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let db = create(&path);
    db.write(|tx| tx.insert_vector(TABLE, ROWS).map(drop)).unwrap();
    let before = index(&db, &path);
    let mut random = 1_u64;
    let mut each = 0;
    for round in 1..=ROUNDS {
        for number in 0..u32::try_from(ROWS / ROUNDS).unwrap() {
            random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            let id = RowId((random >> 33) % ROWS);
            let value = ValueRef::UInt32(number);
            db.write(|tx| tx.update(TABLE, id, FieldNumber(1), value)).unwrap();
        }
        each = (index(&db, &path) - before) * 100 / (ROWS / ROUNDS * round);
    }
    assert!(each <= 1300, "{each} hundredths of a byte a change");
}

/// Returns the bytes of the index in hundredths of a percent of those of the journal, after a bulk load.
fn of_load(load: impl FnOnce(&Database)) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let db = create(&path);
    load(&db);
    let journal = db.read().point().position;
    index(&db, &path) * 10_000 / journal
}

#[test]
fn a_bulk_load_takes_at_most_a_hundredth_of_the_journal_in_the_history_index() {
    const ROWS: u32 = 300_000;
    let _turn = alone();
    let rows = of_load(|db| {
        db.write(|tx| {
            (0..ROWS).try_for_each(|number| {
                let name = format!("thing {number}");
                let values = [name.as_str().into(), number.into(), f64::from(number).into()];
                tx.insert(TABLE, &values).map(drop)
            })
        })
        .unwrap();
    });
    let vectors = of_load(|db| {
        let names: Vec<String> = (0..ROWS).map(|number| format!("thing {number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let numbers: Vec<u32> = (0..ROWS).collect();
        let prices: Vec<f64> = numbers.iter().copied().map(f64::from).collect();
        db.write(|tx| {
            let first = tx.insert_vector(TABLE, u64::from(ROWS))?;
            tx.update_vector(TABLE, first, FieldNumber(0), &names[..])?;
            tx.update_vector(TABLE, first, FieldNumber(1), &numbers[..])?;
            tx.update_vector(TABLE, first, FieldNumber(2), &prices[..])
        })
        .unwrap();
    });
    assert!(rows <= 100, "by rows {rows} hundredths of a percent of the journal");
    assert!(vectors <= 100, "by vectors {vectors} hundredths of a percent of the journal");
}

#[test]
fn differences_over_a_large_transaction_hold_their_room_and_no_more() {
    const ROWS: u64 = 200_000;
    const ROOM: usize = 4 << 20;
    /// The room, the state of before, and pages of the journal.
    const MOST: i64 = 32 << 20;
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let db = create(&folder.path().join("db"));
    db.write(|tx| tx.insert_vector(TABLE, ROWS).map(drop)).unwrap();
    let before = db.read().txid();
    db.write(|tx| {
        (0..ROWS).try_for_each(|id| {
            let name = format!("a name that is longer than what a cell has room for, {id}");
            tx.update(TABLE, RowId(id), FieldNumber(0), ValueRef::String(&name))
        })
    })
    .unwrap();
    let now = db.read();
    let held = |room: usize| {
        let mut rows = 0;
        let held = peak(|| {
            for change in now.differing(before, now.txid(), room).unwrap() {
                assert_eq!(change.unwrap().id, RowId(rows));
                rows += 1;
            }
        });
        assert_eq!(rows, ROWS);
        held
    };
    let whole = held(usize::MAX);
    assert!(whole > 2 * MOST, "without a bound it is {whole} bytes: the test shows nothing");
    let bounded = held(ROOM);
    assert!(bounded < MOST, "{bounded} bytes, of {whole}");
}
