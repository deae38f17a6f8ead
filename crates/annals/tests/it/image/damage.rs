//! Damage of an image: wherever it is, what is read is the truth, and somebody is told.

use std::path::{Path, PathBuf};

use annals::storage::simulated::Rng;
use annals::{
    BackfillMode, Command, Database, Error, ErrorKind, FieldNumber, Options, Result, RowId,
    Snapshot, TableNumber, Transaction, Type, ValueRef,
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

#[test]
fn whatever_is_damaged_is_read_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), 120);
    let expected = expected(&path);
    let (mut mended, mut lost, mut nodes, mut set_aside) = (0, 0, 0, 0);
    damage_each(&path, 1, |path, unit, at| {
        let db = Options::new().open(path).unwrap();
        let first = content(&db.read());
        let told = [db.recovered().findings.clone(), db.image_damage()].concat();
        match &first {
            Ok(first) => assert!(*first == expected, "{unit:?} at {at}"),
            Err(error) => {
                assert!(is_told(error), "{unit:?} at {at}: {error}");
                assert!(content(&db.read()).unwrap() == expected, "{unit:?} at {at}");
            }
        }
        match unit {
            _ if told.is_empty() => {}
            Unit::Catalog => set_aside += 1,
            Unit::Node => nodes += 1,
            Unit::Other if first.is_ok() && told[0].contains("made anew") => mended += 1,
            Unit::Other => {
                lost += 1;
                println!("{at}: {told:?} {:?}", first.err())
            }
        }
    });
    println!("{mended} mended, {lost} lost, {nodes} nodes, {set_aside} set aside");
}
