//! The image: opening from it gives what replay gives, whatever was done before and after.

pub(crate) mod cut;
pub(crate) mod damage;
mod document;
pub(crate) mod drop_roots;
mod dropped;
mod full_disk;
mod larger;
mod loads;
mod renewed;
mod reopened;
pub(crate) mod seen;
mod shared;
mod tail;
mod together;
mod users;

use std::path::Path;

use annals::reports::BackfillOutcome;
use annals::storage::{Access, Directory as _, FileDirectory};
use annals::{BackfillMode, Database, FieldNumber, Options, RowId, TableNumber};
use annals::{Command, IndexNumber, Result, Type, ValueRef};

const TABLE: TableNumber = TableNumber(0);

fn create(path: &Path) -> Database {
    let db = Database::open(path).unwrap();
    db.write(|tx| {
        tx.apply_command(&Command::CreateTable { name: "t".to_owned() })?;
        for (name, ty) in [("name", Type::String), ("number", Type::Int64)] {
            let (name, nullable, default) = (name.to_owned(), false, None);
            tx.apply_command(&Command::AddField { table: TABLE, name, ty, nullable, default })?;
        }
        let (name, fields) = ("by_name".to_owned(), vec![FieldNumber(0)]);
        tx.apply_command(&Command::CreateIndex {
            name,
            table: TABLE,
            fields,
            descending: Vec::new(),
            collated: Vec::new(),
            unique: false,
        })
    })
    .unwrap();
    db
}

fn insert(db: &Database, rows: std::ops::Range<i64>) {
    db.write(|tx| {
        for number in rows {
            let name = format!("row number {number} of them");
            tx.insert(TABLE, &[ValueRef::String(&name), ValueRef::Int64(number)])?;
        }
        Ok(())
    })
    .unwrap();
}

/// Returns all that there is, through rows and index.
fn dump(db: &Database) -> Vec<String> {
    let now = db.read();
    now.check().unwrap();
    let rows = now.table(TABLE).unwrap().rows().map(|row| format!("{:?}", row.unwrap()));
    let indexed =
        now.index(IndexNumber(0)).unwrap().rows().map(|row| format!("{:?}", row.unwrap()));
    rows.chain(indexed.collect::<Vec<_>>()).collect()
}

fn image_of(path: &Path) -> std::path::PathBuf {
    path.with_file_name(format!("{}-image", path.file_name().unwrap().to_str().unwrap()))
}

/// Makes zeros of all objects of an image that others may have open.
fn wipe(image: &Path) {
    let directory = FileDirectory::new(image.parent().unwrap());
    let name = image.file_name().unwrap().to_str().unwrap();
    let file = directory.open(name, Access::Write).unwrap();
    let len = file.len().unwrap();
    file.set_len(3 * 4096).unwrap();
    file.set_len(len).unwrap();
}

#[test]
fn an_opening_goes_on_from_the_image() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    let db = create(&path);
    insert(&db, 0..20_000);
    let done = db.backfill(BackfillMode::Full)?;
    assert_eq!(done.outcome, BackfillOutcome::Advanced);
    assert_eq!(db.backfill(BackfillMode::Passive)?.outcome, BackfillOutcome::UpToDate);
    insert(&db, 20_000..21_000);
    db.write(|tx| {
        for id in (0..20_000).step_by(7) {
            tx.update(TABLE, RowId(id), FieldNumber(1), ValueRef::Int64(-1))?;
            tx.delete(TABLE, RowId(id + 1))?;
        }
        Ok(())
    })?;
    let before = dump(&db);
    let second = db.backfill(BackfillMode::Passive)?;
    assert_eq!(second.outcome, BackfillOutcome::Advanced);
    assert!(second.pages > 0 && second.oldest_reader.is_none(), "{second:?}");
    assert_eq!(dump(&db), before);
    insert(&db, 30_000..30_010);
    let before = dump(&db);
    db.close()?;
    for memory in [0, 1 << 20] {
        let db = Options::new().memory(memory).open(&path)?;
        assert_eq!(db.recovered().findings, Vec::<String>::new());
        assert_eq!(dump(&db), before);
    }
    std::fs::remove_file(image_of(&path)).unwrap();
    assert_eq!(dump(&Database::open(&path)?), before);
    Ok(())
}
