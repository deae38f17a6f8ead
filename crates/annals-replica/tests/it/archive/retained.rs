//! Retention: what the rules ask for can be restored, and what is removed is in no list.

use std::sync::Arc;
use std::time::Duration;

use annals::reports::Older;
use annals::{Cursor, ErrorKind, Moment, Retention};
use annals_replica::archive::{self, Archive, Archiving, Uploader};
use annals_replica::frames::Source;
use annals_simulated::SimulatedClock;
use annals_storage::{Clock as _, Directory as _, MemoryDirectory};
use object_store::memory::InMemory;

use super::{Faults, bucket, create, faulty, restored, with_schema, write};

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

const DAY: i64 = 24 * 60 * 60 * 1_000_000;

/// A database whose clock the test sets, and its archive.
struct Aging {
    clock: Arc<SimulatedClock>,
    database: annals::Database,
    store: Arc<InMemory>,
}

impl Aging {
    fn new() -> Self {
        let (clock, directory) = (Arc::new(SimulatedClock::new(1)), MemoryDirectory::new());
        let database = annals::Options::new().background(false);
        let database = database.open_in(directory.again(), "a", Arc::clone(&clock) as _);
        let database = with_schema(database.expect("a database"));
        Self { clock, database, store: Arc::new(InMemory::new()) }
    }

    /// Lets so many days pass, begins a segment, and commits.
    fn pass(&self, days: i64) {
        self.clock.advance(days * DAY);
        self.database.restart(Older::NotNeeded, Duration::from_secs(5)).expect("a restart");
        write(&self.database, 5);
    }

    /// Uploads with a rule of 30 days; returns the first transaction that is kept.
    fn upload(&self, faults: Faults) -> u64 {
        let time = Some(Duration::from_secs(30 * 24 * 60 * 60));
        let rules = Retention { time, ..Retention::default() };
        let (_, bucket) = faulty(&self.store, faults);
        let source = Source::new(self.database.clone());
        let how = Archiving { rules, ..Archiving::default() };
        let mut uploader = Uploader::open_with(bucket, &source, how).expect("an uploader");
        uploader.upload(&source).expect("an upload");
        uploader.manifest().ranges[0].next.0.txid.0
    }
}

/// The clock of the uploader is years ahead of that of all who commit.
#[test]
fn an_uploader_whose_clock_is_ahead_forgets_nothing_too_early() {
    let aging = Aging::new();
    write(&aging.database, 5);
    let begin = aging.upload(Faults::default());
    for _ in 0..5 {
        aging.pass(5);
        assert_eq!(aging.upload(Faults::default()), begin, "25 days at most");
    }
    // What is older than the last commit by so much goes, as it should.
    aging.pass(20);
    let kept = aging.upload(Faults::default());
    assert!(kept > begin, "{kept}");
    assert!(kept <= 6 * 5 + 2, "30 days before the last commit are kept: {kept}");
    for _ in 0..4 {
        let before = aging.upload(Faults::default());
        aging.pass(31);
        assert!(aging.upload(Faults::default()) > before);
    }
}

/// A store knows the time, too: an uploader and a writer on one machine may both be wrong.
#[test]
fn a_machine_whose_clock_is_ahead_forgets_nothing_that_its_store_has_for_a_short_time() {
    let aging = Aging::new();
    write(&aging.database, 5);
    let begin = aging.upload(Faults::default());
    // By the store's clock the year isn't 2020 yet.
    let years = Duration::from_secs(20 * 365 * 24 * 60 * 60);
    let early = Faults { behind: years, ..Faults::default() };
    for _ in 0..5 {
        aging.pass(100);
        assert_eq!(aging.upload(early), begin);
    }
    assert!(aging.upload(Faults::default()) > begin, "the store agrees");
}

/// A segment is called old by a clock that is late: what was committed before it says more.
#[test]
fn a_segment_that_was_begun_by_a_late_clock_is_as_young_as_what_is_before_it() {
    let aging = Aging::new();
    write(&aging.database, 5);
    let begin = aging.upload(Faults::default());
    let right = aging.clock.now();
    aging.clock.set(right - 3650 * DAY);
    aging.database.restart(Older::NotNeeded, Duration::from_secs(5)).expect("a restart");
    aging.clock.set(right);
    write(&aging.database, 5);
    assert_eq!(aging.upload(Faults::default()), begin);
    // A single commit of the far future makes nothing old for longer than it is the last one.
    aging.clock.set(right + 3650 * DAY);
    write(&aging.database, 1);
    aging.clock.set(right + DAY);
    write(&aging.database, 1);
    assert_eq!(aging.upload(Faults::default()), begin);
}
