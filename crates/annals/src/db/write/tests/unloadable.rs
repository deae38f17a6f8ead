//! Tests of transactions that need a page which can't be loaded.

use std::sync::Arc;

use annals_schema::{
    Command, FieldNumber, IndexNumber, OnDelete, RowId, TableNumber, Type, ValueRef,
};

use crate::storage::MemoryDirectory;
use crate::store::{Store, TestImage, View};
use crate::{Database, ErrorKind, Options, Result, Transaction};
use annals_simulated::SimulatedClock;

const TABLE: TableNumber = TableNumber(0);
const TEXT: FieldNumber = FieldNumber(0);
const ROWS: u64 = 20_000;

fn filled() -> Database {
    let (directory, clock) = (MemoryDirectory::new(), SimulatedClock::new(1));
    let options = Options::new().background(false);
    let database = options.open_in(Arc::new(directory), "journal", Arc::new(clock)).unwrap();
    let mut tx = database.begin().unwrap();
    tx.apply_command(&Command::CreateTable { name: "t".to_owned() }).unwrap();
    for (name, ty) in [("a", Type::String), ("b", Type::Reference(TABLE, OnDelete::Cascade))] {
        let (name, table) = (name.to_owned(), TABLE);
        let nullable = ty.carries_null();
        let command = Command::AddField { table, name, ty, nullable, default: None };
        tx.apply_command(&command).unwrap();
    }
    let (name, fields) = ("i".to_owned(), vec![TEXT]);
    tx.apply_command(&Command::CreateIndex {
        name,
        table: TABLE,
        fields,
        descending: Vec::new(),
        collated: Vec::new(),
        unique: true,
    })
    .unwrap();
    for number in 0..ROWS {
        let text = format!("{number:0100}");
        tx.insert(TABLE, &[ValueRef::String(&text), ValueRef::Null]).unwrap();
    }
    tx.commit().unwrap();
    database
}

/// Puts the store into an image, from which nothing was loaded yet.
fn unload(database: &Database) -> Arc<TestImage> {
    let (image, pager) = TestImage::new(1 << 20, false);
    let saved = database.read().save(&pager, &mut image.keeper(true)).unwrap();
    let view = View::load(&saved.metadata, &saved.roots, &pager).unwrap();
    database.begin().unwrap().writing.store = Store::resume(view);
    image
}

/// Runs a statement that needs a page which can't be loaded; checks the state after it.
fn stops(what: &str, statement: impl Fn(&mut Transaction<'_>) -> Result<()>) {
    let database = filled();
    let image = unload(&database);
    let mut tx = database.begin().unwrap();
    tx.comment("before").unwrap();
    image.set_broken(true);
    let error = statement(&mut tx).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
    image.set_broken(false);
    let error = tx.comment("after").unwrap_err();
    assert!(error.to_string().contains("roll it back"), "{what}: {error}");
    assert!(tx.commit().is_err(), "{what}");
    // It is unchanged, and can be written.
    let mut tx = database.begin().unwrap();
    tx.view().check().unwrap();
    assert_eq!(tx.view().table(TABLE).unwrap().len(), ROWS, "{what}");
    statement(&mut tx).unwrap();
    tx.view().check().unwrap();
    tx.commit().unwrap();
    // Not closed: that would write to an image that isn't this database's.
    std::mem::forget(database);
}

#[test]
fn a_statement_that_stops_in_the_middle_leaves_a_rollback() {
    let row = |text| [ValueRef::String(text), ValueRef::Null];
    stops("insert", |tx| tx.insert(TABLE, &row("new")).map(drop));
    stops("update", |tx| tx.update(TABLE, RowId(7), TEXT, ValueRef::String("new")));
    stops("delete", |tx| tx.delete(TABLE, RowId(7)));
    stops("insert_vector", |tx| {
        let id = tx.insert_vector(TABLE, 1)?;
        tx.update(TABLE, id, TEXT, ValueRef::String("new"))
    });
    stops("insert_rows", |tx| {
        let (texts, nulls) = (["x", "y"], [None::<RowId>; 2]);
        tx.insert_rows(TABLE, &[texts.as_slice().into(), nulls.as_slice().into()]).map(drop)
    });
    stops("update_vector", |tx| tx.update_vector(TABLE, RowId(7), TEXT, ["x", "y"].as_slice()));
    stops("delete_vector", |tx| tx.delete_vector(TABLE, RowId(7), 5000));
    stops("create_index", |tx| {
        let (name, fields) = ("j".to_owned(), vec![TEXT]);
        tx.apply_command(&Command::CreateIndex {
            name,
            table: TABLE,
            fields,
            descending: Vec::new(),
            collated: Vec::new(),
            unique: false,
        })
    });
}

#[test]
fn reading_fails_and_goes_on() {
    let database = filled();
    let image = unload(&database);
    let tx = database.begin().unwrap();
    let table = tx.view().table(TABLE).unwrap();
    let index = tx.view().index(IndexNumber(0)).unwrap();
    image.set_broken(true);
    assert_eq!(table.get(RowId(7)).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(index.rows().next().unwrap().unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(tx.view().check().unwrap_err().kind(), ErrorKind::Corrupt);
    image.set_broken(false);
    assert_eq!(table.get(RowId(7)).unwrap().read::<&str>(TEXT), format!("{:0100}", 7));
    assert_eq!(index.rows().map(Result::unwrap).count() as u64, ROWS);
    tx.commit().unwrap();
}
