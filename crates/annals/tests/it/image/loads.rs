//! Loads: many insertions in a row, whose entries the indexes get later. Whoever looks sees them, whenever that is.

use std::collections::BTreeMap;
use std::path::Path;

use annals::internals::{Origin, spool, take};
use annals::{
    BackfillMode, Command, Database, ErrorKind, FieldNumber, IndexNumber, RowId, TableNumber,
    Transaction, Type, ValueRef, View,
};
use annals_simulated::Rng;

use super::larger::{LITTLE, MUCH, image_len, options};

const TABLE: TableNumber = TableNumber(0);
const NUMBER: FieldNumber = FieldNumber(0);
const TEXT: FieldNumber = FieldNumber(1);
const BY_NUMBER: IndexNumber = IndexNumber(0);
const BY_TEXT: IndexNumber = IndexNumber(1);
const BY_BOTH: IndexNumber = IndexNumber(2);

/// What the table has, by id.
type Model = BTreeMap<u64, (i64, String)>;

fn create(path: &Path, memory: u64) -> Database {
    let db = options(memory).open(path).unwrap();
    db.write(|tx| {
        tx.apply_command(&Command::CreateTable { name: "t".to_owned() })?;
        for (name, ty) in [("number", Type::Int64), ("text", Type::String)] {
            let (name, nullable, default) = (name.to_owned(), false, None);
            tx.apply_command(&Command::AddField { table: TABLE, name, ty, nullable, default })?;
        }
        let indexes =
            [("by_number", &[NUMBER][..]), ("by_text", &[TEXT]), ("by_both", &[TEXT, NUMBER])];
        indexes
            .iter()
            .try_for_each(|(name, fields)| create_index(tx, name, fields, *name == "by_both"))
    })
    .unwrap();
    db
}

fn create_index(
    tx: &mut Transaction<'_>,
    name: &str,
    fields: &[FieldNumber],
    unique: bool,
) -> annals::Result<()> {
    let (descending, collated) = (Vec::new(), Vec::new());
    let (name, fields, table) = (name.to_owned(), fields.to_vec(), TABLE);
    tx.apply_command(&Command::CreateIndex { name, table, fields, descending, collated, unique })
}

/// A row: its id, its number, its text.
type Found = (u64, i64, String);
/// Its place in the order of an index.
type Place = (String, i64, u64);

/// Fails unless a view has the rows of a model, in the order of each index too.
#[track_caller]
fn assert_has(view: &View, model: &Model) {
    let table = view.table(TABLE).unwrap();
    let row = |row: annals::Result<annals::Row<'_>>| {
        let row = row.unwrap();
        (row.id().0, row.read::<i64>(NUMBER), row.read::<&str>(TEXT).to_owned())
    };
    let expected: Vec<_> = model.iter().map(|(id, (n, text))| (*id, *n, text.clone())).collect();
    assert!(table.rows().map(row).eq(expected.iter().cloned()), "by id");
    let through = |index, place: &dyn Fn(&Found) -> Place| {
        let mut expected = expected.clone();
        expected.sort_by_cached_key(place);
        let found: Vec<_> = view.index(index).unwrap().rows().map(row).collect();
        assert_eq!(found.len(), expected.len(), "{index:?}");
        assert!(found == expected, "{index:?}");
    };
    through(BY_NUMBER, &|&(id, number, _)| (String::new(), number, id));
    through(BY_TEXT, &|(id, _, text)| (text.clone(), 0, *id));
    through(BY_BOTH, &|(id, number, text)| (text.clone(), *number, *id));
}

/// Keys in no order, ascending ones in clusters, and many that are the same.
fn values(random: &mut Rng, id: u64) -> (i64, String) {
    let number = match id / 2000 % 3 {
        0 => random.number().cast_signed(),
        1 => (random.below(5) << 40 | id).cast_signed(),
        _ => random.below(4).cast_signed(),
    };
    (number, format!("{:x} of {id}", random.below(1 << 20)))
}

/// A transaction, and what it should see.
struct Loading<'t, 'db> {
    tx: &'t mut Transaction<'db>,
    model: &'t mut Model,
    random: &'t mut Rng,
}

impl Loading<'_, '_> {
    fn next(&self) -> u64 {
        self.model.last_key_value().map_or(0, |(id, _)| id + 1)
    }

    fn rows(&mut self, count: u64) {
        for _ in 0..count {
            let (number, text) = values(self.random, self.next());
            let values = [ValueRef::Int64(number), ValueRef::String(&text)];
            let id = self.tx.insert(TABLE, &values).unwrap();
            self.model.insert(id.0, (number, text));
        }
    }

    fn vector(&mut self, count: u64) {
        let next = self.next();
        let rows: Vec<_> = (next..next + count).map(|id| values(self.random, id)).collect();
        let numbers: Vec<_> = rows.iter().map(|(number, _)| *number).collect();
        let texts: Vec<_> = rows.iter().map(|(_, text)| text.as_str()).collect();
        let id = self.tx.insert_rows(TABLE, &[(&numbers[..]).into(), (&texts[..]).into()]).unwrap();
        self.model.extend((id.0..).zip(rows));
    }

    fn some(&mut self) -> Option<u64> {
        let at = self.random.below(self.next().max(1));
        self.model.range(at..).next().map(|(id, _)| *id)
    }

    fn update(&mut self) {
        let Some(id) = self.some() else { return };
        self.tx.update(TABLE, RowId(id), NUMBER, ValueRef::Int64(-7)).unwrap();
        self.model.get_mut(&id).unwrap().0 = -7;
    }

    fn delete(&mut self) {
        // Not the last one: the next id isn't used again.
        let Some(id) = self.some().filter(|id| id + 1 < self.next()) else { return };
        self.tx.delete(TABLE, RowId(id)).unwrap();
        self.model.remove(&id);
    }

    /// Looks one row up by an index.
    fn look_up(&mut self) {
        let Some(id) = self.some() else { return };
        let (number, text) = &self.model[&id];
        let index = self.tx.view().index(BY_TEXT).unwrap();
        let found = index.first(&[ValueRef::String(text)]).unwrap().unwrap();
        assert_eq!((found.id().0, found.read::<i64>(NUMBER)), (id, *number));
    }

    fn blob(&mut self) {
        let blob = self.tx.write_blob(&b"some bytes"[..]).unwrap();
        assert_eq!(self.tx.view().blob_len(blob).unwrap(), Some(10));
        self.tx.append_blob(b"..").unwrap();
        assert_eq!(self.tx.blob(blob).unwrap().to_vec(100).unwrap(), b"some bytes..");
    }

    /// Loads in a part, which is kept or rolled back.
    fn part(&mut self) {
        let savepoint = self.tx.set_savepoint().unwrap();
        let before = self.model.clone();
        let count = self.random.below(900);
        self.rows(count);
        if self.random.percent(50) {
            assert_has(self.tx.view(), self.model);
        }
        if self.random.percent(50) {
            self.tx.roll_back_to(savepoint).unwrap();
            *self.model = before;
        }
        self.tx.release(savepoint).unwrap();
    }

    fn refused(&mut self) {
        let Some(id) = self.some() else { return };
        let (number, text) = &self.model[&id];
        let values = [ValueRef::Int64(*number), ValueRef::String(text)];
        let refused = self.tx.insert(TABLE, &values).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unique);
    }

    fn step(&mut self) {
        match self.random.below(14) {
            0..4 => {
                let count = self.random.below(2500);
                self.rows(count);
            }
            4 => {
                let count = 1 + self.random.below(2500);
                self.vector(count);
            }
            5 => (0..40).for_each(|_| self.vector(20)),
            6 => self.update(),
            7 => self.delete(),
            8 => self.look_up(),
            9 => self.blob(),
            10 => self.part(),
            11 => self.refused(),
            12 => assert_has(self.tx.view(), self.model),
            _ => {
                let name = format!("more_{}", self.random.number());
                create_index(self.tx, &name, &[NUMBER, TEXT], false).unwrap();
                let last = self.tx.view().schema().indexes().last().unwrap().number;
                let found = self.tx.view().index(last).unwrap().rows().count();
                assert_eq!(found, self.model.len());
                self.rows(3);
                self.tx.apply_command(&Command::DropIndex { index: last }).unwrap();
            }
        }
    }
}

fn history(memory: u64, seed: u64) {
    let mut random = Rng::new(seed);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    let mut db = create(&path, memory);
    let mut model = Model::new();
    for round in 0..4 {
        let before = model.clone();
        let mut tx = db.begin().unwrap();
        for _ in 0..12 {
            Loading { tx: &mut tx, model: &mut model, random: &mut random }.step();
        }
        if random.percent(30) {
            tx.rollback().unwrap();
            model = before;
        } else {
            tx.commit().unwrap();
        }
        assert_has(&db.read(), &model);
        db.read().check().unwrap();
        if random.percent(40) {
            db.backfill(BackfillMode::Full).unwrap();
        }
        if round == 1 {
            db.close().unwrap();
            db = options(memory).open(&path).unwrap();
            assert_has(&db.read(), &model);
        }
    }
    db.close().unwrap();
    // Replayed, with and without room for all.
    for memory in [LITTLE, MUCH] {
        for entry in std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap) {
            if entry.file_name().to_str().unwrap().contains("-image") {
                std::fs::remove_file(entry.path()).unwrap();
            }
        }
        let db = options(memory).open(&path).unwrap();
        assert_eq!((db.recovered().findings.len(), db.image_error()), (0, None));
        assert_has(&db.read(), &model);
        db.read().check().unwrap();
        db.close().unwrap();
    }
}

#[test]
fn a_load_is_seen_whatever_comes_in_between() {
    for seed in 0..2 {
        for memory in [LITTLE, 8 * LITTLE, MUCH] {
            history(memory, seed);
        }
    }
}

#[test]
fn a_load_that_spills_is_read_and_rolled_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    let db = create(&path, LITTLE);
    let (mut random, mut model) = (Rng::new(5), Model::new());
    for ends in [false, true] {
        let before = model.clone();
        let mut tx = db.begin().unwrap();
        let mut loading = Loading { tx: &mut tx, model: &mut model, random: &mut random };
        // More than may be owed at a time.
        loading.rows(70_000);
        assert!(image_len(&path) > LITTLE, "it has spilled");
        loading.look_up();
        loading.rows(5000);
        assert_has(loading.tx.view(), loading.model);
        if ends {
            tx.commit().unwrap();
        } else {
            tx.rollback().unwrap();
            model = before;
        }
        assert_has(&db.read(), &model);
        db.read().check().unwrap();
    }
    db.close().unwrap();
    let db = options(LITTLE).open(&path).unwrap();
    assert_has(&db.read(), &model);
    db.read().check().unwrap();
}

#[test]
fn a_check_sees_a_load_before_it_commits() {
    let folder = tempfile::tempdir().unwrap();
    let db = create(&folder.path().join("a.annals"), MUCH);
    db.check_commits("all are there", |proposed| {
        let after = proposed.after();
        let found = after.index(BY_NUMBER)?.rows().count() as u64;
        match found == after.table(TABLE)?.len() && proposed.changes().count() as u64 == found {
            true => Ok(()),
            false => Err(format!("{found} of {}", after.table(TABLE)?.len()).into()),
        }
    })
    .unwrap();
    let (mut random, mut model) = (Rng::new(6), Model::new());
    let mut tx = db.begin().unwrap();
    Loading { tx: &mut tx, model: &mut model, random: &mut random }.rows(3000);
    tx.commit().unwrap();
    assert_has(&db.read(), &model);
}

/// Frames of another file that continue this one: as those of a replica, of a proposal, and of a log.
#[test]
fn frames_with_a_load_are_taken_whole() {
    for (origin, memory) in [
        (Origin::History, LITTLE),
        (Origin::Proposed, LITTLE),
        (Origin::Logged, MUCH),
        (Origin::History, MUCH),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let [theirs, ours] = ["a", "b"].map(|name| folder.path().join(name));
        create(&theirs, MUCH).close().unwrap();
        std::fs::copy(&theirs, &ours).unwrap();
        let db = options(MUCH).open(&theirs).unwrap();
        let begin = usize::try_from(db.read().point().position).unwrap();
        let (mut random, mut model) = (Rng::new(8), Model::new());
        for _ in 0..3 {
            let mut tx = db.begin().unwrap();
            let mut loading = Loading { tx: &mut tx, model: &mut model, random: &mut random };
            loading.rows(3000);
            loading.update();
            loading.rows(30_000);
            loading.vector(2000);
            loading.delete();
            tx.commit().unwrap();
        }
        let end = usize::try_from(db.read().point().position).unwrap();
        db.close().unwrap();
        let db = options(memory).open(&ours).unwrap();
        let mut frames = spool(&db);
        frames.append(&std::fs::read(&theirs).unwrap()[begin..end]).unwrap();
        take(db.begin().unwrap(), &mut frames, origin).unwrap().accept().unwrap();
        assert_has(&db.read(), &model);
        db.read().check().unwrap();
    }
}
