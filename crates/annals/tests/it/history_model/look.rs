//! Comparing what a view holds with the model.

use annals::{
    FieldNumber, IndexNumber, RowId, Snapshot, TableNumber, Transaction, Type, Value, ValueRef,
    View,
};

use super::model::{Model, Table};
use super::{blobs, indexes};
use crate::store_model::Random;

/// True if a value is just this one: -0 isn't 0 here.
pub(crate) fn same(found: ValueRef<'_>, expected: &Value) -> bool {
    match (found, expected) {
        (ValueRef::Float32(a), Value::Float32(b)) if !b.is_nan() => a.to_bits() == b.to_bits(),
        (ValueRef::Float64(a), Value::Float64(b)) if !b.is_nan() => a.to_bits() == b.to_bits(),
        _ => found == expected.as_ref(),
    }
}

/// True if two rows have the same values, or neither exists.
pub(crate) fn same_rows(a: Option<&Vec<Value>>, b: Option<&Vec<Value>>) -> bool {
    let all =
        |(a, b): (&Vec<Value>, &Vec<Value>)| a.iter().zip(b).all(|(a, b)| same(a.as_ref(), b));
    a.is_some() == b.is_some() && a.zip(b).is_none_or(all)
}

/// Compares all rows and ids.
pub(super) fn rows(view: &View, model: &Model) {
    let numbers = view.schema().tables().iter().map(|table| table.number.0);
    assert!(numbers.eq(model.tables.keys().copied()), "other tables");
    for (&number, expected) in &model.tables {
        let table = view.table(TableNumber(number)).unwrap();
        let place = || format!("table {number} (`{}`)", expected.name);
        assert_eq!(table.len(), expected.rows.len() as u64, "{}", place());
        assert_eq!(table.next_id(), expected.next_id, "{}", place());
        assert_eq!(table.single().is_ok(), expected.single, "{}", place());
        let mut found = table.rows();
        for (&id, values) in &expected.rows {
            let row = found.next().unwrap().unwrap();
            assert_eq!(row.id().0, id, "{}", place());
            for (field, value) in expected.fields.iter().zip(values) {
                let there = row.value(FieldNumber(field.number));
                let (place, name) = (place(), &field.name);
                assert!(
                    same(there, value),
                    "{place}, row {id}, `{name}`: {there:?}, not {value:?}"
                );
            }
        }
        assert!(found.next().is_none(), "{}: more rows", place());
    }
}

/// Compares the rows of a model through a later one's schema.
pub(super) fn through(view: &View, then: &Model, now: &Model) {
    let tables = view.schema().tables().iter().map(|table| (table.number.0, &table.name));
    assert!(tables.eq(now.tables.iter().map(|(number, table)| (*number, &table.name))));
    for (&number, present) in &now.tables {
        let table = view.table(TableNumber(number)).unwrap();
        let Some(expected) = then.tables.get(&number) else {
            assert!(table.is_empty(), "table {number} wasn't there then");
            continue;
        };
        let mut found = table.rows();
        for (&id, values) in &expected.rows {
            let row = found.next().unwrap().unwrap();
            assert_eq!(row.id().0, id, "table {number}");
            for field in &present.fields {
                let there = row.value(FieldNumber(field.number));
                match expected.place(field.number) {
                    Some(place) => {
                        assert!(same(there, &values[place]), "{number}, {id}: {there:?}")
                    }
                    None => assert!(
                        same(there, &field.default) || matches!(field.ty, Type::Reference(..)),
                        "{number}, {id}: {there:?} is not the default {:?}",
                        field.default
                    ),
                }
            }
        }
        assert!(found.next().is_none(), "table {number} had fewer rows then");
    }
    view.check().unwrap();
}

/// Compares the schema.
pub(super) fn schema(view: &View, model: &Model) {
    let schema = view.schema();
    assert_eq!(schema.lines(), model.lines);
    assert!(schema.commands().iter().eq(&model.commands));
    for (&number, expected) in &model.tables {
        let table = schema.table(TableNumber(number)).unwrap();
        assert_eq!((&table.name, table.single_row), (&expected.name, expected.single));
        assert_eq!(table.history_index, expected.is_indexed);
        assert_eq!(table.fields.len(), expected.fields.len());
        for (field, expected) in table.fields.iter().zip(&expected.fields) {
            let found = (field.number.0, &field.name, field.ty, field.nullable);
            assert_eq!(found, (expected.number, &expected.name, expected.ty, expected.nullable));
            assert!(same(field.default_value().as_ref(), &expected.default));
        }
    }
    let indexes = schema.indexes().iter();
    assert!(indexes.map(|index| index.number.0).eq(model.indexes.keys().copied()));
    for (&number, expected) in &model.indexes {
        let index = schema.index(IndexNumber(number)).unwrap();
        let numbers = |fields: &[annals::FieldNumber]| fields.iter().map(|f| f.0).collect();
        let found = super::model::Index {
            name: index.name.clone(),
            table: index.table.0,
            fields: numbers(&index.fields),
            descending: numbers(&index.descending),
            collated: index.collated.iter().map(|of| (of.field.0, of.locale.clone())).collect(),
            unique: index.unique,
        };
        assert!(found == *expected, "{index:?}");
    }
}

/// Compares everything but blobs.
pub(super) fn view(view: &View, model: &Model, random: &mut Random) {
    schema(view, model);
    rows(view, model);
    for (&number, table) in &model.tables {
        some_rows(view, number, table, random);
    }
    for (&number, index) in &model.indexes {
        indexes::compare(view.index(IndexNumber(number)).unwrap(), index, model, random);
    }
    let dangling = view.dangling_references().unwrap();
    let found: Vec<_> = dangling.iter().map(|d| (d.table.0, d.field.0, d.count)).collect();
    assert_eq!(found, model.dangling());
}

/// Finds rows by id, by ranges of ids, and runs of their values.
fn some_rows(view: &View, number: u32, expected: &Table, random: &mut Random) {
    let table = view.table(TableNumber(number)).unwrap();
    for _ in 0..6 {
        let (a, b) = (random.below(40), random.below(expected.next_id.min(6000) + 2));
        assert_eq!(table.find(RowId(b)).unwrap().is_some(), expected.rows.contains_key(&b));
        assert_eq!(table.contains(RowId(a)).unwrap(), expected.rows.contains_key(&a));
        let (low, high) = (a.min(b), a.max(b));
        let ids: Vec<_> =
            table.range(RowId(low)..RowId(high)).map(|row| row.unwrap().id().0).collect();
        assert!(ids.iter().eq(expected.rows.range(low..high).map(|(id, _)| id)));
        if expected.fields.is_empty() {
            continue;
        }
        let count = random.below(high - low + 1);
        let field = random.pick(&expected.fields);
        let place = expected.place(field.number).unwrap();
        let read = table.vector(FieldNumber(field.number), RowId(low), count);
        assert_eq!(read.is_ok(), expected.there(low, count).is_ok());
        if let Ok(read) = read {
            let values = expected.rows.range(low..low + count).map(|(_, row)| &row[place]);
            assert!(
                read.values()
                    .zip(values)
                    .all(|(found, value)| same(found.unwrap().as_ref(), value))
            );
        }
    }
}

/// Compares everything that a snapshot holds; all blobs wholly if that is asked for.
pub(super) fn snapshot(now: &Snapshot, model: &Model, random: &mut Random, all: bool) {
    view(now, model, random);
    now.check().unwrap();
    blobs::read(&|blob| now.blob(blob), model, random, all);
}

/// Compares everything that a transaction sees.
pub(super) fn transaction(tx: &Transaction<'_>, model: &Model, random: &mut Random) {
    view(tx.view(), model, random);
    blobs::read(&|blob| tx.blob(blob), model, random, false);
    if model.verdict().is_ok() {
        tx.view().check().unwrap();
    }
}

/// True if a field's values have a beginning.
pub(super) const fn has_prefix(ty: Type) -> bool {
    matches!(ty, Type::String | Type::Bytes)
}
