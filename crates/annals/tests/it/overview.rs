//! Descriptions of a database that don't replay its journal: what they read, and that they say what a replay does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use annals::event::testing::decoded_events;
use annals::reports::Older;
use annals::storage::{Access, Clock, Directory, MemoryDirectory};
use annals::{
    BackfillMode, Command, Database, FieldNumber, Options, Result, RowId, TableNumber, Transaction,
    Type, ValueRef,
};
use annals_simulated::SimulatedClock;
use annals_tools::{Erase, Examination, erase_in, examine_in, overview_in, verify_in};

use crate::watched::{Watched, Watcher};

const NAME: &str = "people.annals";
const TABLE: TableNumber = TableNumber(0);
const FIELD: FieldNumber = FieldNumber(0);

#[derive(Debug, Default)]
struct Counts {
    reads: AtomicU64,
    bytes: AtomicU64,
}

impl Watcher for Counts {
    fn after_read(&self, bytes: usize) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(SimulatedClock::new(7))
}

fn open(directory: &MemoryDirectory) -> Database {
    let options = Options::new().background(false);
    options.open_in(Arc::new(directory.clone()), NAME, clock()).unwrap()
}

fn define(tx: &mut Transaction<'_>) -> Result<()> {
    tx.apply_command(&Command::CreateTable { name: "person".to_owned() })?;
    tx.apply_command(&Command::AddField {
        table: TABLE,
        name: "name".to_owned(),
        ty: Type::String,
        nullable: true,
        default: None,
    })
}

fn insert(tx: &mut Transaction<'_>, rows: u64) -> Result<()> {
    (0..rows).try_for_each(|row| {
        let name = format!("person {row} with a name that is long enough");
        tx.insert(TABLE, &[ValueRef::String(&name)]).map(drop)
    })
}

/// Makes a database of one large transaction and some small ones, which is closed with an image.
fn filled(rows: u64) -> MemoryDirectory {
    let directory = MemoryDirectory::new();
    let db = open(&directory);
    db.write(|tx| define(tx).and_then(|()| insert(tx, rows))).unwrap();
    for row in 0..50 {
        db.write(|tx| tx.update(TABLE, RowId(row), FIELD, ValueRef::String("Ada"))).unwrap();
    }
    db.backfill(BackfillMode::Full).unwrap();
    db.close().unwrap();
    directory
}

fn assert_same(found: &Examination, replayed: &Examination) {
    let rows = |it: &Examination| {
        let table = it.snapshot.table(TABLE).unwrap();
        (table.len(), table.next_id())
    };
    assert!(!found.is_replayed && replayed.is_replayed);
    assert_eq!(found.inspection.end, replayed.inspection.end);
    assert_eq!(found.inspection.hard, replayed.inspection.hard);
    assert_eq!(found.inspection.last, replayed.inspection.last);
    assert_eq!(found.inspection.image, replayed.inspection.image);
    assert_eq!(found.inspection.history, replayed.inspection.history);
    assert_eq!(found.first, replayed.first);
    assert_eq!(found.segments, replayed.segments);
    assert_eq!(found.erasures, replayed.erasures);
    assert_eq!(found.snapshot.point(), replayed.snapshot.point());
    assert_eq!(rows(found), rows(replayed));
    let problems = |it: &Examination| {
        let Examination { inspection, problem, unapplied, wrong_mark, .. } = it;
        [inspection.damage.is_some(), problem.is_some(), unapplied.is_some(), wrong_mark.is_some()]
    };
    assert_eq!((problems(found), problems(replayed)), ([false; 4], [false; 4]));
}

/// Compares an overview and a verification with an examination.
fn check(directory: &MemoryDirectory) {
    let options = Options::new();
    let replayed = examine_in(&options, directory, NAME).unwrap();
    let overview = overview_in(&options, directory, NAME).unwrap();
    assert_same(&overview, &replayed);
    assert_eq!(overview.events, None);
    let verified = verify_in(&options, directory, NAME).unwrap();
    assert_same(&verified, &replayed);
    assert_eq!(verified.events, replayed.events);
}

#[test]
fn an_overview_reads_no_more_of_a_longer_journal() {
    let read = |rows| {
        let (directory, counts) = (filled(rows), Arc::new(Counts::default()));
        let watched = Watched::new(Arc::new(directory), Arc::clone(&counts));
        let events = decoded_events();
        overview_in(&Options::new(), &watched, NAME).unwrap();
        let reads = counts.reads.load(Ordering::Relaxed);
        (reads, counts.bytes.load(Ordering::Relaxed), decoded_events() - events)
    };
    // The first and the last frame of the first transaction are among it: up to 384 KiB each.
    for rows in [2_000, 50_000, 100_000] {
        let (reads, bytes, events) = read(rows);
        assert!(
            reads < 150 && bytes < 1_200_000 && events < 10,
            "{rows} rows: {reads} reads, {bytes} bytes, {events} events"
        );
    }
}

#[test]
fn it_says_what_a_replay_says() {
    let directory = filled(2000);
    check(&directory);
    // The journal has transactions that the image hasn't.
    let db = open(&directory);
    db.write(|tx| insert(tx, 1)).unwrap();
    db.hard_checkpoint().unwrap();
    drop(db);
    check(&directory);
}

#[test]
fn it_knows_segments() {
    let directory = filled(2000);
    for older in [Older::Kept, Older::NotNeeded, Older::Kept, Older::Forgotten] {
        let db = open(&directory);
        db.write(|tx| insert(tx, 100)).unwrap();
        db.restart(older, Duration::ZERO).unwrap();
        db.backfill(BackfillMode::Full).unwrap();
        db.close().unwrap();
        check(&directory);
        let db = open(&directory);
        db.write(|tx| insert(tx, 1)).unwrap();
        db.backfill(BackfillMode::Full).unwrap();
        db.close().unwrap();
        check(&directory);
    }
}

#[test]
fn it_knows_erasures() {
    let directory = filled(2000);
    for row in [17, 18] {
        let what = Erase::new("person", RowId(row));
        let shared: Arc<dyn Directory> = Arc::new(directory.clone());
        erase_in(&Options::new(), &shared, NAME, &clock(), &what).unwrap();
        let db = open(&directory);
        db.backfill(BackfillMode::Full).unwrap();
        db.close().unwrap();
        check(&directory);
    }
    assert_eq!(overview_in(&Options::new(), &directory, NAME).unwrap().erasures.len(), 2);
}

#[test]
fn damage_before_the_image_is_left_to_verifying() {
    let directory = filled(2000);
    let file = directory.open(NAME, Access::Write).unwrap();
    file.write_at(40_000, &[0; 8]).unwrap();
    let overview = overview_in(&Options::new(), &directory, NAME).unwrap();
    assert_eq!((overview.inspection.damage, overview.is_replayed), (None, false));
    let verified = verify_in(&Options::new(), &directory, NAME).unwrap();
    let replayed = examine_in(&Options::new(), &directory, NAME).unwrap();
    assert!(verified.inspection.damage.is_some());
    assert_eq!(verified.inspection.damage, replayed.inspection.damage);
    assert_eq!(verified.inspection.end, replayed.inspection.end);
    assert_eq!(verified.events, replayed.events);
}
