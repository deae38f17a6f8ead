//! An erased value is null, also in a field that may not be null, and breaks no question about other rows.

use annals::{FieldNumber, RowId, TableNumber, ValueRef};
use annals_event::Event;
use std::ops::Bound;

use crate::shop::{build, open, shop, text};

const PERSON: TableNumber = TableNumber(1);
const VISIT: TableNumber = TableNumber(2);

/// Erases a text with an index, and a date that is the second field of one.
fn build_erased() -> shop::Database {
    let db = build(5, 20, 30);
    let mut tx = (*db).begin().unwrap();
    for (table, id, field) in [(PERSON, 1, 0), (PERSON, 2, 0), (VISIT, 3, 2)] {
        let (id, field) = (RowId(id), FieldNumber(field));
        tx.apply_erased(&Event::Update { table, id, field, value: ValueRef::Null }).unwrap();
    }
    tx.commit().unwrap();
    db
}

#[test]
fn an_index_finds_the_others_and_the_erased_ones() {
    let db = build_erased();
    let now = db.read().as_dynamic().clone();
    let by_name = now.schema().index_named("person_by_name").unwrap().number;
    let index = now.index(by_name).unwrap();
    let all = index.len();
    let ids = |rows: annals::store::IndexRows<'_>| {
        rows.map(|row| row.unwrap().id().0).collect::<Vec<_>>()
    };
    assert_eq!(ids(index.equal(&[ValueRef::Null])), [1, 2]);
    let zz = || ValueRef::String("zzz");
    let below = ids(index.range(&[], Bound::Unbounded, Bound::Excluded(zz())));
    assert!(!below.contains(&1) && !below.contains(&2) && below.len() > 5, "{below:?}");
    let groups: Vec<_> = index.groups(1).map(|group| group.unwrap().1).collect();
    assert_eq!(groups.iter().sum::<u64>(), all);
    assert_eq!(groups[0], 2, "null is first");
    // A field without erased values still takes no null.
    let by_city = now.schema().index_named("city_by_name").unwrap().number;
    let unerased = now.index(by_city).unwrap();
    assert!(unerased.equal(&[ValueRef::Null]).next().unwrap().is_err());
}

#[test]
fn sql_answers_now_and_in_the_past() {
    let db = build_erased();
    let now = db.read().txid().0;
    let mut sql = open(&db);
    for table in
        ["person".to_owned(), format!("person_at({now})"), format!("person_as_it_was({now})")]
    {
        assert_eq!(
            text(&mut sql, &format!("SELECT id FROM {table} WHERE name IS NULL ORDER BY id")),
            "1\n2\n"
        );
        for condition in [
            "name < 'zzz'",
            "name >= ''",
            "name LIKE 'a%'",
            "name IN ('Ada', 'ada', NULL)",
            "name = 'Ada'",
        ] {
            let with =
                text(&mut sql, &format!("SELECT id FROM {table} WHERE {condition} ORDER BY id"));
            let without =
                text(&mut sql, &format!("SELECT id FROM {table} WHERE +{condition} ORDER BY id"));
            assert_eq!(with, without, "{table}: {condition}");
            assert!(!with.starts_with("error"), "{with}");
        }
    }
    let mut pairs = |town: &str| {
        let on = format!("{town} = v.town AND w.day <= v.day");
        text(&mut sql, &format!("SELECT count(*) FROM visit v JOIN visit w ON {on}"))
    };
    let found = pairs("w.town");
    assert!(!found.starts_with("error") && found != "0\n", "{found}");
    assert_eq!(found, pairs("+w.town"));
}
