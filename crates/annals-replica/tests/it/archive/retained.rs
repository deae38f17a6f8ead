//! Retention: what the rules ask for can be restored, and what is removed is in no list.

use std::sync::Arc;
use std::time::Duration;

use annals::internals::Source;
use annals::{Cursor, ErrorKind, Moment, Older, Retention};
use annals_replica::archive::{self, Archive, Archiving, Uploader};
use object_store::memory::InMemory;

use super::{bucket, create, restored, write};

fn open(store: &Arc<InMemory>, source: &Source, rules: Retention) -> Uploader {
    let how = Archiving { rules, ..Archiving::default() };
    Uploader::open_with(bucket(store), source, how).expect("an uploader")
}

/// Makes an archive of four segments that begin with the state, each with ten transactions; returns the cursors.
fn four(
    folder: &std::path::Path,
    rules: Retention,
) -> (annals::Database, Arc<InMemory>, Uploader, Vec<Cursor>) {
    let database = create(&folder.join("a"));
    let store = Arc::new(InMemory::new());
    let source = Source::new(database.clone());
    let mut uploader = open(&store, &source, rules);
    let mut ends = Vec::new();
    for part in 0..4 {
        ends.extend(write(&database, 10));
        uploader.upload(&source).expect("an upload");
        if part < 3 {
            database.restart(Older::NotNeeded, Duration::from_secs(5)).expect("a restart");
        }
    }
    uploader.upload(&source).expect("an upload");
    (database, store, uploader, ends)
}

#[test]
fn a_rule_keeps_what_it_asks_for_and_whole_segments() {
    for (least, oldest) in [(5, 30), (10, 30), (11, 20), (25, 10), (31, 0), (1000, 0)] {
        let folder = tempfile::tempdir().expect("a folder");
        let rules = Retention { transactions: Some(least), ..Retention::default() };
        let (_database, store, _, ends) = four(folder.path(), rules);
        let end = ends[ends.len() - 1];
        for (number, cursor) in ends.iter().enumerate() {
            let path = folder.path().join(format!("r{number}"));
            let found = restored(bucket(&store), &path, Some(Moment::Txid(cursor.txid)));
            // The state has the number of the last transaction before its segment.
            match number + 1 >= oldest {
                true => assert_eq!(found.expect("a restore").txid, cursor.txid, "{least}"),
                false => {
                    let error = found.expect_err("it is forgotten");
                    assert_eq!(error.kind(), ErrorKind::NotFound, "{least}: {error}");
                    assert!(error.to_string().contains("begins later"), "{error}");
                    assert!(end.txid.0 - cursor.txid.0 >= least, "it was promised");
                }
            }
        }
        let checked = archive::check(&Archive::new(bucket(&store))).expect("a check");
        assert_eq!((checked.damage, checked.end), (Vec::new(), end));
        assert_eq!(restored(bucket(&store), &folder.path().join("all"), None).unwrap(), end);
    }
}

#[test]
fn rules_of_bytes_and_time_keep_what_any_asks_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let hour = Some(Duration::from_secs(3600));
    let rules = Retention { transactions: Some(1), time: hour, ..Retention::default() };
    let (database, store, uploader, _) = four(folder.path(), rules);
    let first = |uploader: &Uploader| uploader.manifest().ranges[0].next.0.txid.0;
    assert!(first(&uploader) <= 11, "nothing is as old as an hour");
    let source = Source::new(database);
    let rules = Retention { bytes: Some(1 << 30), ..Retention::default() };
    let mut uploader = open(&store, &source, rules);
    uploader.upload(&source).expect("an upload");
    assert!(first(&uploader) <= 11, "there isn't as much");
    let rules = Retention { bytes: Some(1), time: Some(Duration::ZERO), ..Retention::default() };
    let mut uploader = open(&store, &source, rules);
    uploader.upload(&source).expect("an upload");
    assert!(first(&uploader) > 30, "the newest state and what follows it");
    // A reader of before goes on.
    let gone = &uploader.manifest().left_out;
    assert!(!gone.is_empty() && gone.iter().all(|left| !left.at_once));
}
