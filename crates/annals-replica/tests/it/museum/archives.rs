//! Stories of archives.

use std::sync::Arc;
use std::time::Duration;

use annals::reports::Older;
use annals::{Cursor, Database, ErrorKind, Moment, Options, Retention, Txid};
use annals_replica::archive::{self, Archive, Archiving, Bucket, Uploader};
use annals_replica::frames::Source;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use object_store::prefix::PrefixStore;

use crate::archive::{NOTE, bucket, create, restored, upload, write};

fn end_of(database: &Database) -> Cursor {
    database.read().point().into()
}

/// Checks an archive, and that all of a database is in it.
fn check(bucket: impl Fn() -> Bucket, folder: &std::path::Path, database: &Database) {
    let checked = archive::check(&Archive::new(bucket())).expect("a check");
    assert_eq!((checked.damage, checked.end), (Vec::new(), end_of(database)));
    let path = folder.join(format!("checked-{}", checked.end.txid));
    let _ = std::fs::remove_file(&path);
    assert_eq!(restored(bucket(), &path, None).expect("a restore"), end_of(database));
    let copy = Options::new().open_read_only(&path).expect("it opens");
    let rows = |snapshot: annals::Snapshot| snapshot.table(NOTE).expect("the table").len();
    assert_eq!(rows(copy.read()), rows(database.read()));
}

/// A writer was held up. Meanwhile another took over, and garbage collection removed the objects that would have shown it:
/// its next write was acknowledged, and lost. <https://github.com/slatedb/slatedb/issues/1622>, and
/// <https://github.com/slatedb/slatedb/issues/352>.
#[test]
fn slatedb_a_stale_writer_passes_once_what_fenced_it_was_removed() {
    // How many manifests the other one makes: some, so many that the first are removed, and many.
    for others in [1, 5, 31, 32, 33, 34, 35, 64, 65, 100] {
        let folder = tempfile::tempdir().expect("a folder");
        let database = create(&folder.path().join("a"));
        let (store, source) = (Arc::new(InMemory::new()), Source::new(database.clone()));
        let mut stale = Uploader::open(bucket(&store), &source).expect("an uploader");
        write(&database, 1);
        stale.upload(&source).expect("an upload");
        let mut other = Uploader::open(bucket(&store), &source).expect("it takes over");
        for _ in 1..others {
            write(&database, 1);
            other.upload(&source).expect("an upload");
        }
        let known = other.manifest().number;
        write(&database, 1);
        let refused = stale.upload(&source).expect_err("another took over");
        assert_eq!(refused.kind(), ErrorKind::Conflict, "{others}: {refused}");
        // It stays so, and the other one goes on as if nothing had been.
        let refused = stale.upload(&source).expect_err("another took over");
        assert_eq!(refused.kind(), ErrorKind::Conflict, "{others}: {refused}");
        other.upload(&source).expect("an upload");
        assert!(other.manifest().number > known, "{others}");
        check(|| bucket(&store), folder.path(), &database);
    }
}

/// The same for one that was held up before it had begun the archive, and for one after many that were killed.
#[test]
fn slatedb_a_stale_writer_that_has_written_nothing_yet_does_not_pass_either() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = create(&folder.path().join("a"));
    let (store, source) = (Arc::new(InMemory::new()), Source::new(database.clone()));
    let mut stale = Uploader::open(bucket(&store), &source).expect("an uploader");
    for _ in 0..50 {
        write(&database, 1);
        // Each is ended and another takes over.
        upload(bucket(&store), &database).expect("an upload");
    }
    let refused = stale.upload(&source).expect_err("others have begun it");
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    write(&database, 1);
    upload(bucket(&store), &database).expect("an upload");
    check(|| bucket(&store), folder.path(), &database);
}

/// Replication was begun when the database had a past already: the first transactions weren't there, and nothing could be
/// restored. <https://github.com/benbjohnson/litestream/issues/753>
#[test]
fn litestream_archiving_that_is_begun_late_can_be_restored() {
    for forgets in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let database = create(&folder.path().join("a"));
        write(&database, 200);
        database.restart(Older::NotNeeded, Duration::from_secs(5)).expect("a restart");
        write(&database, 50);
        if forgets {
            // What is before the state isn't even there any more.
            let rules = Retention { transactions: Some(1), ..Retention::default() };
            database.backfill(annals::BackfillMode::Full).expect("a backfill");
            database.retain(&rules, Duration::from_secs(5)).expect("a rule");
        }
        let store = Arc::new(InMemory::new());
        let begun = end_of(&database);
        upload(bucket(&store), &database).expect("an upload");
        check(|| bucket(&store), folder.path(), &database);
        let ends = write(&database, 20);
        upload(bucket(&store), &database).expect("an upload");
        check(|| bucket(&store), folder.path(), &database);
        for cursor in [begun, ends[0], ends[10]] {
            let path = folder.path().join(format!("at-{}", cursor.txid));
            let found = restored(bucket(&store), &path, Some(Moment::Txid(cursor.txid)));
            assert_eq!(found.expect("a restore"), cursor);
        }
    }
}

/// After a restore replication began to count at 0 again: what was written then was in no backup until the old number was
/// reached. <https://github.com/benbjohnson/litestream/issues/781>
#[test]
fn litestream_what_was_restored_is_archived_again_from_its_end_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Arc::new(InMemory::new());
    let mut database = create(&folder.path().join("0"));
    write(&database, 5);
    upload(bucket(&store), &database).expect("an upload");
    for round in 1..6 {
        // The machine is lost.
        let before = end_of(&database);
        database.close().expect("closing");
        let path = folder.path().join(round.to_string());
        assert_eq!(restored(bucket(&store), &path, None).expect("a restore"), before);
        database = Options::new().open(&path).expect("it opens");
        write(&database, 1);
        let uploaded = upload(bucket(&store), &database).expect("an upload");
        assert_eq!(uploaded.transactions, 1, "only what is new");
        check(|| bucket(&store), folder.path(), &database);
    }
    // One that was restored as of an earlier moment has lost what came later: that isn't replaced silently.
    let path = folder.path().join("earlier");
    restored(bucket(&store), &path, Some(Moment::Txid(Txid(4)))).expect("a restore");
    let earlier = Options::new().open(&path).expect("it opens");
    for _ in 0..3 {
        let refused = upload(bucket(&store), &earlier).expect_err("it has another history");
        assert_eq!(refused.kind(), ErrorKind::Diverged, "{refused}");
        write(&earlier, 10);
    }
    check(|| bucket(&store), folder.path(), &database);
}

/// The objects of one database were taken for those of another, whose name begins with the same letters.
/// <https://github.com/benbjohnson/litestream/issues/1537>
#[test]
fn litestream_names_that_are_prefixes_of_others_are_other_places() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Arc::new(InMemory::new());
    let names = ["a", "ab", "a-b", "a/b", "a/frames", "a/manifests/b", "abc"];
    let rules = Retention { transactions: Some(5), ..Retention::default() };
    let how = Archiving { rules, ..Archiving::default() };
    let at = |name: &str| -> [Box<dyn Fn() -> Bucket>; 2] {
        let (store, prefix) = (Arc::clone(&store), name.to_owned());
        let url = format!("file://{}/archives/{name}", folder.path().display());
        let in_store = move || {
            let store: Arc<dyn ObjectStore> =
                Arc::new(PrefixStore::new(Arc::clone(&store), prefix.as_str()));
            Bucket::with(store, "memory").expect("a bucket")
        };
        [Box::new(in_store), Box::new(move || Bucket::open(&url).expect("a bucket"))]
    };
    let databases: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(number, _)| create(&folder.path().join(format!("database{number}"))))
        .collect();
    for round in 0..40 {
        for (number, (name, database)) in names.iter().zip(&databases).enumerate() {
            write(database, 1);
            if round % 9 == number {
                database.restart(Older::NotNeeded, Duration::from_secs(5)).expect("a restart");
            }
            for bucket in at(name) {
                let source = Source::new(database.clone());
                let mut uploader =
                    Uploader::open_with(bucket(), &source, how).expect("an uploader");
                uploader.upload(&source).expect("an upload");
            }
        }
    }
    for (number, (name, database)) in names.iter().zip(&databases).enumerate() {
        for (place, bucket) in at(name).into_iter().enumerate() {
            let folder = folder.path().join(format!("r{number}-{place}"));
            std::fs::create_dir(&folder).expect("a folder");
            check(bucket, &folder, database);
        }
    }
}
