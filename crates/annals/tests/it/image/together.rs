//! What is spilled, and what is replayed, together.

use std::path::{Path, PathBuf};

use annals::reports::{BackfillOutcome, Older};
use annals::{
    BackfillMode, Database, FieldNumber, Options, RowId, TableNumber, Transaction, ValueRef,
};

use super::larger::{LITTLE, ROWS, begin, digest, insert, opens_as};
use super::{image_of, wipe};

const TABLE: TableNumber = TableNumber(0);
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

fn rename(path: &Path) {
    std::fs::rename(image_of(path), image_of(path).with_extension("elsewhere")).unwrap();
}

/// Makes a database with an image, and a second one in which all is as it should be.
fn pair(folder: &Path) -> (PathBuf, Database, Database) {
    let path = folder.join("a.annals");
    let (db, oracle) = (begin(&path, LITTLE), begin(&folder.join("b.annals"), 1 << 30));
    for db in [&db, &oracle] {
        db.write(|tx| insert(tx, -2000..0)).unwrap();
    }
    db.backfill(BackfillMode::Full).unwrap();
    (path, db, oracle)
}

fn backfill(db: &Database) {
    let done = db.backfill(BackfillMode::Passive).unwrap();
    assert_eq!((done.outcome, done.txid), (BackfillOutcome::Advanced, db.read().txid()));
}

#[test]
fn what_was_spilled_survives_the_loss_of_the_name_of_its_image() {
    for is_lost_before_commit in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let (path, db, oracle) = pair(folder.path());
        let before = digest(&db.read());
        let old = db.read();
        let large = |tx: &mut Transaction<'_>| insert(tx, 0..ROWS);
        oracle.write(large).unwrap();
        let mut tx = db.begin().unwrap();
        large(&mut tx).unwrap();
        if is_lost_before_commit {
            rename(&path);
        }
        tx.commit().unwrap();
        if !is_lost_before_commit {
            rename(&path);
        }
        let spilled = db.read();
        assert_eq!(digest(&spilled), digest(&oracle.read()));
        // One that is rolled back leaves what was spilled before it.
        let mut tx = db.begin().unwrap();
        insert(&mut tx, ROWS..2 * ROWS).unwrap();
        tx.rollback().unwrap();
        assert_eq!(digest(&db.read()), digest(&oracle.read()));
        backfill(&db);
        let more = |tx: &mut Transaction<'_>| insert(tx, 2 * ROWS..3 * ROWS);
        oracle.write(more).unwrap();
        db.write(more).unwrap();
        backfill(&db);
        assert_eq!(digest(&db.read()), digest(&oracle.read()));
        assert_eq!(digest(&old), before);
        assert_eq!(spilled.table(TABLE).unwrap().len() as i64, ROWS + 2000);
        spilled.check().unwrap();
        db.close().unwrap();
        opens_as(&path, digest(&oracle.read()));
    }
}

#[test]
fn what_was_spilled_is_published_in_the_next_segment() {
    let folder = tempfile::tempdir().unwrap();
    let (path, db, oracle) = pair(folder.path());
    for (round, older) in (0..).zip([Older::Kept, Older::NotNeeded, Older::Forgotten]) {
        let large = |tx: &mut Transaction<'_>| insert(tx, round * ROWS..(round + 1) * ROWS);
        oracle.write(large).unwrap();
        db.write(large).unwrap();
        let spilled = db.read();
        db.restart(older, PATIENCE).unwrap();
        let small = |tx: &mut Transaction<'_>| {
            tx.update(TABLE, RowId(7), FieldNumber(1), ValueRef::Int64(-10_000 - round))
        };
        let before = digest(&spilled);
        oracle.write(small).unwrap();
        db.write(small).unwrap();
        backfill(&db);
        assert_eq!(digest(&spilled), before);
        assert_eq!(digest(&db.read()), digest(&oracle.read()));
    }
    db.close().unwrap();
    opens_as(&path, digest(&oracle.read()));
}

#[test]
fn what_was_spilled_to_an_image_that_is_lost_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let (path, db, oracle) = pair(folder.path());
    db.close().unwrap();
    let db = Options::new().memory(LITTLE).background(false).open(&path).unwrap();
    let old = db.read();
    let large = |tx: &mut Transaction<'_>| insert(tx, 0..ROWS);
    oracle.write(large).unwrap();
    let mut tx = db.begin().unwrap();
    large(&mut tx).unwrap();
    // All that was stored is gone, of what was spilled, too.
    wipe(&image_of(&path));
    assert!(old.table(TABLE).unwrap().rows().any(|row| row.is_err()));
    assert!(!db.image_damage().is_empty());
    // Either it can be committed, or it can't be read any more.
    let committed = tx.commit().is_ok();
    if !committed {
        db.write(large).unwrap();
    }
    db.read().check().unwrap();
    db.backfill(BackfillMode::Full).unwrap();
    assert_eq!(digest(&db.read()), digest(&oracle.read()));
    db.close().unwrap();
    opens_as(&path, digest(&oracle.read()));
}
