//! Several handles of one open database: clones, closing it under them, and dropping the last one.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use annals::reports::Older;
use annals::{
    BackfillMode, Database, Error, ErrorKind, Level, Options, Result, Retention, RowId, ValueRef,
};

use super::generated_for_tests::tutorial;
use crate::shared::{TABLE, define};

const SECOND: Duration = Duration::from_secs(1);

fn made() -> (tempfile::TempDir, PathBuf, Database) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db.annals");
    let db = Database::open(&path).unwrap();
    db.write(define).unwrap();
    (folder, path, db)
}

fn insert(db: &Database, number: i64) -> Result<RowId> {
    db.write(|tx| tx.insert(TABLE, &[ValueRef::Int64(number)]))
}

fn len(db: &Database) -> u64 {
    db.read().table(TABLE).unwrap().len()
}

/// Returns whether the last program that had it open closed it.
fn is_closed(path: &Path) -> bool {
    annals_tools::inspect(&Options::new(), path).unwrap().is_closed()
}

const fn shareable<T: Clone + Send + Sync + 'static>() {}
const _: () = shareable::<Database>();
const _: () = shareable::<tutorial::Database>();

#[test]
fn clones_are_handles_of_one_database() {
    let db = tutorial::Database::in_memory().unwrap();
    let handles: Vec<_> = ["Lille", "Lyon", "Paris"].map(|name| (name, db.clone())).into();
    let threads = handles.into_iter().map(|(name, db)| {
        thread::spawn(move || db.write(|tx| Ok(tx.insert(tutorial::city::New { name })?)))
    });
    let ids: Vec<_> =
        threads.collect::<Vec<_>>().into_iter().map(|it| it.join().unwrap()).collect();
    assert_eq!(db.read().city().len(), 3);
    for id in ids {
        assert!(db.read().city().get(id.unwrap()).unwrap().is_some());
    }
    let nested = db.write(|_| db.clone().write(|_| Ok(())).map_err(annals::Abort::from));
    assert_eq!(nested.unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn dropping_the_last_handle_closes() {
    let (_folder, path, db) = made();
    let clone = db.clone();
    drop(db);
    insert(&clone, 1).unwrap();
    assert_eq!(Database::open(&path).unwrap_err().kind(), ErrorKind::Busy);
    assert!(!is_closed(&path));
    thread::spawn(move || drop(clone)).join().unwrap();
    assert!(is_closed(&path));
    assert_eq!(len(&Database::open(&path).unwrap()), 1);
}

/// What each operation of a handle returns.
fn all_errors(db: &Database) -> Vec<(&'static str, Option<Error>)> {
    let retention = Retention::default();
    vec![
        ("begin", db.begin().err()),
        ("write", insert(db, 9).err()),
        ("check_commits", db.check_commits("never", |_| Ok(())).err()),
        ("upgrade", db.upgrade(db.read().schema(), &mut |_, _| Ok(())).err()),
        ("soft_checkpoint", db.soft_checkpoint().err()),
        ("hard_checkpoint", db.hard_checkpoint().err()),
        ("pull", db.pull().err()),
        ("rest", db.rest().err()),
        ("at", db.at(annals::Txid(1)).err()),
        ("as_it_was", db.as_it_was(annals::Txid(1)).err()),
        ("txid_of", db.txid_of(annals::Txid(1)).err()),
        ("changes", db.changes(..).err()),
        ("subscribe_from", db.subscribe_from(annals::Txid(1)).err()),
        ("subscribe", db.subscribe().next_timeout(Duration::ZERO).err()),
        ("history_of", db.history_of(TABLE, RowId(0)).err()),
        ("blame", db.blame(TABLE, RowId(0)).err()),
        ("segments", db.segments().err()),
        ("forget_before", db.forget_before(0).err()),
        ("restart", db.restart(Older::Kept, SECOND).err()),
        ("pack", db.pack(SECOND).err()),
        ("live_bytes", db.live_bytes().err()),
        ("plan_retention", db.plan_retention(0, &retention).err()),
        ("retain", db.retain(&retention, SECOND).err()),
        ("backfill", db.backfill(BackfillMode::Passive).err()),
        ("full backfill", db.backfill(BackfillMode::Full).err()),
        ("restarting backfill", db.backfill(BackfillMode::Restart).err()),
    ]
}

#[test]
fn what_handles_of_a_closed_database_get() {
    let (_folder, path, db) = made();
    insert(&db, 1).unwrap();
    db.backfill(BackfillMode::Full).unwrap();
    insert(&db, 2).unwrap();
    let (other, snapshot, mut feed) = (db.clone(), db.read(), db.subscribe());
    insert(&db, 3).unwrap();
    db.close().unwrap();
    assert!(is_closed(&path));

    // Another one writes the file, and nothing of that concerns the closed one.
    let reopened = Database::open(&path).unwrap();
    insert(&reopened, 4).unwrap();
    reopened.backfill(BackfillMode::Full).unwrap();
    for (what, error) in all_errors(&other) {
        let error = error.unwrap_or_else(|| panic!("{what} of a closed database is no error"));
        assert_eq!(error.kind(), ErrorKind::Closed, "{what}: {error}");
        assert!(error.to_string().contains("open it again"), "{what}: {error}");
    }
    assert_eq!((len(&other), snapshot.table(TABLE).unwrap().len()), (3, 2));
    let numbers = snapshot
        .table(TABLE)
        .unwrap()
        .rows()
        .map(|row| row.unwrap().read::<i64>(annals::FieldNumber(0)));
    assert_eq!(numbers.collect::<Vec<_>>(), [1, 2]);
    assert_eq!(feed.next().unwrap().unwrap().rows.len(), 1);
    assert!(feed.next().is_none() && feed.is_over());
    other.clone().close().unwrap();
    drop((other, snapshot));

    insert(&reopened, 5).unwrap();
    assert_eq!(len(&reopened), 5);
    let closed = |error: Option<Error>| error.is_some_and(|it| it.kind() == ErrorKind::Closed);
    assert!(!all_errors(&reopened).into_iter().any(|(_, error)| closed(error)));
}

#[test]
fn closing_waits_for_the_transaction_of_another_thread() {
    let (_folder, path, db) = made();
    let other = db.clone();
    let (begun, wait_begun) = channel();
    let writer = thread::spawn(move || {
        let mut tx = other.begin().unwrap();
        begun.send(()).unwrap();
        // Until closing has begun, which waits for this transaction.
        while other.segments().is_ok() {
            thread::yield_now();
        }
        tx.insert(TABLE, &[ValueRef::Int64(1)]).unwrap();
        tx.commit().unwrap();
        other.begin().unwrap_err().kind()
    });
    wait_begun.recv().unwrap();
    db.close().unwrap();
    assert_eq!(writer.join().unwrap(), ErrorKind::Closed);
    assert_eq!(len(&Database::open(path).unwrap()), 1);
}

#[test]
fn a_thread_in_the_middle_of_something_cannot_close() {
    let (_folder, path, db) = made();
    let mut tx = db.begin().unwrap();
    assert_eq!(db.clone().close().unwrap_err().kind(), ErrorKind::Invalid);
    tx.insert(TABLE, &[ValueRef::Int64(1)]).unwrap();
    tx.commit().unwrap();
    let refused = db.backfill_watched(BackfillMode::Full, &mut |_| {
        assert_eq!(db.clone().close().unwrap_err().kind(), ErrorKind::Invalid);
        ControlFlow::Continue(())
    });
    refused.unwrap();
    insert(&db, 2).unwrap();
    db.close().unwrap();
    assert_eq!(len(&Database::open(path).unwrap()), 2);
}

#[test]
fn a_commit_that_waits_is_acknowledged_by_closing() {
    let (_folder, path, db) = made();
    let other = db.clone();
    let mut tx = other.begin().unwrap();
    tx.insert(TABLE, &[ValueRef::Int64(1)]).unwrap();
    let pending = tx.submit().unwrap();
    let empty = other.begin().unwrap().submit().unwrap();
    db.close().unwrap();
    let reopened = Database::open(path).unwrap();
    assert_eq!(pending.wait().unwrap().txid, reopened.read().txid());
    empty.wait().unwrap();
}

/// Threads write, save the image and read until another one closes: each acknowledged commit is there, and no other.
#[test]
fn a_database_is_closed_under_busy_threads() {
    for (round, shared) in [false, false, true].into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db.annals");
        let db = Options::new().shared(shared).open(&path).unwrap();
        db.write(define).unwrap();
        let (acknowledged, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        let until_closed = |act: &dyn Fn() -> Result<()>| loop {
            match act() {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Closed => break,
                Err(error) => panic!("{error}"),
            }
        };
        thread::scope(|scope| {
            for level in [Level::Checksummed, Level::Soft, Level::Half] {
                let (db, acknowledged) = (db.clone(), &acknowledged);
                scope.spawn(move || {
                    until_closed(&|| {
                        db.write(|tx| {
                            tx.set_level(level);
                            tx.insert(TABLE, &[ValueRef::Int64(0)]).map(drop)
                        })?;
                        acknowledged.fetch_add(1, Ordering::Relaxed);
                        Ok(())
                    });
                });
            }
            let image = db.clone();
            scope.spawn(move || {
                until_closed(&|| image.backfill(BackfillMode::Passive).map(drop));
            });
            let checkpoints = db.clone();
            scope.spawn(move || until_closed(&|| checkpoints.hard_checkpoint().map(drop)));
            let (reading, is_over) = (db.clone(), &is_over);
            scope.spawn(move || {
                let mut before = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let now = len(&reading);
                    assert!(now >= before);
                    before = now;
                }
            });
            let enough = 20 * (round as u64 + 1);
            while acknowledged.load(Ordering::Relaxed) < enough {
                thread::yield_now();
            }
            db.close().unwrap();
            let reopened = Database::open(&path).unwrap();
            is_over.store(true, Ordering::Relaxed);
            // A thread may still be about to count its last commit.
            while len(&reopened) != acknowledged.load(Ordering::Relaxed) {
                thread::yield_now();
            }
        });
        assert!(is_closed(&path), "the last handle was dropped");
    }
}
