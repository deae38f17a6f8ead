//! Fields whose types are the program's: what is written, read, found, changed and told of.

use annals::{FieldNumber, FieldValue, TableNumber, ValueRef};
use serde_json::{from_value, json, to_value};

use crate::generated::own;
use crate::own_types::{Email, Key, Number, Ratio, Raw};
use own::account::{self, Account, New};
use own::{Change, only};

fn email(text: &str) -> Email {
    Email(text.to_owned())
}

fn row(name: &str) -> New<'_> {
    New { email: email(&format!("{name}@example.com")), name, ..New::default() }
}

#[test]
fn values_are_the_programs_wherever_a_row_is_typed() {
    let db = own::Database::in_memory().unwrap();
    let ada = db
        .write(|tx| {
            let label = Some(email("first"));
            let (key, raw, ratio) = (Some(Key([1, 2, 3, 4])), Raw(vec![5]), Some(Ratio(0.5)));
            Ok(tx.insert(New { number: Number(3), key, label, raw, ratio, ..row("ada") })?)
        })
        .unwrap();
    let now = db.read();
    let found = now.account().require(ada).unwrap();
    assert_eq!((found.email(), found.number()), (email("ada@example.com"), Number(3)));
    assert_eq!((found.key(), found.label()), (Some(Key([1, 2, 3, 4])), Some(email("first"))));
    assert_eq!((found.raw(), found.ratio()), (Raw(vec![5]), Some(Ratio(0.5))));
    let stored = |field| found.as_dynamic().value(FieldNumber(field));
    assert_eq!(stored(0), ValueRef::String("ada@example.com"), "as text");
    assert_eq!(stored(1), ValueRef::Int64(-3), "converted");

    // An owned row goes back, a row becomes a new one, and a setter takes a value, a reference or none.
    let owned: Account = found.to_owned();
    db.write(|tx| {
        let copy = tx.insert(&Account { email: email("bob@example.com"), ..owned.clone() })?;
        let mut edit = tx.edit(copy)?;
        edit.set_number(Number(4))?.set_label(email("second"))?.set_key(None)?;
        edit.set_ratio(&owned.ratio)?.set_email(email("eve@example.com"))?.set_name("eve")?;
        tx.update(ada, New { number: Number(9), ..New::from(&found) })?;
        Ok(())
    })
    .unwrap();
    let now = db.read();
    let eve = now.account().by_email().require(email("eve@example.com")).unwrap();
    assert_eq!((eve.number(), eve.label(), eve.key()), (Number(4), Some(email("second")), None));
    assert_eq!((eve.ratio(), eve.raw()), (Some(Ratio(0.5)), Raw(vec![5])));
    assert_eq!(now.account().require(ada).unwrap().number(), Number(9));
    assert_eq!(now.account().require(ada).unwrap().label(), Some(email("first")));
}

#[test]
fn defaults_are_those_of_the_schema_converted() {
    let new = New::default();
    assert_eq!((new.email, new.number), (email(""), Number(-7)));
    assert_eq!((new.label, new.key, new.raw), (Some(email("none")), None, Raw(Vec::new())));
}

#[test]
fn indexes_take_the_programs_values() {
    let db = own::Database::in_memory().unwrap();
    let ids: Vec<_> = (db.write(|tx| {
        let row = |name, number| New { number: Number(number), ..row(name) };
        let rows = [row("ada", 1), row("bob", 2), New { label: None, ..row("eve", 3) }];
        Ok(rows.map(|row| tx.insert(row).unwrap()))
    }))
    .unwrap()
    .into();
    let now = db.read();
    let accounts = now.account();
    let bob = email("bob@example.com");
    assert_eq!(accounts.by_email().get(&bob).unwrap().unwrap().id(), ids[1]);
    assert!(accounts.by_email().get(email("nobody")).unwrap().is_none());
    let ids_of = |rows: annals::typed::IndexRows<'_, account::Kind>| -> Vec<_> {
        rows.map(|row| row.unwrap().id()).collect()
    };
    // The stored numbers are -1, -2, -3, and their order is that of the index.
    assert_eq!(ids_of(accounts.by_number().range(Number(3)..Number(1))), [ids[2], ids[1]]);
    assert_eq!(ids_of(accounts.by_number().range(..=Number(2))), [ids[2], ids[1]]);
    assert_eq!(ids_of(accounts.by_email().range(&bob..)), [ids[1], ids[2]]);
    assert_eq!(ids_of(accounts.by_email().prefix("a")), [ids[0]]);
    let label = email("none");
    assert_eq!(ids_of(accounts.by_label().with_label(&label)), [ids[1], ids[0]]);
    assert_eq!(ids_of(accounts.by_label().with_label(None)), [ids[2]]);
    assert_eq!(ids_of(accounts.by_label().nulls()), [ids[2]]);
    assert_eq!(ids_of(accounts.by_label().with_label_and_number(label, Number(1))), [ids[0]]);
    let mut cursor = accounts.by_email().cursor_at(bob).unwrap();
    assert_eq!(cursor.next().unwrap().unwrap().id(), ids[1]);
    // Columns have the stored values.
    let stored = accounts.vector_of(account::NUMBER, ids[0], 3).unwrap();
    assert_eq!(stored, [-1, -2, -3]);
}

#[test]
fn upserts_changes_and_history_have_them_too() {
    let db = own::Database::in_memory().unwrap();
    let feed_from = db.read().txid();
    let upsert = |number| {
        db.write(|tx| Ok(tx.upsert(New { number: Number(number), ..row("ada") })?)).unwrap()
    };
    let (first, second) = (upsert(1), upsert(2));
    assert_eq!(first, second, "the same row by its unique key");
    let mut seen = Vec::new();
    for transaction in db.changes(feed_from..).unwrap() {
        for change in transaction.unwrap().changes {
            let Change::Account(change) = change else { continue };
            assert!(change.changed(account::NUMBER));
            seen.push(change.after.unwrap());
        }
    }
    assert_eq!(seen.iter().map(|row| row.number).collect::<Vec<_>>(), [Number(1), Number(2)]);
    assert_eq!((&seen[0].email, &seen[0].label), (&email("ada@example.com"), &Some(email("none"))));
    assert_eq!(db.history_of(first).unwrap().count(), 2);
    db.write(|tx| {
        tx.edit(only::ROW)?.set_owner(email("me"))?;
        Ok(())
    })
    .unwrap();
    assert_eq!(db.read().only().unwrap().owner(), email("me"));
}

/// So a program need not implement serde for its types, and its JSON doesn't change with `as`.
#[test]
fn serde_has_the_stored_values() {
    let body = json!({
        "email": "ada@example.com", "number": -3, "key": "0x01020304", "label": null, "raw": "0x05",
        "ratio": 0.5, "name": "Ada",
    });
    let owned: Account = from_value(body.clone()).unwrap();
    assert_eq!((&owned.email, owned.number), (&email("ada@example.com"), Number(3)));
    assert_eq!((&owned.key, &owned.label), (&Some(Key([1, 2, 3, 4])), &None));
    assert_eq!(to_value(&owned).unwrap(), body);
    let text = r#"{"email": "a\nb", "raw": "0x", "name": "Ada"}"#;
    let new: New<'_> = serde_json::from_str(text).unwrap();
    assert_eq!(
        (new.email, new.number, new.label),
        (email("a\nb"), Number(-7), Some(email("none")))
    );
}

/// Two programs, one with and one without `as`, have one schema.
#[test]
fn the_schema_has_no_trace_of_them() {
    let text = include_str!("../../../annals-codegen/tests/it/golden/own.schema");
    let plain: Vec<_> =
        text.lines().map(|line| line.split(" as ").next().unwrap_or_default()).collect();
    assert_ne!(plain.join("\n"), text);
    let plain = annals_schema::parse(&plain.join("\n")).unwrap();
    let file = annals_schema::parse(text).unwrap();
    assert_eq!(file.schema, plain.schema);
    assert!(plain.types.is_empty() && file.types.len() == 7);
    assert_eq!(own::SCHEMA, plain.schema.to_text());
    let path = &file.types[&(TableNumber(0), FieldNumber(1))];
    assert_eq!(path, "crate::own_types::Number");
    let db = own::Database::in_memory().unwrap();
    db.write(|tx| Ok(tx.insert(row("ada"))?)).unwrap();
    let in_file = db.read().as_dynamic().schema().to_text();
    let in_file = annals_schema::parse(&in_file).unwrap().schema;
    assert_eq!(annals_schema::first_difference(&in_file, &plain.schema), None);
    assert_eq!(Number::from_stored(-3).to_stored(), -3);
}
