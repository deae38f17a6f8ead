//! Walks over rows whose pages don't stay in memory, and selected fields, against lists of rows.

use std::collections::VecDeque;
use std::sync::Arc;

use annals_schema::{
    Command, Date, FieldNumber, IndexNumber, RowId, TableNumber, Type, Value, ValueRef,
};

use crate::saved::SavedView;
use crate::{Result, Row, Store, TestImage, Uniqueness, View};
use annals_simulated::Rng;

const TABLE: TableNumber = TableNumber(0);
const ROWS: u64 = 3000;

/// The fields: types that are in keys in each way.
const FIELDS: [(Type, bool); 9] = [
    (Type::Int32, false),
    (Type::String, true),
    (Type::Float64, false),
    (Type::Bool, true),
    (Type::UInt16, false),
    (Type::Bytes, false),
    (Type::Timestamp, true),
    (Type::Date, false),
    (Type::Decimal(2), false),
];

/// The fields of the indexes, and those of them in descending order.
const INDEXES: [(&[u32], &[u32]); 5] =
    [(&[0, 1], &[]), (&[1, 0], &[1, 0]), (&[2, 4], &[]), (&[3, 5, 6, 7, 8], &[5, 6]), (&[4], &[4])];

fn value(random: &mut Rng, (ty, nullable): (Type, bool)) -> Value {
    let small = random.index(60);
    let text: String =
        (0..random.index(5)).map(|_| ['a', '\0', 'ÿ', 'b'][random.index(4)]).collect();
    let text = if random.percent(1) { text.repeat(2000) } else { text };
    match ty {
        _ if nullable && random.percent(20) => Value::Null,
        Type::Int32 => Value::Int32(i32::try_from(small).unwrap() - 30),
        Type::Float64 => Value::Float64([0.0, -0.0, f64::NAN, -1.5, 7.25][small % 5]),
        Type::Bool => Value::Bool(small.is_multiple_of(2)),
        Type::UInt16 => Value::UInt16(u16::try_from(small).unwrap() * 1000),
        Type::Bytes => Value::Bytes(text.into_bytes()),
        Type::Timestamp => Value::Timestamp(i64::try_from(small).unwrap() - 30),
        Type::Date => Value::Date(Date(i32::try_from(small).unwrap() - 30)),
        Type::Decimal(scale) => {
            Value::Decimal(annals_schema::AnyDecimal::new(small.cast_signed() as i128 - 30, scale))
        }
        _ => Value::String(text),
    }
}

/// Makes a store in memory, and loads it as a view of an image of which nothing stays in memory.
fn stores(random: &mut Rng) -> (Store, View, Arc<TestImage>, SavedView) {
    let (image, pager) = TestImage::new(200_000, false);
    let mut store = Store::new();
    store.apply_command(&Command::CreateTable { name: "t".to_owned() }).unwrap();
    for (at, (ty, nullable)) in FIELDS.into_iter().enumerate() {
        let (name, table) = (format!("f{at}"), TABLE);
        let field = Command::AddField { table, name, ty, nullable, default: None };
        store.apply_command(&field).unwrap();
    }
    for (at, (fields, descending)) in INDEXES.into_iter().enumerate() {
        let numbers = |fields: &[u32]| fields.iter().copied().map(FieldNumber).collect();
        let (name, table, collated) = (format!("i{at}"), TABLE, Vec::new());
        let (fields, descending) = (numbers(fields), numbers(descending));
        let index =
            Command::CreateIndex { name, table, fields, descending, collated, unique: false };
        store.apply_command(&index).unwrap();
    }
    for id in 0..ROWS {
        let values = FIELDS.map(|field| value(random, field));
        let values: Vec<_> = values.iter().map(Value::as_ref).collect();
        store.insert(TABLE, RowId(id), &values, Uniqueness::AtOnce).unwrap();
    }
    for _ in 0..ROWS / 10 {
        let _ = store.delete(TABLE, RowId(random.below(ROWS)));
    }
    let saved = store.commit().save(&pager, &mut image.keeper(true)).unwrap();
    let view = View::load(&saved.metadata, &saved.roots, &pager).unwrap();
    (store, view, image, saved)
}

type Values = (RowId, Vec<Value>);

fn values(row: Result<Row<'_>>) -> Values {
    let row = row.unwrap();
    let fields = (0..).take(FIELDS.len());
    (row.id(), fields.map(|field| row.value(FieldNumber(field)).to_value()).collect())
}

/// Compares as keys do: a NaN is a NaN.
fn same(found: Option<Values>, expected: Option<Values>) {
    assert_eq!(format!("{found:?}"), format!("{expected:?}"));
}

/// Walks from both ends, and compares with a list.
fn walk<'a, I>(random: &mut Rng, mut rows: I, mut expected: VecDeque<Values>)
where
    I: DoubleEndedIterator<Item = Result<Row<'a>>>,
{
    for _ in 0..4000 {
        match random.below(20) {
            0..12 => same(rows.next().map(values), expected.pop_front()),
            12..18 => same(rows.next_back().map(values), expected.pop_back()),
            way => {
                let n = random.index(30);
                let skipped = n.min(expected.len());
                if way == 18 {
                    expected.drain(..skipped);
                    same(rows.nth(n).map(values), expected.pop_front());
                } else {
                    expected.truncate(expected.len() - skipped);
                    same(rows.nth_back(n).map(values), expected.pop_back());
                }
            }
        }
        let (least, most) = rows.size_hint();
        assert!(least <= expected.len() && most.is_none_or(|most| most >= expected.len()));
        if random.percent(1) && expected.is_empty() {
            break;
        }
    }
}

#[test]
fn rows_that_are_loaded_ahead_are_those_of_the_table() {
    for seed in 0..4 {
        let random = &mut Rng::new(seed);
        let (store, view, ..) = stores(random);
        let (whole, table) = (store.published().table(TABLE).unwrap(), view.table(TABLE).unwrap());
        let all: VecDeque<_> = whole.rows().map(values).collect();
        walk(random, table.rows(), all.clone());
        let from = random.below(ROWS);
        let part = all.iter().filter(|(id, _)| id.0 >= from).cloned().collect();
        walk(random, table.range(RowId(from)..), part);
        for index in (0..).take(INDEXES.len()).map(IndexNumber) {
            let expected: VecDeque<_> =
                store.published().index(index).unwrap().rows().map(values).collect();
            let rows = || view.index(index).unwrap().rows();
            walk(random, rows(), expected.clone());
            // What is left after some rows were given.
            let (mut rows, front, back) = (rows(), random.index(90), random.index(90));
            rows.by_ref().take(front).for_each(drop);
            rows.by_ref().rev().take(back).for_each(drop);
            assert_eq!(rows.left().unwrap(), (expected.len() - front - back) as u64);
            let ids = expected.iter().map(|(id, _)| *id);
            let ids: Vec<_> = ids.skip(front).take(expected.len() - front - back).collect();
            assert_eq!(rows.ids().collect::<Result<Vec<_>>>().unwrap(), ids);
        }
    }
}

/// Takes some fields of rows, after `given` of them were given as a whole.
fn selected(expected: &VecDeque<Values>, fields: &[FieldNumber]) -> Vec<Values> {
    let of = |values: &Vec<Value>| fields.iter().map(|f| values[f.0 as usize].clone()).collect();
    expected.iter().map(|(id, values)| (*id, of(values))).collect()
}

fn collect(mut rows: crate::Selected<'_>) -> Vec<Values> {
    let to_owned =
        |id, values: &[ValueRef<'_>]| (id, values.iter().map(|value| value.to_value()).collect());
    std::iter::from_fn(|| rows.next_with(to_owned)).collect::<Result<_>>().unwrap()
}

#[test]
fn selected_fields_are_those_of_the_rows() {
    let random = &mut Rng::new(7);
    let (store, view, ..) = stores(random);
    let in_memory = store.published();
    for _ in 0..60 {
        let len = random.index(FIELDS.len());
        let fields: Vec<_> =
            (0..len).map(|_| FieldNumber(u32::try_from(random.below(9)).unwrap())).collect();
        for view in [&view, in_memory] {
            let given = random.index(40);
            let mut rows = view.table(TABLE).unwrap().rows();
            rows.by_ref().take(given).for_each(drop);
            let expected = in_memory.table(TABLE).unwrap().rows().skip(given).map(values).collect();
            let expected = selected(&expected, &fields);
            assert_eq!(format!("{:?}", collect(rows.select(&fields))), format!("{expected:?}"));
            for index in (0..).take(INDEXES.len()).map(IndexNumber) {
                let expected = in_memory.index(index).unwrap().rows().skip(given).map(values);
                let mut expected = selected(&expected.collect(), &fields);
                let mut rows = view.index(index).unwrap().rows();
                rows.by_ref().take(given).for_each(drop);
                let mut rows = rows.select(&fields);
                if random.percent(50) {
                    (rows, expected) = (rows.rev(), expected.into_iter().rev().collect());
                }
                assert_eq!(
                    format!("{:?}", collect(rows)),
                    format!("{expected:?}"),
                    "{index:?} {fields:?}"
                );
            }
        }
    }
}

#[test]
fn rows_that_are_read_for_some_fields_have_these() {
    let random = &mut Rng::new(6);
    let (store, view, ..) = stores(random);
    let fields = [FieldNumber(1), FieldNumber(4)];
    let some = |row: Result<Row<'_>>| {
        let row = row.unwrap();
        (row.id(), fields.map(|field| row.value(field).to_value()))
    };
    let all = store.published();
    let whole: Vec<_> = all.table(TABLE).unwrap().rows().map(some).collect();
    for view in [&view, all] {
        let rows = view.table(TABLE).unwrap().rows().reading(&fields);
        assert_eq!(rows.map(some).collect::<Vec<_>>(), whole);
        for index in (0..).take(INDEXES.len()).map(IndexNumber) {
            let expected: Vec<_> = all.index(index).unwrap().rows().rev().map(some).collect();
            let rows = view.index(index).unwrap().rows().reading(&fields).rev();
            assert_eq!(rows.map(some).collect::<Vec<_>>(), expected);
        }
    }
}

#[test]
fn a_field_in_the_key_needs_no_row() {
    let random = &mut Rng::new(8);
    let (_, _, image, saved) = stores(random);
    let loads = |fields: &[u32], index| {
        let pager = image.pager(1 << 20, false);
        let view = View::load(&saved.metadata, &saved.roots, &pager).unwrap();
        let fields: Vec<_> = fields.iter().copied().map(FieldNumber).collect();
        collect(view.index(IndexNumber(index)).unwrap().rows().select(&fields));
        pager.loaded()
    };
    let keys = loads(&[0], 0);
    assert_eq!(loads(&[1, 0], 0), keys, "all that was read are nodes of the index");
    assert!(loads(&[0, 2], 0) > keys, "a field that isn't in it is read");
}

#[test]
fn a_page_that_cannot_be_loaded_is_an_error_where_it_is() {
    let random = &mut Rng::new(9);
    let (store, view, image, _) = stores(random);
    let fields = [FieldNumber(8), FieldNumber(1)];
    for index in [None, Some(IndexNumber(4))] {
        let rows = || match index {
            None => view.table(TABLE).unwrap().rows().select(&fields),
            Some(index) => view.index(index).unwrap().rows().select(&fields),
        };
        let mut begun = rows();
        assert!(begun.next_with(|_, _| ()).unwrap().is_ok());
        image.set_broken(true);
        let rest = std::iter::from_fn(|| begun.next_with(|_, _| ())).collect::<Vec<_>>();
        assert!(rest.iter().rev().skip(1).all(Result::is_ok), "nothing follows an error");
        assert!(rest.last().unwrap().is_err());
        image.set_broken(false);
    }
    let all = store.published().table(TABLE).unwrap().len();
    assert_eq!(view.table(TABLE).unwrap().rows().count() as u64, all);
}
