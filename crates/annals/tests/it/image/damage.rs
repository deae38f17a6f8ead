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

/// Calls `test` with a copy of the database for each unit of the image, in which that one is damaged.
pub(super) fn damage_each(path: &Path, step: usize, mut test: impl FnMut(&Path, Unit, usize)) {
    let folder = tempfile::tempdir().unwrap();
    let image = std::fs::read(image_of(path)).unwrap();
    for at in (OBJECTS..image.len()).step_by(UNIT * step) {
        let mut damaged = image.clone();
        damaged[at + 4] ^= 0x10;
        test(&copy(path, folder.path(), &damaged), unit_at(&image, at), at);
    }
}

pub(super) fn expected(path: &Path) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let copied = copy(path, folder.path(), b"no image");
    std::fs::remove_file(image_of(&copied)).unwrap();
    content(&Options::new().open_read_only(&copied).unwrap().read()).unwrap()
}

/// Returns true if an error says that a transaction has to be run again for a lost page.
fn is_lost(error: &Error) -> bool {
    error.kind() == ErrorKind::PageLost && error.to_string().contains("nothing is lost")
}

/// What was reported of damage, when the database was opened and since.
pub(super) fn reported(db: &Database) -> Vec<String> {
    [db.recovered().findings.clone(), db.image_damage()].concat()
}

#[test]
fn whatever_is_damaged_is_read_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), 60);
    let expected = expected(&path);
    let (mut met, mut aside) = ([0; 3], 0);
    damage_each(&path, 1, |path, unit, at| {
        let db = Options::new().open(path).unwrap();
        assert!(content(&db.read()).unwrap() == expected, "{unit:?} at {at}");
        let reported = reported(&db);
        // What is free, or of an older root alone, isn't met.
        if !reported.is_empty() {
            met[unit as usize] += 1;
        }
        let is_aside = reported.iter().any(|it| it.contains("set aside"));
        aside += usize::from(is_aside);
        assert!(content(&db.read()).unwrap() == expected, "{unit:?} at {at}");
        db.backfill(BackfillMode::Full).unwrap();
        db.close().unwrap();
        // The next one begins with an image that is whole.
        let db = Options::new().open(path).unwrap();
        assert!(content(&db.read()).unwrap() == expected, "{unit:?} at {at}");
        assert_eq!(self::reported(&db), Vec::<String>::new(), "{unit:?} at {at}");
    });
    let [catalogs, nodes, others] = met;
    assert!(catalogs > 0 && nodes > 10 && others > 100, "{met:?}");
    // What was written since the root before is replayed; what both reach leaves the key frames.
    assert!(aside < others / 2, "{aside} of {met:?}");
    println!("{met:?} met, {aside} set aside");
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
    damage_each(&path, 3, |path, unit, at| {
        let before = std::fs::read(image_of(path)).unwrap();
        let reader = Options::new().open_read_only(path).unwrap();
        assert!(content(&reader.read()).unwrap() == expected, "{unit:?} at {at}");
        assert!(content(&reader.pull().unwrap()).unwrap() == expected, "{unit:?} at {at}");
        assert!(std::fs::read(image_of(path)).unwrap() == before, "nothing is written");
    });
}

/// Flips a bit of a file that others may have open.
pub(super) fn flip(path: &Path, at: usize) {
    let directory = FileDirectory::new(path.parent().unwrap());
    let file = directory.open(path.file_name().unwrap().to_str().unwrap(), Access::Write).unwrap();
    let mut byte = [0];
    file.read_at(at as u64, &mut byte).unwrap();
    file.write_at(at as u64, &[byte[0] ^ 1]).unwrap();
}

/// Changes rows all over; a transaction that met a lost page is run again.
pub(super) fn go_on(db: &Database, seed: u64) {
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
        assert!(is_lost(&error), "{error}");
        tries += 1;
        assert!(tries < 10, "{error}");
    }
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
        assert!(content(&old).unwrap() == before, "{at}");
        assert!(content(&db.read()).unwrap() == after, "{at}");
        db.close().unwrap();
        let db = Options::new().background(false).open(&copied).unwrap();
        assert!(content(&db.read()).unwrap() == after, "{at}");
    }
}

#[test]
fn much_may_be_damaged_at_once() {
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
    let found = reported(&db).len();
    assert!(found > 0 && found <= damaged + 1, "{found} of {damaged}");
    assert!(content(&db.read()).unwrap() == expected);
}

#[test]
fn what_does_not_fit_in_memory_is_rebuilt_over_an_image() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), 60);
    let expected = expected(&path);
    assert!(std::fs::metadata(image_of(&path)).unwrap().len() > 1 << 20);
    damage_each(&path, 5, |path, unit, at| {
        let db = Options::new().memory(1 << 18).open(path).unwrap();
        assert!(content(&db.read()).unwrap() == expected, "{unit:?} at {at}");
        db.backfill(BackfillMode::Full).unwrap();
        assert!(content(&db.read()).unwrap() == expected, "{unit:?} at {at}");
    });
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
        assert!(content(&db.read()).unwrap() == expected, "{unit:?} at {at}");
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
            assert!(content(&db.read()).unwrap() == expected, "{unit:?} at {at}");
        }
        go_on(&one, 4);
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
        go_on(&two, 5);
        let after = content(&two.read()).unwrap();
        drop((one, two));
        let reader = Options::new().open_read_only(path).unwrap();
        assert!(content(&reader.read()).unwrap() == after, "{unit:?} at {at}");
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
                    content(&db.read()).unwrap();
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
    let shown = content(&db.read()).unwrap();
    drop(db);
    std::fs::remove_file(&image).unwrap();
    assert!(shown == content(&Options::new().open_read_only(&path).unwrap().read()).unwrap());
}
