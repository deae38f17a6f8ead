//! New UUIDs: `default v7`.

use super::generated_for_tests::uuids;
use annals::{
    Command, Database, ErrorKind, FieldNumber, Options, RowId, TableNumber, Txid, Type, Uuid,
    Value, ValueRef,
};
use annals_tools::Undo as _;
use uuids::event::{self, New};

fn event(what: &str) -> New<'_> {
    New { what, ..New::default() }
}

fn assert_made(uuid: Uuid) {
    let text = uuid.to_string();
    assert!(text[14..15] == *"7" && !text.starts_with("00000000"), "{text} has no time");
}

#[test]
fn each_row_gets_one_and_the_journal_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("uuids.annals");
    let db = uuids::Database::open(&path).unwrap();
    let given = Uuid::from_u128(5);
    let made = db
        .write(|tx| {
            for what in ["a", "b", "c"] {
                tx.insert(event(what))?;
            }
            tx.insert_at(event::Id::from_u64(9), event("d"))?;
            tx.insert(New { key: given, other: None, ..event("e") })?;
            tx.insert(&event::Event { what: "f".to_owned(), key: Uuid::NEW_V7, other: None })?;
            Ok(tx.new_uuid())
        })
        .unwrap();
    let rows = |db: &uuids::Database, txid| {
        let at = db.at(Txid(txid)).unwrap();
        let rows = at.event().iter().map(|row| row.unwrap());
        rows.map(|row| (row.what().to_owned(), row.key(), row.other())).collect::<Vec<_>>()
    };
    let there = rows(&db, 2);
    let mut order: Vec<_> =
        there.iter().flat_map(|(_, key, other)| [Some(*key), *other]).flatten().collect();
    order.retain(|uuid| *uuid != given);
    assert_eq!(order.len(), 9, "{there:?}");
    order.iter().copied().for_each(assert_made);
    order.push(made);
    // The row at id 9 was inserted before those of the ids after it.
    assert!(order.is_sorted_by(|one, other| one < other), "{order:?}");
    assert!(there.iter().any(|row| *row == ("e".to_owned(), given, None)));
    assert_made(db.read().settings().unwrap().site());

    db.write(|tx| Ok(tx.insert(event("g"))?)).unwrap();
    let before = rows(&db, 3);
    drop(db);
    let image = std::fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().path());
    image.filter(|file| *file != path).for_each(|file| std::fs::remove_file(file).unwrap());
    let db = uuids::Database::open(&path).unwrap();
    assert_eq!(rows(&db, 3), before, "a replay makes none");
    assert_eq!(rows(&db, 2), there, "nor does the past");
}

#[test]
fn an_update_keeps_what_is_there_and_a_setter_makes_one() {
    let db = uuids::Database::in_memory().unwrap();
    let id = db.write(|tx| Ok(tx.insert(event("a"))?)).unwrap();
    let keys = || {
        let row = db.read().event().require(id).unwrap().to_owned();
        (row.key, row.other)
    };
    let first = keys();
    db.write(|tx| Ok(tx.update(id, event("b"))?)).unwrap();
    assert_eq!(keys(), first);
    let found = db.write(|tx| Ok(tx.upsert(event("b"))?)).unwrap();
    assert_eq!((found, keys()), (id, first));
    let inserted = db.write(|tx| Ok(tx.upsert(event("c"))?)).unwrap();
    assert!(db.read().event().require(inserted).unwrap().key() > first.0);

    db.write(|tx| {
        tx.edit(id)?.set_key(Uuid::NEW_V7)?.set_other(None)?;
        Ok(())
    })
    .unwrap();
    assert!(keys().0 > first.0 && keys().1.is_none());
    assert_made(keys().0);
    db.write(|tx| Ok(tx.restore(id, Txid(3))?)).unwrap();
    assert_eq!(keys(), first);
}

#[test]
fn what_is_rolled_back_is_never_made_again() {
    let db = uuids::Database::in_memory().unwrap();
    let mut made = Vec::new();
    for _ in 0..3 {
        let mut tx = db.begin().unwrap();
        made.push(tx.new_uuid());
        let id = tx.insert(event("a")).unwrap();
        made.push(tx.event().require(id).unwrap().key());
        tx.rollback().unwrap();
    }
    assert!(made.is_sorted_by(|one, other| one < other), "{made:?}");
}

const EVENT: TableNumber = TableNumber(0);

fn add(tx: &mut annals::Transaction<'_>, name: &str, nullable: bool) -> annals::Result<()> {
    let (name, default) = (name.to_owned(), Some(Value::Uuid(Uuid::NEW_V7)));
    tx.apply_command(&Command::AddField { table: EVENT, name, ty: Type::Uuid, nullable, default })
}

#[test]
fn existing_rows_have_none() {
    let folder = tempfile::tempdir().unwrap();
    let db: Database = Options::new().open(folder.path().join("a.annals")).unwrap();
    db.write(|tx| {
        tx.apply_command(&Command::CreateTable { name: "event".to_owned() })?;
        add(tx, "first", false)?; // no row is there
        tx.insert(EVENT, &[ValueRef::Uuid(Uuid::NEW_V7)]).map(drop)
    })
    .unwrap();
    let error = db.write(|tx| add(tx, "key", false)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    for part in ["`event` has rows", "`key`", "`null` before `default v7`", "`custom`"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    db.write(|tx| add(tx, "key", true)).unwrap();
    let key = |at: u64| {
        let at = db.at(Txid(at)).unwrap();
        let row = at.table(EVENT).unwrap().get(RowId(0)).unwrap();
        row.value(FieldNumber(1)).to_value()
    };
    assert_eq!((key(1), key(2)), (Value::Null, Value::Null));
    let new = [ValueRef::Uuid(Uuid::NEW_V7); 2];
    db.write(|tx| {
        tx.insert(EVENT, &new)?;
        tx.update(EVENT, RowId(0), FieldNumber(1), new[0])
    })
    .unwrap();
    let Value::Uuid(made) = key(3) else { panic!("{:?}", key(3)) };
    assert_made(made);
    assert_eq!(key(2), Value::Null);
    let versions = db.history_of(EVENT, RowId(0)).unwrap();
    let values: Vec<_> = versions.map(|it| it.unwrap().change.after.unwrap()[1].clone()).collect();
    assert_eq!(values, [Value::Null, Value::Uuid(made)]);
}
