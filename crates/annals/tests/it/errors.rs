//! What an error says, and what a program can read from it.

use std::error::Error as _;
use std::io;

use annals::{Command, Error, ErrorKind, IndexNumber, RowId, Type, Value, Violation};

use crate::database_model::open;

/// Returns the messages of an error and of its causes, as reporters of errors print them.
fn reported(error: &Error) -> Vec<String> {
    let mut messages = vec![error.to_string()];
    let mut next = error.source();
    while let Some(cause) = next {
        messages.push(cause.to_string());
        next = cause.source();
    }
    messages
}

#[test]
fn a_cause_is_printed_once() {
    let refused = || io::Error::from(io::ErrorKind::PermissionDenied);
    let error = Error::io("cannot open a.annals", refused());
    assert_eq!(reported(&error), ["cannot open a.annals: permission denied"]);
    assert_eq!(error.io_error().unwrap().kind(), io::ErrorKind::PermissionDenied);
    // A cause that has one of its own.
    let nested = io::Error::other(Error::io("the disk is gone", io::Error::other(refused())));
    let error = Error::io("cannot flush", nested);
    for (place, message) in reported(&error).iter().enumerate() {
        for (other, later) in reported(&error).iter().enumerate() {
            assert!(place == other || !message.contains(later), "{message} and {later}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let error = annals::Database::open(folder.path().join("file/a.annals")).unwrap_err();
    assert_eq!(error.to_string().matches("os error").count(), 1, "{error}");
    assert!(error.io_error().is_some() && error.source().is_none());
}

#[test]
fn a_key_that_is_there_twice_is_told_with_index_rows_and_values() {
    let db = open(&annals::storage::MemoryDirectory::new());
    let mut tx = db.begin().unwrap();
    let table = annals::TableNumber(0);
    tx.apply_command(&Command::CreateTable { name: "city".to_owned() }).unwrap();
    for (name, ty) in [("name", Type::String), ("number", Type::Int32)] {
        let (name, default) = (name.to_owned(), None);
        tx.apply_command(&Command::AddField { table, name, ty, nullable: true, default }).unwrap();
    }
    let fields = vec![annals::FieldNumber(1), annals::FieldNumber(0)];
    let index = Command::CreateIndex {
        name: "by_both".to_owned(),
        table,
        fields,
        descending: Vec::new(),
        collated: Vec::new(),
        unique: true,
    };
    tx.apply_command(&index).unwrap();
    let row = ["Lille".into(), annals::ValueRef::Int32(7)];
    tx.insert_at(table, RowId(4), &row).unwrap();
    let expected = |other: Option<RowId>| Violation::Unique {
        index: "by_both".to_owned(),
        table: "city".to_owned(),
        row: RowId(4),
        other,
        key: vec![Value::Int32(7), Value::String("Lille".to_owned())],
    };
    let error = tx.insert(table, &row).unwrap_err();
    assert_eq!(error.violation(), Some(&expected(None)));
    let told = "index `by_both`: 7, \"Lille\" is the key of row 4 already; keys of a unique index must be distinct";
    assert_eq!(error.to_string(), told);
    // At the commit, and of an index that is made.
    tx.insert_zero(table, RowId(9)).unwrap();
    for (field, value) in (0..).map(annals::FieldNumber).zip(row) {
        tx.update(table, RowId(9), field, value).unwrap();
    }
    let error = tx.commit().unwrap_err();
    assert_eq!(
        (error.kind(), error.violation()),
        (ErrorKind::Unique, Some(&expected(Some(RowId(9)))))
    );
    assert!(db.read().index(IndexNumber(0)).is_err(), "it was rolled back");
    assert!(Error::invalid("other").violation().is_none());
}
