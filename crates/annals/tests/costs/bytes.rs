//! Bytes in the journal, in the store and in the image.

use std::fs;

use annals::{BackfillMode, Level, Options};

use crate::costs::{Database, plain};
use crate::counting::alone;
use crate::{STRINGS, open};

/// Returns where the last commit ends in the journal.
fn position(db: &Database) -> u64 {
    db.read().as_dynamic().point().position
}

/// Returns how many bytes the journal and the store take for each of many rows, in one transaction.
fn each_row(name: &str) -> (f64, f64) {
    const ROWS: u32 = 200_000;
    const LAST: i64 = 1_000_000;
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let store = |db: &Database| f64::from(u32::try_from(db.read().as_dynamic().memory()).unwrap());
    let (before, empty) = (position(&db), store(&db));
    db.write(|tx| {
        let mut values = LAST - i64::from(ROWS)..LAST;
        Ok(values.try_for_each(|value| tx.insert(plain::New { name, value }).map(drop))?)
    })
    .unwrap();
    let journal = f64::from(u32::try_from(position(&db) - before).unwrap());
    (journal / f64::from(ROWS), (store(&db) - empty) / f64::from(ROWS))
}

#[test]
fn rows_take_few_bytes() {
    let _turn = alone();
    let (journal, store) = each_row(STRINGS[0]);
    // And the heads of frames, of which each MiB has one.
    assert!((9.0..9.01).contains(&journal), "{journal} bytes a row in the journal");
    assert!((24.0..=24.6).contains(&store), "{store} bytes a row in the store");
    let (journal, store) = each_row(STRINGS[1]);
    // The cell, the number, and in the heap the string with 12 bytes before it.
    let whole = f64::from(u32::try_from(16 + 8 + STRINGS[1].len() + 12).unwrap());
    assert!((whole..=whole * 1.03).contains(&store), "{store} bytes a row in the store");
    assert!((55.0..55.01).contains(&journal), "{journal} bytes a row in the journal");
}

#[test]
fn a_commit_takes_a_frame() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    for value in [1, 1000] {
        let before = position(&db);
        db.write(|tx| Ok(tx.insert(plain::New { name: STRINGS[0], value })?)).unwrap();
        // 48, and the event, in a multiple of 8.
        assert_eq!(position(&db) - before, 64);
    }
    let before = position(&db);
    db.write(|tx| {
        tx.edit(plain::Id::from_u64(0))?.set_value(2)?;
        Ok(())
    })
    .unwrap();
    assert_eq!(position(&db) - before, 56);
}

#[test]
fn files_of_an_empty_database_are_small() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.annals");
    let db = Options::new().background(false).open(&path).unwrap();
    db.backfill(BackfillMode::Full).unwrap();
    db.close().unwrap();
    for name in ["empty.annals", "empty.annals-image"] {
        assert_eq!(fs::metadata(folder.path().join(name)).unwrap().len(), 16_384, "{name}");
    }
}

#[test]
fn a_blob_takes_its_bytes_and_little_more() {
    const PIECES: u64 = 64;
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new().background(false).level(Level::Soft);
    let db = options.open(folder.path().join("blobs.annals")).unwrap();
    let len = PIECES * 65_536;
    let position = || db.read().point().position;
    let (before, empty) = (position(), db.read().memory());
    db.write(|tx| tx.write_blob(&*vec![7; usize::try_from(len).unwrap()]).map(drop)).unwrap();
    let (journal, store) = (position() - before - len, db.read().memory() - empty);
    // The frames, of at least 384 KiB each, have 48 bytes of their own.
    let frames = len.div_ceil(384 << 10) + 1;
    assert!(journal <= PIECES * 16 + frames * 56, "{journal} bytes more in the journal");
    assert!(store <= 64 * 1024 + 40 * 64, "{store} bytes in the store");
}
