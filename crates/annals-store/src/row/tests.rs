//! Loaded rows need no further loading, whatever other views have read.

use std::sync::Arc;

use annals_schema::{Command, FieldNumber, RowId, TableNumber, Type, ValueRef};

use crate::pages::resident_blocks::ResidentBlocks;
use crate::{Pager, Store, TestImage, Uniqueness, View};
use annals_event::{Event, Vector};

const TABLE: TableNumber = TableNumber(0);
const FIELDS: [FieldNumber; 2] = [FieldNumber(0), FieldNumber(1)];
/// Rows for many pages of each column.
const ROWS: u64 = 60_000;
/// Rows for a few.
const FEW: u64 = 5000;

/// Makes a store over an image that has rows of two numbers, of which nothing is loaded.
fn loaded(keeps: bool) -> (Arc<TestImage>, Arc<Pager>, Store) {
    let (image, pager) = TestImage::new(0, keeps);
    let mut store = Store::new();
    store.apply_command(&Command::CreateTable { name: "t".to_owned() }).unwrap();
    for name in ["a", "b"] {
        let (name, ty, table) = (name.to_owned(), Type::Int64, TABLE);
        let command = Command::AddField { table, name, ty, nullable: false, default: None };
        store.apply_command(&command).unwrap();
    }
    for id in 0..ROWS {
        let number = ValueRef::Int64(id.cast_signed());
        store.insert(TABLE, RowId(id), &[number, number], Uniqueness::AtOnce).unwrap();
    }
    let saved = store.commit().save(&pager, &mut image.keeper(true)).unwrap();
    let view = View::load(&saved.metadata, &saved.roots, &pager).unwrap();
    (image, pager, Store::resume(view))
}

/// Reads a row's neighbour in the working view; then the row in the published one, once nothing can be loaded
/// any more.
fn look((image, store): (&Arc<TestImage>, &Store), id: u64, changed: Option<i64>) {
    let neighbour = store.view().table(TABLE).unwrap().get(RowId(id + 1)).unwrap();
    let neighbour: i64 = neighbour.read(FIELDS[0]);
    assert_eq!(neighbour, changed.unwrap_or((id + 1).cast_signed()));
    let table = store.published().table(TABLE).unwrap();
    let row = table.get(RowId(id)).unwrap();
    // A cache keeps nothing of it.
    assert!(table.rows().all(|row| row.is_ok()));
    image.set_broken(true);
    assert_eq!(FIELDS.map(|field| row.read::<i64>(field)), [id.cast_signed(); 2]);
    assert_eq!(row.value(FIELDS[0]), ValueRef::Int64(id.cast_signed()));
    image.set_broken(false);
}

#[test]
fn a_row_is_in_hand_where_another_view_has_changed_it() {
    let (image, _pager, mut store) = loaded(false);
    for field in FIELDS {
        store.update(TABLE, RowId(11), field, ValueRef::Int64(-1)).unwrap();
    }
    look((&image, &store), 10, Some(-1));
    store.rollback();
    look((&image, &store), 10, None);
}

#[test]
fn a_row_is_in_hand_where_another_view_has_written_over_its_page() {
    let (image, _pager, mut store) = loaded(true);
    let cells = [7_i64; 20_000].map(i64::to_le_bytes);
    for field in FIELDS {
        let values = Vector::Cells(cells.as_flattened());
        store.apply(&Event::UpdateVector { table: TABLE, id: RowId(0), field, values }).unwrap();
    }
    let neighbour = store.view().table(TABLE).unwrap().get(RowId(5)).unwrap();
    assert_eq!(neighbour.read::<i64>(FIELDS[0]), 7);
    let row = store.published().table(TABLE).unwrap().get(RowId(4)).unwrap();
    image.set_broken(true);
    assert_eq!(FIELDS.map(|field| row.read::<i64>(field)), [4; 2]);
}

#[test]
fn a_row_is_in_hand_where_another_view_has_dropped_a_column() {
    let (image, _pager, mut store) = loaded(true);
    store.apply_command(&Command::DropField { table: TABLE, field: FIELDS[1] }).unwrap();
    assert!(store.view().table(TABLE).unwrap().get(RowId(5)).is_ok());
    let row = store.published().table(TABLE).unwrap().get(RowId(4)).unwrap();
    image.set_broken(true);
    assert_eq!(FIELDS.map(|field| row.read::<i64>(field)), [4; 2]);
}

#[test]
fn what_was_looked_at_is_at_hand_for_every_view_of_it() {
    let (_image, pager, mut store) = loaded(true);
    store.update(TABLE, RowId(3), FIELDS[0], ValueRef::Int64(-1)).unwrap();
    for view in [store.view(), store.published()] {
        assert!(view.table(TABLE).unwrap().get(RowId(4)).is_ok());
    }
    let before = pager.loaded();
    let is_at_hand = |view: &View| {
        let table = view.table(TABLE).unwrap();
        table.data.is_at_hand(table.data.rows.find(9).unwrap().unwrap())
    };
    assert!(is_at_hand(store.view()) && is_at_hand(store.published()));
    assert_eq!(pager.loaded(), before);
}

/// Makes a store over an image in which one row replaced a thousand deleted ones, and which has rows with unreadable
/// texts.
fn with_unreadable_texts() -> (Arc<TestImage>, Store) {
    let (image, pager) = TestImage::new(u64::MAX, true);
    let mut store = Store::new();
    store.apply_command(&Command::CreateTable { name: "t".to_owned() }).unwrap();
    let (name, ty, table) = ("a".to_owned(), Type::String, TABLE);
    let field = Command::AddField { table, name, ty, nullable: false, default: None };
    store.apply_command(&field).unwrap();
    let long = "long".repeat(5000);
    for id in 0..3000 {
        let text = match id {
            2000 | 2500 => "no UTF-8",
            2001 => &long,
            _ => "fine",
        };
        store.insert(TABLE, RowId(id), &[ValueRef::String(text)], Uniqueness::AtOnce).unwrap();
    }
    (0..1024).for_each(|id| store.delete(TABLE, RowId(id)).unwrap());
    store.insert(TABLE, RowId(5), &[ValueRef::String("here")], Uniqueness::AtOnce).unwrap();
    let saved = store.commit().save(&pager, &mut image.keeper(true)).unwrap();
    image.craft_bytes(b"no UTF-8", b"no\xffUTF-8");
    let view = View::load(&saved.metadata, &saved.roots, &pager).unwrap();
    (image, Store::resume(view))
}

#[test]
fn texts_that_move_among_others_are_looked_at_again() {
    let (image, mut store) = with_unreadable_texts();
    let slot = |view: &View, id| view.table(TABLE).unwrap().data.rows.find(id).unwrap().unwrap();
    let read = |view: &View, id| {
        let row = view.table(TABLE).unwrap().get(RowId(id))?;
        Ok::<_, crate::Error>(row.read::<&str>(FIELDS[0]).to_owned())
    };
    // From now on it is known that all texts around are short.
    assert_eq!(read(store.view(), 5).unwrap(), "here");
    assert!(read(store.view(), 2000).is_err());
    (1024..2000).for_each(|id| store.delete(TABLE, RowId(id)).unwrap());
    let around = ResidentBlocks::around(slot(store.view(), 5));
    assert!([2000, 2001, 2002].iter().all(|&id| around.contains(&slot(store.view(), id))));
    store.commit();
    for view in [store.view(), store.published()] {
        assert_eq!(read(view, 2002).unwrap(), "fine");
        assert!(read(view, 2000).unwrap_err().to_string().contains("UTF-8"));
        image.set_broken(true);
        assert!(read(view, 2001).is_err());
        image.set_broken(false);
    }
    assert_eq!(read(store.view(), 2001).unwrap(), "long".repeat(5000));
}

#[test]
fn a_text_among_short_ones_is_looked_at_whatever_another_view_has_in_its_place() {
    let (_image, mut store) = with_unreadable_texts();
    let read = |view: &View, id| {
        let row = view.table(TABLE).unwrap().get(RowId(id))?;
        Ok::<_, crate::Error>(row.read::<&str>(FIELDS[0]).to_owned())
    };
    // Loads the page, but notes nothing of it.
    let before = std::sync::Arc::clone(store.published());
    let vector = before.table(TABLE).unwrap().vector(FIELDS[0], RowId(2501), 1).unwrap();
    assert_eq!(vector.strings().unwrap().next().unwrap().unwrap(), "fine");
    store.update(TABLE, RowId(2500), FIELDS[0], ValueRef::String("mended")).unwrap();
    assert_eq!(read(store.view(), 2501).unwrap(), "fine");
    assert_eq!(read(store.view(), 2500).unwrap(), "mended");
    assert!(read(&before, 2500).unwrap_err().to_string().contains("UTF-8"));
    assert_eq!(read(&before, 2501).unwrap(), "fine");
    assert!(read(&before, 2500).is_err());
}

#[test]
fn a_text_is_looked_at_though_its_neighbours_are_short() {
    let (_image, store) = with_unreadable_texts();
    let table = store.view().table(TABLE).unwrap();
    assert_eq!(table.get(RowId(2501)).unwrap().read::<&str>(FIELDS[0]), "fine");
    assert!(table.get(RowId(2500)).unwrap_err().to_string().contains("UTF-8"));
}

/// A row that could be read without loading anything can't, when the table continues from a base of which
/// nothing is in memory. Rows of short texts are known by other bits than those of long ones.
#[test]
fn rows_known_to_be_in_memory_are_forgotten_with_the_base() {
    read_over_a_base_that_is_not_in_memory(["a text that has a page of its own", "short"]);
    read_over_a_base_that_is_not_in_memory(["short", "brief"]);
}

fn read_over_a_base_that_is_not_in_memory(texts: [&str; 2]) {
    let (image, pager) = TestImage::new(u64::MAX, true);
    let mut store = Store::new();
    store.apply_command(&Command::CreateTable { name: "t".to_owned() }).unwrap();
    for (name, ty) in [("a", Type::Int64), ("s", Type::String)] {
        let (name, default) = (name.to_owned(), None);
        let field = Command::AddField { table: TABLE, name, ty, nullable: false, default };
        store.apply_command(&field).unwrap();
    }
    for id in 0..FEW {
        let values = [ValueRef::Int64(1), ValueRef::String(texts[0])];
        store.insert(TABLE, RowId(id), &values, Uniqueness::AtOnce).unwrap();
    }
    let save = |store: &mut Store| {
        let saved = store.commit().save(&pager, &mut image.keeper(true)).unwrap();
        store.rebase(&saved);
    };
    let read = |store: &Store, id| {
        let row = store.view().table(TABLE)?.get(RowId(id))?;
        Ok::<_, crate::Error>(format!("{:?}", row.value(FieldNumber(0))))
    };
    save(&mut store);
    for id in 0..FEW {
        assert_eq!(read(&store, id).unwrap(), "Int64(1)");
    }
    for id in 0..FEW {
        store.update(TABLE, RowId(id), FieldNumber(0), ValueRef::Int64(2)).unwrap();
        store.update(TABLE, RowId(id), FieldNumber(1), ValueRef::String(texts[1])).unwrap();
    }
    pager.set_keeps(false);
    save(&mut store);
    image.set_broken(true);
    // The last pages stay in memory, for rows may be appended to them.
    for id in (0..FEW - 1000).step_by(100) {
        let error = read(&store, id).unwrap_err();
        assert!(error.to_string().contains("the test broke it"), "row {id}: {error}");
    }
    image.set_broken(false);
    assert_eq!(read(&store, 0).unwrap(), "Int64(2)");
}
