//! An older file is opened for reading only, and upgraded in memory: nothing is written to it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use annals::{BackfillMode, ErrorKind, Options, Reader, Result, Schema, Txid, Value, ValueRef};

use super::{
    FUNCTIONS, Functions, LOG, NAME, PEOPLE, assert_new, assert_old, filled, new, old, rows, schema,
};
use crate::generated::evolved;

fn open(path: &Path, schema: &Schema) -> Result<Reader> {
    let options = Options::new().upgrade_in_memory(true);
    options.open_schema_read_only_with(path, schema, &mut |custom, tx| FUNCTIONS.run(custom, tx))
}

/// Returns all files of a folder, with their bytes.
fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap());
    let read = |entry: fs::DirEntry| {
        (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
    };
    entries.map(read).collect()
}

#[test]
fn the_upgrade_is_a_transaction_of_the_reader_alone() {
    let (_folder, path) = filled();
    let before = files(&path);
    let reader = open(&path, &new()).unwrap();
    assert_new(&reader.read(), FUNCTIONS);
    assert_eq!(reader.read().txid(), annals::Txid(3), "two transactions, and the upgrade");
    // The past is read through the schema of the program, and so is what the upgrade changed.
    let past = reader.at(Txid(2)).unwrap();
    assert_eq!((past.table(PEOPLE).unwrap().len(), past.table(LOG).unwrap().len()), (3, 0));
    let changed: Vec<_> = reader.changes(..).unwrap().map(|change| change.unwrap().txid).collect();
    assert_eq!(changed.last(), Some(&Txid(3)));
    let versions = reader.history_of(PEOPLE, annals::RowId(2)).unwrap();
    let txids: Vec<_> = versions.map(|version| version.unwrap().txid).collect();
    assert_eq!(txids, [Txid(2), Txid(3)]);
    assert_eq!(reader.pull().unwrap().txid(), annals::Txid(3), "nothing follows");
    drop(reader);
    assert!(files(&path) == before, "the file is unchanged");
    assert_old(&Options::new().open_schema(&path, &old()).unwrap().read());
}

#[test]
fn each_opening_upgrades_again() {
    let (_folder, path) = filled();
    let first = open(&path, &new()).unwrap();
    let database = Options::new().open_schema(&path, &old()).unwrap();
    database
        .write(|tx| tx.update(PEOPLE, annals::RowId(2), NAME, ValueRef::String("Kim")))
        .unwrap();
    let second = open(&path, &new()).unwrap();
    assert_eq!((first.read().txid(), second.read().txid()), (Txid(3), Txid(4)));
    assert_eq!(first.pull().unwrap().txid(), annals::Txid(3), "as it was when it was opened");
    assert_new(&first.read(), FUNCTIONS);
    assert_eq!(rows(&second.read(), PEOPLE)[1].1[0], Value::String("Kim".to_owned()));
}

#[test]
fn writers_and_backfills_go_on_meanwhile() {
    let (_folder, path) = filled();
    let database = Options::new().background(false).open_schema(&path, &old()).unwrap();
    database.backfill(BackfillMode::Full).unwrap();
    let reader = open(&path, &new()).unwrap();
    assert!(reader.findings().is_empty(), "{:?}", reader.findings());
    let long = "x".repeat(3000);
    for round in 0..50 {
        database
            .write(|tx| tx.insert(PEOPLE, &[ValueRef::String(&long), ValueRef::Int32(round / 2)]))
            .unwrap();
        if round % 10 == 0 {
            database.backfill(BackfillMode::Full).unwrap();
        }
    }
    assert_new(&reader.read(), FUNCTIONS);
    assert_eq!(reader.at(Txid(2)).unwrap().table(PEOPLE).unwrap().len(), 3);
    let later = open(&path, &new()).unwrap_err();
    assert_eq!(later.kind(), ErrorKind::Unique, "two nicks are the same now: {later}");
}

#[test]
fn the_image_is_used_and_unchanged() {
    let (_folder, path) = filled();
    let database = Options::new().open(&path).unwrap();
    database.backfill(BackfillMode::Full).unwrap();
    database.close().unwrap();
    let before = files(&path);
    assert!(before.keys().any(|name| name.ends_with("-image")), "{:?}", before.keys());
    let reader = open(&path, &new()).unwrap();
    assert!(reader.findings().is_empty(), "{:?}", reader.findings());
    assert_new(&reader.read(), FUNCTIONS);
    drop(reader);
    assert!(files(&path) == before);
}

#[test]
fn a_function_that_fails_is_an_error_and_the_file_is_unchanged() {
    let (_folder, path) = filled();
    let before = files(&path);
    let options = Options::new().upgrade_in_memory(true);
    let fail = &mut |_: annals::Custom<'_>, _: &mut annals::Transaction<'_>| {
        Err(annals::Error::invalid("no paper"))
    };
    let error = options.open_schema_read_only_with(&path, &new(), fail).unwrap_err();
    assert!(error.to_string().ends_with("`custom make_nicks`: no paper"), "{error}");
    let error = options.open_schema_read_only(&path, &new()).unwrap_err();
    assert!(error.to_string().contains("gave no custom function `make_nicks`"), "{error}");
    assert!(files(&path) == before);
}

#[test]
fn what_is_not_older_is_opened_as_always() {
    let (_folder, path) = filled();
    let same = open(&path, &old()).unwrap();
    assert_eq!(same.read().txid(), annals::Txid(2));
    Options::new()
        .open_schema(&path, &old())
        .unwrap()
        .write(|tx| tx.delete(PEOPLE, annals::RowId(0)))
        .unwrap();
    assert_eq!(same.pull().unwrap().txid(), annals::Txid(3), "it follows the file");
    let other = open(&path, &schema("create_table other\n")).unwrap_err();
    assert_eq!(other.kind(), ErrorKind::SchemaMismatch);
    let missing = open(&path.with_file_name("missing.annals"), &old()).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

#[test]
fn bytes_of_the_program_are_upgraded_too() {
    let (_folder, path) = filled();
    let bytes = fs::read(&path).unwrap();
    let error = Options::new().open_schema_bytes(bytes.clone(), &new()).unwrap_err();
    let text = error.to_string();
    assert!(text.ends_with("or with `Options::upgrade_in_memory`"), "{text}");
    let options = Options::new().upgrade_in_memory(true).hard_only(true);
    let run = &mut |custom: annals::Custom<'_>, tx: &mut annals::Transaction<'_>| {
        Functions::run(FUNCTIONS, custom, tx)
    };
    let reader = options.open_schema_bytes_with(bytes, &new(), run).unwrap();
    assert_new(&reader.read(), FUNCTIONS);
}

#[test]
fn typed_functions_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("evolved.annals");
    let (before, _) = evolved::SCHEMA.split_once("custom type").unwrap();
    let schema = annals_schema::parse(before).unwrap().schema;
    Options::new().open_schema_with(&path, &schema, &mut |_, _| Ok(())).unwrap().close().unwrap();
    let before = files(&path);
    let mut called = 0;
    let customs = evolved::Customs {
        set_default_language: &mut |_| panic!("it ran before"),
        r#type: &mut |tx| {
            called += 1;
            tx.insert(evolved::custom::r#type::tongue::New { code: "fr" }).map(drop)
        },
        set_default_language_2: &mut |_| Ok(()),
    };
    let reader =
        evolved::Database::open_read_only_upgraded(&path, &Options::new(), customs).unwrap();
    assert_eq!(reader.read().tongue().len(), 1);
    assert_eq!(called, 1);
    assert!(files(&path) == before);
    let customs = evolved::Customs {
        set_default_language: &mut |_| Ok(()),
        r#type: &mut |_| Ok(()),
        set_default_language_2: &mut |_| Ok(()),
    };
    let bytes = fs::read(&path).unwrap();
    let reader = evolved::Database::from_bytes_upgraded(bytes, &Options::new(), customs).unwrap();
    assert_eq!(reader.read().tongue().len(), 0);
}
