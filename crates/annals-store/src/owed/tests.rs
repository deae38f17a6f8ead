//! A store that owes entries of indexes, against one that doesn't.

use std::collections::BTreeMap;
use std::ops::Bound;

use annals_schema::{Command, FieldNumber, IndexNumber, RowId, TableNumber, Type, ValueRef};

use super::{BEGIN, MOST_ROWS};
use crate::{ErrorKind, Store, TestImage, Uniqueness, View};
use annals_event::{Event, Vector};
use annals_simulated::Rng;

const TABLE: TableNumber = TableNumber(0);
const NUMBER: FieldNumber = FieldNumber(0);
const INDEXES: [IndexNumber; 3] = [IndexNumber(0), IndexNumber(1), IndexNumber(2)];

/// Makes a store with a table (number, text) that has an index on each, of which none is unique, and a unique one on
/// both.
fn store(owes: bool) -> Store {
    let mut store = Store::new();
    let mut commands = vec![Command::CreateTable { name: "t".to_owned() }];
    for (name, ty) in [("number", Type::Int64), ("text", Type::String)] {
        let (name, table) = (name.to_owned(), TABLE);
        commands.push(Command::AddField { table, name, ty, nullable: false, default: None });
    }
    for (name, fields) in [("by_number", &[0][..]), ("by_text", &[1]), ("by_both", &[0, 1])] {
        let unique = name == "by_both";
        let (name, fields) = (name.to_owned(), fields.iter().copied().map(FieldNumber).collect());
        let (descending, collated) = (Vec::new(), Vec::new());
        let table = TABLE;
        commands.push(Command::CreateIndex { name, table, fields, descending, collated, unique });
    }
    commands.iter().for_each(|command| store.apply_command(command).unwrap());
    store.commit();
    if owes {
        store.allow_owing(usize::MAX);
    }
    store
}

fn insert(store: &mut Store, id: u64, number: i64, text: &str) {
    let values = [ValueRef::Int64(number), ValueRef::String(text)];
    store.insert(TABLE, RowId(id), &values, Uniqueness::AtOnce).unwrap();
}

/// Inserts rows of distinct keys in no order.
fn load(store: &mut Store, ids: std::ops::Range<u64>) {
    for id in ids {
        let number = id.wrapping_mul(0x9e37_79b9_7f4a_7c15).cast_signed() >> 40;
        insert(store, id, number, &format!("{}-{id}", id % 7));
    }
}

/// Returns the rows of a view in the order of an index.
fn rows(view: &View, index: IndexNumber) -> Vec<u64> {
    view.index(index).unwrap().rows().map(|row| row.unwrap().id().0).collect()
}

fn assert_same(store: &Store, plain: &Store) {
    store.view().check().unwrap();
    for index in INDEXES {
        assert_eq!(rows(store.view(), index), rows(plain.view(), index), "{index:?}");
    }
}

#[test]
fn entries_are_owed_after_some_insertions_alone() {
    let mut store = store(true);
    load(&mut store, 0..BEGIN);
    assert!(!store.owes());
    load(&mut store, BEGIN..BEGIN + 10);
    assert!(store.owes() && !store.owes_much());
    let number = |index: usize| store.unsettled().indexes.get(index).unwrap().entries.len();
    assert_eq!([0, 1, 2].map(number), [BEGIN, BEGIN, BEGIN + 10], "a unique index owes nothing");
    store.settle().unwrap();
    assert!(!store.owes());
    store.view().check().unwrap();
    let mut plain = self::store(false);
    load(&mut plain, 0..BEGIN + 10);
    assert!(!plain.owes());
    assert_same(&store, &plain);
}

#[test]
fn much_is_owed_at_a_bound() {
    let mut store = store(true);
    load(&mut store, 0..BEGIN + MOST_ROWS - 1);
    assert!(!store.owes_much());
    load(&mut store, BEGIN + MOST_ROWS - 1..BEGIN + MOST_ROWS);
    assert!(store.owes_much());
    store.settle().unwrap();
    assert!(!store.owes_much());
    let long = "x".repeat(1 << 20);
    for id in 0..BEGIN + 20 {
        let text = if id < BEGIN { "short" } else { &long };
        insert(&mut store, 1 << 20 | id, id.cast_signed(), text);
        assert_eq!(store.owes_much(), id >= BEGIN + 15, "{id}");
    }
}

#[test]
fn the_bound_is_of_the_rows_of_all_tables() {
    let mut store = store(true);
    let other = TableNumber(1);
    let (name, ty, nullable) = ("number".to_owned(), Type::Int64, false);
    let index = Command::CreateIndex {
        name: "u_by_number".to_owned(),
        table: other,
        fields: vec![NUMBER],
        descending: Vec::new(),
        collated: Vec::new(),
        unique: false,
    };
    for command in [
        Command::CreateTable { name: "u".to_owned() },
        Command::AddField { table: other, name, ty, nullable, default: None },
        index,
    ] {
        store.apply_command(&command).unwrap();
    }
    load(&mut store, 0..BEGIN);
    store.insert(other, RowId(0), &[ValueRef::Int64(7)], Uniqueness::AtOnce).unwrap();
    load(&mut store, BEGIN..BEGIN + MOST_ROWS - 2);
    assert!(!store.owes_much());
    load(&mut store, BEGIN + MOST_ROWS - 2..BEGIN + MOST_ROWS - 1);
    assert!(store.owes_much());
    store.view().check().unwrap();
}

#[test]
fn a_reader_in_the_middle_sees_all_and_the_load_continues() {
    let (mut store, mut plain) = (store(true), store(false));
    let mut end = 0;
    for step in [300, 1, 1, 500, 40, 3000, 2] {
        for store in [&mut store, &mut plain] {
            load(store, end..end + step);
        }
        end += step;
        assert_same(&store, &plain);
    }
    // The reader's trees are those of the store then.
    load(&mut store, end..end + 1);
    load(&mut plain, end..end + 1);
    assert_eq!(store.unsettled().indexes.get(0).unwrap().entries.len(), end + 1);
    store.settle().unwrap();
    assert_same(&store, &plain);
    store.commit();
    store.published().check().unwrap();
}

/// Each of these happens while entries are owed, once without a reading before it and once after one.
#[test]
fn each_change_but_an_insertion_settles() {
    let update = |store: &mut Store| {
        store.update(TABLE, RowId(290), NUMBER, ValueRef::Int64(-5)).unwrap();
    };
    let delete = |store: &mut Store| store.delete(TABLE, RowId(295)).unwrap();
    let update_vector = |store: &mut Store| {
        let numbers = [ValueRef::Int64(1), ValueRef::Int64(2)];
        let values = Vector::Values(&numbers);
        store.update_vector(TABLE, RowId(290), NUMBER, values, true).unwrap();
    };
    let delete_vector = |store: &mut Store| store.delete_vector(TABLE, RowId(280), 15).unwrap();
    let insert_vector = |store: &mut Store| {
        // A row of zeros: only one, as the unique index counts it.
        store.insert_vector(TABLE, RowId(5000), 1, true).unwrap();
    };
    let blob = |store: &mut Store| {
        let blob = store.next_blob().unwrap();
        store.add_piece(blob, 0, 10, 77).unwrap();
        assert_eq!(store.view().last_blob(), blob);
    };
    let erase = |store: &mut Store| {
        let (table, id, field, value) = (TABLE, RowId(291), NUMBER, ValueRef::Null);
        store.restore(&Event::Update { table, id, field, value }, true).unwrap();
    };
    let create = |store: &mut Store| {
        let (name, fields) = ("third".to_owned(), vec![NUMBER]);
        let (descending, collated, unique, table) = (Vec::new(), Vec::new(), false, TABLE);
        let command = Command::CreateIndex { name, table, fields, descending, collated, unique };
        store.apply_command(&command).unwrap();
        assert_eq!(rows(store.view(), IndexNumber(3)), rows(store.view(), INDEXES[0]));
    };
    let drop_index = |store: &mut Store| {
        store.apply_command(&Command::DropIndex { index: IndexNumber(1) }).unwrap();
        let command = Command::DropField { table: TABLE, field: FieldNumber(1) };
        store.apply_command(&command).unwrap_err();
        let error = store.view().index(IndexNumber(1)).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    };
    type Change<'c> = (&'c str, &'c dyn Fn(&mut Store));
    let changes: [Change<'_>; 9] = [
        ("update", &update),
        ("delete", &delete),
        ("update a vector", &update_vector),
        ("delete a vector", &delete_vector),
        ("insert a vector", &insert_vector),
        ("write a blob", &blob),
        ("erase", &erase),
        ("create an index", &create),
        ("drop an index", &drop_index),
    ];
    for (what, change) in changes {
        for is_read in [false, true] {
            let (mut store, mut plain) = (store(true), store(false));
            for store in [&mut store, &mut plain] {
                load(store, 0..300);
            }
            assert!(store.owes());
            if is_read {
                assert_same(&store, &plain);
            }
            change(&mut store);
            change(&mut plain);
            store.view().check().unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(rows(store.view(), INDEXES[0]), rows(plain.view(), INDEXES[0]), "{what}");
            load(&mut store, 300..900);
            load(&mut plain, 300..900);
            assert_eq!(rows(store.view(), INDEXES[0]), rows(plain.view(), INDEXES[0]), "{what}");
            store.settle().unwrap();
            store.commit().check().unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(rows(store.view(), INDEXES[0]), rows(plain.view(), INDEXES[0]), "{what}");
        }
    }
}

#[test]
fn a_rollback_drops_what_is_owed() {
    let (mut store, mut plain) = (store(true), store(false));
    load(&mut plain, 0..400);
    load(&mut store, 0..400);
    store.settle().unwrap();
    let kept = store.set_savepoint();
    for is_read in [false, true] {
        load(&mut store, 400..900);
        if is_read {
            store.view().check().unwrap();
        }
        store.return_to(&kept);
        assert!(!store.owes());
        assert_same(&store, &plain);
    }
    load(&mut store, 400..900);
    store.rollback();
    assert!(!store.owes() && rows(store.view(), INDEXES[0]).is_empty());
    load(&mut store, 0..400);
    store.settle().unwrap();
    store.commit();
    assert_same(&store, &plain);
}

#[test]
fn a_statement_that_is_refused_leaves_what_is_owed() {
    let (mut store, mut plain) = (store(true), store(false));
    for store in [&mut store, &mut plain] {
        load(store, 0..300);
        let row = store.unsettled().table(TABLE).unwrap().get(RowId(299)).unwrap();
        let (number, text) = (row.read::<i64>(NUMBER), row.read::<&str>(FieldNumber(1)).to_owned());
        let values = [ValueRef::Int64(number), ValueRef::String(&text)];
        let refused = store.insert(TABLE, RowId(300), &values, Uniqueness::AtOnce).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unique);
        let refused = store.insert(TABLE, RowId(7), &values, Uniqueness::AtOnce).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InUse);
        store.insert(TABLE, RowId(300), &values, Uniqueness::AtCommit).unwrap();
        assert_eq!(store.check_constraints().unwrap_err().kind(), ErrorKind::Unique);
        store.delete(TABLE, RowId(299)).unwrap();
        store.check_constraints().unwrap();
    }
    assert_same(&store, &plain);
}

#[test]
fn it_is_settled_in_steps_and_stored_between_them() {
    for keeps in [true, false] {
        let (image, pager) = TestImage::new(u64::MAX, keeps);
        let mut store = store(true);
        let mut model = BTreeMap::new();
        for (round, begin) in (0..).zip([0, 20_000, 40_000]) {
            load(&mut store, begin..begin + 20_000);
            let mut steps = 0;
            while store.owes() {
                store.settle_some(256 << 10).unwrap();
                if steps == 1 {
                    // A reader in the middle of settling, and rows that come then.
                    store.view().check().unwrap();
                    load(&mut store, begin + 100_000..begin + 100_400);
                    store.view().check().unwrap();
                }
                let saved = store.unsettled().save(&pager, &mut image.keeper(false)).unwrap();
                store.go_on(&saved);
                steps += 1;
            }
            assert!(steps > 1 || round == 0, "{steps} steps");
            model.extend(
                (begin..begin + 20_000).chain(begin + 100_000..begin + 100_400).map(|id| (id, ())),
            );
            let view = store.commit();
            view.check().unwrap();
            let table = view.table(TABLE).unwrap();
            assert!(table.rows().map(|row| row.unwrap().id().0).eq(model.keys().copied()));
        }
    }
}

/// Returns a store that has so many rows in an image, of which nothing was loaded yet.
fn stored(rows: u64) -> (std::sync::Arc<TestImage>, Store) {
    let (image, pager) = TestImage::new(1 << 20, false);
    let mut store = store(false);
    load(&mut store, 0..rows);
    let saved = store.commit().save(&pager, &mut image.keeper(true)).unwrap();
    let mut store = Store::resume(View::load(&saved.metadata, &saved.roots, &pager).unwrap());
    store.allow_owing(usize::MAX);
    // All of these are in the same leaf, so that the leaves of those after them aren't loaded.
    for id in rows..rows + BEGIN {
        insert(&mut store, id, i64::MAX, &format!("9-{id}"));
    }
    load(&mut store, rows + BEGIN..rows + BEGIN + 50);
    assert!(store.owes());
    (image, store)
}

#[test]
fn what_cant_be_settled_for_a_reader_is_owed_still() {
    let (image, mut store) = stored(20_000);
    image.set_broken(true);
    let read = |store: &Store| {
        let index = store.view().index(INDEXES[1]).unwrap();
        index.first(&[ValueRef::String("3-20261")]).map(|row| row.map(|row| row.id().0))
    };
    assert_eq!(read(&store).unwrap_err().kind(), ErrorKind::Corrupt);
    image.set_broken(false);
    assert!(read(&store).is_err(), "the same view");
    load(&mut store, 30_000..30_001);
    assert!(store.owes());
    assert_eq!(read(&store).unwrap(), Some(20_261));
    store.view().check().unwrap();
    store.settle().unwrap();
    store.commit().check().unwrap();
}

#[test]
fn settling_that_fails_is_rolled_back() {
    let (image, mut store) = stored(20_000);
    image.set_broken(true);
    assert_eq!(store.settle().unwrap_err().kind(), ErrorKind::Corrupt);
    image.set_broken(false);
    store.rollback();
    store.view().check().unwrap();
    assert_eq!(store.view().table(TABLE).unwrap().len(), 20_000);
    load(&mut store, 20_000..20_000 + BEGIN + 50);
    store.settle().unwrap();
    store.commit().check().unwrap();
}

/// A load in any order of statements and readings, with random keys, duplicates and clusters.
#[test]
fn a_random_history_is_the_same() {
    for seed in 0..12 {
        let mut random = Rng::new(seed);
        let (mut store, mut plain) = (store(true), store(false));
        let mut next = 0_u64;
        for _ in 0..60 {
            match random.below(10) {
                0..6 => {
                    let kind = random.below(3);
                    for _ in 0..random.below(900) {
                        let number = match kind {
                            0 => random.number().cast_signed(),
                            1 => random.below(3).cast_signed(),
                            _ => (random.below(4) << 40 | next).cast_signed(),
                        };
                        let text = format!("{next}");
                        insert(&mut store, next, number, &text);
                        insert(&mut plain, next, number, &text);
                        next += 1;
                    }
                }
                6 if next > 0 => {
                    let id = RowId(random.below(next));
                    if plain.view().table(TABLE).unwrap().contains(id).unwrap() {
                        store.delete(TABLE, id).unwrap();
                        plain.delete(TABLE, id).unwrap();
                    }
                }
                7 => {
                    let low = random.below(next.max(1)).cast_signed();
                    let ids = |store: &Store| {
                        let index = store.view().index(INDEXES[0]).unwrap();
                        let from = Bound::Included(ValueRef::Int64(low));
                        let rows = index.range(&[], from, Bound::Unbounded);
                        rows.map(|row| row.unwrap().id().0).collect::<Vec<_>>()
                    };
                    assert_eq!(ids(&store), ids(&plain));
                }
                8 => {
                    store.settle().unwrap();
                    store.commit();
                    plain.commit();
                }
                _ => store.settle().unwrap(),
            }
        }
        assert_same(&store, &plain);
    }
}
