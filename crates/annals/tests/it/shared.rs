//! Shared mode: several handles of one file on a simulated disk, which behave as several processes do.

use std::sync::Arc;
use std::time::Duration;

use annals::{
    Command, Database, ErrorKind, Level, Options, Result, TableNumber, Transaction, Type, ValueRef,
};
use annals_simulated::{Fault, SimulatedClock, SimulatedDisk};

pub(crate) const TABLE: TableNumber = TableNumber(0);

pub(crate) fn options() -> Options {
    Options::new().shared(true).lock_timeout(Duration::from_millis(50))
}

fn open_with(disk: &SimulatedDisk, options: &Options) -> Result<Database> {
    options.open_in(Arc::new(disk.clone()), "journal", Arc::new(SimulatedClock::new(1)))
}

pub(crate) fn open(disk: &SimulatedDisk) -> Database {
    open_with(disk, &options()).unwrap()
}

pub(crate) fn define(tx: &mut Transaction<'_>) -> Result<()> {
    tx.apply_command(&Command::CreateTable { name: "item".to_owned() })?;
    tx.apply_command(&Command::AddField {
        table: TABLE,
        name: "number".to_owned(),
        ty: Type::Int64,
        nullable: false,
        default: None,
    })
}

fn insert(database: &Database, number: i64, level: Level) -> Result<()> {
    database.write(|tx| {
        tx.set_level(level);
        tx.insert(TABLE, &[ValueRef::Int64(number)]).map(drop)
    })
}

fn len(database: &Database) -> u64 {
    database.read().table(TABLE).unwrap().len()
}

#[test]
fn handles_take_turns_and_see_what_the_others_committed() {
    let disk = SimulatedDisk::new(1);
    let first = open(&disk);
    first.write(define).unwrap();
    let second = open(&disk);
    for (round, level) in Level::ALL.into_iter().cycle().take(40).enumerate() {
        let writer = if round % 3 == 0 { &first } else { &second };
        insert(writer, i64::try_from(round).unwrap(), level).unwrap();
        assert_eq!(len(writer), round as u64 + 1);
    }
    for database in [&first, &second] {
        assert_eq!(database.pull().unwrap().txid(), annals::Txid(41));
        assert_eq!(len(database), 40);
        database.read().check().unwrap();
    }
    first.close().unwrap();
    let inspection = annals_tools::inspect_in(&Options::new(), &disk, "journal").unwrap();
    assert!(!inspection.is_closed(), "the other one has it open");
    insert(&second, 40, Level::Soft).unwrap();
    second.close().unwrap();
    let inspection = annals_tools::inspect_in(&Options::new(), &disk, "journal").unwrap();
    assert!(inspection.is_closed(), "{inspection:?}");
    assert_eq!(inspection.end.txid, annals::Txid(42));
}

#[test]
fn one_writes_at_a_time_and_says_so_in_time() {
    let disk = SimulatedDisk::new(1);
    let (first, second) = (open(&disk), open(&disk));
    let transaction = first.begin().unwrap();
    let error = second.begin().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(error.to_string().contains("try again"), "{error}");
    drop(transaction);
    drop(second.begin().unwrap());
}

#[test]
fn a_wait_has_a_timeout_of_its_own_and_ends_when_nobody_wants_it() {
    let disk = SimulatedDisk::new(1);
    let (first, second) = (open(&disk), open(&disk));
    let transaction = first.begin().unwrap();
    let refused = |timeout, is_wanted| {
        annals::internals::begin_while(&second, timeout, &|| is_wanted).unwrap_err()
    };
    for (timeout, said) in [(None, "50ms"), (Some(Duration::from_secs(70)), "70s")] {
        let error = refused(timeout, true);
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert!(error.to_string().contains(&format!("for all of {said}")), "{error}");
        assert_eq!(refused(timeout, false).kind(), ErrorKind::Cancelled);
    }
    drop(transaction);
    let begun = annals::internals::begin_while(&second, Some(Duration::ZERO), &|| false).unwrap();
    drop(begun);
    insert(&first, 1, Level::Soft).unwrap_err();
    first.write(define).unwrap();
    insert(&second, 1, Level::Soft).unwrap();
}

#[test]
fn alone_and_shared_exclude_each_other() {
    let disk = SimulatedDisk::new(1);
    let alone = Options::new().background(false);
    let shared = open(&disk);
    let error = open_with(&disk, &alone).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    drop(shared);
    let exclusive = open_with(&disk, &alone).unwrap();
    let error = open_with(&disk, &options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    drop(exclusive);
    drop(open(&disk));
}

#[test]
fn rollbacks_leave_nothing_to_the_others() {
    let disk = SimulatedDisk::new(1);
    let (first, second) = (open(&disk), open(&disk));
    first.write(define).unwrap();
    for round in 0..3 {
        let mut tx = second.begin().unwrap();
        for number in 0..300_000 {
            tx.insert(TABLE, &[ValueRef::Int64(number << 40)]).unwrap();
        }
        drop(tx);
        insert(&first, round, Level::Checksummed).unwrap();
    }
    assert_eq!(second.pull().unwrap().table(TABLE).unwrap().len(), 3);
    assert!(first.recoveries().is_empty() && second.recoveries().is_empty());
}

/// What a killed process left is cut by the next one to write; what it had committed is there.
#[test]
fn the_next_one_recovers_from_a_writer_that_was_killed() {
    let disk = SimulatedDisk::new(1);
    let (first, second) = (open(&disk), open(&disk));
    first.write(define).unwrap();
    let mut tx = first.begin().unwrap();
    for number in 0..300_000 {
        tx.insert(TABLE, &[ValueRef::Int64(number << 40)]).unwrap();
    }
    disk.fail_from(disk.operations(), Fault::Io);
    drop(tx);
    drop(first);
    disk.clear_plan();
    insert(&second, 1, Level::Checksummed).unwrap();
    assert_eq!(len(&second), 1);
    let recoveries = second.recoveries();
    assert!(recoveries.len() == 1 && recoveries[0].cut.is_some(), "{recoveries:?}");
    second.close().unwrap();
    assert_eq!(len(&open(&disk)), 1);
}

#[test]
fn a_failed_flush_is_for_the_next_one_to_recover() {
    let disk = SimulatedDisk::new(1);
    let (first, second) = (open(&disk), open(&disk));
    first.write(define).unwrap();
    disk.fail_at(disk.operations() + 1, Fault::Io);
    let error = insert(&first, 1, Level::Checksummed).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownOutcome, "{error}");
    assert_eq!(first.begin().unwrap_err().kind(), ErrorKind::Poisoned);
    disk.clear_transcript();
    insert(&second, 2, Level::Soft).unwrap();
    let transcript = disk.transcript();
    assert!(transcript.contains("flush journal"), "it recovers first:\n{transcript}");
    assert_eq!(len(&second), 2);
}

#[test]
fn readers_follow_and_may_see_only_what_is_hard() {
    let disk = SimulatedDisk::new(1);
    let database = open(&disk);
    database.write(define).unwrap();
    let reader = options().open_read_only_in(&disk, "journal").unwrap();
    let hard = options().hard_only(true).open_read_only_in(&disk, "journal").unwrap();
    assert_eq!(hard.read().txid(), annals::Txid(1));
    for round in 0..10 {
        insert(&database, round, Level::Soft).unwrap();
        let seen = reader.pull().unwrap();
        assert_eq!(seen.table(TABLE).unwrap().len(), u64::try_from(round).unwrap() + 1);
        assert_eq!(hard.pull().unwrap().txid(), annals::Txid(1));
    }
    for level in [Level::Checksummed, Level::Soft, Level::Half, Level::Soft, Level::TwoPhase] {
        insert(&database, 10, level).unwrap();
        let newest = reader.pull().unwrap().txid();
        let expected = if level == Level::Soft { newest - 1 } else { newest };
        assert_eq!(hard.pull().unwrap().txid(), expected, "{level:?}");
    }
    insert(&database, 11, Level::Soft).unwrap();
    database.hard_checkpoint().unwrap();
    assert_eq!(hard.pull().unwrap().txid(), database.read().txid());
    drop(database);
    assert_eq!(reader.pull().unwrap().txid(), hard.pull().unwrap().txid());
}

#[test]
fn a_program_whose_schema_another_one_upgraded_must_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let schema = |text: &str| annals_schema::parse(text).unwrap().schema;
    let text = "create_table item\nadd_field item number int64\n";
    let old = options().open_schema(&path, &schema(text)).unwrap();
    insert(&old, 1, Level::Soft).unwrap();
    let text = format!("{text}add_field item name string\n");
    let new = options().open_schema(&path, &schema(&text)).unwrap();
    for _ in 0..2 {
        let error = insert(&old, 2, Level::Soft).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SchemaMismatch, "{error}");
        assert_eq!(old.pull().unwrap_err().kind(), ErrorKind::SchemaMismatch);
        assert_eq!(len(&old), 1, "what it had seen stays");
    }
    old.close().unwrap();
    new.write(|tx| tx.insert(TABLE, &[ValueRef::Int64(2), ValueRef::String("pear")])).unwrap();
    assert!(new.recoveries().is_empty(), "nobody was interrupted");
    new.close().unwrap();
    assert!(annals_tools::inspect(&Options::new(), &path).unwrap().is_closed());
}

/// The file grows by zeros that one process writes ahead, and another's commits take that space. Turns without a
/// commit write zeros, too.
pub(crate) fn zeros_ahead() {
    let disk = SimulatedDisk::new(3);
    let mut rng = annals_simulated::Rng::new(3);
    let handles = [open(&disk), open(&disk), open(&disk)];
    handles[0].write(define).unwrap();
    let (mut rows, mut durable) = (0, 0);
    for turn in 0..400_u64 {
        let database = &handles[rng.index(handles.len())];
        if rng.below(3) == 0 {
            drop(database.begin().unwrap());
            continue;
        }
        let level = Level::ALL[rng.index(Level::ALL.len())];
        let length = rng.index(3) * rng.index(20_000);
        let written = database.write(|tx| {
            tx.set_level(level);
            tx.comment(&"x".repeat(length))?;
            tx.insert(TABLE, &[ValueRef::Int64(rows)]).map(drop)
        });
        written.unwrap();
        rows += 1;
        durable = if level == Level::Soft { durable } else { rows };
        let reader = annals::Reader::open(&disk, "journal").unwrap();
        assert_eq!(reader.read().table(TABLE).unwrap().len() as i64, rows, "turn {turn}");
        if turn % 40 == 0 {
            let states = disk.crash_states();
            for state in states.every().take(20).chain([states.oldest(), states.all_but_last()]) {
                let clock = Arc::new(SimulatedClock::new(4));
                let opened = Options::new().open_in(Arc::new(state), "journal", clock).unwrap();
                assert!(len(&opened) as i64 >= durable, "turn {turn}");
            }
        }
    }
}

#[test]
fn zeros_ahead_never_land_on_commits_of_another_process() {
    zeros_ahead();
}
