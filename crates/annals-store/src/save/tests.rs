//! Views that were saved, loaded and rebased, on random histories.
//!
//! Every change is made to three stores: one without an image, one whose views are saved and that continues from the
//! stored ones, and one that was loaded. They must stay the same.

use std::sync::Arc;

use annals_schema::{
    Blob, Collated, Command, Field, FieldNumber, IndexNumber, OnDelete, RowId, TableNumber, Type,
    Value, ValueRef,
};

use crate::image::RootPin;
use crate::{Error, Result};
use crate::{Pager, Saved, Store, TableView, TestImage, Uniqueness, View};
use annals_event::Vector;
use annals_simulated::Rng;

const RULES: [OnDelete; 4] =
    [OnDelete::Dangle, OnDelete::Restrict, OnDelete::Cascade, OnDelete::SetNull];

fn text(random: &mut Rng) -> String {
    let len = match random.below(60) {
        0 => 20_000 + random.below(20_000),
        1 => 1000 + random.below(4000),
        2..=15 => 13 + random.below(80),
        _ => random.below(13),
    };
    (0..len).map(|_| ['a', 'b', '\0', 'é'][random.index(4)]).collect()
}

fn value(random: &mut Rng, (ty, nullable): (Type, bool), blobs: u64) -> Value {
    if nullable && random.percent(20) {
        return Value::Null;
    }
    let number = random.below(120);
    match ty {
        Type::Float64 => Value::Float64([-0.0, 0.0, 1e300, f64::NAN][random.index(4)]),
        Type::String => Value::String(text(random)),
        Type::Bytes => Value::Bytes(text(random).into_bytes()),
        Type::Blob if blobs > 0 => Value::Blob(Blob(1 + random.below(blobs))),
        Type::Blob => Value::Null,
        Type::Reference(..) => Value::Reference(RowId(number / 4)),
        ty => ty.sample(random.number().cast_signed() >> (number % 64)),
    }
}

/// Compares all that two views have.
fn compare(plain: &View, other: &View) {
    assert_eq!(plain.schema(), other.schema());
    for table in plain.schema().tables() {
        let (a, b) = (plain.table(table.number).unwrap(), other.table(table.number).unwrap());
        assert_eq!((a.len(), a.next_id()), (b.len(), b.next_id()));
        assert_eq!(a.data.referrers, b.data.referrers);
        assert_eq!(a.data.indexes, b.data.indexes);
        assert_eq!((a.data.refers, a.data.single), (b.data.refers, b.data.single));
        let mut others = b.rows();
        for row in a.rows() {
            let (row, other) = (row.unwrap(), others.next().unwrap().unwrap());
            assert_eq!(row.id(), other.id());
            for field in &table.fields {
                assert_eq!(row.value(field.number), other.value(field.number), "{}", table.name);
            }
        }
        assert!(others.next().is_none());
        let last = |table: TableView<'_>| -> Vec<_> {
            table.rows().rev().take(50).map(|row| row.unwrap().id()).collect()
        };
        assert_eq!(last(a), last(b));
    }
    for index in plain.schema().indexes() {
        let (a, b) = (plain.index(index.number).unwrap(), other.index(index.number).unwrap());
        assert!(a.rows().map(id_of).eq(b.rows().map(id_of)), "{}", index.name);
        assert!(a.rows().rev().map(id_of).eq(b.rows().rev().map(id_of)), "{}", index.name);
        let middle = a.len() / 2;
        let row = |row: Option<crate::Row<'_>>| row.map(|row| row.id());
        assert_eq!(row(a.nth(middle).unwrap()), row(b.nth(middle).unwrap()));
    }
    for blob in (1..).map(Blob).take_while(|&blob| plain.blobs.has(blob)) {
        assert_eq!(plain.blob_len(blob).unwrap(), other.blob_len(blob).unwrap());
        for offset in [0, 5, 70_000] {
            let piece = plain.blob_piece(blob, offset).unwrap();
            assert_eq!(piece, other.blob_piece(blob, offset).unwrap());
        }
    }
}

fn id_of(row: Result<crate::Row<'_>>) -> u64 {
    row.unwrap().id().0
}

struct World {
    random: Rng,
    /// Of no image; saved and rebased; loaded.
    stores: [Store; 3],
    image: Arc<TestImage>,
    pager: Arc<Pager>,
    /// The stored view of the second one, from which it doesn't continue yet.
    stored: Option<Saved>,
    kept: Vec<[Arc<View>; 3]>,
    names: u64,
    /// True if each saved view continues from the previous one: the store does so as soon as that exists, and again
    /// after a rollback.
    orderly: bool,
    saved: Arc<View>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Rng::new(seed);
        let image = Arc::<TestImage>::default();
        let pager = pager(&image, &mut random);
        let stores = [Store::new(), Store::new(), Store::new()];
        let saved = Arc::clone(stores[1].published());
        let (stored, kept, names, orderly) = (None, Vec::new(), 0, seed.is_multiple_of(2));
        Self { random, stores, image, pager, stored, kept, names, orderly, saved }
    }

    /// Makes a change to each store: all agree on what becomes of it.
    fn each(&mut self, change: impl Fn(&mut Store) -> Result<()>) -> bool {
        let [plain, others @ ..] = &mut self.stores;
        let shown = |result: Result<()>| result.map_err(|error: Error| error.to_string());
        let expected = shown(change(plain));
        for store in others {
            assert_eq!(shown(change(store)), expected);
        }
        expected.is_ok()
    }

    fn view(&self) -> &View {
        self.stores[0].view()
    }

    fn table(&mut self) -> Option<TableNumber> {
        let len = self.view().schema().tables().len();
        let at = self.random.index(len);
        self.view().schema().tables().get(at).map(|table| table.number)
    }

    fn fields(&self, table: TableNumber) -> Vec<Field> {
        self.view().schema().table(table).unwrap().fields.clone()
    }

    fn value(&mut self, field: &Field) -> Value {
        let blobs = self.stores[0].next_blob().unwrap().0 - 1;
        value(&mut self.random, (field.ty, field.nullable), blobs)
    }

    fn id(&mut self, table: TableNumber) -> u64 {
        let next = self.view().table(table).unwrap().next_id();
        match self.random.below(10) {
            0..5 => self.random.below(next + 1),
            5 => self.random.below(1 << 40),
            6 => self.random.below(next + 3000),
            _ => self.random.below(30),
        }
    }

    fn insert(&mut self, table: TableNumber) {
        let next = self.view().table(table).unwrap().next_id();
        let id = if self.random.percent(70) { next } else { self.id(table) };
        let fields = self.fields(table);
        let row: Vec<_> = fields.iter().map(|field| self.value(field)).collect();
        let values: Vec<_> = row.iter().map(Value::as_ref).collect();
        let uniqueness =
            if self.random.percent(80) { Uniqueness::AtOnce } else { Uniqueness::AtCommit };
        self.each(|store| store.insert(table, RowId(id), &values, uniqueness));
    }

    fn insert_run(&mut self, table: TableNumber) {
        let next = self.view().table(table).unwrap().next_id();
        let id = if self.random.percent(60) { next } else { self.id(table) };
        let most = if self.random.percent(15) { 2000 } else { 60 };
        let count = 1 + self.random.below(most);
        self.each(|store| store.insert_vector(table, RowId(id), count, true));
        for field in self.fields(table) {
            self.update_run(table, (id, count), &field);
        }
    }

    fn update_run(&mut self, table: TableNumber, (id, count): (u64, u64), field: &Field) {
        let few: Vec<_> = (0..7).map(|_| self.value(field)).collect();
        let values: Vec<_> =
            (0..count).map(|at| few[usize::try_from((at * at) % 7).unwrap()].as_ref()).collect();
        let (id, field, values) = (RowId(id), field.number, Vector::Values(&values));
        self.each(|store| store.update_vector(table, id, field, values, true));
    }

    fn update(&mut self, table: TableNumber) {
        let fields = self.fields(table);
        let Some(field) = fields.get(self.random.index(fields.len())) else { return };
        let id = self.id(table);
        if self.random.percent(10) {
            let count = 1 + self.random.below(200);
            return self.update_run(table, (id, count), field);
        }
        let value = self.value(field);
        self.each(|store| store.update(table, RowId(id), field.number, value.as_ref()));
    }

    fn delete(&mut self, table: TableNumber) {
        let id = self.id(table);
        let count = match self.random.below(10) {
            0 => 1 + self.random.below(1500),
            1 | 2 => 1 + self.random.below(20),
            _ => 1,
        };
        let plan = |store: &mut Store| store.plan_deletion(table, RowId(id), count);
        let Ok(expected) = plan(&mut self.stores[0]) else { return };
        for store in &mut self.stores[1..] {
            let found = plan(store).unwrap();
            assert_eq!((&found.nulls, &found.rows), (&expected.nulls, &expected.rows));
        }
        self.each(|store| {
            for &(table, id, field) in &expected.nulls {
                store.update(table, id, field, ValueRef::Null)?;
            }
            expected.rows.iter().try_for_each(|&(table, id)| store.delete(table, id))?;
            store.delete_vector(table, RowId(id), count)
        });
    }

    fn blob(&mut self) {
        let blob = self.stores[0].next_blob().unwrap();
        let position = self.random.below(1 << 40);
        self.each(|store| store.add_piece(blob, 0, 1 << 16, position));
        if self.random.percent(50) {
            self.each(|store| store.add_piece(blob, 1 << 16, 1 << 15, position + (1 << 17)));
        }
    }

    fn command(&mut self) {
        self.names += 1;
        let name = format!("n{}", self.names);
        let Some(table) = self.table().filter(|_| !self.random.percent(10)) else {
            self.each(|store| store.apply_command(&Command::CreateTable { name: name.clone() }));
            return;
        };
        let fields = self.fields(table);
        let field = fields.get(self.random.index(fields.len())).map(|field| field.number);
        let command = match (self.random.below(20), field) {
            (0, _) if self.view().schema().tables().len() > 2 => Command::DropTable { table },
            (1, Some(field)) => Command::DropField { table, field },
            (2, _) => self.drop_index(),
            (3, Some(field)) => Command::RenameField { table, field, name },
            (12, Some(field)) => Command::AddVariant { table, field, name },
            (13, Some(field)) => Command::RenameVariant { table, field, variant: 1, name },
            (14, Some(field)) => Command::DropVariant { table, field, variant: 2 },
            (4, _) => Command::SetSingleRow { table, single: self.random.percent(60) },
            (5..12, Some(field)) => {
                let mut fields = vec![field];
                fields.extend(self.fields(table).last().map(|field| field.number));
                fields.dedup();
                let descending =
                    fields.iter().copied().filter(|_| self.random.percent(30)).collect();
                let unique = self.random.percent(30);
                let of_table = self.fields(table);
                let is_string = |number: &FieldNumber| {
                    of_table.iter().any(|field| field.number == *number && field.ty == Type::String)
                };
                let strings: Vec<_> = fields.iter().copied().filter(is_string).collect();
                let collate = |field| {
                    let locale = "de-u-ks-level2".to_owned();
                    let version = crate::collation::testing::version(&locale);
                    self.random.percent(50).then_some(Collated { field, locale, version })
                };
                let collated = strings.into_iter().filter_map(collate).collect();
                Command::CreateIndex { name, table, fields, descending, collated, unique }
            }
            _ => self.add_field(table, name),
        };
        self.each(|store| store.apply_command(&command));
    }

    fn drop_index(&mut self) -> Command {
        let indexes: Vec<_> = self.view().schema().indexes().iter().map(|i| i.number).collect();
        let index = indexes.get(self.random.index(indexes.len()));
        Command::DropIndex { index: index.copied().unwrap_or(IndexNumber(0)) }
    }

    fn add_field(&mut self, table: TableNumber, name: String) -> Command {
        let ty = match self.random.below(10) {
            0..3 => Type::String,
            3 => Type::Bytes,
            4 | 5 => {
                let target = self.table().unwrap_or(TableNumber(0));
                Type::Reference(target, RULES[self.random.index(4)])
            }
            _ => {
                let samples = Type::samples();
                samples[self.random.index(samples.len())]
            }
        };
        let nullable = self.random.percent(40) || ty.is_always_nullable();
        let field = (ty, nullable);
        let default = self.random.percent(50).then(|| value(&mut self.random, field, 0));
        Command::AddField { table, name, ty, nullable, default }
    }

    fn step(&mut self) {
        let Some(table) = self.table().filter(|_| !self.random.percent(4)) else {
            return self.command();
        };
        match self.random.below(100) {
            0..25 => self.insert(table),
            25..32 => self.insert_run(table),
            32..60 => self.update(table),
            60..78 => self.delete(table),
            78..80 => self.blob(),
            80..86 => self.rebase(),
            86..88 => self.roll_back(),
            _ => self.commit(),
        }
    }

    /// Lets the second store continue from a view stored some time ago.
    fn rebase(&mut self) {
        if let Some(saved) = &self.stored {
            let before = Arc::clone(self.stores[1].published());
            self.stores[1].rebase(saved);
            // It makes no difference if it is of another store, or was done already.
            self.stores[2].rebase(saved);
            self.stores[1].rebase(saved);
            assert!(Arc::ptr_eq(&before, self.stores[1].published()));
            if self.random.percent(30) {
                compare(self.view(), self.stores[1].view());
            }
        }
        self.pager.set_keeps(self.random.percent(50));
    }

    fn roll_back(&mut self) {
        self.stores.iter_mut().for_each(Store::rollback);
        if self.orderly {
            self.rebase();
        }
    }

    fn commit(&mut self) {
        let is_fine = self.each(|store| store.check_constraints());
        if !is_fine {
            return self.roll_back();
        }
        let views = self.stores.each_mut().map(Store::commit);
        if self.random.percent(6) {
            self.kept.push(views.clone());
        }
        match self.random.below(10) {
            0..5 if !Arc::ptr_eq(&self.saved, &views[1]) => self.save(&views[1]),
            5 => views[1].check().unwrap(),
            _ => {}
        }
    }

    /// Saves what the second store published, and loads it as the third one; or as the second, too.
    fn save(&mut self, view: &Arc<View>) {
        let saved = view.save(&self.pager, &mut self.image.keeper(self.orderly)).unwrap();
        let load = |pager| View::load(&saved.metadata, &saved.roots, pager).unwrap();
        let other = pager(&self.image, &mut self.random);
        self.stores[2] = Store::resume(load(&other));
        if self.random.percent(20) {
            self.pager = pager(&self.image, &mut self.random);
            self.stores[1] = Store::resume(load(&self.pager));
        }
        if self.random.percent(30) {
            self.stores[2].view().check().unwrap();
            compare(self.view(), self.stores[2].view());
        }
        self.stored = Some(saved);
        self.saved = Arc::clone(view);
        if self.orderly {
            self.rebase();
        }
    }

    fn run(mut self, steps: u32) {
        (0..15).for_each(|_| self.command());
        (0..steps).for_each(|_| self.step());
        compare(self.view(), self.stores[1].view());
        compare(self.view(), self.stores[2].view());
        for [plain, others @ ..] in &self.kept {
            others.iter().for_each(|view| compare(plain, view));
            others.iter().for_each(|view| view.check().unwrap());
        }
    }
}

/// Makes a pager that keeps what is loaded, or has a cache of a few pages or of next to nothing.
fn pager(image: &Arc<TestImage>, random: &mut Rng) -> Arc<Pager> {
    let budget = [1 << 10, 1 << 20][random.index(2)];
    image.pager(budget, random.percent(50))
}

#[test]
#[expect(clippy::print_stdout, reason = "it is shown where the test fails")]
fn what_is_saved_loaded_and_rebased_stays_the_same() {
    let full = std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full");
    for seed in 1..=if full { 200 } else { 8 } {
        println!("seed {seed}");
        World::new(seed).run(if full { 600 } else { 200 });
    }
}

#[test]
fn a_catalog_that_was_changed_is_an_error() {
    let mut world = World::new(1);
    (0..15).for_each(|_| world.command());
    (0..200).for_each(|_| world.step());
    world.roll_back();
    let view = Arc::clone(world.stores[1].published());
    let saved = view.save(&world.pager, &mut world.image.keeper(false)).unwrap();
    let load = |metadata: &[u8], roots| View::load(metadata, roots, &world.pager);
    assert!(load(&saved.metadata, &saved.roots).is_ok());
    assert!(load(&saved.metadata, &saved.roots[1..]).is_err());
    for len in 0..saved.metadata.len() {
        assert!(load(&saved.metadata[..len], &saved.roots).is_err(), "{len} bytes");
    }
    assert!(load(&[&saved.metadata[..], &[0]].concat(), &saved.roots).is_err());
    let mut refused = 0;
    for at in 0..saved.metadata.len() {
        for bit in 0..8 {
            let mut metadata = saved.metadata.clone();
            metadata[at] ^= 1 << bit;
            // It may be a plausible one: a name, a default, a number that isn't stored elsewhere.
            match load(&metadata, &saved.roots) {
                Ok(loaded) => use_all(Store::resume(loaded)),
                Err(error) => {
                    assert_eq!(error.kind(), crate::ErrorKind::Corrupt);
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 100, "{refused} of {} bytes", saved.metadata.len());
}

/// Reads and changes whatever there is: all that may happen is an error.
fn use_all(mut store: Store) {
    let view = store.commit();
    let _ = view.check();
    for table in view.schema().tables() {
        let row: Vec<_> = table.fields.iter().map(Field::zero_value).collect();
        let values: Vec<_> = row.iter().map(Value::as_ref).collect();
        let read = view.table(table.number).unwrap();
        let ids: Vec<_> = read.rows().take(5).flatten().map(|row| row.id()).collect();
        for id in ids {
            for field in &table.fields {
                let _ = store.update(table.number, id, field.number, field.zero_value().as_ref());
            }
            let _ = store.delete(table.number, id);
        }
        let id = RowId(read.next_id());
        let _ = store.insert(table.number, id, &values, Uniqueness::AtCommit);
    }
    let _: Vec<_> = view.schema().indexes().iter().map(|i| view.index(i.number)).collect();
    store.rollback();
}

/// Even before the transaction has changed anything.
#[test]
fn what_is_stored_ahead_stays_with_a_commit_and_not_with_a_rollback() {
    let (image, pager) = TestImage::new(u64::MAX, true);
    let mut store = Store::new();
    store.apply_command(&Command::CreateTable { name: "t".to_owned() }).unwrap();
    (0..100)
        .for_each(|id| store.insert(TableNumber(0), RowId(id), &[], Uniqueness::AtOnce).unwrap());
    store.commit();
    let pinned = |view: &View| view.pin().map(|pin| pin.number);
    for commits in [false, true] {
        let mut saved = store.view().save(&pager, &mut image.keeper(true)).unwrap();
        saved.pin = Some(Arc::new(RootPin::here(7)));
        store.go_on(&saved);
        assert_eq!(pinned(store.view()), Some(7));
        assert_eq!(pinned(store.published()), None, "nobody sees it before the commit");
        match commits {
            true => drop(store.commit()),
            false => store.rollback(),
        }
        let stays = commits.then_some(7);
        assert_eq!((pinned(store.view()), pinned(store.published())), (stays, stays));
        assert_eq!(store.view().table(TableNumber(0)).unwrap().len(), 100);
        store.view().check().unwrap();
    }
}
