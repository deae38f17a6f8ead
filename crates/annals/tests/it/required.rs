//! References that are never null.

use super::generated_for_tests::required;
use annals::{
    Command, ErrorKind, FieldNumber, OnDelete, RowId, TableNumber, Type, Value, ValueRef,
};
use required::{owner, pet};

#[test]
fn a_required_reference_is_an_id_in_every_call() {
    let db = required::Database::in_memory().unwrap();
    let (ada, rex) = db
        .write(|tx| {
            let ada = tx.insert(owner::New { name: "Ada" })?;
            let friend = pet::Id::new(0);
            let rex = tx.insert(pet::New { name: "Rex", owner: ada, friend })?;
            tx.insert_vector(pet::Columns {
                name: &["a", "b"],
                owner: &[ada; 2],
                friend: &[rex; 2],
            })?;
            Ok((ada, rex))
        })
        .unwrap();
    let now = db.read();
    let row = now.pet().require(rex).unwrap();
    let led: owner::Id = row.owner();
    assert_eq!((led, row.to_owned().owner), (ada, ada));
    assert_eq!(now.owner().get(row.owner()).unwrap().unwrap().name(), "Ada");
    assert_eq!(now.pet().by_owner().with_owner(ada).count(), 3);
    assert_eq!(now.pet().vector_of(pet::OWNER, rex, 3).unwrap(), [ada; 3]);
    let error = db.write(|tx| Ok(tx.delete(ada)?)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Reference, "{error}");
    let (table, field) = (TableNumber(1), FieldNumber(1));
    let null =
        |tx: &mut annals::Transaction<'_>| tx.update(table, rex.into(), field, ValueRef::Null);
    let error = db.as_dynamic().write(null).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
}

#[test]
fn rows_of_zeros_refer_to_row_0_which_must_be_there() {
    let db = required::Database::in_memory().unwrap();
    let insert = || db.as_dynamic().write(|tx| tx.insert_vector(TableNumber(1), 2));
    assert_eq!(insert().unwrap_err().kind(), ErrorKind::Reference);
    let zero = || db.as_dynamic().write(|tx| tx.insert_zero(TableNumber(1), RowId(5)));
    assert_eq!(zero().unwrap_err().kind(), ErrorKind::Reference);
    db.write(|tx| Ok(tx.insert(owner::New { name: "Ada" })?)).unwrap();
    insert().unwrap();
}

#[test]
fn rows_that_are_there_need_a_default() {
    let db = required::Database::in_memory().unwrap();
    db.write(|tx| Ok(tx.insert(owner::New { name: "Ada" })?)).unwrap();
    let add = |default| {
        let (table, name, nullable) = (TableNumber(0), "guardian".to_owned(), false);
        let ty = Type::Reference(table, OnDelete::Cascade);
        let command = Command::AddField { table, name, ty, nullable, default };
        db.as_dynamic().write(|tx| tx.apply_command(&command))
    };
    let error = add(None).unwrap_err();
    assert!(
        error.to_string().contains("`guardian`, which is required: give it a default"),
        "{error}"
    );
    assert_eq!(add(Some(Value::Reference(RowId(1)))).unwrap_err().kind(), ErrorKind::Reference);
    add(Some(Value::Reference(RowId(0)))).unwrap();
}
