//! The figures of an open database.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use annals::storage::MemoryDirectory;
use annals::{BackfillMode, Database, Level, Options, Stats, Txid, ValueRef};
use annals_simulated::SimulatedClock;

use crate::shared::{TABLE, define};

fn made(memory: u64) -> Database {
    let (directory, clock) = (MemoryDirectory::new(), SimulatedClock::new(1));
    let options = Options::new().background(false).memory(memory);
    let db = options.open_in(Arc::new(directory), "db", Arc::new(clock)).unwrap();
    db.write(define).unwrap();
    db
}

/// Numbers without bits in common, which an image would leave out.
const fn spread(n: i64) -> i64 {
    n.wrapping_mul(0x5851_F42D_4C95_7F2D)
}

fn insert(db: &Database, count: i64, level: Level) {
    db.write(|tx| {
        tx.set_level(level);
        (0..count).try_for_each(|n| tx.insert(TABLE, &[ValueRef::Int64(spread(n))]).map(drop))
    })
    .unwrap();
}

#[test]
fn commits_and_flushes_are_counted() {
    let db = made(0);
    for _ in 0..5 {
        insert(&db, 1, Level::Checksummed);
        insert(&db, 1, Level::Soft);
    }
    db.write(|_| Ok(())).unwrap(); // nothing to commit
    let Stats { txid, commits, flushes, .. } = db.stats();
    assert_eq!((txid, commits, flushes.count()), (Txid(11), 11, 6));
    assert_eq!(flushes.buckets().map(|(_, count)| count).sum::<u64>(), 6);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..10).for_each(|_| insert(&db, 1, Level::Checksummed)));
        }
    });
    let Stats { commits, flushes, .. } = db.stats();
    assert!(commits == 41 && (16..=36).contains(&flushes.count()), "{flushes:?}");
}

#[test]
fn the_tail_and_the_image_are_measured() {
    let db = made(0);
    insert(&db, 1000, Level::Soft);
    let before = db.stats();
    assert_eq!((before.tail_transactions, before.image_bytes, before.last_backfill), (2, 0, None));
    assert!(before.tail_bytes > 1000, "{before}");
    let done = db.backfill(BackfillMode::Full).unwrap();
    let saved = db.stats();
    assert_eq!((saved.tail_bytes, saved.tail_transactions), (0, 0));
    assert_eq!(saved.image_bytes, done.image_bytes);
    assert!(saved.last_backfill.is_some());
    insert(&db, 1, Level::Soft);
    let after = db.stats();
    assert!(after.tail_transactions == 1 && (1..1000).contains(&after.tail_bytes), "{after}");
}

#[test]
fn reads_of_pages_are_counted() {
    const ROWS: i64 = 100_000;
    let directory = Arc::new(MemoryDirectory::new());
    let open = |memory| {
        let clock = Arc::new(SimulatedClock::new(1));
        let options = Options::new().background(false).memory(memory);
        options.open_in(Arc::clone(&directory) as Arc<_>, "db", clock).unwrap()
    };
    let db = open(0);
    db.write(define).unwrap();
    insert(&db, ROWS, Level::Soft);
    let bytes = 8 * ROWS.unsigned_abs();
    let memory = db.stats().memory;
    assert!(memory.changes > bytes && memory.image + memory.cache < bytes, "{memory:?}");
    db.close().unwrap();
    let scan = |db: &Database| {
        let now = db.read();
        let table = now.table(TABLE).unwrap();
        let rows = table.rows().map(|row| row.unwrap().read::<i64>(annals::FieldNumber(0)));
        assert!(rows.eq((0..ROWS).map(spread)));
        db.stats().cache
    };
    // All of it fits: it is read once, and then no cache is asked.
    let db = open(64 << 20);
    let (first, second) = (scan(&db), scan(&db));
    assert!(first.misses > 20 && first.read_bytes > 4 * ROWS.unsigned_abs(), "{first:?}");
    assert_eq!((first.misses, first.hits, first.bytes), (second.misses, 0, 0));
    let memory = db.stats().memory;
    assert!(memory.image > bytes && memory.cache == 0 && memory.changes < bytes, "{memory:?}");
    drop(db);
    let db = open(512 << 10);
    let (first, second) = (scan(&db), scan(&db));
    assert!(second.misses > first.misses + 20 && second.hits > 0, "{second:?}");
    assert!((1..=second.limit).contains(&second.bytes) && second.limit == 512 << 10, "{second:?}");
    let memory = db.stats().memory;
    assert!(memory.cache > 256 << 10 && memory.image < bytes, "{memory:?}");
    assert!(memory.total() >= memory.cache + memory.free, "{memory:?}");
}

#[test]
fn readers_and_subscribers_are_counted() {
    let db = made(0);
    let readers = |db: &Database| {
        let Stats { readers, oldest_reader, .. } = db.stats();
        (readers, oldest_reader.map(|oldest| oldest.txid))
    };
    assert_eq!(readers(&db), (0, None));
    let first = db.read();
    let same = first.clone();
    assert_eq!(readers(&db), (2, None));
    insert(&db, 1, Level::Soft);
    let second = db.read();
    insert(&db, 1, Level::Soft);
    assert_eq!(readers(&db), (3, Some(Txid(1))));
    let age = |db: &Database| db.stats().oldest_reader.unwrap().age;
    let before = age(&db);
    thread::yield_now();
    assert!(age(&db) >= before && age(&db) < Duration::from_secs(60));
    drop((first, same));
    assert_eq!(readers(&db), (1, Some(Txid(2))));
    drop(second);
    assert_eq!((readers(&db), db.stats().subscribers), ((0, None), 0));

    let (mut feed, other) = (db.subscribe(), db.subscribe());
    insert(&db, 1, Level::Soft);
    feed.next().unwrap().unwrap();
    let kept = db.read();
    assert_eq!((readers(&db).0, db.stats().subscribers), (1, 2));
    drop((feed, other, kept));
    assert_eq!(db.stats().subscribers, 0);
    // Many readers that come and go leave nothing.
    for _ in 0..100 {
        let held = db.read();
        insert(&db, 1, Level::Soft);
        drop(held);
    }
    assert_eq!(readers(&db), (0, None));
}

#[test]
fn its_text_is_a_paragraph() {
    let db = made(0);
    let held = db.read();
    insert(&db, 1, Level::Checksummed);
    let text = db.stats().to_string();
    assert!(!text.contains('\n') && text.ends_with("ago."), "{text}");
    for part in ["2 commits", "transaction 2", "2 flushes", "1 snapshots", "is of transaction 1"] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    drop(held);
    assert!(db.stats().to_string().ends_with("are open."));
}
