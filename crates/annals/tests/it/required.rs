//! References that are never null.

use super::generated_for_tests::required;
use annals::model::OnDelete;
use annals::storage::MemoryDirectory;
use annals::{
    Command, Database, ErrorKind, FieldNumber, Options, RowId, TableNumber, Type, Value, ValueRef,
};
use required::{owner, pet};

use crate::database_model::open;

const OWNER: TableNumber = TableNumber(0);

#[test]
fn a_required_reference_is_an_id_in_every_call() {
    let db = required::Database::in_memory().unwrap();
    let (ada, rex) = db
        .write(|tx| {
            let ada = tx.insert(owner::New { name: "Ada" })?;
            let friend = pet::Id::from_u64(0);
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
    let error = (*db).write(null).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    let nobody = db.write(|tx| {
        tx.edit(rex)?.set_owner(owner::Id::from_u64(7))?;
        Ok(())
    });
    let nobody = nobody.unwrap_err();
    assert_eq!(nobody.kind(), ErrorKind::Reference, "{nobody}");
}

#[test]
fn rows_of_zeros_refer_to_row_0_which_must_be_there() {
    let db = required::Database::in_memory().unwrap();
    let insert = || (*db).write(|tx| tx.insert_vector(TableNumber(1), 2));
    assert_eq!(insert().unwrap_err().kind(), ErrorKind::Reference);
    let zero = || (*db).write(|tx| tx.insert_zero(TableNumber(1), RowId(5)));
    assert_eq!(zero().unwrap_err().kind(), ErrorKind::Reference);
    db.write(|tx| Ok(tx.insert(owner::New { name: "Ada" })?)).unwrap();
    insert().unwrap();
}

#[test]
fn a_ring_goes_as_a_whole() {
    let db = required::Database::in_memory().unwrap();
    db.write(|tx| {
        let owner = tx.insert(owner::New { name: "Ada" })?;
        for friend in [1, 2, 0] {
            let friend = pet::Id::from_u64(friend);
            tx.insert(pet::New { name: "x", owner, friend })?;
        }
        Ok(())
    })
    .unwrap();
    db.write(|tx| Ok(tx.delete(pet::Id::from_u64(1))?)).unwrap();
    assert!(db.read().pet().is_empty());
}

/// Makes a table of some owners.
fn owners(directory: &MemoryDirectory, count: u64) -> Database {
    let db = open(directory);
    let create = Command::CreateTable { name: "owner".to_owned() };
    db.write(|tx| tx.apply_command(&create)).unwrap();
    for _ in 0..count {
        db.write(|tx| tx.insert(OWNER, &[])).unwrap();
    }
    db
}

fn one_owner() -> Database {
    owners(&MemoryDirectory::new(), 1)
}

/// Adds a required reference to it.
fn add(db: &Database, rule: OnDelete, default: Option<Value>) -> annals::Result<()> {
    let (name, ty) = ("guardian".to_owned(), Type::Reference(OWNER, rule));
    let command = Command::AddField { table: OWNER, name, ty, nullable: false, default };
    db.write(|tx| tx.apply_command(&command))
}

#[test]
fn rows_that_are_there_are_filled_by_the_same_transaction() {
    let db = owners(&MemoryDirectory::new(), 2);
    let (name, ty) = ("guardian".to_owned(), Type::Reference(OWNER, OnDelete::Restrict));
    let adding = Command::AddField { table: OWNER, name, ty, nullable: false, default: None };
    let fill = |rows: &[u64]| {
        db.write(|tx| {
            tx.apply_command(&adding)?;
            let guardian = ValueRef::Reference(RowId(0));
            rows.iter().try_for_each(|row| tx.update(OWNER, RowId(*row), FieldNumber(0), guardian))
        })
    };
    // That row 0 is there, which zeros would lead to, isn't enough.
    let error = fill(&[0]).unwrap_err();
    assert!(error.to_string().contains("row 1 of `owner` has no `guardian`"), "{error}");
    fill(&[1, 0]).unwrap();
    assert_eq!(db.read().table(OWNER).unwrap().len(), 2);
}

#[test]
fn a_row_that_follows_the_field_has_it() {
    let db = owners(&MemoryDirectory::new(), 3);
    db.write(|tx| tx.delete(OWNER, RowId(1))).unwrap();
    let (name, ty) = ("guardian".to_owned(), Type::Reference(OWNER, OnDelete::Restrict));
    let adding = Command::AddField { table: OWNER, name, ty, nullable: false, default: None };
    let guardian = [ValueRef::Reference(RowId(0))];
    db.write(|tx| {
        tx.apply_command(&adding)?;
        tx.update(OWNER, RowId(0), FieldNumber(0), guardian[0])?;
        // The ids of a gap, and of a row that was deleted since.
        tx.insert_at(OWNER, RowId(1), &guardian)?;
        tx.delete(OWNER, RowId(2))?;
        tx.insert_zero(OWNER, RowId(2))
    })
    .unwrap();
    assert_eq!(db.read().table(OWNER).unwrap().len(), 3);
}

/// A journal that is whole stays so: the transaction that fills the rows is one that could have been made.
#[test]
fn salvage_keeps_the_transaction_that_fills_them() {
    for by_vector in [false, true] {
        let from = MemoryDirectory::new();
        let db = owners(&from, 2);
        let (name, ty) = ("guardian".to_owned(), Type::Reference(OWNER, OnDelete::Restrict));
        let adding = Command::AddField { table: OWNER, name, ty, nullable: false, default: None };
        db.write(|tx| {
            tx.apply_command(&adding)?;
            let (field, guardians) = (FieldNumber(0), [ValueRef::Reference(RowId(1)); 2]);
            if by_vector {
                return tx.update_vector(OWNER, RowId(0), field, &[RowId(1); 2][..]);
            }
            (0..2).try_for_each(|row| tx.update(OWNER, RowId(row), field, guardians[0]))
        })
        .unwrap();
        let last = db.read().txid();
        db.close().unwrap();
        let to = std::sync::Arc::new(MemoryDirectory::new());
        let (options, clock) = (Options::new(), std::sync::Arc::new(annals::storage::SystemClock));
        let done = annals_tools::salvage_in(&options, &from, "db", to.clone(), "db", clock);
        let done = done.unwrap();
        assert!(done.runs.iter().all(|run| run.fate == annals_tools::Fate::Kept), "{done:?}");
        assert_eq!(open(&to).read().txid(), last);
    }
}

#[test]
fn rows_that_are_there_need_a_default() {
    let db = one_owner();
    let error = add(&db, OnDelete::Cascade, None).unwrap_err();
    assert!(
        error.to_string().contains("row 0 of `owner` has no `guardian`, which is required"),
        "{error}"
    );
    let nobody = add(&db, OnDelete::Cascade, Some(Value::Reference(RowId(1)))).unwrap_err();
    assert_eq!(nobody.kind(), ErrorKind::Reference);
    add(&db, OnDelete::Cascade, Some(Value::Reference(RowId(0)))).unwrap();
}

/// Rows of the past, from before the field, refer to row 0: they never had another one.
#[test]
fn rows_that_were_deleted_before_the_field_refer_to_row_0() {
    let db = one_owner();
    let then = db.read().txid();
    db.write(|tx| tx.delete(OWNER, RowId(0))).unwrap();
    add(&db, OnDelete::Restrict, None).unwrap();
    let past = db.at(then).unwrap();
    let row = past.table(OWNER).unwrap().get(RowId(0)).unwrap();
    assert_eq!(row.value(FieldNumber(0)), ValueRef::Reference(RowId(0)));
    let rows = past.table(OWNER).unwrap().rows().collect::<annals::Result<Vec<_>>>().unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].value(FieldNumber(0)), ValueRef::Reference(RowId(0)));
}
