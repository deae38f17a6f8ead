//! The store: what must hold in single, telling cases.

use annals::event::Event;
use annals::store::{Store, Uniqueness};
use annals::{
    Command, ErrorKind, FieldNumber, IndexNumber, RowId, TableNumber, Type, Value, ValueRef,
};

const CITY: TableNumber = TableNumber(0);
const NAME: FieldNumber = FieldNumber(0);
const SIZE: FieldNumber = FieldNumber(1);
const BY_NAME: IndexNumber = IndexNumber(0);

fn field(name: &str, ty: Type, nullable: bool, default: Option<Value>) -> Command {
    Command::AddField { table: CITY, name: name.to_owned(), ty, nullable, default }
}

fn index(name: &str, field: FieldNumber, unique: bool) -> Command {
    Command::CreateIndex {
        name: name.to_owned(),
        table: CITY,
        fields: vec![field],
        descending: Vec::new(),
        collated: Vec::new(),
        unique,
    }
}

/// Makes a store with a table of names (unique, maybe null) and sizes.
fn cities() -> Store {
    let mut store = Store::new();
    store.apply_command(&Command::CreateTable { name: "city".to_owned() }).unwrap();
    store.apply_command(&field("name", Type::String, true, None)).unwrap();
    store.apply_command(&field("size", Type::Int64, false, None)).unwrap();
    store.apply_command(&index("city_by_name", NAME, true)).unwrap();
    store.commit();
    store
}

fn add(store: &mut Store, id: u64, name: &str) -> annals::Result<()> {
    let values = [ValueRef::String(name), ValueRef::Int64(1)];
    store.insert(CITY, RowId(id), &values, Uniqueness::AtOnce)
}

fn rename(store: &mut Store, id: u64, name: &str) {
    store.update(CITY, RowId(id), NAME, ValueRef::String(name)).unwrap();
}

fn names(store: &Store) -> Vec<(u64, String)> {
    let rows = store.view().index(BY_NAME).unwrap().rows().map(Result::unwrap);
    rows.map(|row| (row.id().0, row.read::<&str>(NAME).to_owned())).collect()
}

#[test]
fn unique_keys_can_be_swapped_and_moved_but_not_doubled() {
    let mut store = cities();
    add(&mut store, 3, "Lille").unwrap();
    add(&mut store, 4, "Paris").unwrap();
    store.commit();
    let error = add(&mut store, 5, "Lille").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unique);
    let message = "index `city_by_name`: \"Lille\" is the key of row 3 already";
    assert!(error.to_string().starts_with(message), "{error}");
    rename(&mut store, 3, "Paris");
    assert_eq!(store.check_unique().unwrap_err().kind(), ErrorKind::Unique);
    rename(&mut store, 4, "Lille");
    store.check_unique().unwrap();
    store.delete(CITY, RowId(3)).unwrap();
    add(&mut store, 9, "Paris").unwrap();
    store.check_unique().unwrap();
    store.commit().check().unwrap();
    assert_eq!(names(&store), [(4, "Lille".to_owned()), (9, "Paris".to_owned())]);
    let twice = [ValueRef::String("Paris"), ValueRef::Int64(0)];
    store.insert(CITY, RowId(10), &twice, Uniqueness::AtCommit).unwrap();
    let error = store.check_unique().unwrap_err().to_string();
    assert!(error.contains("rows 9 and 10"), "{error}");
    store.rollback();
    store.check_unique().unwrap();
    for id in 20..23 {
        let nobody = [ValueRef::Null, ValueRef::Int64(0)];
        store.insert(CITY, RowId(id), &nobody, Uniqueness::AtOnce).unwrap();
    }
    store.check_unique().unwrap();
    store.commit().check().unwrap();
}

#[test]
fn refusals_say_what_and_change_nothing() {
    let mut store = cities();
    add(&mut store, 0, "Lille").unwrap();
    let before = format!("{:?}", store.view());
    let refused = |result: annals::Result<()>, kind: ErrorKind, message: &str| {
        let error = result.unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (kind, message));
    };
    let name = ValueRef::String("x");
    let size = ValueRef::Int64(0);
    let once = Uniqueness::AtOnce;
    let mut insert = |id: u64, values: &[ValueRef<'_>]| store.insert(CITY, RowId(id), values, once);
    refused(insert(0, &[name, size]), ErrorKind::InUse, "table `city` has a row 0 already");
    let message = "table `city` has 2 fields, but 1 values were given";
    refused(insert(1, &[name]), ErrorKind::Invalid, message);
    let message = "table `city`, field `size`: it may not be null";
    refused(insert(1, &[name, ValueRef::Null]), ErrorKind::Invalid, message);
    let message = "table `city`, field `name`: 7 is not a value of type string";
    refused(insert(1, &[ValueRef::Int32(7), size]), ErrorKind::Invalid, message);
    assert_eq!(insert(u64::MAX, &[name, size]).unwrap_err().kind(), ErrorKind::Invalid);
    let message = "table `city` has no row 7";
    refused(store.delete(CITY, RowId(7)), ErrorKind::NotFound, message);
    refused(store.update(CITY, RowId(7), SIZE, size), ErrorKind::NotFound, message);
    let message = "table `city` has no field number 9";
    refused(store.update(CITY, RowId(0), FieldNumber(9), size), ErrorKind::NotFound, message);
    refused(
        store.delete(TableNumber(8), RowId(0)),
        ErrorKind::NotFound,
        "there is no table number 8",
    );
    let event = Event::Delete { table: CITY, id: RowId(7) };
    assert_eq!(store.apply(&event).unwrap_err().kind(), ErrorKind::Corrupt);
    add(&mut store, 1, "Paris").unwrap();
    let error = store.apply_command(&index("by_size", SIZE, true)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unique);
    assert!(store.view().schema().index_named("by_size").is_none());
    assert_eq!(store.view().index(IndexNumber(1)).unwrap_err().kind(), ErrorKind::NotFound);
    store.delete(CITY, RowId(1)).unwrap();
    store.view().check().unwrap();
    assert_eq!(format!("{:?}", store.view()), before);
}

#[test]
fn a_row_that_is_inserted_again_shows_nothing_old() {
    let mut store = cities();
    store.apply_command(&field("note", Type::String, true, None)).unwrap();
    let old =
        [ValueRef::String("a long name of a city"), ValueRef::Int64(7), ValueRef::String("n")];
    store.insert(CITY, RowId(5), &old, Uniqueness::AtOnce).unwrap();
    let then = store.commit();
    store.delete(CITY, RowId(5)).unwrap();
    let new = [ValueRef::Null, ValueRef::Int64(0), ValueRef::Null];
    store.insert(CITY, RowId(5), &new, Uniqueness::AtOnce).unwrap();
    let row = store.view().table(CITY).unwrap().get(RowId(5)).unwrap();
    assert_eq!(row.read::<Option<&str>>(NAME), None);
    assert_eq!((row.read::<i64>(SIZE), row.read::<&str>(FieldNumber(2))), (0, ""));
    let row = then.table(CITY).unwrap().get(RowId(5)).unwrap();
    assert_eq!(row.read::<&str>(NAME), "a long name of a city");
}

#[test]
fn rollback_gives_back_ids_and_rows() {
    let mut store = cities();
    add(&mut store, 3, "Lille").unwrap();
    store.commit();
    add(&mut store, 100, "Paris").unwrap();
    store.delete(CITY, RowId(3)).unwrap();
    store.rollback();
    let city = store.view().table(CITY).unwrap();
    assert_eq!((city.next_id(), city.len(), city.contains(RowId(3)).unwrap()), (4, 1, true));
    add(&mut store, 4, "Rome").unwrap();
    assert_eq!(names(&store), [(3, "Lille".to_owned()), (4, "Rome".to_owned())]);
}

#[test]
fn a_new_field_has_its_default_without_touching_the_rows() {
    let mut store = cities();
    let insert = |store: &mut Store, id: u64| {
        let values = [ValueRef::Null, ValueRef::Int64(1)];
        store.insert(CITY, RowId(id), &values, Uniqueness::AtOnce).unwrap();
    };
    (0..100_000).for_each(|id| insert(&mut store, id));
    store.commit();
    let before = store.view().memory();
    let text = Value::String("a default that is longer than a cell".to_owned());
    store.apply_command(&field("note", Type::String, false, Some(text))).unwrap();
    store.apply_command(&field("level", Type::Int32, true, Some(Value::Int32(7)))).unwrap();
    assert!(store.view().memory() - before < 100_000, "{}", store.view().memory() - before);
    let note = FieldNumber(2);
    store.update(CITY, RowId(50_000), note, ValueRef::String("mine")).unwrap();
    let row = |id| store.view().table(CITY).unwrap().get(RowId(id)).unwrap();
    assert_eq!(row(50_000).read::<&str>(note), "mine");
    assert_eq!(row(99_999).read::<&str>(note), "a default that is longer than a cell");
    assert_eq!(row(0).read::<i32>(FieldNumber(3)), 7);
}

fn table_of_pairs() -> Store {
    let mut store = Store::new();
    store.apply_command(&Command::CreateTable { name: "t".to_owned() }).unwrap();
    store.apply_command(&field("name", Type::String, false, None)).unwrap();
    store.apply_command(&field("number", Type::Int64, false, None)).unwrap();
    store
}

fn toto(store: &mut Store, id: u64) {
    let values = [ValueRef::String("TOTO"), ValueRef::Int64(id.cast_signed())];
    store.insert(CITY, RowId(id), &values, Uniqueness::AtOnce).unwrap();
}

#[test]
fn memory_follows_the_rows() {
    let rows = 200_000;
    let mut store = table_of_pairs();
    for id in 0..rows {
        toto(&mut store, id);
        if id % 1000 == 0 {
            store.commit();
        }
    }
    let each = |store: &Store, rows: u64| store.view().memory() as u64 / rows;
    assert!(each(&store, rows) <= 26, "appended: {}", each(&store, rows));

    // At random places among 2^60 ids.
    let mut store = table_of_pairs();
    (0..rows).for_each(|i| toto(&mut store, i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 4));
    assert!(each(&store, rows) <= 90, "sparse: {}", each(&store, rows));

    // Consecutive, but in another order.
    let mut store = table_of_pairs();
    (0..rows).for_each(|i| toto(&mut store, i * 77_773 % rows));
    store.view().check().unwrap();
    assert!(each(&store, rows) <= 60, "shuffled: {}", each(&store, rows));

    // One of a thousand is left.
    let mut store = table_of_pairs();
    (0..rows).for_each(|id| toto(&mut store, id));
    store.commit();
    let gone = (0..rows).filter(|id| id % 1000 != 0);
    gone.for_each(|id| store.delete(CITY, RowId(id)).unwrap());
    store.commit();
    (rows..rows * 2).for_each(|id| toto(&mut store, id));
    store.view().check().unwrap();
    assert!(each(&store, rows) <= 30, "thinned and filled again: {}", each(&store, rows));
}

#[test]
fn a_queue_takes_the_same_memory_for_ever() {
    let mut store = table_of_pairs();
    let mut memory = 0;
    for id in 0..150_000 {
        toto(&mut store, id);
        if id >= 5000 {
            store.delete(CITY, RowId(id - 5000)).unwrap();
        }
        if id % 500 == 0 {
            store.commit();
        }
        if id == 30_000 {
            memory = store.view().memory();
        }
    }
    let last = store.view().memory();
    assert!(last <= memory + 200_000, "{memory} bytes became {last}");
    store.view().check().unwrap();
}

#[test]
fn very_long_strings_are_kept_and_found() {
    let mut store = cities();
    let (a, b) = ("x".repeat(3_000_000), "x".repeat(3_000_000) + "y");
    add(&mut store, 1, &b).unwrap();
    add(&mut store, 2, &a).unwrap();
    assert_eq!(add(&mut store, 3, &a).unwrap_err().kind(), ErrorKind::Unique);
    let view = store.commit();
    view.check().unwrap();
    let order: Vec<_> = names(&store).iter().map(|(id, _)| *id).collect();
    assert_eq!(order, [2, 1]);
    let index = view.index(BY_NAME).unwrap();
    let mut found = index.equal(&[ValueRef::String(&b)]);
    assert_eq!(found.next().unwrap().unwrap().id(), RowId(1));
    assert!(found.next().is_none());
}

#[test]
fn a_row_of_many_columns_takes_memory_for_its_values_not_for_pages() {
    let mut store = Store::new();
    store.apply_command(&Command::CreateTable { name: "wide".to_owned() }).unwrap();
    let types = [Type::Int64, Type::String, Type::Bool, Type::UInt8];
    let columns = 2000;
    for column in 0..columns {
        let ty = types[column % 4];
        store.apply_command(&field(&format!("f{column}"), ty, column % 2 == 0, None)).unwrap();
    }
    let text = "a string that is longer than a cell";
    let row: Vec<_> = (0..columns).map(|column| value_of(column, text)).collect();
    for id in 0..3 {
        store.insert(CITY, RowId(id), &row, Uniqueness::AtOnce).unwrap();
        store.commit();
    }
    assert!(store.view().memory() < 2 << 20, "{} bytes", store.view().memory());
    for id in 0..3 {
        let row = store.view().table(CITY).unwrap().get(RowId(id)).unwrap();
        let values =
            (0..columns).map(|column| row.value(FieldNumber(u32::try_from(column).unwrap())));
        assert!(values.enumerate().all(|(column, value)| value == value_of(column, text)));
    }
}

fn value_of(column: usize, text: &str) -> ValueRef<'_> {
    match column % 4 {
        0 => ValueRef::Int64(1),
        1 => ValueRef::String(text),
        2 => ValueRef::Bool(true),
        _ => ValueRef::UInt8(7),
    }
}
