//! Rules of retention are kept by themselves: after backfills in the background, and when a database is closed.

use std::sync::Arc;
use std::time::Duration;

use annals::storage::{Access, Clock as _, Directory, Hold, Lock, MemoryDirectory, SystemClock};
use annals::{Database, ErrorKind, FieldNumber, Options, Retention, RowId, ValueRef};
use annals_simulated::{Rng, SimulatedClock};

use super::{NAME, NOW, TABLE, content, define, open, options, try_open, try_replay};

fn keep(transactions: u64) -> Retention {
    Retention { transactions: Some(transactions), ..Retention::default() }
}

fn open_with(directory: &MemoryDirectory, options: &Options) -> Database {
    let clock = Arc::new(SimulatedClock::new(7));
    options.open_in(Arc::new(directory.clone()), NAME, clock).unwrap()
}

/// Sets another long name in one of eight rows, in each transaction.
fn renames(database: &Database, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let mut rng = Rng::new(number);
        let name: String =
            (0..20_000).map(|_| char::from(b'a' + u8::try_from(rng.below(26)).unwrap())).collect();
        let (id, name) = (RowId(number % 8), ValueRef::String(&name));
        let is_there = database.read().table(TABLE).unwrap().contains(id).unwrap();
        let renamed = database.write(|tx| match is_there {
            true => tx.update(TABLE, id, FieldNumber(0), name),
            false => tx.insert_at(TABLE, id, &[name, ValueRef::Null, ValueRef::Null]).map(drop),
        });
        renamed.unwrap();
    }
}

fn numbers(database: &Database) -> Vec<u64> {
    database.segments().unwrap().iter().map(|facts| facts.number).collect()
}

fn len_of(database: &Database) -> u64 {
    database.segments().unwrap().iter().map(|facts| facts.bytes).sum()
}

#[test]
fn the_background_forgets_what_no_rule_asks_for() {
    let directory = MemoryDirectory::new();
    let database = open_with(&directory, &Options::new().retention(keep(100)));
    database.write(define).unwrap();
    let begun = SystemClock.elapsed();
    let (mut number, mut written) = (0, 0);
    while database.forgotten().is_none_or(|forgotten| forgotten.segments < 2) {
        let waited = SystemClock.elapsed().saturating_sub(begun);
        assert!(waited < Duration::from_secs(60), "{:?}", database.segments());
        renames(&database, number..number + 10);
        (number, written) = (number + 10, written + 200_000);
        let segments = database.segments().unwrap();
        let (first, last) = (segments[0], segments[segments.len() - 1]);
        assert!(
            first.number == 0 || last.last_txid + 1 - first.first_txid.0 >= annals::Txid(100),
            "{segments:?}"
        );
        SystemClock.pause(Duration::from_millis(1));
    }
    assert_eq!(database.image_error(), None);
    let forgotten = database.forgotten().unwrap();
    assert!(forgotten.bytes > 0 && forgotten.transactions.0 == annals::Txid(1), "{forgotten:?}");
    assert!(len_of(&database) < written, "{} of {written}", len_of(&database));
    let expected = content(&database.read());
    database.close().unwrap();
    assert_eq!(content(&open(&directory).read()), expected);
    assert_eq!(content(&try_replay(&directory).unwrap().read()), expected);
}

#[test]
fn without_a_rule_nothing_is_forgotten() {
    let directory = MemoryDirectory::new();
    let database = open_with(&directory, &options());
    database.write(define).unwrap();
    renames(&database, 0..60);
    database.close().unwrap();
    assert_eq!(open(&directory).segments().unwrap().len(), 1);
}

#[test]
fn what_is_read_stays_until_the_next_time() {
    let directory = MemoryDirectory::new();
    let close = |range: std::ops::Range<u64>| {
        let database = open_with(&directory, &options().retention(keep(2)));
        renames(&database, range);
        let expected = content(&database.read());
        database.close().unwrap();
        let database = try_open(&directory).unwrap();
        assert_eq!(content(&database.read()), expected);
        numbers(&database)
    };
    open(&directory).write(define).unwrap();
    // A state, but nothing before it that may go: the last two transactions are there.
    assert_eq!(close(0..60), [0, 1]);
    let reader = directory.open("db-segment-000000", Access::Read).unwrap();
    assert!(reader.try_lock(Lock::History, Hold::Shared).unwrap());
    assert_eq!(close(60..120), [0, 1, 2]);
    drop(reader);
    assert_eq!(close(120..121), [1, 2], "one of the last two transactions is in segment 1");
    assert_eq!(close(121..181), [2, 3]);
}

#[test]
fn the_live_state_is_measured_with_its_blobs() {
    let directory = MemoryDirectory::new();
    let rules = options().retention(keep(2));
    let database = open_with(&directory, &rules);
    assert_eq!(database.live_bytes().unwrap_err().kind(), ErrorKind::NotFound);
    database.write(define).unwrap();
    let photo = vec![7; 3_000_000];
    let id = database
        .write(|tx| {
            let blob = tx.write_blob(&photo[..])?;
            let unused = tx.write_blob(&photo[..])?;
            assert_ne!(blob, unused);
            tx.insert(TABLE, &[ValueRef::Null, ValueRef::Null, blob.into()])
        })
        .unwrap();
    database.close().unwrap();
    // Each time as much is written as the image has, and much less than the blob.
    for round in 0..5 {
        let database = open_with(&directory, &rules);
        // The second blob, to which no row leads, was as long as the live state.
        assert_eq!(numbers(&database), if round == 0 { vec![0, 1] } else { vec![1] });
        let live = database.live_bytes().unwrap();
        assert!((3_000_000..3_500_000).contains(&live), "{live}");
        renames(&database, round * 20..round * 20 + 20);
        database.close().unwrap();
    }
    let database = open(&directory);
    database.write(|tx| tx.delete(TABLE, id)).unwrap();
    database.close().unwrap();
    for (round, expected) in [(0, vec![1, 2]), (1, vec![2])] {
        let database = open_with(&directory, &rules);
        renames(&database, 0..20);
        assert!(database.live_bytes().unwrap() < 1_000_000);
        database.close().unwrap();
        assert_eq!(numbers(&open(&directory)), expected, "round {round}");
    }
    assert!(len_of(&open(&directory)) < 1_000_000);
}

#[test]
fn closing_waits_for_nobody() {
    let directory = MemoryDirectory::new();
    let database = open_with(&directory, &options().retention(keep(2)));
    database.write(define).unwrap();
    renames(&database, 0..60);
    std::mem::forget(database.begin().unwrap());
    drop(database);
    assert_eq!(open(&directory).segments().unwrap().len(), 1);
}

#[test]
fn rules_that_nobody_would_keep_are_refused() {
    let directory = MemoryDirectory::new();
    let clock = Arc::new(SimulatedClock::new(7));
    let shared = options().shared(true).retention(keep(2));
    let error = shared.open_in(Arc::new(directory), NAME, clock).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("Database::retain"), "{error}");
}

/// Whoever asks what is read has each segment for a moment: nobody takes it for one that is being removed.
#[test]
fn asking_who_reads_keeps_nobody_from_reading() {
    let directory = MemoryDirectory::new();
    let database = open(&directory);
    database.write(define).unwrap();
    for number in 0..4 {
        renames(&database, number..number + 1);
        database.restart(annals::reports::Older::Kept, NOW).unwrap();
    }
    let kept = directory.open("db-segment-000002", Access::Write).unwrap();
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            for _ in 0..2000 {
                if kept.try_lock(Lock::History, Hold::Exclusive).unwrap() {
                    std::thread::yield_now();
                    kept.unlock(Lock::History).unwrap();
                }
                std::thread::yield_now();
            }
        });
        while !asking.is_finished() {
            let examined = annals_tools::examine_in(&Options::new(), &directory, NAME).unwrap();
            assert_eq!((examined.problem, examined.segments.len()), (None, 5));
        }
    });
}

/// A full disk is when history has to go: what the rules let go at once needs no space.
#[test]
fn what_may_be_forgotten_at_once_is_forgotten_on_a_full_disk() {
    let disk = annals_simulated::SimulatedDisk::new(1);
    let clock = || Arc::new(SimulatedClock::new(7));
    let open = |disk: &annals_simulated::SimulatedDisk| {
        options().open_in(Arc::new(disk.clone()), NAME, clock()).unwrap()
    };
    let database = open(&disk);
    database.write(define).unwrap();
    renames(&database, 0..30);
    database.backfill(annals::BackfillMode::Full).unwrap();
    database.restart(annals::reports::Older::NotNeeded, NOW).unwrap();
    database.backfill(annals::BackfillMode::Full).unwrap();
    renames(&database, 30..60);
    assert_eq!(numbers(&database), [0, 1]);
    drop(database);
    let mut seen = 0;
    for skip in 0..40 {
        let disk = disk.fork();
        let database = open(&disk);
        disk.fail_at(disk.operations() + skip, annals_simulated::Fault::NoSpace);
        let done = database.retain(&keep(20), NOW);
        disk.clear_plan();
        let Err(error) = done else { continue };
        if !error.to_string().contains("older segments can't be removed") {
            assert_eq!(numbers(&database).first(), Some(&1), "{skip}: {error}");
            seen += 1;
        }
    }
    assert!(seen > 5, "{seen}: it writes only after that");
}
