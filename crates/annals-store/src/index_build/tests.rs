//! Indexes that were loaded from an image and changed since, against indexes that were always in memory.

use std::ops::Bound;
use std::sync::Arc;

use annals_schema::{Command, FieldNumber, IndexNumber, RowId, TableNumber, Type, ValueRef};

use crate::index::key::encode_id;
use crate::{ErrorKind, Result};
use crate::{Pager, Row, Store, TestImage, Uniqueness, View};
use annals_event::{Event, Vector};
use annals_simulated::Rng;

const TABLE: TableNumber = TableNumber(0);
const NAME: FieldNumber = FieldNumber(0);
const INDEXES: [IndexNumber; 3] = [IndexNumber(0), IndexNumber(1), IndexNumber(2)];

fn key(random: &mut Rng) -> String {
    let len = if random.percent(2) { 9000 } else { 1 + random.index(4) };
    (0..len).map(|_| ['a', 'b', 'c', 'd', 'e'][random.index(5)]).collect()
}

/// Makes a store with a table (name, value) that has an index on each and one on both.
fn store() -> Store {
    let mut store = Store::new();
    let mut commands = vec![Command::CreateTable { name: "t".to_owned() }];
    for (name, ty, nullable) in [("name", Type::String, false), ("value", Type::Int64, true)] {
        let (name, table) = (name.to_owned(), TABLE);
        commands.push(Command::AddField { table, name, ty, nullable, default: None });
    }
    for (name, fields) in [("by_name", &[0][..]), ("by_value", &[1]), ("by_both", &[1, 0])] {
        let fields = fields.iter().copied().map(FieldNumber).collect();
        let (name, table) = (name.to_owned(), TABLE);
        commands.push(Command::CreateIndex {
            name,
            table,
            fields,
            descending: Vec::new(),
            collated: Vec::new(),
            unique: false,
        });
    }
    for command in &commands {
        store.apply_command(command).unwrap();
    }
    store
}

/// Applies something that a journal may have to each of the stores.
fn apply(stores: &mut [&mut Store], random: &mut Rng) {
    let (table, next) = (TABLE, stores[0].view().table(TABLE).unwrap().next_id());
    let (name, value) =
        (key(random), i64::from(random.percent(50)) * random.below(40).cast_signed());
    let value = if random.percent(10) { ValueRef::Null } else { ValueRef::Int64(value) };
    let names: Vec<_> = (0..3).map(|_| key(random)).collect();
    let names: Vec<_> = names.iter().map(|name| ValueRef::String(name)).collect();
    let values = [ValueRef::String(&name), value];
    let id = RowId(random.below(next.max(1)));
    let event = match random.below(10) {
        0..4 => Event::Insert { table, id: RowId(next), values: &values },
        4 => Event::InsertVector { table, id: RowId(next), count: 3 },
        5 => Event::UpdateVector { table, id, field: NAME, values: Vector::Values(&names) },
        6 => Event::Update { table, id, field: NAME, value: values[0] },
        7 => Event::Update { table, id, field: FieldNumber(1), value },
        _ => Event::Delete { table, id },
    };
    let there = |id: u64| stores[0].view().table(TABLE).unwrap().contains(RowId(id)).unwrap();
    let fits = match event {
        Event::UpdateVector { .. } => (id.0..id.0 + 3).all(there),
        Event::Update { .. } | Event::Delete { .. } => there(id.0),
        _ => true,
    };
    if fits {
        stores.iter_mut().for_each(|store| store.apply(&event).unwrap());
    }
}

fn ids<'a>(rows: impl Iterator<Item = Result<Row<'a>>>) -> Vec<u64> {
    rows.map(|row| row.unwrap().id().0).collect()
}

/// Looks up the same few rows in both.
fn look(plain: &View, loaded: &View, random: &mut Rng) {
    let (name, from) = (key(random), random.below(40).cast_signed());
    let name = ValueRef::String(&name);
    let both = |number| (plain.index(number).unwrap(), loaded.index(number).unwrap());
    let (a, b) = both(INDEXES[0]);
    assert_eq!(a.len(), b.len());
    assert_eq!(ids(a.equal(&[name])), ids(b.equal(&[name])));
    assert_eq!(a.equal(&[name]).count(), b.equal(&[name]).count());
    let each = |index: &crate::IndexView<'_>| {
        let found = index.first_of_each([[name], [ValueRef::String("a")]]);
        found.map(|row| row.unwrap().map(|row| row.id())).collect::<Vec<_>>()
    };
    assert_eq!(each(&a), each(&b));
    let (a, b) = both(INDEXES[1 + random.index(2)]);
    let upper = Bound::Excluded(ValueRef::Int64(from + random.below(5).cast_signed()));
    let range = |index: &crate::IndexView<'_>| {
        let lower = Bound::Included(ValueRef::Int64(from));
        ids(index.range(&[], lower, upper).rev())
    };
    assert_eq!(range(&a), range(&b));
}

/// Looks up all rows in both, in all ways.
fn compare(plain: &View, loaded: &View) {
    for number in INDEXES {
        let (a, b) = (plain.index(number).unwrap(), loaded.index(number).unwrap());
        assert_eq!(ids(a.rows()), ids(b.rows()));
        let (mut a, mut b) = (a.cursor(), b.cursor());
        a.seek_last();
        b.seek_last();
        assert_eq!(a.rank().unwrap(), b.rank().unwrap());
        assert_eq!(a.prev().map(|row| row.unwrap().id()), b.prev().map(|row| row.unwrap().id()));
    }
    loaded.check().unwrap();
}

/// Stores the published view of a store, and loads it.
fn load(store: &Store, image: &Arc<TestImage>, pager: &Arc<Pager>) -> View {
    let saved = store.published().save(pager, &mut image.keeper(true)).unwrap();
    View::load(&saved.metadata, &saved.roots, pager).unwrap()
}

fn history(seed: u64) {
    let mut random = Rng::new(seed);
    let (image, pager) = TestImage::new(u64::MAX, random.percent(50));
    let mut plain = store();
    (0..random.below(400)).for_each(|_| apply(&mut [&mut plain], &mut random));
    plain.commit();
    let mut loaded = Store::resume(load(&plain, &image, &pager));
    for _ in 0..random.below(4) {
        (0..random.below(40)).for_each(|_| apply(&mut [&mut plain, &mut loaded], &mut random));
        plain.commit();
        loaded.commit();
        (0..random.below(40)).for_each(|_| apply(&mut [&mut plain, &mut loaded], &mut random));
        if random.percent(50) {
            plain.rollback();
            loaded.rollback();
        }
    }
    let (a, b) = (plain.commit(), loaded.commit());
    // Before the whole tree was read, so that most nodes are loaded for these.
    (0..random.below(40)).for_each(|_| look(&a, &b, &mut random));
    if random.percent(50) {
        compare(&a, &b);
    }
    // The store continues from a stored view; a rollback restores the one before.
    let saved = b.save(&pager, &mut image.keeper(true)).unwrap();
    if random.percent(50) {
        (0..20).for_each(|_| apply(&mut [&mut plain, &mut loaded], &mut random));
    }
    loaded.rebase(&saved);
    (0..20).for_each(|_| apply(&mut [&mut plain, &mut loaded], &mut random));
    look(plain.view(), loaded.view(), &mut random);
    if random.percent(50) {
        plain.rollback();
        loaded.rollback();
        (0..20).for_each(|_| apply(&mut [&mut plain, &mut loaded], &mut random));
    }
    compare(&plain.commit(), &loaded.commit());
    compare(&a, &b);
    drop(b);
    compare(&a, &load(&plain_of(&a, &image, &pager), &image, &pager));
}

/// Makes a store that has a view.
fn plain_of(view: &View, image: &Arc<TestImage>, pager: &Arc<Pager>) -> Store {
    let saved = view.save(pager, &mut image.keeper(true)).unwrap();
    Store::resume(View::load(&saved.metadata, &saved.roots, pager).unwrap())
}

#[test]
fn entries_of_a_replay_are_found_like_all_others() {
    (1..=150).for_each(history);
}

#[test]
fn removing_an_entry_that_is_not_there_is_an_error() {
    let mut store = store();
    let mut entry = vec![b'b'];
    encode_id(&mut entry, RowId(9));
    let index = store.working.indexes.get_mut(0).unwrap();
    let error = index.make_mut().remove(&entry, &store.epoch).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("no entry for row 9"), "{error}");
}

#[test]
fn a_key_of_a_replay_is_refused_to_a_second_row() {
    let (image, pager) = TestImage::new(u64::MAX, true);
    let mut plain = store();
    let (name, fields) = ("unique".to_owned(), vec![NAME]);
    let index = Command::CreateIndex {
        name,
        table: TABLE,
        fields,
        descending: Vec::new(),
        collated: Vec::new(),
        unique: true,
    };
    plain.apply_command(&index).unwrap();
    plain.commit();
    let mut store = Store::resume(load(&plain, &image, &pager));
    let names = ["a", "m", "z"].map(|name| [ValueRef::String(name), ValueRef::Null]);
    for (id, values) in (0..).zip(&names) {
        store.apply(&Event::Insert { table: TABLE, id: RowId(id), values }).unwrap();
    }
    store.commit();
    let mut insert = |id, name| {
        let values = [ValueRef::String(name), ValueRef::Null];
        store.insert(TABLE, RowId(id), &values, Uniqueness::AtOnce).map_err(|error| error.kind())
    };
    assert_eq!(insert(3, "m"), Err(ErrorKind::Unique));
    assert_eq!(insert(3, "n"), Ok(()));
    assert_eq!(insert(4, "n"), Err(ErrorKind::Unique));
    assert_eq!(insert(4, "b"), Ok(()));
    store.view().check().unwrap();
    assert_eq!(store.commit().index(INDEXES[0]).unwrap().rows().count(), 5);
}

/// Unique keys that many rows move over, a few rows at a time, are noted up to a sixteenth of the rows; then the
/// commit walks over the index.
#[test]
fn few_keys_are_noted_though_rows_are_set_a_few_at_a_time() {
    let (rows, piece) = (40_000_u32, 500);
    let mut store = Store::new();
    let (name, table, fields) = ("t".to_owned(), TABLE, vec![FieldNumber(0)]);
    store.apply_command(&Command::CreateTable { name: name.clone() }).unwrap();
    let (ty, nullable, default) = (Type::Int64, false, None);
    let field = Command::AddField { table, name: name.clone(), ty, nullable, default };
    store.apply_command(&field).unwrap();
    let (descending, collated, unique) = (Vec::new(), Vec::new(), true);
    let index = Command::CreateIndex { name, table, fields, descending, collated, unique };
    store.apply_command(&index).unwrap();
    for id in 0..rows {
        let (id, value) = (RowId(id.into()), ValueRef::Int64(id.into()));
        store.insert(TABLE, id, &[value], Uniqueness::AtCommit).unwrap();
    }
    for first in (0..rows).step_by(piece) {
        let values = (first..).take(piece).map(|id| ValueRef::Int64((id + rows / 2).into()));
        let values: Vec<_> = values.collect();
        let (id, values) = (RowId(first.into()), Vector::Values(&values));
        store.update_vector(TABLE, id, FieldNumber(0), values, true).unwrap();
        assert!(store.doubts.keys.len() <= rows as usize / 16 + piece);
    }
    assert_eq!(store.doubts.indexes, [0]);
    store.check_unique().unwrap();
}
