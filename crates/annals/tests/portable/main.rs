//! The tests for machines without files, threads and processes: WebAssembly. `.ci/ports wasm` runs them.
//!
//! Most are modules of the other tests, which run everywhere; those here are about what such a machine lacks.

#![cfg(target_family = "wasm")]
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that fails should panic, and modules have parts for others"
)]

#[path = "../it/asking.rs"]
mod asking;
#[path = "../it/claims.rs"]
mod claims;
#[path = "../it/database_model/mod.rs"]
mod database_model;
#[path = "../it/generated.rs"]
mod generated;
#[path = "../it/generated_for_tests.rs"]
mod generated_for_tests;
#[path = "../it/past/mod.rs"]
mod past;
#[path = "../it/references.rs"]
mod references;
#[path = "../it/single_row.rs"]
mod single_row;
#[path = "../it/store_cases.rs"]
mod store_cases;
#[path = "../it/store_model.rs"]
mod store_model;
#[path = "../it/undo.rs"]
mod undo;
#[path = "../it/verbs.rs"]
mod verbs;
#[path = "../it/watched.rs"]
mod watched;
#[path = "../it/wire.rs"]
mod wire;

use std::sync::Arc;

use annals::storage::{Access, Directory, MemoryDirectory, SystemClock};
use annals::{BackfillMode, Embedded, Level, Options, RowId, TableNumber, Txid};

use generated::tutorial::{self, city};

/// Returns all bytes of a file.
fn bytes(directory: &MemoryDirectory, name: &str) -> Vec<u8> {
    let file = directory.open(name, Access::Read).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_database_in_memory_does_its_work_without_threads() {
    let db = tutorial::Database::in_memory().unwrap();
    for number in 0..2000 {
        let name = format!("city {number}");
        db.write(|tx| Ok(tx.insert(city::New { name: &name })?)).unwrap();
    }
    assert_eq!(db.read().city().len(), 2000);
    assert_eq!(db.at(Txid(11)).unwrap().city().len(), 10);
    assert_eq!(db.history_of(city::Id::from_u64(7)).unwrap().count(), 1);
    db.backfill(BackfillMode::Full).unwrap();
    db.read().as_dynamic().check().unwrap();
    db.close().unwrap();
}

#[test]
fn bytes_are_read_with_and_without_their_image() {
    let directory = MemoryDirectory::new();
    let schema = annals_schema::parse(tutorial::SCHEMA).unwrap().schema;
    let open = || {
        let directory: Arc<dyn Directory> = Arc::new(directory.clone());
        Options::new().open_in(directory, "db", Arc::new(SystemClock)).unwrap()
    };
    let db = open();
    db.upgrade(&schema, &mut |_, _| panic!("no functions")).unwrap();
    for level in [Level::Soft, Level::Half, Level::TwoPhase, Level::Checksummed] {
        let mut tx = db.begin().unwrap();
        tx.insert(TableNumber(0), &[format!("{level:?}").as_str().into()]).unwrap();
        tx.set_level(level);
        tx.commit().unwrap();
    }
    db.backfill(BackfillMode::Full).unwrap();
    db.close().unwrap();
    let (journal, image) = (bytes(&directory, "db"), bytes(&directory, "db-image"));
    let mut damaged = image.clone();
    damaged[16384..].fill(0xff);
    let with_image = |image| Embedded::new(journal.clone()).image(image);
    for embedded in [Embedded::new(journal.clone()), with_image(image), with_image(damaged)] {
        let reader = tutorial::Database::from_bytes(embedded).unwrap();
        assert_eq!(reader.read().city().len(), 4);
        assert!(reader.read().city().by_name().get("Half").unwrap().is_some());
        assert_eq!(reader.at(Txid(2)).unwrap().city().len(), 1);
        let versions = (*reader).history_of(TableNumber(0), RowId(3)).unwrap();
        assert_eq!(versions.count(), 1);
    }
}

#[test]
fn a_journal_of_another_machine_is_read() {
    let bytes = include_bytes!("../it/fixtures/v1-all.annals");
    let reader = Options::new().open_bytes(bytes).unwrap();
    assert_eq!(reader.read().txid(), 9);
    reader.read().check().unwrap();
    assert!(reader.changes(..).unwrap().all(|change| change.is_ok()));
}
