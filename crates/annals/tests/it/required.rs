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
    let nobody = db.write(|tx| Ok(tx.edit(rex)?.set_owner(owner::Id::new(7))?)).unwrap_err();
    assert_eq!(nobody.kind(), ErrorKind::Reference, "{nobody}");
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

/// Rows of the past, from before the field, refer to row 0: they never had another one.
#[test]
fn rows_that_were_deleted_before_the_field_refer_to_row_0() {
    let db = required::Database::in_memory().unwrap();
    let ada = db.write(|tx| Ok(tx.insert(owner::New { name: "Ada" })?)).unwrap();
    let then = db.read().txid();
    db.write(|tx| Ok(tx.delete(ada)?)).unwrap();
    let (table, name) = (TableNumber(0), "guardian".to_owned());
    let ty = Type::Reference(table, OnDelete::Restrict);
    let command = Command::AddField { table, name, ty, nullable: false, default: None };
    let db = db.as_dynamic();
    db.write(|tx| tx.apply_command(&command)).unwrap();
    let past = db.at(then).unwrap();
    let expected = [ValueRef::String("Ada"), ValueRef::Reference(RowId(0))];
    let row = past.table(table).unwrap().get(ada.into()).unwrap();
    assert_eq!([0, 1].map(|field| row.value(FieldNumber(field))), expected);
    let rows = past.table(table).unwrap().rows().collect::<annals::Result<Vec<_>>>().unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].value(FieldNumber(1)), expected[1]);
}
