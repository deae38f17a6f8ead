//! Vectors: runs of rows, through the typed API and by numbers.

use std::borrow::Cow;

use annals::event::{Event, MAX_VECTOR, Vector};
use annals::storage::MemoryDirectory;
use annals::store::Store;
use annals::{
    Command, Database, ErrorKind, FieldNumber, IndexNumber, RowId, TableNumber, Type, ValueRef,
};

use crate::database_model::open;

const TABLE: TableNumber = TableNumber(0);
const NUMBER: FieldNumber = FieldNumber(0);
const TEXT: FieldNumber = FieldNumber(1);

fn commands(unique: bool) -> [Command; 4] {
    let field = |name: &str, ty, nullable| {
        let name = name.to_owned();
        Command::AddField { table: TABLE, name, ty, nullable, default: None }
    };
    let (name, fields) = ("by_number".to_owned(), vec![NUMBER]);
    [
        Command::CreateTable { name: "t".to_owned() },
        field("number", Type::Int64, false),
        field("text", Type::String, true),
        Command::CreateIndex {
            name,
            table: TABLE,
            fields,
            descending: Vec::new(),
            collated: Vec::new(),
            unique,
        },
    ]
}

fn new(unique: bool) -> Database {
    let db = open(&MemoryDirectory::new());
    db.write(|tx| commands(unique).iter().try_for_each(|command| tx.apply_command(command)))
        .unwrap();
    db
}

fn numbers(db: &Database) -> Vec<i64> {
    let now = db.read();
    let table = now.table(TABLE).unwrap();
    table.vector(NUMBER, RowId(0), table.len()).unwrap().to_vec().unwrap()
}

#[test]
fn a_statement_inserts_a_bounded_number_of_rows_without_values() {
    let db = new(false);
    let mut tx = db.begin().unwrap();
    for count in [(1 << 26) + 1, 1_000_000_000_000] {
        let error = tx.insert_vector_at(TABLE, RowId(0), count).unwrap_err();
        let expected = format!(
            "cannot insert {count} rows without values: a statement inserts at most 67108864; insert fewer \
             rows at a time"
        );
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::Invalid, expected));
    }
    // Nothing of them is left, and the transaction continues.
    assert_eq!(tx.insert_vector(TABLE, 65).unwrap(), RowId(0));
    tx.commit().unwrap();
    assert_eq!(db.read().table(TABLE).unwrap().len(), 65);
}

#[test]
fn a_run_longer_than_an_event_is_written_read_and_deleted() {
    let db = new(false);
    let count = MAX_VECTOR + 5;
    let ids = || 0..i64::try_from(count).unwrap();
    let values: Vec<_> = ids().map(|id| id * 7 % 1000).collect();
    let texts: Vec<_> =
        ids().map(|id| (id % 3 > 0).then_some("some text that is not short")).collect();
    let first = db
        .write(|tx| tx.insert_rows(TABLE, &[values.as_slice().into(), texts.as_slice().into()]))
        .unwrap();
    assert_eq!(first, RowId(0));
    assert_eq!(numbers(&db), values);
    let now = db.read();
    let read = now.table(TABLE).unwrap().vector(TEXT, first, count).unwrap();
    assert!(read.values().zip(&texts).all(|(read, &text)| read.unwrap() == text.into()));
    assert_eq!(now.index(IndexNumber(0)).unwrap().rows().count() as u64, count);
    db.write(|tx| tx.delete_vector(TABLE, RowId(1), count - 2)).unwrap();
    let left: Vec<_> =
        db.read().table(TABLE).unwrap().rows().map(|row| row.unwrap().id()).collect();
    assert_eq!(left, [RowId(0), RowId(count - 1)]);
    db.read().check().unwrap();
    assert_eq!(now.table(TABLE).unwrap().len(), count);
}

#[test]
fn a_statement_that_fails_leaves_nothing() {
    let db = new(false);
    db.write(|tx| tx.insert_vector(TABLE, 10).and(tx.delete(TABLE, RowId(7)))).unwrap();
    let before = db.read().point();
    let tx = &mut db.begin().unwrap();
    let refused = |kind, what: &str, result: annals::Result<()>| {
        let error = result.unwrap_err();
        assert_eq!((error.kind(), error.to_string().contains(what)), (kind, true), "{error}");
    };
    let nine = [1_i64; 9];
    refused(
        ErrorKind::NotFound,
        "no row 7",
        tx.update_vector(TABLE, RowId(0), NUMBER, nine.as_slice()),
    );
    refused(ErrorKind::NotFound, "no row 7", tx.delete_vector(TABLE, RowId(5), 5));
    refused(ErrorKind::InUse, "row 8", tx.insert_vector_at(TABLE, RowId(7), 5));
    refused(
        ErrorKind::Invalid,
        "not one of values of its type",
        tx.update_vector(TABLE, RowId(0), NUMBER, [1_u64; 2].as_slice()),
    );
    let some = [Some(1_i64), None];
    refused(
        ErrorKind::Invalid,
        "may not be null",
        tx.update_vector(TABLE, RowId(0), NUMBER, some.as_slice()),
    );
    refused(
        ErrorKind::Invalid,
        "2 values of field `text`",
        tx.insert_rows(TABLE, &[nine.as_slice().into(), ["a", "b"].as_slice().into()]).map(drop),
    );
    let last = RowId::MAX.0;
    refused(ErrorKind::Invalid, "is no id", tx.insert_vector_at(TABLE, RowId(last), 2));
    refused(ErrorKind::NotFound, "no row 10", tx.delete_vector(TABLE, RowId(8), u64::MAX));
    refused(ErrorKind::InUse, "row 8", tx.insert_vector_at(TABLE, RowId(7), u64::MAX >> 2));
    assert!(tx.is_empty());
    tx.insert_vector_at(TABLE, RowId(last), 1).unwrap();
    let says = format!("its last id: ids go up to {last}, and a row has {last}. Insert at ids");
    refused(ErrorKind::Invalid, &says, tx.insert_vector(TABLE, 1).map(drop));
    tx.delete_vector(TABLE, RowId(last), 1).unwrap();
    let says = format!("a row had that was deleted {last}");
    refused(ErrorKind::Invalid, &says, tx.insert_vector(TABLE, 1).map(drop));
    assert_eq!(db.read().point(), before);
}

#[test]
fn unique_keys_are_looked_at_by_the_commit() {
    let db = new(true);
    let count = 20_000;
    let values: Vec<i64> = (0..count).collect();
    // All are zero, and so the same, for a while.
    db.write(|tx| -> annals::Result<()> {
        let first = tx.insert_vector(TABLE, 20_000)?;
        tx.update_vector(TABLE, first, NUMBER, values.as_slice())
    })
    .unwrap();
    let backwards: Vec<i64> = (0..count).rev().collect();
    let set = |values: &[i64]| db.write(|tx| tx.update_vector(TABLE, RowId(0), NUMBER, values));
    set(&backwards).unwrap();
    assert_eq!(numbers(&db), backwards);
    let shifted: Vec<i64> = (1..=count).collect();
    set(&shifted).unwrap();
    let mut doubled = shifted.clone();
    doubled[77] = doubled[15_000];
    let error = set(&doubled).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unique);
    assert!(error.to_string().contains("rows 77 and 15000"), "{error}");
    let error =
        db.write(|tx| tx.insert_rows(TABLE, &[[9_i64].as_slice().into(), [""].as_slice().into()]));
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Unique);
    assert_eq!(numbers(&db), shifted);
    db.read().check().unwrap();
}

#[test]
fn replay_refuses_runs_that_make_no_sense() {
    let mut store = Store::new();
    commands(false).iter().for_each(|command| store.apply(&Event::Schema(command)).unwrap());
    let (table, id, field) = (TABLE, RowId(3), NUMBER);
    store.apply(&Event::InsertVector { table, id, count: 4 }).unwrap();
    let before = store.commit();
    let nothing = TableNumber(9);
    let eight = [0; 8];
    let cells = Vector::Cells(&eight);
    let bad = [
        Event::InsertVector { table, id: RowId(100), count: 0 },
        Event::InsertVector { table, id: RowId(100), count: MAX_VECTOR + 1 },
        Event::InsertVector { table, id: RowId(0), count: 4 },
        Event::InsertVector { table, id: RowId(u64::MAX), count: 2 },
        Event::InsertVector { table: nothing, id, count: 1 },
        Event::UpdateVector { table, id, field, values: Vector::Cells(&[]) },
        Event::UpdateVector { table, id, field, values: Vector::Cells(&[0; 9]) },
        Event::UpdateVector { table, id, field, values: Vector::Cells(&[0; 40]) },
        Event::UpdateVector { table, id, field: TEXT, values: cells },
        Event::UpdateVector { table, id, field: FieldNumber(2), values: cells },
        Event::UpdateVector { table, id: RowId(u64::MAX), field, values: cells },
        Event::UpdateVector { table: nothing, id, field, values: cells },
        Event::DeleteVector { table, id, count: 0 },
        Event::DeleteVector { table, id, count: 5 },
        Event::DeleteVector { table, id: RowId(0), count: u64::MAX },
        Event::DeleteVector { table: nothing, id, count: 1 },
    ];
    for event in bad {
        assert_eq!(store.apply(&event).unwrap_err().kind(), ErrorKind::Corrupt, "{event:?}");
    }
    assert_eq!(store.commit().table(TABLE).unwrap().len(), before.table(TABLE).unwrap().len());
    store.view().check().unwrap();
}

#[test]
fn zeros_take_no_memory_and_runs_fill_holes() {
    let mut store = Store::new();
    commands(false)[..3].iter().for_each(|command| store.apply_command(command).unwrap());
    store.insert_vector(TABLE, RowId(0), 1_000_000, true).unwrap();
    // A bit for each row, and one for its null.
    assert!(store.commit().memory() < 1_000_000 / 8 * 3, "{}", store.view().memory());
    for round in 0..200_u64 {
        let id = RowId(round * 5_000);
        store.delete_vector(TABLE, id, 4_000).unwrap();
        store.insert_vector(TABLE, RowId(2_000_000 + round * 4_000), 4_000, true).unwrap();
        store.insert_vector(TABLE, RowId(id.0 + 500), 2_000, true).unwrap();
        store.insert_vector(TABLE, id, 500, true).unwrap();
    }
    let view = store.commit();
    view.check().unwrap();
    assert_eq!(view.table(TABLE).unwrap().len(), 1_000_000 + 200 * 2_500);
    assert!(view.memory() < 1_000_000, "{}", view.memory());
}

#[test]
fn the_typed_forms_read_what_they_wrote() {
    use crate::generated_for_tests::items;
    let folder = tempfile::tempdir().unwrap();
    let db = items::Database::open(folder.path().join("items")).unwrap();
    let names = ["a", "b", "a longer name than that"];
    let prices = [0.5, -0.0, f64::INFINITY];
    let stock = [Some(3), None, Some(-1)];
    let raw: [&[u8]; 3] = [b"", b"\0", b"123456789012345"];
    let times = [annals::Timestamp(1), annals::Timestamp(2), annals::Timestamp(-3)];
    let parents = [None, Some(items::item::Id::from_u64(0)), Some(items::item::Id::from_u64(1))];
    let field = |number| FieldNumber(number);
    db.write(|tx| {
        let first = tx.insert_vector(items::item::Columns {
            name: &names,
            price: &prices,
            stock: &stock,
            colour: &names,
            on_sale: &[true, false, true],
            raw: &raw,
            made: &times,
            parent: &parents,
        })?;
        Ok(tx.update_vector(items::item::PARENT, first, &[first; 2])?)
    })
    .unwrap();
    let now = db.read();
    let (table, first) = (now.item(), items::item::Id::from_u64(0));
    assert_eq!(table.get_vector::<Cow<'_, str>>(first, field(0), 3).unwrap(), names);
    assert_eq!(table.get_vector::<f64>(first, field(1), 3).unwrap(), prices);
    assert_eq!(table.get_vector::<Option<i32>>(first, field(2), 3).unwrap(), stock);
    assert_eq!(table.get_vector::<i32>(first, field(2), 1).unwrap(), [3]);
    assert_eq!(table.get_vector::<bool>(first, field(4), 3).unwrap(), [true, false, true]);
    assert_eq!(table.get_vector::<Cow<'_, [u8]>>(first, field(5), 3).unwrap(), raw);
    assert_eq!(table.get_vector::<annals::Timestamp>(first, field(6), 3).unwrap(), times);
    let ids = table.get_vector::<Option<items::item::Id>>(first, field(7), 3).unwrap();
    assert_eq!(ids, [Some(first), Some(first), Some(items::item::Id::from_u64(1))]);
    assert_eq!(table.get_vector::<items::item::Id>(first, field(7), 2).unwrap(), [first; 2]);
    for error in [
        table.get_vector::<i32>(first, field(2), 2).map(drop),
        table.get_vector::<i64>(first, field(2), 1).map(drop),
        table.get_vector::<Cow<'_, str>>(first, field(1), 1).map(drop),
    ] {
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Invalid);
    }
    let error = table.get_vector::<f64>(first, field(1), 5).unwrap_err();
    assert!(error.to_string().contains("no row 3"), "{error}");
    assert_eq!(table.get(ids[2]).unwrap().unwrap().name(), "b");
    assert!(table.get(items::item::Id::from_u64(8)).unwrap().is_none());
    assert!(table.get(None).unwrap().is_none());
    let mut copy = [0.0; 2];
    table.vector(first, field(1), 2).unwrap().copy_to(&mut copy).unwrap();
    assert_eq!(copy, prices[..2]);
    db.close().unwrap();
}

/// Text that becomes bytes which are none, as soon as it was asked for so often.
#[derive(Clone, Copy)]
struct Fickle<'a> {
    asked: &'a std::cell::Cell<u32>,
    honest: u32,
}

impl<'a> From<Fickle<'a>> for ValueRef<'a> {
    fn from(value: Fickle<'a>) -> Self {
        value.asked.set(value.asked.get() + 1);
        if value.asked.get() > value.honest {
            return ValueRef::Bytes(&[0xff; 20]);
        }
        ValueRef::String("text")
    }
}

/// Text that can be had only so often.
struct Panicking<'a>(&'a std::cell::Cell<u32>);

impl AsRef<str> for Panicking<'_> {
    fn as_ref(&self) -> &str {
        self.0.set(self.0.get().checked_sub(1).expect("it is asked for once too often"));
        "text"
    }
}

/// Sees that a transaction in which a statement stopped in the middle leaves nothing.
fn assert_can_only_be_rolled_back(mut tx: annals::Transaction<'_>) {
    let error = tx.delete(TABLE, RowId(0)).unwrap_err();
    assert!(error.to_string().contains("roll it back"), "{error}");
    tx.commit().unwrap_err();
}

#[test]
fn values_that_change_between_two_looks_reach_neither_store_nor_journal() {
    let db = new(false);
    db.write(|tx| tx.insert_vector(TABLE, 1)).unwrap();
    let before = db.read().point();
    for honest in 0..4 {
        for insert in [true, false] {
            let asked = std::cell::Cell::new(0);
            let texts = [Some(Fickle { asked: &asked, honest })];
            let mut tx = db.begin().unwrap();
            let written = if insert {
                tx.insert_rows(TABLE, &[[1_i64].as_slice().into(), texts.as_slice().into()])
                    .map(drop)
            } else {
                tx.update_vector(TABLE, RowId(0), TEXT, texts.as_slice())
            };
            match written {
                Ok(()) => tx.rollback().unwrap(),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
                    if honest > 0 {
                        assert_can_only_be_rolled_back(tx);
                    }
                }
            }
            let most = if honest == 0 { 1 } else { honest + 1 };
            assert!(asked.get() <= most, "it was refused where it first was another");
            assert_eq!(db.read().point(), before);
            db.read().check().unwrap();
        }
    }
}

#[test]
fn values_that_panic_in_the_middle_leave_nothing() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    let db = new(false);
    let before = db.read().point();
    let mut finished = false;
    for often in 0..9 {
        let asked = std::cell::Cell::new(often);
        let texts = [Panicking(&asked), Panicking(&asked)];
        let mut tx = db.begin().unwrap();
        let values = [[1_i64, 2].as_slice().into(), annals::store::Values::strings(&texts)];
        let inserted = catch_unwind(AssertUnwindSafe(|| tx.insert_rows(TABLE, &values)));
        finished |= inserted.is_ok();
        if inserted.is_err() && !tx.is_empty() {
            assert_can_only_be_rolled_back(tx);
        } else {
            tx.rollback().unwrap();
        }
        assert_eq!(db.read().point(), before);
        let tx = db.begin().unwrap();
        tx.view().check().unwrap();
    }
    assert!(finished, "it is asked for a bounded number of times");
}
