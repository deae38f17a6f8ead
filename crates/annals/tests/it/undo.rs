//! Restoring rows and reverting transactions: each refusal with its message, and what random histories don't reach.

use std::time::Duration;

use annals::event::Event;
use annals::model::OnDelete;
use annals::reports::Restarting;
use annals::storage::MemoryDirectory;
use annals::{
    BackfillMode, Command, Database, Error, ErrorKind, FieldNumber, Moment, RowId, TableNumber,
    Txid, Type, Value, ValueRef, VersionKind, Violation,
};
use annals_tools::Undo as _;

use crate::database_model::open;

const CITY: TableNumber = TableNumber(0);
const PERSON: TableNumber = TableNumber(1);
const NAME: FieldNumber = FieldNumber(0);
const PEOPLE: FieldNumber = FieldNumber(1);

/// Makes transaction 1, the schema; and 2, Lille and Lyon, and Ada in Lille.
fn made() -> Database {
    let db = open(&MemoryDirectory::new());
    let schema = "create_table city\nadd_field city name string\nadd_field city people uint32\n\
                  create_unique_index city_by_name city name\ncreate_table person\n\
                  add_field person name string\nadd_field person home references city restrict\n";
    let file = annals_schema::parse(schema).unwrap();
    db.write(|tx| file.schema.commands().iter().try_for_each(|it| tx.apply_command(it))).unwrap();
    db.write(|tx| {
        tx.insert(CITY, &["Lille".into(), 230_u32.into()])?;
        tx.insert(CITY, &["Lyon".into(), 520_u32.into()])?;
        tx.insert(PERSON, &["Ada".into(), home(0)])
    })
    .unwrap();
    db
}

const fn home(city: u64) -> ValueRef<'static> {
    ValueRef::Reference(RowId(city))
}

fn name(db: &Database, id: u64) -> Option<String> {
    let now = db.read();
    let row = now.table(CITY).unwrap().find(RowId(id)).unwrap();
    row.map(|row| row.read::<&str>(NAME).to_owned())
}

fn refused<T>(result: annals::Result<T>, kind: ErrorKind, says: &str) -> Error {
    let error = result.err().unwrap();
    assert_eq!(error.kind(), kind, "{error}");
    assert_eq!(error.to_string(), says);
    error
}

fn restore(db: &Database, id: u64, moment: impl Into<Moment>) -> annals::Result<()> {
    db.write(|tx| tx.restore((CITY, RowId(id)), moment))
}

#[test]
fn a_row_is_restored_by_changes_of_what_differs() {
    let db = made();
    db.write(|tx| tx.comment("before")).unwrap();
    db.write(|tx| {
        tx.update(CITY, RowId(0), NAME, "Lile".into())?;
        tx.delete(CITY, RowId(1))?;
        tx.insert(CITY, &["Arras".into(), 42_u32.into()])
    })
    .unwrap();
    // In one transaction, in which rows refer to each other's old state.
    db.write(|tx| {
        for id in 0..3 {
            tx.restore((CITY, RowId(id)), Moment::Comment("before".to_owned()))?;
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(
        [0, 1, 2].map(|id| name(&db, id)),
        [Some("Lille".into()), Some("Lyon".into()), None]
    );
    let last = db.changes(Txid(5)..).unwrap().next().unwrap().unwrap();
    let fields: Vec<_> = last.rows.iter().map(|row| row.fields().collect::<Vec<_>>()).collect();
    assert_eq!(fields, [vec![NAME], vec![NAME, PEOPLE], vec![NAME, PEOPLE]]);
    // At the last commit it takes back the changes of the transaction itself.
    db.write(|tx| {
        tx.update(CITY, RowId(0), NAME, "Rijsel".into())?;
        tx.restore((CITY, RowId(0)), Txid(5))
    })
    .unwrap();
    assert_eq!(name(&db, 0).unwrap(), "Lille");
    let lille = db.blame(CITY, RowId(0)).unwrap();
    assert_eq!((lille[0].txid.0, lille[0].kind, lille[1].txid.0), (5, VersionKind::Update, 2));
}

#[test]
fn a_row_that_cannot_be_restored_is_refused() {
    let db = made();
    refused(
        restore(&db, 0, Txid(9)),
        ErrorKind::NotFound,
        "memory:db: there is no transaction 9: the last is 2",
    );
    let comment = Moment::Comment("then".to_owned());
    refused(
        restore(&db, 0, comment),
        ErrorKind::NotFound,
        "memory:db: no transaction has the comment \"then\"",
    );
    let missing = db.write(|tx| tx.restore((TableNumber(7), RowId(0)), Txid(1)));
    assert_eq!(missing.unwrap_err().kind(), ErrorKind::NotFound);
    // The key went to another row.
    db.write(|tx| tx.delete(CITY, RowId(1))).unwrap();
    db.write(|tx| tx.insert(CITY, &["Lyon".into(), 1_u32.into()])).unwrap();
    let says = "index `city_by_name`: \"Lyon\" is the key of rows 1 and 2; keys of a unique index must be distinct";
    refused(restore(&db, 1, Txid(2)), ErrorKind::Unique, says);
    // A row that it refers to, and one that refers to it.
    let says = "cannot delete row 0 of `city`: row 0 of `person` refers to it (restrict); delete that row first";
    refused(restore(&db, 0, Txid(1)), ErrorKind::Reference, says);
    db.write(|tx| tx.delete(PERSON, RowId(0)).and_then(|()| tx.delete(CITY, RowId(0)))).unwrap();
    let ada = |tx: &mut annals::Transaction<'_>| tx.restore((PERSON, RowId(0)), Txid(2));
    let says = "table `person`, row 0: field `home` would lead to row 0 of `city`, which isn't there; insert \
                that row, or change or delete this one";
    refused(db.write(ada), ErrorKind::Reference, says);
    // Nothing of all that was written, and together they can be restored.
    assert_eq!(db.read().txid(), annals::Txid(5));
    db.write(|tx| ada(tx).and_then(|()| tx.restore((CITY, RowId(0)), Txid(2)))).unwrap();
    assert_eq!(name(&db, 0).unwrap(), "Lille");
}

#[test]
fn a_row_is_not_deleted_since_its_table_was_created_later() {
    let db = made();
    let before = db.read().txid();
    db.write(|tx| tx.apply_command(&Command::DropTable { table: PERSON })).unwrap();
    let name = "person".to_owned();
    db.write(|tx| tx.apply_command(&Command::CreateTable { name })).unwrap();
    let table = db.read().schema().tables().last().unwrap().number;
    assert_ne!(table, PERSON);
    let empty = db.read().txid();
    db.write(|tx| tx.insert(table, &[])).unwrap();
    let restore = |moment: Txid| db.write(|tx| tx.restore((table, RowId(0)), moment));
    let says = |moment: &str, other: &str| {
        format!(
            "cannot restore row 0 of table `person` as of {moment}, and nothing was changed:\n  table `person`, \
             row 0: the table was created later{other}"
        )
    };
    let other = "; the one of that name then was another one: `as_it_was` shows its rows";
    for backfilled in [false, true] {
        if backfilled {
            db.backfill(BackfillMode::Full).unwrap();
        }
        refused(restore(before), ErrorKind::Conflict, &says("txid:2", other));
        refused(restore(Txid(0)), ErrorKind::Conflict, &says("txid:0", ""));
        assert_eq!(db.read().table(table).unwrap().len(), 1, "it is still there");
    }
    // The table was there, and the row wasn't.
    restore(empty).unwrap();
    assert!(db.read().table(table).unwrap().is_empty());
}

#[test]
fn a_dropped_field_stands_against_reverting_a_row_that_was_deleted_since() {
    let db = made();
    let changed = db.write(|tx| {
        tx.update(CITY, RowId(0), PEOPLE, 7_u32.into())?;
        tx.update(CITY, RowId(1), NAME, "Lugdunum".into())
    });
    changed.unwrap();
    db.write(|tx| tx.delete(PERSON, RowId(0)).and_then(|()| tx.delete(CITY, RowId(0)))).unwrap();
    db.write(|tx| tx.apply_command(&Command::DropField { table: CITY, field: PEOPLE })).unwrap();
    let says = "cannot revert transaction 3, and nothing was changed:\n  \
                table `city`, row 0: its field `people` was dropped";
    refused(db.write(|tx| tx.revert(annals::Txid(3))), ErrorKind::Conflict, says);
}

#[test]
fn a_plain_reference_to_a_dropped_table_is_just_a_number() {
    let db = made();
    let ty = Type::Reference(CITY, OnDelete::Dangle);
    let (name, nullable, default) = ("born".to_owned(), true, None);
    let born = FieldNumber(2);
    db.write(|tx| {
        tx.apply_command(&Command::AddField { table: PERSON, name, ty, nullable, default })?;
        tx.update(PERSON, RowId(0), born, home(1))
    })
    .unwrap();
    db.write(|tx| tx.update(PERSON, RowId(0), born, home(77))).unwrap();
    db.write(|tx| tx.delete(PERSON, RowId(0))).unwrap();
    db.write(|tx| tx.apply_command(&Command::DropField { table: PERSON, field: FieldNumber(1) }))
        .unwrap();
    db.write(|tx| tx.apply_command(&Command::DropTable { table: CITY })).unwrap();
    let value = |db: &Database| {
        let now = db.read();
        let row = now.table(PERSON).unwrap().find(RowId(0)).unwrap();
        row.map(|row| row.value(born).to_value())
    };
    db.write(|tx| tx.restore((PERSON, RowId(0)), Txid(3))).unwrap();
    assert_eq!(value(&db), Some(Value::Reference(RowId(1))));
    db.write(|tx| tx.restore((PERSON, RowId(0)), Txid(4))).unwrap();
    db.write(|tx| tx.update(PERSON, RowId(0), born, ValueRef::Null)).unwrap();
    db.write(|tx| tx.revert(annals::Txid(10))).unwrap();
    assert_eq!(value(&db), Some(Value::Reference(RowId(77))));
    assert_eq!(db.history_of(PERSON, RowId(0)).unwrap().map(Result::unwrap).count(), 8);
    db.write(|tx| tx.delete(PERSON, RowId(0))).unwrap();
    db.write(|tx| tx.revert(annals::Txid(11))).unwrap_err();
    db.write(|tx| tx.revert(annals::Txid(12))).unwrap();
    assert_eq!(value(&db), Some(Value::Reference(RowId(77))));
}

fn drop_people(tx: &mut annals::Transaction<'_>) -> annals::Result<()> {
    tx.apply_command(&Command::DropField { table: CITY, field: PEOPLE })
}

#[test]
fn values_of_dropped_fields_and_tables_stand_against_reverting_if_they_are_lost() {
    let db = made();
    db.write(|tx| tx.insert(CITY, &["Arras".into(), 0_u32.into()])).unwrap();
    db.write(|tx| tx.insert(CITY, &["Calais".into(), 9_u32.into()])).unwrap();
    // 5 and 6 lose a value; 7 replaces a row by another one with its id.
    db.write(|tx| tx.delete(CITY, RowId(1))).unwrap();
    db.write(|tx| tx.update(CITY, RowId(0), PEOPLE, 7_u32.into())).unwrap();
    db.write(|tx| {
        tx.delete(CITY, RowId(3))?;
        tx.insert_at(CITY, RowId(3), &["Dunkerque".into(), 8_u32.into()])
    })
    .unwrap();
    // These don't: the value is a zero, it is the same in the end, or the row is new.
    db.write(|tx| tx.delete(CITY, RowId(2))).unwrap();
    db.write(|tx| {
        tx.update(CITY, RowId(0), PEOPLE, 1_u32.into())?;
        tx.update(CITY, RowId(0), PEOPLE, 7_u32.into())?;
        tx.update(CITY, RowId(0), NAME, "Rijsel".into())
    })
    .unwrap();
    db.write(|tx| tx.insert(CITY, &["Douai".into(), 5_u32.into()])).unwrap();
    // 11 inserts rows into a table that is dropped, 12 changes one, 13 changes nothing in the end.
    let note = TableNumber(2);
    db.write(|tx| {
        tx.apply_command(&Command::CreateTable { name: "note".to_owned() })?;
        let (table, name, ty) = (note, "text".to_owned(), Type::String);
        let (nullable, default) = (false, None);
        tx.apply_command(&Command::AddField { table, name, ty, nullable, default })
    })
    .unwrap();
    db.write(|tx| {
        tx.insert(note, &["first".into()])?;
        tx.insert(CITY, &["Lens".into(), 6_u32.into()])
    })
    .unwrap();
    db.write(|tx| tx.update(note, RowId(0), NAME, "second".into())).unwrap();
    db.write(|tx| {
        tx.update(note, RowId(0), NAME, "third".into())?;
        tx.update(note, RowId(0), NAME, "second".into())?;
        tx.update(CITY, RowId(3), NAME, "Duinkerke".into())
    })
    .unwrap();
    db.write(drop_people).unwrap();
    db.write(|tx| tx.apply_command(&Command::DropTable { table: note })).unwrap();
    for (txid, what) in [
        (5, "table `city`, row 1: its field `people` was dropped"),
        (6, "table `city`, row 0: its field `people` was dropped"),
        (13, "table `note`, row 0: the table was dropped"),
    ] {
        let says = format!("cannot revert transaction {txid}, and nothing was changed:\n  {what}");
        refused(db.write(|tx| tx.revert(annals::Txid(txid))), ErrorKind::Conflict, &says);
    }
    for txid in [14, 12, 10, 9, 8] {
        db.write(|tx| tx.revert(annals::Txid(txid))).unwrap();
    }
    let names = [0, 1, 2, 3, 4, 5].map(|id| name(&db, id));
    let names = names.each_ref().map(|name| name.as_deref());
    assert_eq!(names, [Some("Lille"), None, Some("Arras"), Some("Dunkerque"), None, None]);
    let says = "cannot revert transaction 7, and nothing was changed:\n  \
                table `city`, row 3: its field `people` was dropped\n  \
                table `city`, row 3, field `name`: transaction 17 changed it";
    refused(db.write(|tx| tx.revert(annals::Txid(7))), ErrorKind::Conflict, says);
}

#[test]
fn what_was_erased_is_not_restored_though_it_may_be_null() {
    let directory = MemoryDirectory::new();
    let db = open(&directory);
    let file = "create_table city\nadd_field city name string\nadd_field city mayor string null\n\
                add_field city motto string null\n";
    let file = annals_schema::parse(file).unwrap();
    db.write(|tx| file.schema.commands().iter().try_for_each(|it| tx.apply_command(it))).unwrap();
    let (mayor, motto) = (FieldNumber(1), FieldNumber(2));
    let values = ["Lille".into(), "Aubry".into(), ValueRef::Null];
    db.write(|tx| tx.insert(CITY, &values)).unwrap();
    db.write(|tx| tx.update(CITY, RowId(0), mayor, "Deslandes".into())).unwrap();
    db.write(|tx| tx.update(CITY, RowId(0), motto, "Fortior".into())).unwrap();
    db.close().unwrap();
    let place: std::sync::Arc<dyn annals::storage::Directory> =
        std::sync::Arc::new(directory.clone());
    let mut what = annals_tools::Erase::new("city", RowId(0));
    what.field = Some("mayor".to_owned());
    let clock = std::sync::Arc::new(annals::storage::SystemClock) as _;
    annals_tools::erase_in(&annals::Options::new(), &place, "db", &clock, &what).unwrap();
    let db = open(&directory);
    // 5 is the mark of the erasure. A null that was one is restored.
    db.write(|tx| tx.update(CITY, RowId(0), mayor, "Mauroy".into())).unwrap();
    db.write(|tx| tx.revert(annals::Txid(4))).unwrap();
    let says = "cannot revert transaction 3, and nothing was changed:\n  table `city`, row 0, field `mayor`: ";
    let error = db.write(|tx| tx.revert(annals::Txid(3))).unwrap_err();
    assert!(error.to_string().starts_with(says) || error.kind() == ErrorKind::Invalid, "{error}");
    let says = "cannot restore row 0 of table `city` as of txid:2, and nothing was changed:\n  table `city`, \
                row 0, field `mayor`: its value was erased";
    refused(restore(&db, 0, Txid(2)), ErrorKind::Conflict, says);
    db.write(|tx| tx.delete(CITY, RowId(0))).unwrap();
    refused(restore(&db, 0, Txid(2)), ErrorKind::Conflict, says);
    // After the erasure it was null.
    db.write(|tx| tx.restore((CITY, RowId(0)), Txid(5))).unwrap();
    let now = db.read();
    assert_eq!(now.table(CITY).unwrap().get(RowId(0)).unwrap().value(mayor), ValueRef::Null);
    db.write(|tx| tx.revert(annals::Txid(9))).unwrap();
    db.write(|tx| tx.revert(annals::Txid(8))).unwrap_err();
}

#[test]
fn zeros_of_both_signs_are_two_values_of_the_past() {
    let db = open(&MemoryDirectory::new());
    let file = annals_schema::parse("create_table city\nadd_field city height float64\n").unwrap();
    db.write(|tx| file.schema.commands().iter().try_for_each(|it| tx.apply_command(it))).unwrap();
    db.write(|tx| tx.insert(CITY, &[ValueRef::Float64(-0.0)])).unwrap();
    db.write(|tx| tx.update(CITY, RowId(0), NAME, ValueRef::Float64(0.0))).unwrap();
    db.write(|tx| tx.update(CITY, RowId(0), NAME, ValueRef::Float64(0.0))).unwrap();
    let versions = db.history_of(CITY, RowId(0)).unwrap().map(Result::unwrap);
    assert_eq!(versions.map(|version| version.txid.0).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(db.blame(CITY, RowId(0)).unwrap()[0].txid, annals::Txid(3));
    let changes = db.changes(Txid(3)..).unwrap().map(|changed| changed.unwrap().rows);
    let fields: Vec<_> =
        changes.map(|rows| rows.iter().flat_map(|row| row.fields()).count()).collect();
    assert_eq!(fields, [1, 0]);
    assert_eq!(db.read().differences(annals::Txid(2), annals::Txid(4)).unwrap().len(), 1);
    let is_negative = |db: &Database| {
        let now = db.read();
        let row = now.table(CITY).unwrap().get(RowId(0)).unwrap();
        row.read::<f64>(NAME).is_sign_negative()
    };
    assert!(!is_negative(&db));
    db.write(|tx| tx.revert(annals::Txid(3))).unwrap();
    assert!(is_negative(&db));
    db.write(|tx| tx.restore((CITY, RowId(0)), Txid(4))).unwrap();
    assert!(!is_negative(&db));
    refused(
        db.write(|tx| tx.revert(annals::Txid(4))),
        ErrorKind::Invalid,
        "cannot revert transaction 4: it left all rows of the present tables as they were, so there is nothing to \
         revert",
    );
}

#[test]
fn erased_and_forgotten_values_are_not_restored() {
    let db = made();
    let values = [ValueRef::Null, 7_u32.into()];
    let (table, id) = (CITY, RowId(2));
    db.write(|tx| tx.apply_erased(&Event::Insert { table, id, values: &values })).unwrap();
    db.write(|tx| tx.update(CITY, id, NAME, "Nantes".into())).unwrap();
    let says = "cannot restore row 2 of table `city` as of txid:3, and nothing was changed:\n  table `city`, \
                row 2, field `name`: its value was erased";
    refused(restore(&db, 2, Txid(3)), ErrorKind::Conflict, says);
    let says = "cannot revert transaction 4, and nothing was changed:\n  table `city`, row 2, field `name`: its \
                value was erased";
    refused(db.write(|tx| tx.revert(annals::Txid(4))), ErrorKind::Conflict, says);
    let how = Restarting { timeout: Duration::from_secs(9), forget_history: true };
    db.backfill_with(BackfillMode::Truncate, how, &mut |_| std::ops::ControlFlow::Continue(()))
        .unwrap();
    db.write(|tx| tx.update(CITY, RowId(0), NAME, "Lile".into())).unwrap();
    let error = restore(&db, 0, Txid(2)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("forgotten"), "{error}");
    for txid in [2, 4] {
        let says = format!(
            "memory:db: cannot revert transaction {txid}: the history up to it was forgotten"
        );
        refused(db.write(|tx| tx.revert(annals::Txid(txid))), ErrorKind::NotFound, &says);
    }
    db.write(|tx| tx.revert(annals::Txid(5))).unwrap();
    let blame = db.blame(CITY, RowId(1)).unwrap();
    assert!(
        blame.iter().all(|blame| (blame.txid, blame.kind) == (annals::Txid(4), VersionKind::State))
    );
}

#[test]
fn obstacles_are_named_as_data_too() {
    let db = made();
    db.write(|tx| tx.update(CITY, RowId(0), PEOPLE, 236_u32.into())).unwrap();
    db.write(|tx| tx.insert(PERSON, &["Jules".into(), home(1)])).unwrap();
    let error = db.write(|tx| tx.revert(annals::Txid(2))).unwrap_err();
    let Some(Violation::Conflict { obstacles }) = error.violation() else { panic!("{error}") };
    let found: Vec<_> = obstacles
        .iter()
        .map(|it| (it.table.as_str(), it.row.0, it.field.as_deref(), it.txid.map(|it| it.0)))
        .collect();
    assert_eq!(found, [("city", 0, Some("people"), Some(3)), ("person", 1, Some("home"), Some(4))]);
    assert_eq!(db.read().txid(), annals::Txid(4));
    // Changes of the transaction itself.
    let own = db.write(|tx| {
        tx.update(CITY, RowId(0), PEOPLE, 1_u32.into())?;
        tx.revert(annals::Txid(3))
    });
    let says = "cannot revert transaction 3, and nothing was changed:\n  table `city`, row 0: this transaction \
                changed it";
    refused(own, ErrorKind::Conflict, says);
    // A statement that was refused leaves the transaction as it was.
    db.write(|tx| {
        assert!(tx.revert(annals::Txid(2)).is_err() && tx.is_empty());
        tx.revert(annals::Txid(3))
    })
    .unwrap();
    assert_eq!(
        db.changes(Txid(5)..).unwrap().next().unwrap().unwrap().comments,
        ["revert of transaction 3"]
    );
}

#[test]
fn a_transaction_of_many_rows_is_reverted_unless_one_was_changed() {
    let db = made();
    let load = |tx: &mut annals::Transaction<'_>| {
        for number in 0..500_u32 {
            tx.insert(CITY, &[format!("city {number}").as_str().into(), number.into()])?;
        }
        Ok(())
    };
    db.write(load).unwrap();
    db.write(|tx| tx.update(CITY, RowId(0), NAME, "Lile".into())).unwrap();
    db.write(|tx| tx.update(CITY, RowId(77), PEOPLE, 1_u32.into())).unwrap();
    let says = "cannot revert transaction 3, and nothing was changed:\n  table `city`, row 77, field `people`: \
                transaction 5 changed it";
    refused(db.write(|tx| tx.revert(annals::Txid(3))), ErrorKind::Conflict, says);
    db.write(|tx| tx.revert(annals::Txid(5))).unwrap();
    // The same value again is still a later change; what reverts that one takes it away.
    let error = db.write(|tx| tx.revert(annals::Txid(3))).unwrap_err();
    assert!(error.to_string().ends_with("transaction 6 changed it"), "{error}");
    db.write(|tx| tx.delete_vector(CITY, RowId(2), 500)).unwrap();
    assert_eq!(db.read().table(CITY).unwrap().len(), 2);
    db.write(|tx| tx.revert(annals::Txid(7))).unwrap();
    let now = db.read();
    let rows = now.table(CITY).unwrap();
    assert_eq!(rows.len(), 502);
    assert_eq!(rows.get(RowId(501)).unwrap().value(PEOPLE).to_value(), Value::UInt32(499));
}

#[test]
fn blobs_of_deleted_rows_come_back() {
    let db = open(&MemoryDirectory::new());
    let file = annals_schema::parse("create_table photo\nadd_field photo bytes blob\n").unwrap();
    db.write(|tx| file.schema.commands().iter().try_for_each(|it| tx.apply_command(it))).unwrap();
    db.write(|tx| {
        let blob = tx.write_blob(&b"pixels"[..])?;
        tx.insert(CITY, &[ValueRef::Blob(blob)])
    })
    .unwrap();
    db.write(|tx| tx.delete(CITY, RowId(0))).unwrap();
    db.write(|tx| tx.revert(annals::Txid(3))).unwrap();
    let now = db.read();
    let row = now.table(CITY).unwrap().get(RowId(0)).unwrap();
    let ValueRef::Blob(blob) = row.value(NAME) else { panic!("no blob") };
    assert_eq!(now.blob(blob).unwrap().to_vec(100).unwrap(), b"pixels");
}

#[test]
fn a_transaction_with_commands_or_without_rows_is_refused() {
    let db = made();
    db.write(|tx| tx.comment("only this")).unwrap();
    let says = "cannot revert transaction 1: it changed the schema (`create_table city`); only changes of rows can \
                be reverted";
    refused(db.write(|tx| tx.revert(annals::Txid(1))), ErrorKind::Invalid, says);
    let says = "cannot revert transaction 3: it left all rows of the present tables as they were, so there is nothing to \
         revert";
    refused(db.write(|tx| tx.revert(annals::Txid(3))), ErrorKind::Invalid, says);
    refused(
        db.write(|tx| tx.revert(annals::Txid(0))),
        ErrorKind::NotFound,
        "memory:db: there is no transaction 0: they are 1 to 3",
    );
    refused(
        db.write(|tx| tx.revert(annals::Txid(4))),
        ErrorKind::NotFound,
        "memory:db: there is no transaction 4: they are 1 to 3",
    );
    let empty = open(&MemoryDirectory::new());
    refused(
        empty.write(|tx| tx.revert(annals::Txid(1))),
        ErrorKind::NotFound,
        "memory:db: there is no transaction 1: there is none yet",
    );
}
