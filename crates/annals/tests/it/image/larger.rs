//! Changes larger than memory: they lie in free space of the image until they commit, and nobody sees them
//! before.

use std::path::Path;
use std::sync::Arc;

use annals::reports::BackfillOutcome;
use annals::{
    BackfillMode, Command, Database, ErrorKind, FieldNumber, IndexNumber, Level, Options, RowId,
    TableNumber, Transaction, Type, ValueRef,
};
use annals_simulated::{ReadFault, SimulatedClock, SimulatedDisk};

pub(super) const TABLE: TableNumber = TableNumber(0);
const NAME: FieldNumber = FieldNumber(0);
pub(super) const NUMBER: FieldNumber = FieldNumber(1);

/// So little that a few hundred rows fill it.
pub(super) const LITTLE: u64 = 1 << 20;
/// More than anything here takes.
pub(super) const MUCH: u64 = 1 << 30;
/// How many rows a transaction has that doesn't fit.
pub(super) const ROWS: i64 = 10_000;

pub(super) fn options(memory: u64) -> Options {
    Options::new().memory(memory).background(false)
}

pub(super) fn begin(path: &Path, memory: u64) -> Database {
    let db = options(memory).open(path).unwrap();
    db.write(define).unwrap();
    db
}

pub(super) fn define(tx: &mut Transaction<'_>) -> annals::Result<()> {
    tx.apply_command(&Command::CreateTable { name: "t".to_owned() })?;
    for (name, ty) in [("name", Type::String), ("number", Type::Int64)] {
        let (name, nullable, default) = (name.to_owned(), false, None);
        tx.apply_command(&Command::AddField { table: TABLE, name, ty, nullable, default })?;
    }
    for (name, fields, unique) in
        [("by_name", vec![NAME], false), ("by_number", vec![NUMBER], true)]
    {
        let name = name.to_owned();
        tx.apply_command(&Command::CreateIndex {
            name,
            table: TABLE,
            fields,
            descending: Vec::new(),
            collated: Vec::new(),
            unique,
        })?;
    }
    Ok(())
}

fn name(number: i64) -> String {
    match number % 500 {
        0 => "a long value ".repeat(2000),
        rest => format!("row {rest} of some, and number {number} of all of them"),
    }
}

pub(super) fn insert(tx: &mut Transaction<'_>, rows: std::ops::Range<i64>) -> annals::Result<()> {
    for number in rows {
        tx.insert(TABLE, &[ValueRef::String(&name(number)), ValueRef::Int64(number)])?;
    }
    Ok(())
}

/// Changes rows all over the table, and takes some away.
pub(super) fn change(tx: &mut Transaction<'_>, round: i64) -> annals::Result<()> {
    let ids: Vec<_> = tx
        .view()
        .table(TABLE)?
        .rows()
        .map(|row| row.map(|row| row.id()))
        .collect::<Result<_, _>>()?;
    for (at, id) in ids.iter().enumerate() {
        match at % 7 {
            0 => tx.delete(TABLE, *id)?,
            1 | 2 => tx.update(TABLE, *id, NAME, ValueRef::String(&name(round * 31)))?,
            3 => tx.update(
                TABLE,
                *id,
                NUMBER,
                ValueRef::Int64(-(round + 1) * 1_000_000 - at as i64),
            )?,
            _ => {}
        }
    }
    Ok(())
}

/// Returns all that there is, through rows and indexes, as one number.
pub(super) fn digest(view: &annals::View) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    view.check().unwrap();
    let mut digest = DefaultHasher::new();
    for row in view.table(TABLE).unwrap().rows().map(Result::unwrap) {
        (row.id().0, row.read::<&str>(NAME), row.read::<i64>(NUMBER)).hash(&mut digest);
    }
    for index in [IndexNumber(0), IndexNumber(1)] {
        for row in view.index(index).unwrap().rows().map(Result::unwrap) {
            row.id().0.hash(&mut digest);
        }
    }
    digest.finish()
}

fn image_of(path: &Path) -> std::path::PathBuf {
    path.with_extension("annals-image")
}

/// Returns how long the image is, which has another name as long as it has no root.
pub(super) fn image_len(path: &Path) -> u64 {
    let files = std::fs::read_dir(path.parent().unwrap()).unwrap().map(Result::unwrap);
    let stem = path.file_name().unwrap().to_str().unwrap();
    let images = files.filter(|file| {
        let name = file.file_name().into_string().unwrap();
        name.starts_with(&format!("{stem}-image"))
    });
    images.map(|file| file.metadata().unwrap().len()).sum()
}

/// Opens with little and with much memory, with the image and without; all of them are as `expected`.
#[track_caller]
pub(super) fn opens_as(path: &Path, expected: u64) {
    for memory in [LITTLE, MUCH] {
        let db = options(memory).open(path).unwrap();
        assert_eq!(db.recovered().findings, Vec::<String>::new());
        assert_eq!(digest(&db.read()), expected, "with {memory} bytes");
        db.close().unwrap();
    }
    std::fs::remove_file(image_of(path)).unwrap();
    let db = options(LITTLE).open(path).unwrap();
    assert_eq!(db.image_error(), None);
    assert!(image_len(path) > LITTLE, "what was spilled in the replay is published");
    assert_eq!(digest(&db.read()), expected, "replayed");
    db.write(|tx| change(tx, 99)).unwrap();
    let after = digest(&db.read());
    db.close().unwrap();
    let db = options(MUCH).open(path).unwrap();
    assert_eq!(digest(&db.read()), after);
}

#[test]
fn a_transaction_larger_than_memory_is_as_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("a.annals"), folder.path().join("b.annals"));
    let (db, oracle) = (begin(&path, LITTLE), begin(&other, MUCH));
    for round in 0..3 {
        let both = |tx: &mut Transaction<'_>| {
            insert(tx, round * ROWS..(round + 1) * ROWS)?;
            change(tx, round)?;
            insert(tx, (round + 1) * 1_000_000..(round + 1) * 1_000_000 + 500)
        };
        let before = db.read();
        let expected = digest(&before);
        db.write(both).unwrap();
        oracle.write(both).unwrap();
        assert_eq!(digest(&before), expected, "a snapshot stays as it is");
        assert_eq!(digest(&db.read()), digest(&oracle.read()));
        assert!(image_len(&path) > 2 * LITTLE, "it was spilled");
        if round == 1 {
            assert_eq!(
                db.backfill(BackfillMode::Passive).unwrap().outcome,
                BackfillOutcome::Advanced
            );
            assert_eq!(digest(&before), expected, "and stays so");
            assert_eq!(digest(&db.read()), digest(&oracle.read()));
        }
    }
    let expected = digest(&oracle.read());
    db.close().unwrap();
    opens_as(&path, expected);
}

/// How many bytes each value of the following image has.
const VALUE: usize = 1 << 20;

/// Leaves a large image of which a quarter is free, and which this handle has written.
fn with_gaps(path: &Path) -> Database {
    // No key frame holds the space.
    let db = options(8 * LITTLE).key_frames(0).open(path).unwrap();
    db.write(define).unwrap();
    let mut rows = Vec::new();
    for number in 0..50 {
        let value = format!("{number:06}{}", "x".repeat(VALUE));
        let row = |tx: &mut Transaction<'_>| {
            tx.insert(TABLE, &[ValueRef::String(&value), ValueRef::Int64(number)])
        };
        rows.push(db.write(row).unwrap());
    }
    db.backfill(BackfillMode::Passive).unwrap();
    // Each value is in its row, and a key of the index.
    assert!(image_len(path) > 100 * VALUE as u64);
    db.write(|tx| rows[..12].iter().try_for_each(|row| tx.delete(TABLE, *row))).unwrap();
    // The older of both roots reaches them until the second backfill.
    for number in 1000..1002 {
        db.write(|tx| insert(tx, number..number + 1)).unwrap();
        db.backfill(BackfillMode::Passive).unwrap();
    }
    db
}

/// More than is copied in any case: but this handle has written more.
#[test]
fn closing_gives_back_the_space_of_deleted_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    let db = with_gaps(&path);
    let expected = digest(&db.read());
    db.close().unwrap();
    let kept = 76 * VALUE as u64;
    assert!((kept..kept + 2 * VALUE as u64).contains(&image_len(&path)), "{}", image_len(&path));
    let db = options(LITTLE).open(&path).unwrap();
    assert_eq!(db.recovered().findings, Vec::<String>::new());
    assert_eq!(digest(&db.read()), expected);
}

/// Dropping a database waits for some seconds at most, and a copy has no end before its own.
#[test]
fn dropping_copies_no_large_image() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    let db = with_gaps(&path);
    let expected = digest(&db.read());
    drop(db);
    assert!(image_len(&path) > 90 * VALUE as u64, "{}", image_len(&path));
    let db = options(LITTLE).open(&path).unwrap();
    assert_eq!(digest(&db.read()), expected);
}

#[test]
fn what_is_rolled_back_leaves_free_space() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    let db = begin(&path, LITTLE);
    let mut longest = 0;
    for round in 0..6 {
        let before = digest(&db.read());
        let mut tx = db.begin().unwrap();
        insert(&mut tx, 0..ROWS).unwrap();
        assert_eq!(db.backfill(BackfillMode::Passive).unwrap().outcome, BackfillOutcome::Postponed);
        tx.rollback().unwrap();
        assert_eq!(digest(&db.read()), before);
        db.write(|tx| insert(tx, -round * 10 - 10..-round * 10)).unwrap();
        if round % 2 == 1 {
            db.backfill(BackfillMode::Full).unwrap();
        }
        longest = if round < 2 { image_len(&path).max(longest) } else { longest };
    }
    assert!(image_len(&path) <= longest + LITTLE, "{longest}");
    let expected = digest(&db.read());
    db.close().unwrap();
    let db = options(MUCH).open(&path).unwrap();
    assert_eq!(digest(&db.read()), expected);
}

/// What one has spilled is committed, and not published when others spill, commit and roll back.
#[test]
fn transactions_spill_one_upon_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("a.annals"), folder.path().join("b.annals"));
    let (db, oracle) = (begin(&path, LITTLE), begin(&other, MUCH));
    let mut held = Vec::new();
    for round in 0..8_i64 {
        let work = |tx: &mut Transaction<'_>| {
            insert(tx, round * ROWS..round * ROWS + ROWS / 4)?;
            change(tx, round)
        };
        let mut lost = db.begin().unwrap();
        change(&mut lost, 77).unwrap();
        insert(&mut lost, -ROWS..0).unwrap();
        lost.rollback().unwrap();
        db.write(work).unwrap();
        oracle.write(work).unwrap();
        held.push((db.read(), digest(&oracle.read())));
        if round % 4 == 3 {
            let mode = if round == 3 { BackfillMode::Passive } else { BackfillMode::Full };
            assert_eq!(db.backfill(mode).unwrap().outcome, BackfillOutcome::Advanced);
            held.drain(..2);
        }
        for (snapshot, expected) in &held {
            assert_eq!(digest(snapshot), *expected, "transaction {}", snapshot.txid());
        }
    }
    let expected = digest(&oracle.read());
    drop(held);
    db.close().unwrap();
    opens_as(&path, expected);
}

/// A backfill that waits for the transaction, one that doesn't, and a transaction that spills meanwhile.
#[test]
fn backfills_and_a_transaction_that_spills_don_t_wait_for_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    let db = Options::new().memory(LITTLE).open(&path).unwrap();
    db.write(define).unwrap();
    std::thread::scope(|scope| {
        for mode in [BackfillMode::Full, BackfillMode::Passive] {
            let db = &db;
            scope.spawn(move || (0..8).for_each(|_| _ = db.backfill(mode).unwrap()));
        }
        for round in 0..4 {
            db.write(|tx| insert(tx, round * ROWS..(round + 1) * ROWS)).unwrap();
        }
    });
    let (expected, len) = (digest(&db.read()), db.read().table(TABLE).unwrap().len());
    assert_eq!(len as i64, 4 * ROWS);
    db.close().unwrap();
    assert_eq!(digest(&options(MUCH).open(&path).unwrap().read()), expected);
}

/// A process that is killed in the midst of it leaves what was committed.
#[test]
fn what_was_spilled_and_not_committed_is_nothing_after_a_crash() {
    let disk = SimulatedDisk::new(7);
    let open = |disk: &SimulatedDisk, memory| {
        let clock = Arc::new(SimulatedClock::new(1));
        options(memory).open_in(Arc::new(disk.clone()), "journal", clock)
    };
    let db = open(&disk, LITTLE).unwrap();
    db.write(define).unwrap();
    db.write(|tx| insert(tx, 0..ROWS / 2)).unwrap();
    db.backfill(BackfillMode::Full).unwrap();
    db.write(|tx| change(tx, 1)).unwrap();
    let committed = digest(&db.read());
    let mut tx = db.begin().unwrap();
    change(&mut tx, 2).unwrap();
    insert(&mut tx, ROWS..ROWS + ROWS / 2).unwrap();
    let crashed = disk.crash_states().newest();
    assert_eq!(digest(&open(&crashed, MUCH).unwrap().read()), committed);
    tx.set_level(Level::TwoPhase);
    tx.commit().unwrap();
    let committed = digest(&db.read());
    for crashed in [disk.crash_states().newest(), disk.crash_states().oldest()] {
        assert_eq!(digest(&open(&crashed, LITTLE).unwrap().read()), committed);
    }
}

#[test]
fn a_full_disk_is_an_error_of_the_transaction_and_of_nothing_else() {
    let disk = SimulatedDisk::new(7);
    let open = |memory| {
        let clock = Arc::new(SimulatedClock::new(1));
        options(memory).open_in(Arc::new(disk.clone()), "journal", clock)
    };
    let db = open(LITTLE).unwrap();
    db.write(define).unwrap();
    db.write(|tx| insert(tx, 0..200)).unwrap();
    let before = digest(&db.read());
    disk.limit_space(2 << 20);
    let error = db.write(|tx| insert(tx, 1000..1000 + ROWS)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert_eq!(digest(&db.read()), before);
    disk.free_space();
    db.write(|tx| insert(tx, 1000..1000 + ROWS)).unwrap();
    let expected = digest(&db.read());
    db.close().unwrap();
    assert_eq!(digest(&open(MUCH).unwrap().read()), expected);
}

/// Many small transactions are no error where the image can't be written: they continue in memory.
#[test]
fn small_transactions_go_on_where_the_image_can_t_be_written() {
    let disk = SimulatedDisk::new(7);
    let open = |memory| {
        let clock = Arc::new(SimulatedClock::new(1));
        options(memory).open_in(Arc::new(disk.clone()), "journal", clock).unwrap()
    };
    let db = open(MUCH);
    db.write(define).unwrap();
    db.write(|tx| insert(tx, 0..ROWS)).unwrap();
    db.backfill(BackfillMode::Full).unwrap();
    db.close().unwrap();
    let db = open(LITTLE);
    let used: usize = ["journal", "journal-image"]
        .iter()
        .filter_map(|name| disk.content(name))
        .map(|it| it.len())
        .sum();
    disk.limit_space(used as u64 + (150 << 10));
    for round in 0..300 {
        let id = RowId(round * 61 % ROWS as u64);
        let new = ValueRef::Int64(-1 - round as i64);
        let other = name(round as i64 * 7919);
        let update = |tx: &mut Transaction<'_>| {
            tx.update(TABLE, id, NUMBER, new)?;
            tx.update(TABLE, id, NAME, ValueRef::String(&other))
        };
        db.write(update).unwrap();
    }
    let memory = db.read().memory();
    assert!(memory as u64 > LITTLE / 2, "all of it is in memory: {memory}");
    assert!(db.image_error().is_some_and(|error| error.contains("space")), "and that is told");
    // One that is large by itself is an error, and the next is not.
    let error = db.write(|tx| insert(tx, 1_000_000..1_000_000 + ROWS)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    db.write(|tx| tx.update(TABLE, RowId(5), NUMBER, ValueRef::Int64(-1000))).unwrap();
    disk.free_space();
    db.write(|tx| change(tx, 5)).unwrap();
    let expected = digest(&db.read());
    db.close().unwrap();
    assert_eq!(digest(&open(MUCH).read()), expected);
}

/// A page that can't be read, while nothing can be rebuilt, is an error of the statement; the transaction is rolled back, and the next one
/// reads what was there.
#[test]
fn a_read_that_fails_is_an_error_and_never_a_wrong_value() {
    let disk = SimulatedDisk::new(7);
    let open = |memory| {
        let clock = Arc::new(SimulatedClock::new(1));
        options(memory).open_in(Arc::new(disk.clone()), "journal", clock).unwrap()
    };
    let db = open(MUCH);
    db.write(define).unwrap();
    db.write(|tx| insert(tx, 0..ROWS / 2)).unwrap();
    db.backfill(BackfillMode::Full).unwrap();
    db.close().unwrap();
    let db = open(LITTLE);
    let expected = digest(&db.read());
    let (mut failed, mut stopped) = (0, 0);
    // A disk that reads wrongly once is read again. One that is broken for a while is so for the journal too,
    // from which the state would be rebuilt.
    for (fault, reads) in [(ReadFault::BitFlip, 1), (ReadFault::Io, 1 << 16)] {
        for behind in (0..1200).step_by(60) {
            let first = disk.reads() + behind;
            (first..first + reads).for_each(|read| disk.fail_read_at(read, fault));
            let mut tx = db.begin().unwrap();
            if let Err(error) = change(&mut tx, 1) {
                failed += 1;
                let is_lost = matches!(error.kind(), ErrorKind::Io | ErrorKind::PageLost);
                assert!(is_lost && reads > 1, "{error}");
                // Whoever stopped in the middle of a statement can only be rolled back.
                stopped += usize::from(tx.comment("on").is_err());
            }
            tx.rollback().unwrap();
            disk.clear_plan();
            assert_eq!(digest(&db.read()), expected);
        }
    }
    assert!(failed > 10 && stopped > 2, "{failed}, {stopped}");
    db.write(|tx| change(tx, 1)).unwrap();
    let expected = digest(&db.read());
    db.close().unwrap();
    assert_eq!(digest(&open(MUCH).read()), expected);
}
