//! Damage of an image: wherever it is, what is read is the truth, and somebody is told.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use annals::storage::simulated::Rng;
use annals::storage::{Access, Directory, FileDirectory};
use annals::{
    BackfillMode, BackfillProgress, Command, Database, Error, ErrorKind, FieldNumber, Options,
    Restarting, Result, RowId, Snapshot, TableNumber, Transaction, Type, ValueRef,
};

use super::image_of;

const ITEM: TableNumber = TableNumber(0);
const TAG: TableNumber = TableNumber(1);
const UNIT: usize = 4096;
/// Where objects begin.
const OBJECTS: usize = 3 * UNIT;

/// Makes tables of all kinds of arrays: bitmaps, cells, heaps, long values, trees with long keys, blobs.
fn define(tx: &mut Transaction<'_>) -> Result<()> {
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
        tx.apply_command(&Command::CreateIndex { name, table, fields, unique: false })?;
    }
    Ok(())
}

/// Inserts, updates and deletes rows.
fn change(tx: &mut Transaction<'_>, rng: &mut Rng, rows: usize) -> Result<()> {
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

/// Makes a database with an image that several backfills wrote, and that the journal goes on behind.
fn make(folder: &Path, rows: usize) -> PathBuf {
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
fn content(now: &Snapshot) -> Result<Vec<String>> {
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
enum Unit {
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
fn copy(path: &Path, folder: &Path, image: &[u8]) -> PathBuf {
    let copied = folder.join("b.annals");
    std::fs::copy(path, &copied).unwrap();
    std::fs::write(image_of(&copied), image).unwrap();
    copied
}

/// Calls `test` with a copy of the database for each unit of the image, in which that one is damaged.
fn damage_each(path: &Path, step: usize, mut test: impl FnMut(&Path, Unit, usize)) {
    let folder = tempfile::tempdir().unwrap();
    let image = std::fs::read(image_of(path)).unwrap();
    for at in (OBJECTS..image.len()).step_by(UNIT * step) {
        let mut damaged = image.clone();
        damaged[at + 4] ^= 0x10;
        test(&copy(path, folder.path(), &damaged), unit_at(&image, at), at);
    }
}

fn expected(path: &Path) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let copied = copy(path, folder.path(), b"no image");
    std::fs::remove_file(image_of(&copied)).unwrap();
    content(&Options::new().open_read_only(&copied).unwrap().read()).unwrap()
}

/// What may be said of damage that can't be mended.
fn is_told(error: &Error) -> bool {
    let text = error.to_string();
    error.kind() == ErrorKind::Corrupt
        && text.contains("can't be made anew")
        && text.contains("nothing is lost")
}

/// Gives what a snapshot shows, and where that meets damage that can't be mended, what `again` gives.
fn at_last(now: &Snapshot, again: impl FnOnce() -> Snapshot) -> Vec<String> {
    content(now).unwrap_or_else(|error| {
        assert!(is_told(&error), "{error}");
        content(&again()).unwrap()
    })
}

#[test]
fn whatever_is_damaged_is_read_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), 60);
    let expected = expected(&path);
    let (mut mended, mut nodes, mut lost) = (0, 0, 0);
    damage_each(&path, 1, |path, unit, at| {
        let db = Options::new().open(path).unwrap();
        assert!(at_last(&db.read(), || db.read()) == expected, "{unit:?} at {at}");
        let told = [db.recovered().findings.clone(), db.image_damage()].concat();
        let is_mended = told.first().is_some_and(|told| told.contains("made anew"));
        let is_kept = !told.iter().any(|told| told.contains("set aside"));
        assert_eq!(is_kept, image_of(path).exists(), "{told:?}");
        match unit {
            // Free, or of the root before.
            _ if told.is_empty() => assert!(is_kept),
            Unit::Other if is_mended => mended += 1,
            Unit::Node if is_mended => nodes += 1,
            Unit::Other | Unit::Node => lost += 1,
            Unit::Catalog => assert!(!is_kept),
        }
        drop(db);
        // The next one begins with an image that is whole, or with none.
        let db = Options::new().open(path).unwrap();
        assert!(content(&db.read()).unwrap() == expected, "{unit:?} at {at}");
        assert_eq!((&db.recovered().findings, db.image_damage()), (&vec![], vec![]), "{at}");
    });
    // What a transaction that was rolled back left under a null isn't in the journal.
    let told = format!("{mended} and {nodes} nodes mended, {lost} lost");
    assert!(mended > 200 && nodes > 10 && lost < 10, "{told}");
    println!("{told}");
}

#[test]
fn who_only_reads_mends_for_itself() {
    mended_by_readers();
}

/// Lets readers make anew whatever is damaged of an image.
pub(crate) fn mended_by_readers() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), 40);
    let expected = expected(&path);
    damage_each(&path, 3, |path, unit, at| {
        let before = std::fs::read(image_of(path)).unwrap();
        let reader = Options::new().open_read_only(path).unwrap();
        let again = || reader.pull().unwrap();
        assert!(at_last(&reader.read(), again) == expected, "{unit:?} at {at}");
        assert!(content(&reader.pull().unwrap()).unwrap() == expected, "{unit:?} at {at}");
        assert!(std::fs::read(image_of(path)).unwrap() == before, "nothing is written");
    });
}

/// Flips a bit of a file that others may have open.
fn flip(path: &Path, at: usize) {
    let directory = FileDirectory::new(path.parent().unwrap());
    let file = directory.open(path.file_name().unwrap().to_str().unwrap(), Access::Write).unwrap();
    let mut byte = [0];
    file.read_at(at as u64, &mut byte).unwrap();
    file.write_at(at as u64, &[byte[0] ^ 1]).unwrap();
}

/// Changes rows all over; what can't be mended fails at most the first try.
fn go_on(db: &Database, seed: u64) {
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
    go_on().unwrap_or_else(|error| {
        assert!(is_told(&error), "{error}");
        go_on().unwrap();
    });
}

#[test]
fn a_database_goes_on_over_a_damaged_image() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), 40);
    let sound = std::fs::read(image_of(&path)).unwrap();
    let before = expected(&path);
    let other = tempfile::tempdir().unwrap();
    let copied = copy(&path, other.path(), &sound);
    let db = Options::new().open(&copied).unwrap();
    go_on(&db, 1);
    let after = content(&db.read()).unwrap();
    drop(db);
    for at in (OBJECTS..sound.len()).step_by(2 * UNIT) {
        let copied = copy(&path, other.path(), &sound);
        let db = Options::new().background(false).open(&copied).unwrap();
        let old = db.read();
        flip(&image_of(&copied), at + 4);
        go_on(&db, 1);
        let done = db.backfill(BackfillMode::Full).unwrap();
        assert_eq!(done.txid, db.read().txid(), "{at}");
        match content(&old) {
            Ok(content) => assert!(content == before, "{at}"),
            Err(error) => assert!(is_told(&error), "{at}: {error}"),
        }
        assert!(at_last(&db.read(), || db.read()) == after, "{at}");
        db.close().unwrap();
        let db = Options::new().background(false).open(&copied).unwrap();
        assert!(at_last(&db.read(), || db.read()) == after, "{at}");
    }
}

#[test]
fn one_replay_mends_all_that_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), 40);
    let mut image = std::fs::read(image_of(&path)).unwrap();
    let expected = expected(&path);
    let mut damaged = 0;
    for at in (OBJECTS..image.len()).step_by(UNIT) {
        // A catalog may be longer than a unit.
        let is_other = [at - UNIT, at].iter().all(|&at| unit_at(&image, at) == Unit::Other);
        if is_other && at % 5 == 0 {
            image[at] ^= 1;
            damaged += 1;
        }
    }
    let path = copy(&path, folder.path(), &image);
    let db = Options::new().open(&path).unwrap();
    let first = db.read();
    let row = first.table(ITEM).unwrap().rows().next().unwrap();
    assert_eq!(format!("{:?}", row.unwrap()), expected[1]);
    let told = db.image_damage().len() + db.recovered().findings.len();
    assert!(told > 5 && told <= damaged, "{told} of {damaged}");
    assert!(at_last(&db.read(), || db.read()) == expected);
}

#[test]
fn what_does_not_fit_in_memory_is_not_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), 60);
    let image = std::fs::read(image_of(&path)).unwrap();
    assert!(image.len() > 1 << 20);
    let mut failed = 0;
    damage_each(&path, 5, |path, unit, _| {
        let Ok(db) = Options::new().memory(1 << 18).open(path) else { return };
        if let Err(error) = content(&db.read()) {
            assert!(error.to_string().contains("allow more with Options::memory"), "{error}");
            assert!(image_of(path).exists() && unit != Unit::Catalog);
            failed += 1;
        }
    });
    assert!(failed > 10, "{failed}");
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
    go_on(&db, 2);
    db.backfill(BackfillMode::Full).unwrap();
    db.close().unwrap();
    let expected = expected(&path);
    damage_each(&path, 5, |path, unit, at| {
        let db = Options::new().open(path).unwrap();
        assert!(at_last(&db.read(), || db.read()) == expected, "{unit:?} at {at}");
        go_on(&db, 3);
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
            assert!(at_last(&db.read(), || db.read()) == expected, "{unit:?} at {at}");
        }
        go_on(&one, 4);
        // The first one may meet a node for the first time.
        let done = two.backfill(BackfillMode::Full).or_else(|error| {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            two.backfill(BackfillMode::Full)
        });
        assert_eq!(done.unwrap().txid, one.read().txid(), "{unit:?} at {at}");
        go_on(&two, 5);
        let after = at_last(&two.read(), || two.read());
        drop((one, two));
        let reader = Options::new().open_read_only(path).unwrap();
        assert!(at_last(&reader.read(), || reader.pull().unwrap()) == after, "{unit:?} at {at}");
    });
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
                    if let Err(error) = content(&db.read()) {
                        assert!(is_told(&error), "{error}");
                    }
                }
            });
        }
        let mut rng = Rng::new(3);
        for round in 0..60 {
            let len = std::fs::metadata(&image).map_or(0, |it| usize::try_from(it.len()).unwrap());
            if len > OBJECTS {
                flip(&image, OBJECTS + rng.index((len - OBJECTS) / UNIT) * UNIT + 9);
            }
            go_on(&db, round);
            if round % 3 == 0 {
                db.backfill(BackfillMode::Full).unwrap();
            }
        }
        is_done.store(true, Ordering::Relaxed);
    });
    let shown = at_last(&db.read(), || db.read());
    drop(db);
    std::fs::remove_file(&image).unwrap();
    assert!(shown == content(&Options::new().open_read_only(&path).unwrap().read()).unwrap());
}
