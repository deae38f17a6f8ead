//! Enforced references: what each rule does, and what is said when one can't hold.

use annals::model::OnDelete;
use annals::storage::MemoryDirectory;
use annals::{
    Command, Database, ErrorKind, FieldNumber, RowId, TableNumber, Transaction, Type, Value,
    ValueRef,
};

use crate::database_model::open;

const CITY: TableNumber = TableNumber(0);
const PERSON: TableNumber = TableNumber(1);
const HOME: FieldNumber = FieldNumber(0);

fn to(id: u64) -> ValueRef<'static> {
    ValueRef::Reference(RowId(id))
}

fn add_reference(tx: &mut Transaction<'_>, table: TableNumber, name: &str, ty: Type) {
    let (name, nullable, default) = (name.to_owned(), true, None);
    tx.apply_command(&Command::AddField { table, name, ty, nullable, default }).unwrap();
}

/// Makes three cities, and persons with homes there.
fn people(rule: OnDelete) -> Database {
    let db = open(&MemoryDirectory::new());
    let mut tx = db.begin().unwrap();
    for name in ["city", "person"] {
        tx.apply_command(&Command::CreateTable { name: name.to_owned() }).unwrap();
    }
    add_reference(&mut tx, PERSON, "home", Type::Reference(CITY, rule));
    tx.insert_vector(CITY, 3).unwrap();
    [0, 1, 1, 2].iter().for_each(|&city| _ = tx.insert(PERSON, &[to(city)]).unwrap());
    tx.commit().unwrap();
    db
}

fn homes(db: &Database) -> Vec<(u64, Option<u64>)> {
    let now = db.read();
    let rows = now.table(PERSON).unwrap().rows().map(Result::unwrap);
    rows.map(|row| (row.id().0, row.read::<Option<RowId>>(HOME).map(|id| id.0))).collect()
}

fn delete(db: &Database, city: u64) -> annals::Result<()> {
    db.write(|tx| tx.delete(CITY, RowId(city)))
}

#[test]
fn each_rule_does_what_it_says() {
    let db = people(OnDelete::Cascade);
    delete(&db, 1).unwrap();
    assert_eq!(homes(&db), [(0, Some(0)), (3, Some(2))]);
    let db = people(OnDelete::SetNull);
    delete(&db, 1).unwrap();
    assert_eq!(homes(&db), [(0, Some(0)), (1, None), (2, None), (3, Some(2))]);
    let db = people(OnDelete::Dangle);
    delete(&db, 1).unwrap();
    assert_eq!(homes(&db), [(0, Some(0)), (1, Some(1)), (2, Some(1)), (3, Some(2))]);
    let dangling = db.read().dangling_references().unwrap();
    assert_eq!(dangling, [annals::store::Dangling { table: PERSON, field: HOME, count: 2 }]);
}

#[test]
fn restrict_is_looked_at_by_the_commit() {
    let db = people(OnDelete::Restrict);
    let error = delete(&db, 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Reference);
    let message = "cannot delete row 1 of `city`: row 1 of `person` refers to it (restrict); delete that \
                   row first";
    assert_eq!(error.to_string(), message);
    assert_eq!(db.read().table(CITY).unwrap().len(), 3);
    db.write(|tx| -> annals::Result<()> {
        tx.delete(CITY, RowId(1))?;
        tx.update(PERSON, RowId(1), HOME, to(2))?;
        tx.delete(PERSON, RowId(2))
    })
    .unwrap();
    db.write(|tx| -> annals::Result<()> {
        tx.delete(CITY, RowId(2))?;
        tx.insert_zero(CITY, RowId(2)) // the row is there again
    })
    .unwrap();
    assert_eq!(homes(&db), [(0, Some(0)), (1, Some(2)), (3, Some(2))]);
}

/// With an index that finds the referring row, and without one.
#[test]
fn a_refused_deletion_names_the_row_to_delete_and_the_one_that_refers_to_it() {
    for indexed in [false, true] {
        let db = people(OnDelete::Restrict);
        if indexed {
            let (name, fields) = ("by_home".to_owned(), vec![HOME]);
            let index = Command::CreateIndex {
                name,
                table: PERSON,
                fields,
                descending: Vec::new(),
                collated: Vec::new(),
                unique: false,
            };
            db.write(|tx| tx.apply_command(&index)).unwrap();
        }
        let error = delete(&db, 2).unwrap_err();
        let told = "cannot delete row 2 of `city`: row 3 of `person` refers to it (restrict); delete that \
                    row first";
        assert_eq!(error.to_string(), told);
        let expected = annals::Violation::Reference {
            table: "person".to_owned(),
            row: Some(RowId(3)),
            field: "home".to_owned(),
            target: "city".to_owned(),
            target_row: RowId(2),
        };
        assert_eq!(error.violation(), Some(&expected));
        db.write(|tx| tx.delete(PERSON, RowId(3))).unwrap();
        delete(&db, 2).unwrap();
    }
}

#[test]
fn a_reference_to_no_row_is_told_with_its_rows() {
    let db = people(OnDelete::Restrict);
    let error = db.write(|tx| tx.update(PERSON, RowId(2), HOME, to(9))).unwrap_err();
    let violation = error.within("here").violation().cloned().unwrap();
    let annals::Violation::Reference { row, target_row, .. } = violation else { panic!() };
    assert_eq!((row, target_row), (Some(RowId(2)), RowId(9)));
}

#[test]
fn a_reference_may_be_set_before_its_row_comes() {
    for rule in [OnDelete::Restrict, OnDelete::Cascade, OnDelete::SetNull] {
        let db = people(rule);
        db.write(|tx| -> annals::Result<()> {
            tx.insert(PERSON, &[to(5)])?;
            tx.update(PERSON, RowId(0), HOME, to(6))?;
            tx.update_vector(PERSON, RowId(1), HOME, [RowId(7), RowId(8)].as_slice())?;
            tx.insert_vector_at(CITY, RowId(5), 4).map(drop)
        })
        .unwrap();
        let set = |tx: &mut Transaction<'_>, how| match how {
            0 => tx.insert(PERSON, &[to(9)]).map(drop),
            1 => tx.update(PERSON, RowId(2), HOME, to(9)),
            2 => tx.update_vector(PERSON, RowId(1), HOME, [RowId(8), RowId(9)].as_slice()),
            _ => tx.insert_rows(PERSON, &[[RowId(8), RowId(9)].as_slice().into()]).map(drop),
        };
        for how in 0..4 {
            let error = db.write(|tx| set(tx, how)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Reference, "{how}");
            assert!(error.to_string().contains("row 9 of `city`"), "{error}");
        }
        assert_eq!(homes(&db)[0], (0, Some(6)));
    }
}

/// A chain of rows, each of which refers to the one before; without an index on the reference, and with
/// one. A walk over the table for each of them would take minutes, and a call within a call for each
/// would end the stack.
#[test]
fn a_long_chain_goes_with_its_first_row() {
    for indexed in [false, true] {
        let db = open(&MemoryDirectory::new());
        let mut tx = db.begin().unwrap();
        tx.apply_command(&Command::CreateTable { name: "node".to_owned() }).unwrap();
        add_reference(&mut tx, CITY, "before", Type::Reference(CITY, OnDelete::Cascade));
        if indexed {
            let (name, fields) = ("by_before".to_owned(), vec![HOME]);
            let index = Command::CreateIndex {
                name,
                table: CITY,
                fields,
                descending: Vec::new(),
                collated: Vec::new(),
                unique: false,
            };
            tx.apply_command(&index).unwrap();
        }
        let count = 100_000;
        tx.insert(CITY, &[ValueRef::Null]).unwrap();
        (0..count).for_each(|id| _ = tx.insert(CITY, &[to(id)]).unwrap());
        tx.update(CITY, RowId(40), HOME, to(count)).unwrap(); // a ring, and a tail that stays
        tx.commit().unwrap();
        delete(&db, 50).unwrap();
        assert_eq!(db.read().table(CITY).unwrap().len(), 40, "indexed: {indexed}");
        db.read().check().unwrap();
    }
}

#[test]
fn a_default_must_lead_to_a_row_where_rows_get_it() {
    let db = people(OnDelete::Dangle);
    let add = |tx: &mut Transaction<'_>, name: &str, id| {
        let ty = Type::Reference(CITY, OnDelete::Cascade);
        let (name, default) = (name.to_owned(), Some(Value::Reference(RowId(id))));
        tx.apply_command(&Command::AddField { table: PERSON, name, ty, nullable: true, default })
    };
    let mut tx = db.begin().unwrap();
    let error = add(&mut tx, "birthplace", 3).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Reference);
    assert!(error.to_string().contains("row 3 of `city`"), "{error}");
    // What no row can help is said as that.
    for (name, id) in [("home", 3), ("birthplace", RowId::MAX.0 + 1)] {
        assert_eq!(add(&mut tx, name, id).unwrap_err().kind(), ErrorKind::Invalid, "{name}");
    }
    add(&mut tx, "birthplace", 2).unwrap();
    tx.commit().unwrap();
    delete(&db, 2).unwrap();
    assert_eq!(homes(&db), []);
}
