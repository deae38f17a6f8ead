//! Damage of an image: wherever it is, what is read is the truth or an error, then the truth, and somebody is told.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use annals::reports::{BackfillProgress, Restarting};
use annals::storage::{Access, Directory, FileDirectory};
use annals::{
    BackfillMode, Command, Database, Error, ErrorKind, FieldNumber, Options, Result, RowId,
    Snapshot, TableNumber, Transaction, Type, ValueRef,
};
use annals_simulated::Rng;

use super::image_of;

pub(super) const ITEM: TableNumber = TableNumber(0);
pub(super) const TAG: TableNumber = TableNumber(1);
pub(super) const UNIT: usize = 4096;
/// Where objects begin.
pub(super) const OBJECTS: usize = 3 * UNIT;

/// Makes tables of all kinds of arrays: bitmaps, cells, heaps, long values, trees with long keys, blobs.
pub(super) fn define(tx: &mut Transaction<'_>) -> Result<()> {
    let fields = [
        (ITEM, "name", Type::String, false),
        (ITEM, "number", Type::Int64, false),
        (ITEM, "note", Type::String, true),
        (ITEM, "good", Type::Bool, true),
        (ITEM, "photo", Type::Blob, true),
        (TAG, "text", Type::String, false),
        (TAG, "weight", Type::Float64, false),
    ];
    for name in ["item", "tag"] {
        tx.apply_command(&Command::CreateTable { name: name.to_owned() })?;
    }
    for (table, name, ty, nullable) in fields {
        let (name, default) = (name.to_owned(), None);
        tx.apply_command(&Command::AddField { table, name, ty, nullable, default })?;
    }
    let indexes =
        [("by_name", ITEM, &[0][..]), ("by_number", ITEM, &[1, 0]), ("by_text", TAG, &[0])];
    for (name, table, fields) in indexes {
        let (name, fields) = (name.to_owned(), fields.iter().copied().map(FieldNumber).collect());
        tx.apply_command(&Command::CreateIndex {
            name,
            table,
            fields,
            descending: Vec::new(),
            collated: Vec::new(),
            unique: false,
        })?;
    }
    Ok(())
}

/// Inserts, updates and deletes rows.
pub(super) fn change(tx: &mut Transaction<'_>, rng: &mut Rng, rows: usize) -> Result<()> {
    for _ in 0..rows {
        let number = rng.index(1000) as i64;
        let name = format!("item {number} {}", "x".repeat(rng.index(40)));
        let note = "note ".repeat(rng.index(20) * rng.index(20) * rng.index(4));
        let note = if rng.percent(30) { ValueRef::Null } else { ValueRef::String(&note) };
        let photo = match rng.percent(3) {
            true => ValueRef::Blob(tx.write_blob(&name.as_bytes().repeat(rng.index(500))[..])?),
            false => ValueRef::Null,
        };
        let good = ValueRef::Bool(rng.percent(50));
        let values = [ValueRef::String(&name), ValueRef::Int64(number), note, good, photo];
        let id = tx.insert(ITEM, &values)?;
        if rng.percent(20) {
            let at = RowId(rng.index(usize::try_from(id.0).unwrap() + 1) as u64);
            if tx.view().table(ITEM)?.contains(at)? {
                tx.delete(ITEM, at)?;
            }
        }
        if rng.percent(10) {
            let text = "key".repeat(rng.index(800));
            tx.insert(TAG, &[ValueRef::String(&text), ValueRef::Float64(0.5)])?;
        }
    }
    Ok(())
}

/// Makes a database with an image that several backfills wrote, and that the journal continues after.
pub(super) fn make(folder: &Path, rows: usize) -> PathBuf {
    let path = folder.join("a.annals");
    let db = Options::new().background(false).open(&path).unwrap();
    db.write(define).unwrap();
    let mut rng = Rng::new(7);
    for round in 0..12 {
        db.write(|tx| change(tx, &mut rng, rows)).unwrap();
        if round % 4 == 1 {
            let mut tx = db.begin().unwrap();
            change(&mut tx, &mut rng, rows).unwrap();
            tx.rollback().unwrap();
        }
        if round % 3 == 2 {
            db.backfill(BackfillMode::Full).unwrap();
        }
    }
    db.write(|tx| change(tx, &mut rng, rows / 8)).unwrap();
    db.close().unwrap();
    path
}

/// Reads all that there is in all ways.
pub(super) fn content(now: &Snapshot) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for table in now.schema().tables() {
        let view = now.table(table.number)?;
        all.push(format!("{} rows, next id {}", view.len(), view.next_id()));
        for row in view.rows() {
            let row = row?;
            all.push(format!("{row:?}"));
            assert_eq!(format!("{:?}", view.get(row.id())?), format!("{row:?}"));
            if table.number == ITEM
                && let ValueRef::Blob(blob) = row.value(FieldNumber(4))
            {
                all.push(format!("{:?}", now.blob(blob)?.to_vec(1 << 20)?));
            }
        }
    }
    for index in now.schema().indexes() {
        for row in now.index(index.number)?.rows() {
            all.push(format!("{} {:?}", index.name, row?.id()));
        }
    }
    now.check()?;
    Ok(all)
}

/// What a unit of an image begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Catalog,
    Node,
    Other,
}

fn unit_at(image: &[u8], at: usize) -> Unit {
    match &image[at..at + 4] {
        b"CATL" => Unit::Catalog,
        b"NODE" => Unit::Node,
        _ => Unit::Other,
    }
}

/// Copies a database, with an image that is given.
pub(super) fn copy(path: &Path, folder: &Path, image: &[u8]) -> PathBuf {
    let copied = folder.join("b.annals");
    std::fs::copy(path, &copied).unwrap();
    std::fs::write(image_of(&copied), image).unwrap();
    copied
}

/// Calls `test` with a copy of the database for every so many units of the image, with a bit of that one flipped.
pub(super) fn damage_each(path: &Path, step: usize, mut test: impl FnMut(&Path, Unit, usize)) {
    let folder = tempfile::tempdir().unwrap();
    let image = std::fs::read(image_of(path)).unwrap();
    let mut rng = Rng::new(image.len() as u64);
    for unit in (OBJECTS..image.len()).step_by(UNIT * step) {
        // Most objects are shorter than their units.
        let within = [UNIT, 256][rng.index(2)];
        let at = unit + rng.index(within);
        let mut damaged = image.clone();
        damaged[at] ^= 1 << rng.index(8);
        test(&copy(path, folder.path(), &damaged), unit_at(&image, unit), at);
    }
}

pub(super) fn expected(path: &Path) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let copied = copy(path, folder.path(), b"no image");
    std::fs::remove_file(image_of(&copied)).unwrap();
    content(&Options::new().open_read_only(&copied).unwrap().read()).unwrap()
}

/// Returns what was reported of damage, when the database was opened and since.
pub(super) fn reported(db: &Database) -> Vec<String> {
    [db.recovered().findings.clone(), db.image_damage()].concat()
}

/// Asks for something: it is right, or a page is lost, and then the next answer is right. Returns whether one was lost.
pub(super) fn ask(expected: &[String], ask: impl Fn() -> Result<Vec<String>>) -> bool {
    match ask() {
        Ok(found) => assert!(found == expected),
        Err(error) => {
            check_lost(&error);
            assert!(ask().unwrap() == expected, "after {error}");
            return true;
        }
    }
    false
}

fn check_lost(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::PageLost, "{error}");
    assert!(error.to_string().contains("nothing is lost"), "{error}");
}

#[test]
fn a_flipped_bit_gives_the_right_answer_or_page_lost_and_then_the_right_one() {
    flipped_each();
}

/// Flips a bit of each unit, and reads.
pub(crate) fn flipped_each() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), 60);
    let expected = expected(&path);
    let (mut met, mut lost, mut aside) = ([0; 3], 0, 0);
    damage_each(&path, 1, |path, unit, at| {
        // What doesn't fit in memory is opened over an image, too.
        let db = Options::new().memory([1 << 18, 0][at % 2]).open(path).unwrap();
        lost += usize::from(ask(&expected, || content(&db.read())));
        let reported = reported(&db);
        // What is free, or of an older root alone, isn't met.
        if !reported.is_empty() {
            met[unit as usize] += 1;
        }
        aside += usize::from(reported.iter().any(|it| it.contains("set aside")));
        db.backfill(BackfillMode::Full).unwrap();
        db.close().unwrap();
        // The next one begins with an image that is whole.
        let db = Options::new().open(path).unwrap();
        assert!(content(&db.read()).unwrap() == expected, "{unit:?} at {at}");
        assert_eq!(self::reported(&db), Vec::<String>::new(), "{unit:?} at {at}");
    });
    let [catalogs, nodes, others] = met;
    assert!(catalogs > 0 && nodes > 2 && others > 50 && lost > 40, "{met:?}, {lost} lost");
    // What was written since the root before is replayed; what both reach leaves the key frames.
    assert!(aside < others / 2, "{aside} of {met:?}");
}

/// Each byte of a small image, or some of them: the head and the roots, too.
#[test]
fn every_byte_may_be_flipped() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), 2);
    let expected = expected(&path);
    let image = std::fs::read(image_of(&path)).unwrap();
    let full = std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full");
    let mut lost = 0;
    for at in (0..image.len()).step_by(if full { 1 } else { 509 }) {
        let mut damaged = image.clone();
        damaged[at] ^= 1 << (at % 8);
        let path = copy(&path, folder.path(), &damaged);
        let db = Options::new().background(false).open(&path).unwrap();
        lost += usize::from(ask(&expected, || content(&db.read())));
        drop(db);
        let _ = std::fs::remove_file(image_of(&path)); // it may be set aside
        assert!(content(&Options::new().open(&path).unwrap().read()).unwrap() == expected, "{at}");
    }
    assert!(lost > 10, "{lost}");
}

#[test]
fn who_only_reads_goes_on_alone() {
    read_over_damage();
}

/// Lets readers read whatever is damaged of an image.
pub(crate) fn read_over_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), 40);
    let expected = expected(&path);
    let mut lost = 0;
    damage_each(&path, 3, |path, unit, at| {
        let before = std::fs::read(image_of(path)).unwrap();
        let open = || Options::new().open_read_only(path).unwrap();
        let (reader, pulling) = (open(), open());
        lost += usize::from(ask(&expected, || content(&reader.read())));
        ask(&expected, || content(&pulling.pull()?));
        assert!(std::fs::read(image_of(path)).unwrap() == before, "{unit:?} at {at}: written to");
    });
    assert!(lost > 5, "{lost}");
}

/// Flips a bit of a file that others may have open.
pub(super) fn flip(path: &Path, at: usize) {
    let directory = FileDirectory::new(path.parent().unwrap());
    let file = directory.open(path.file_name().unwrap().to_str().unwrap(), Access::Write).unwrap();
    let mut byte = [0];
    file.read_at(at as u64, &mut byte).unwrap();
    file.write_at(at as u64, &[byte[0] ^ 1]).unwrap();
}

/// Changes rows all over; a transaction that met a lost page is run again, `most` times. Returns how often.
pub(super) fn go_on(db: &Database, seed: u64, most: usize) -> usize {
    let go_on = || {
        db.write(|tx| {
            change(tx, &mut Rng::new(seed), 30)?;
            for id in (0..100).map(RowId) {
                if tx.view().table(ITEM)?.contains(id)? {
                    tx.update(ITEM, id, FieldNumber(2), ValueRef::String("another note of it"))?;
                }
            }
            Ok(())
        })
    };
    let mut tries = 0;
    while let Err(error) = go_on() {
        check_lost(&error);
        tries += 1;
        assert!(tries <= most, "{error}");
    }
    tries
}

/// A page is lost under a handle, its snapshot and its transaction.
#[test]
fn a_transaction_fails_whole_and_the_next_succeeds_while_a_snapshot_stays_failed() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), 40);
    let sound = std::fs::read(image_of(&path)).unwrap();
    let before = expected(&path);
    let other = tempfile::tempdir().unwrap();
    let copied = copy(&path, other.path(), &sound);
    let db = Options::new().open(&copied).unwrap();
    go_on(&db, 1, 0);
    let after = content(&db.read()).unwrap();
    drop(db);
    let (mut retried, mut failed) = (0, 0);
    for at in (OBJECTS..sound.len()).step_by(2 * UNIT) {
        let copied = copy(&path, other.path(), &sound);
        let db = Options::new().background(false).open(&copied).unwrap();
        let old = db.read();
        flip(&image_of(&copied), at + 4);
        retried += go_on(&db, 1, 1);
        match content(&old) {
            Ok(found) => assert!(found == before, "{at}"),
            Err(error) => {
                check_lost(&error);
                failed += 1;
                assert!(content(&db.read()).unwrap() == after, "{at}");
                check_lost(&content(&old).unwrap_err());
            }
        }
        let done = db.backfill(BackfillMode::Full).unwrap();
        assert_eq!(done.txid, db.read().txid(), "{at}");
        ask(&after, || content(&db.read()));
        db.close().unwrap();
        let db = Options::new().background(false).open(&copied).unwrap();
        ask(&after, || content(&db.read()));
    }
    assert!(retried > 3 && failed > 10, "{retried}, {failed}");
}

/// A snapshot never waits for a transaction: where that is open, the read fails again.
#[test]
fn reads_of_a_lost_page_fail_while_a_transaction_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), 40);
    let expected = expected(&path);
    let mut lost = 0;
    damage_each(&path, 5, |path, _, _| {
        let db = Options::new().open(path).unwrap();
        let tx = db.begin().unwrap();
        if let Err(error) = content(&db.read()) {
            check_lost(&error);
            check_lost(&content(&db.read()).unwrap_err());
            lost += 1;
        }
        tx.rollback().unwrap();
        assert!(content(&db.read()).unwrap() == expected);
    });
    assert!(lost > 3, "{lost}");
}

#[test]
fn where_history_was_forgotten_nothing_else_is_taken_for_the_truth() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), 40);
    let db = Options::new().background(false).open(&path).unwrap();
    let how = Restarting { forget_history: true, ..Restarting::default() };
    let quiet: &mut dyn FnMut(BackfillProgress) -> ControlFlow<()> =
        &mut |_| ControlFlow::Continue(());
    db.backfill_with(BackfillMode::Truncate, how, quiet).unwrap();
    go_on(&db, 2, 0);
    db.backfill(BackfillMode::Full).unwrap();
    db.close().unwrap();
    let expected = expected(&path);
    damage_each(&path, 5, |path, unit, at| {
        let db = Options::new().open(path).unwrap();
        ask(&expected, || content(&db.read()));
        go_on(&db, 3, 1);
        db.backfill(BackfillMode::Full).unwrap();
        let after = content(&db.read()).unwrap();
        drop(db);
        let reader = Options::new().open_read_only(path).unwrap();
        assert!(content(&reader.read()).unwrap() == after, "{unit:?} at {at}");
    });
}

#[test]
fn several_processes_get_over_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), 40);
    let expected = expected(&path);
    damage_each(&path, 7, |path, unit, at| {
        let open = || Options::new().shared(true).open(path).unwrap();
        let (one, two) = (open(), open());
        for db in [&one, &two, &one] {
            ask(&expected, || content(&db.read()));
        }
        go_on(&one, 4, 1);
        // The first ones may meet damage.
        let mut done = two.backfill(BackfillMode::Full);
        for _ in 0..5 {
            done = done.or_else(|error| {
                let kind = error.kind();
                assert!(matches!(kind, ErrorKind::Corrupt | ErrorKind::PageLost), "{error}");
                two.backfill(BackfillMode::Full)
            });
        }
        assert_eq!(done.unwrap().txid, one.read().txid(), "{unit:?} at {at}");
        go_on(&two, 5, 1);
        let after = content(&two.read()).unwrap();
        drop((one, two));
        let reader = Options::new().open_read_only(path).unwrap();
        ask(&after, || content(&reader.read()));
    });
}

/// Sets a flag when it is dropped.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn readers_and_a_writer_go_on_while_units_are_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), 40);
    let image = image_of(&path);
    let db = Options::new().open(&path).unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    let _ = content(&db.read()).inspect_err(check_lost);
                }
            });
        }
        // The readers end if this thread panics, too.
        let _done = Done(&is_done);
        let mut rng = Rng::new(3);
        for round in 0..60 {
            let len = std::fs::metadata(&image).map_or(0, |it| usize::try_from(it.len()).unwrap());
            if len > OBJECTS {
                flip(&image, OBJECTS + rng.index((len - OBJECTS) / UNIT) * UNIT + 9);
            }
            go_on(&db, round, 3);
            if round % 3 == 0 {
                db.backfill(BackfillMode::Full).unwrap();
            }
        }
    });
    let shown = content(&db.read()).or_else(|_| content(&db.read())).unwrap();
    drop(db);
    std::fs::remove_file(&image).unwrap();
    assert!(shown == content(&Options::new().open_read_only(&path).unwrap().read()).unwrap());
}
