//! The journal after the image's point, which the next opening replays after a kill: at most 1 MiB of it is old.

use std::path::{Path, PathBuf};
use std::time::Duration;

use annals::storage::{Clock as _, SystemClock};
use annals::{BackfillMode, Database, FieldNumber, Level, RowId, ValueRef};

use super::{TABLE, create, dump, image_of, insert};
use crate::store_model::Random;

const MIB: u64 = 1 << 20;

/// Copies the files of an open database, as a kill leaves them.
fn killed(path: &Path, name: &str) -> PathBuf {
    let copy = path.with_file_name(name);
    for (from, to) in [(path.to_owned(), copy.clone()), (image_of(path), image_of(&copy))] {
        std::fs::copy(from, to).unwrap();
    }
    copy
}

/// Returns how many bytes the next opening would replay.
fn tail(path: &Path) -> u64 {
    let inspection = annals_tools::inspect(&annals::Options::new(), path).unwrap();
    let end = inspection.end.position;
    inspection.image.map_or(end, |image| image.newest.unwrap().tail)
}

/// Waits until little is left to replay; returns how much.
fn wait_for_short_tail(path: &Path) -> u64 {
    let begun = SystemClock.elapsed();
    loop {
        let tail = tail(path);
        let waited = SystemClock.elapsed() - begun;
        if tail < MIB || waited > Duration::from_secs(60) {
            return tail;
        }
        SystemClock.pause(Duration::from_millis(20));
    }
}

fn check(db: &Database, path: &Path, name: &str) {
    let left = wait_for_short_tail(path);
    assert!(left < MIB, "{left} bytes are left to replay");
    assert_eq!(dump(&Database::open(killed(path, name)).unwrap()), dump(db));
}

#[test]
fn what_was_written_a_moment_ago_is_not_replayed_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    let db = create(&path);
    insert(&db, 0..100_000);
    check(&db, &path, "loaded.annals");
    // After a backfill of more than 4 MiB the next one is due at 4 MiB, unless the replay takes long.
    assert!(db.backfill(BackfillMode::Full).unwrap().image_bytes > 4 * MIB);
    let mut random = Random::new(1);
    for value in 0..1_200 {
        let mut tx = db.begin().unwrap();
        tx.set_level(Level::Soft);
        for _ in 0..100 {
            let row = RowId(random.below(100_000));
            tx.update(TABLE, row, FieldNumber(1), ValueRef::Int64(value)).unwrap();
        }
        tx.commit().unwrap();
    }
    check(&db, &path, "updated.annals");
}
