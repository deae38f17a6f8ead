//! Tables of a single row.

use annals::event::Event;
use annals::model::OnDelete;
use annals::storage::MemoryDirectory;
use annals::store::Store;
use annals::{
    Command, Database, ErrorKind, FieldNumber, RowId, TableNumber, Transaction, Type, Value,
    ValueRef,
};

use crate::database_model::open;

const SETTINGS: TableNumber = TableNumber(0);
const OTHER: TableNumber = TableNumber(1);
const VOLUME: FieldNumber = FieldNumber(0);

type Statement<'s> = dyn Fn(&mut Transaction<'_>) -> annals::Result<()> + 's;

fn single(table: TableNumber, single: bool) -> Command {
    Command::SetSingleRow { table, single }
}

fn settings() -> Vec<Command> {
    let create = |name: &str| Command::CreateTable { name: name.to_owned() };
    let (name, default) = ("volume".to_owned(), Some(Value::Int8(7)));
    let volume =
        Command::AddField { table: SETTINGS, name, ty: Type::Int8, nullable: false, default };
    vec![create("settings"), create("other"), volume]
}

fn new() -> Database {
    let db = open(&MemoryDirectory::new());
    let mut tx = db.begin().unwrap();
    settings().iter().for_each(|command| tx.apply_command(command).unwrap());
    tx.commit().unwrap();
    db
}

#[test]
fn the_row_comes_with_the_defaults_and_stays_alone() {
    let db = new();
    assert_eq!(db.read().table(SETTINGS).unwrap().single().unwrap_err().kind(), ErrorKind::Invalid);
    db.write(|tx| tx.apply_command(&single(SETTINGS, true))).unwrap();
    let row = |db: &Database| {
        let now = db.read();
        let row = now.table(SETTINGS).unwrap().single().unwrap();
        (row.id().0, row.read::<i8>(VOLUME))
    };
    assert_eq!(row(&db), (0, 7));
    let mut tx = db.begin().unwrap();
    tx.update(SETTINGS, RowId(0), VOLUME, ValueRef::Int8(11)).unwrap();
    let values = [ValueRef::Int8(1)];
    let statements: [&Statement<'_>; 7] = [
        &|tx| tx.insert(SETTINGS, &values).map(drop),
        &|tx| tx.insert_at(SETTINGS, RowId(5), &values),
        &|tx| tx.insert_zero(SETTINGS, RowId(5)),
        &|tx| tx.insert_vector(SETTINGS, 1).map(drop),
        &|tx| tx.insert_rows(SETTINGS, &[[1_i8].as_slice().into()]).map(drop),
        &|tx| tx.delete(SETTINGS, RowId(0)),
        &|tx| tx.delete_vector(SETTINGS, RowId(0), 1),
    ];
    for (number, statement) in statements.iter().enumerate() {
        let error = statement(&mut tx).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{number}");
        let message = "table `settings` always has exactly one row: ";
        assert!(error.to_string().starts_with(message), "{error}");
    }
    tx.update_vector(SETTINGS, RowId(0), VOLUME, [12_i8].as_slice()).unwrap();
    tx.commit().unwrap();
    assert_eq!(row(&db), (0, 12));
    db.write(|tx| -> annals::Result<()> {
        tx.apply_command(&single(SETTINGS, false))?;
        tx.insert(SETTINGS, &values)?;
        let error = tx.apply_command(&single(SETTINGS, true)).unwrap_err();
        assert!(error.to_string().contains("has 2 rows"), "{error}");
        tx.delete(SETTINGS, RowId(0))?;
        tx.apply_command(&single(SETTINGS, true))
    })
    .unwrap();
    assert_eq!(row(&db), (1, 1));
    db.read().check().unwrap();
}

#[test]
fn a_cascade_does_not_take_the_single_row() {
    let db = new();
    let mut tx = db.begin().unwrap();
    let ty = Type::Reference(OTHER, OnDelete::Cascade);
    let (name, default) = ("of".to_owned(), None);
    tx.apply_command(&Command::AddField { table: SETTINGS, name, ty, nullable: true, default })
        .unwrap();
    tx.insert_vector(OTHER, 2).unwrap();
    tx.apply_command(&single(SETTINGS, true)).unwrap();
    let of = FieldNumber(1);
    tx.update(SETTINGS, RowId(0), of, ValueRef::Reference(RowId(1))).unwrap();
    let error = tx.delete_vector(OTHER, RowId(0), 2).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(tx.view().table(OTHER).unwrap().len(), 2);
    tx.update(SETTINGS, RowId(0), of, ValueRef::Null).unwrap();
    tx.delete_vector(OTHER, RowId(0), 2).unwrap();
    tx.commit().unwrap();
    db.read().check().unwrap();
}

#[test]
fn replay_refuses_what_would_not_be_a_single_row() {
    let mut store = Store::new();
    settings().iter().for_each(|command| store.apply(&Event::Schema(command)).unwrap());
    let corrupt =
        |result: annals::Result<()>| assert_eq!(result.unwrap_err().kind(), ErrorKind::Corrupt);
    corrupt(store.apply(&Event::Schema(&single(SETTINGS, true))));
    let (table, id) = (SETTINGS, RowId(3));
    store.apply(&Event::InsertVector { table, id, count: 2 }).unwrap();
    corrupt(store.apply(&Event::Schema(&single(SETTINGS, true))));
    store.apply(&Event::Delete { table, id }).unwrap();
    store.apply(&Event::Schema(&single(SETTINGS, true))).unwrap();
    corrupt(store.apply(&Event::Delete { table, id: RowId(4) }));
    corrupt(store.apply(&Event::DeleteVector { table, id: RowId(4), count: 1 }));
    corrupt(store.apply(&Event::InsertVector { table, id: RowId(5), count: 1 }));
    corrupt(store.apply(&Event::Insert { table, id: RowId(5), values: &[ValueRef::Int8(1)] }));
    store.commit().check().unwrap();
}
