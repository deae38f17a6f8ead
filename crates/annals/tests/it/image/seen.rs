//! Snapshots of what was spilled: it stays as it is for whoever has seen it, and for nobody else.

use std::path::Path;

use annals::reports::BackfillOutcome;
use annals::{BackfillMode, Database, RowId, Transaction, ValueRef};

use super::larger::{
    LITTLE, MUCH, NUMBER, ROWS, TABLE, begin, change, digest, image_len, insert, opens_as, options,
};

/// What a transaction has spilled is used for nothing else as long as somebody has a view that leads to it,
/// however often it is replaced later: by the backfill that takes it up, and by those after it.
#[test]
fn what_was_spilled_and_seen_stays_for_whoever_has_seen_it() {
    [true, false].into_iter().for_each(seen);
}

/// Begins a database with a transaction that was spilled, maybe over a root.
fn begin_spilled(path: &Path, has_root: bool) -> Database {
    let db = begin(path, LITTLE);
    if has_root {
        db.backfill(BackfillMode::Full).unwrap();
    }
    db.write(|tx| insert(tx, 0..ROWS)).unwrap();
    assert!(image_len(path) > LITTLE, "it was spilled");
    db
}

/// Holds a snapshot of what was spilled while backfills take that up and replace it.
pub(crate) fn seen(has_root: bool) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    let db = begin_spilled(&path, has_root);
    let (seen, expected) = (db.read(), digest(&db.read()));
    // What lies in the backfill's own space is replaced before its root is published, some of it. If that
    // were spilled, too, the draft would be shown by then.
    let long = image_len(&path);
    update_some(&db, 1, 2000);
    assert_eq!(image_len(&path), long, "too few are changed to be spilled");
    for round in 2..7 {
        assert_eq!(db.backfill(BackfillMode::Full).unwrap().outcome, BackfillOutcome::Advanced);
        assert_eq!(digest(&seen), expected, "before round {round}, with a root: {has_root}");
        update_some(&db, round, 400);
    }
    db.backfill(BackfillMode::Full).unwrap();
    assert_eq!(digest(&seen), expected, "with a root below: {has_root}");
    assert_eq!(db.image_damage(), Vec::<String>::new(), "nothing was damaged");
    let long = image_len(&path);
    drop(seen);
    for round in 7..12 {
        update_some(&db, round, 400);
        db.backfill(BackfillMode::Full).unwrap();
    }
    assert!(image_len(&path) <= long, "what nobody sees any more is used again");
    let expected = digest(&db.read());
    db.close().unwrap();
    assert_eq!(digest(&options(MUCH).open(&path).unwrap().read()), expected);
}

/// So it does for a snapshot that outlives its database, whoever opens that again: others can't know what such
/// a snapshot reaches, with or without a root below it, and whatever became of the root that came of it.
#[test]
fn what_was_spilled_stays_for_a_snapshot_that_outlives_its_database() {
    for (has_root, memory) in [(true, LITTLE), (true, MUCH), (false, LITTLE), (false, MUCH)] {
        outlived(has_root, memory);
    }
}

/// Holds a snapshot of what was spilled while others open the database with so much memory.
pub(crate) fn outlived(has_root: bool, memory: u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    let db = begin_spilled(&path, has_root);
    let (seen, expected) = (db.read(), digest(&db.read()));
    update_some(&db, 1, 400);
    db.close().unwrap();
    // The second one finds neither the root below nor that which came of it.
    for session in 0..2 {
        let db = options(memory).open(&path).unwrap();
        assert_eq!(db.recovered().findings, Vec::<String>::new());
        for round in 2..6 {
            db.write(|tx| change(tx, session * 10 + round)).unwrap();
            let done = db.backfill(BackfillMode::Full).unwrap();
            assert_eq!(done.outcome, BackfillOutcome::Advanced);
            let seen = digest(&seen);
            assert_eq!(seen, expected, "{session}, {round}, root: {has_root}, {memory}");
        }
        db.close().unwrap();
    }
    let long = image_len(&path);
    drop(seen);
    let db = options(memory).open(&path).unwrap();
    for round in 30..35 {
        db.write(|tx| change(tx, round)).unwrap();
        db.backfill(BackfillMode::Full).unwrap();
    }
    assert!(image_len(&path) <= long, "what nobody sees any more is used again");
    let expected = digest(&db.read());
    db.close().unwrap();
    opens_as(&path, expected);
}

/// Changes one of so many rows, all over the table.
fn update_some(db: &Database, round: i64, step: usize) {
    let update = |tx: &mut Transaction<'_>| {
        for id in (round.unsigned_abs() % 7..ROWS as u64).step_by(step) {
            let new = ValueRef::Int64(-(round * ROWS + id as i64) - 1);
            tx.update(TABLE, RowId(id), NUMBER, new)?;
        }
        Ok(())
    };
    db.write(update).unwrap();
}
