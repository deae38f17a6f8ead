//! Typed lookups, counts and cursors, against sorted maps.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::{Bound, RangeBounds};

use annals::typed::{Cursor, IndexRows};
use annals::{Error, ErrorKind, FieldNumber, IndexNumber, Timestamp, ValueRef};

use super::generated_for_tests::indexes::{self, reading};

const STATIONS: [&str; 5] = ["", "A", "Ab", "B\0", "é"];
const SENSORS: [Option<&str>; 5] = [None, Some(""), Some("t"), Some("t1"), Some("u")];
const TIMES: [i64; 6] = [i64::MIN, -1, 0, 1, 1_600_000_000_000_000, i64::MAX];
const VALUES: [Option<f64>; 11] = [
    None,
    Some(f64::NEG_INFINITY),
    Some(-1.5),
    Some(-5e-324),
    Some(-0.0),
    Some(0.0),
    Some(5e-324),
    Some(1e300),
    Some(f64::INFINITY),
    Some(f64::NAN),
    Some(-f64::NAN),
];

/// A number in the order of an index: null, numbers, one NaN.
#[derive(Clone, Copy, Debug)]
struct Sorted(Option<f64>);

impl Ord for Sorted {
    fn cmp(&self, other: &Self) -> Ordering {
        let class = |number: Option<f64>| number.map(f64::is_nan);
        let both = self.0.zip(other.0).and_then(|(a, b)| a.partial_cmp(&b));
        class(self.0).cmp(&class(other.0)).then(both.unwrap_or(Ordering::Equal))
    }
}

impl PartialOrd for Sorted {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Sorted {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Sorted {}

type Place = (String, Option<String>, i64);

/// What the indexes hold: keys, each with an id, in order.
#[derive(Default)]
struct Model {
    places: BTreeMap<(Place, u64), ()>,
    values: BTreeMap<(Sorted, u64), ()>,
    times: BTreeMap<(i64, u64), ()>,
}

/// A small generator of random numbers (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % below as u64).unwrap()
    }
}

fn filled(random: &mut Random) -> (tempfile::TempDir, indexes::Database, Model) {
    let directory = tempfile::tempdir().unwrap();
    let db = indexes::Database::open(directory.path().join("indexes.annals")).unwrap();
    let mut model = Model::default();
    db.write(|tx| {
        for code in 0..300 {
            let (station, sensor) = (STATIONS[random.next(5)], SENSORS[random.next(5)]);
            let (taken, value) = (TIMES[random.next(6)], VALUES[random.next(11)]);
            let code = (code % 3 > 0).then_some(code);
            let id =
                tx.insert(reading::New { station, sensor, taken: Timestamp(taken), value, code })?;
            if random.next(4) == 0 {
                tx.delete(id)?;
                continue;
            }
            let place = (station.to_owned(), sensor.map(str::to_owned), taken);
            model.places.insert((place, id.as_u64()), ());
            model.values.insert((Sorted(value), id.as_u64()), ());
            model.times.insert((taken, id.as_u64()), ());
        }
        Ok(())
    })
    .unwrap();
    (directory, db, model)
}

/// Compares what a lookup finds with the ids that it should find: walked from both ends, and counted.
fn same<'a>(find: impl Fn() -> IndexRows<'a, reading::Kind>, expected: &[u64], what: &dyn Debug) {
    let ids = |rows: &mut dyn Iterator<Item = annals::Result<reading::Row<'a>>>| -> Vec<u64> {
        rows.map(|row| row.unwrap().id().as_u64()).collect()
    };
    assert_eq!(ids(&mut find()), expected, "{what:?}");
    assert_eq!(
        find().ids().map(|id| id.unwrap().as_u64()).collect::<Vec<_>>(),
        expected,
        "{what:?}, ids"
    );
    let mut backward = ids(&mut find().rev());
    backward.reverse();
    assert_eq!(backward, expected, "{what:?}, backward");
    let mut backward: Vec<_> = find().ids().rev().map(|id| id.unwrap().as_u64()).collect();
    backward.reverse();
    assert_eq!(backward, expected, "{what:?}, ids backward");
    assert_eq!(find().count(), expected.len(), "{what:?}, counted");
    assert_eq!(find().left().unwrap(), expected.len() as u64, "{what:?}, left");
    let middle = expected.len() / 2;
    assert_eq!(ids(&mut find().skip(middle)), expected[middle..], "{what:?}, skipped");
    assert_eq!(ids(&mut find().rev().skip(middle)).len(), expected.len() - middle, "{what:?}");
    if let Some(&id) = expected.get(middle) {
        let id = reading::Id::from_u64(id);
        assert_eq!(ids(&mut find().after(id)), expected[middle + 1..], "{what:?}, after a row");
        assert_eq!(ids(&mut find().before(id)), expected[..middle], "{what:?}, before a row");
    }
    let last = find().last().map(|row| row.unwrap().id().as_u64());
    assert_eq!(last, expected.last().copied(), "{what:?}, the last");
    let (least, most) = find().size_hint();
    assert!(least <= expected.len() && most.unwrap() >= expected.len(), "{what:?}");
}

/// Returns all bounds that can be made of some values.
fn bounds<T: Copy>(values: &[T]) -> Vec<(Bound<T>, Bound<T>)> {
    let kinds = |&value: &T| [Bound::Included(value), Bound::Excluded(value)];
    let ends: Vec<_> = values.iter().flat_map(kinds).chain([Bound::Unbounded]).collect();
    ends.iter().flat_map(|&low| ends.iter().map(move |&high| (low, high))).collect()
}

#[test]
fn floats_are_found_in_order_with_null_first_and_one_nan_last() {
    let (_directory, db, model) = filled(&mut Random(7));
    let now = db.read();
    let index = now.reading().by_value();
    let ids = |test: &dyn Fn(Option<f64>) -> bool| -> Vec<u64> {
        model.values.keys().filter(|(key, _)| test(key.0)).map(|&(_, id)| id).collect()
    };
    same(|| index.iter(), &ids(&|_| true), &"all");
    same(|| index.nulls(), &ids(&|value| value.is_none()), &"null");
    same(|| index.with_value(None), &ids(&|value| value.is_none()), &"null, asked for");
    let numbers: Vec<_> = VALUES.iter().copied().flatten().collect();
    for bounds in bounds(&numbers) {
        let sorted = (bounds.0.map(|v| Sorted(Some(v))), bounds.1.map(|v| Sorted(Some(v))));
        let inside = |value: Option<f64>| value.is_some() && sorted.contains(&Sorted(value));
        same(|| index.range(bounds), &ids(&inside), &bounds);
    }
    for value in VALUES {
        same(|| index.with_value(value), &ids(&|other| Sorted(other) == Sorted(value)), &value);
        let before = ids(&|other| Sorted(other) < Sorted(value));
        assert_eq!(
            index.cursor_at(value).unwrap().rank().unwrap(),
            before.len() as u64,
            "{value:?}"
        );
    }
}

#[test]
fn timestamps_are_found_in_order() {
    let (_directory, db, model) = filled(&mut Random(11));
    let now = db.read();
    let index = now.reading().by_taken();
    for bounds in bounds(&TIMES) {
        let inside = model.times.keys().filter(|(taken, _)| bounds.contains(taken));
        let expected: Vec<_> = inside.map(|&(_, id)| id).collect();
        let times = (bounds.0.map(Timestamp), bounds.1.map(Timestamp));
        same(|| index.range(times), &expected, &bounds);
    }
}

#[test]
fn fields_behind_leading_ones_have_prefixes_ranges_and_nulls() {
    let (_directory, db, model) = filled(&mut Random(13));
    let now = db.read();
    let index = now.reading().by_place();
    let ids = |test: &dyn Fn(&Place) -> bool| -> Vec<u64> {
        model.places.keys().filter(|(place, _)| test(place)).map(|&(_, id)| id).collect()
    };
    let texts: Vec<_> = SENSORS.iter().copied().flatten().collect();
    for station in STATIONS {
        let here = |place: &Place| place.0 == station;
        same(|| index.with_station(station), &ids(&here), &station);
        let null = ids(&|place| here(place) && place.1.is_none());
        same(|| index.nulls_with_station(station), &null, &station);
        for prefix in ["", "t", "t1", "u", "x"] {
            let begins = |place: &Place| place.1.as_ref().is_some_and(|s| s.starts_with(prefix));
            let expected = ids(&|place| here(place) && begins(place));
            same(|| index.prefix_with_station(station, prefix), &expected, &(station, prefix));
        }
        for bounds in bounds(&texts) {
            let inside = |place: &Place| {
                place
                    .1
                    .as_deref()
                    .is_some_and(|sensor| RangeBounds::<&str>::contains(&bounds, &sensor))
            };
            let expected = ids(&|place| here(place) && inside(place));
            same(|| index.range_with_station(station, bounds), &expected, &(station, bounds));
        }
        for sensor in SENSORS {
            let low = TIMES[2];
            let expected =
                ids(&|place| here(place) && place.1.as_deref() == sensor && place.2 > low);
            let times = (Bound::Excluded(Timestamp(low)), Bound::Unbounded);
            let find = || index.range_with_station_and_sensor(station, sensor, times);
            same(find, &expected, &(station, sensor));
        }
    }
}

#[test]
fn a_cursor_begins_at_any_leading_fields_and_goes_both_ways() {
    let mut random = Random(17);
    let (_directory, db, model) = filled(&mut random);
    let now = db.read();
    let index = now.reading().by_place();
    let keys: Vec<_> = model.places.keys().cloned().collect();
    let rank = |test: &dyn Fn(&Place) -> bool| keys.iter().filter(|(key, _)| test(key)).count();
    for station in STATIONS {
        let before = rank(&|place| &*place.0 < station);
        walk(index.cursor_at_station(station).unwrap(), &keys, before, &mut random);
        for sensor in SENSORS {
            let before = rank(&|place| (&*place.0, place.1.as_deref()) < (station, sensor));
            let cursor = index.cursor_at_station_and_sensor(station, sensor).unwrap();
            walk(cursor, &keys, before, &mut random);
            let mut behind = index.cursor();
            behind.seek_behind(&[station.into(), sensor.into()]).unwrap();
            let not_behind = rank(&|place| (&*place.0, place.1.as_deref()) <= (station, sensor));
            walk(behind, &keys, not_behind, &mut random);
            let taken = TIMES[random.next(6)];
            let before =
                rank(&|place| (&*place.0, place.1.as_deref(), place.2) < (station, sensor, taken));
            let cursor = index.cursor_at(station, sensor, Timestamp(taken)).unwrap();
            walk(cursor, &keys, before, &mut random);
        }
    }
    for (at, (_, id)) in keys.iter().enumerate() {
        let mut cursor = index.cursor();
        cursor.seek_row(reading::Id::from_u64(*id)).unwrap();
        assert_eq!(cursor.rank().unwrap(), at as u64, "before the row itself");
        let nth = index.nth(at as u64).unwrap().unwrap();
        assert_eq!(nth.id().as_u64(), *id, "the row at its place");
    }
    assert!(index.nth(keys.len() as u64).unwrap().is_none(), "behind the last");
    let mut cursor = index.cursor();
    cursor.seek_last();
    walk(cursor.clone(), &keys, keys.len(), &mut random);
    let missing = cursor.seek_row(reading::Id::from_u64(1 << 40)).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound, "there is no such row");
    assert_eq!(cursor.rank().unwrap(), keys.len() as u64, "and the cursor stays");
    cursor.seek_first();
    walk(cursor, &keys, 0, &mut random);
}

fn walk(
    mut cursor: Cursor<'_, reading::Kind>,
    keys: &[(Place, u64)],
    mut gap: usize,
    random: &mut Random,
) {
    let id =
        |row: Option<annals::Result<reading::Row<'_>>>| row.map(|row| row.unwrap().id().as_u64());
    let key = |at: usize| keys.get(at).map(|key| key.1);
    let ahead = random.next(100);
    for _ in 0..20 {
        assert_eq!(cursor.rank().unwrap(), gap as u64);
        assert_eq!(
            (id(cursor.peek_prev()), id(cursor.peek_next())),
            (key(gap.wrapping_sub(1)), key(gap))
        );
        if random.next(100) < ahead {
            assert_eq!(id(cursor.next()), key(gap));
            gap = (gap + 1).min(keys.len());
        } else {
            assert_eq!(id(cursor.prev()), key(gap.wrapping_sub(1)));
            gap = gap.saturating_sub(1);
        }
    }
}

#[test]
fn groups_have_the_first_row_of_each_key_and_their_number() {
    let (_directory, db, model) = filled(&mut Random(29));
    let now = db.read();
    let index = now.reading().by_place();
    for fields in 0..=3 {
        let key = |(station, sensor, taken): &Place| {
            let sensor = (fields > 1).then(|| sensor.clone());
            ((fields > 0).then(|| station.clone()), sensor, (fields > 2).then_some(*taken))
        };
        let mut expected = BTreeMap::new();
        for (place, id) in model.places.keys() {
            expected.entry(key(place)).or_insert((*id, 0)).1 += 1;
        }
        let groups = index.groups(fields).map(|(row, rows)| (row.id().as_u64(), rows));
        let groups: Vec<_> = groups.collect().unwrap();
        assert_eq!(groups, expected.into_values().collect::<Vec<_>>());
    }
    let mut refused = index.groups(4).into_iter();
    assert_eq!(refused.next().unwrap().unwrap_err().kind(), ErrorKind::Invalid);
    assert!(refused.next().is_none(), "an error is the end");
    let nulls = now.reading().by_value().groups(1).first().unwrap().unwrap().1;
    assert_eq!(nulls, now.reading().by_value().nulls().count() as u64);
    let nothing = index.iter().after(reading::Id::from_u64(1 << 40)).next().unwrap();
    assert_eq!(nothing.unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn nulls_of_a_unique_index_are_all_there() {
    let (_directory, db, _) = filled(&mut Random(19));
    let now = db.read();
    let index = now.reading().by_code();
    let nulls = now.reading().iter().filter(|row| row.as_ref().unwrap().code().is_none()).count();
    assert!(nulls > 20, "{nulls}");
    assert_eq!(index.nulls().count(), nulls, "null is never equal");
    assert_eq!(index.range(..).count() as u64, index.len() - nulls as u64, "null is in no bounds");
    let (low, dynamic) = (ValueRef::Null, now.reading().by_code().as_dynamic());
    let find = |low, high| dynamic.range(&[], low, high).count();
    let all = usize::try_from(index.len()).unwrap();
    assert_eq!(find(Bound::Included(low), Bound::Unbounded), all, "null is asked for");
    assert_eq!(find(Bound::Unbounded, Bound::Included(low)), nulls, "as the greatest");
    assert_eq!(find(Bound::Unbounded, Bound::Excluded(low)), 0, "nothing is less than null");
    assert_eq!(find(Bound::Excluded(low), Bound::Unbounded), all - nulls, "all but null");
}

#[test]
fn a_transaction_counts_its_own_rows_and_rolls_them_back() {
    let (_directory, db, model) = filled(&mut Random(23));
    let count = model.values.len() as u64;
    let mut tx = db.begin().unwrap();
    for taken in 0..2000 {
        tx.insert(reading::New {
            station: "new",
            sensor: None,
            taken: Timestamp(taken),
            value: None,
            code: None,
        })
        .unwrap();
    }
    assert_eq!(tx.reading().by_place().with_station("new").count(), 2000);
    assert_eq!(tx.reading().by_place().len(), count + 2000);
    assert_eq!(db.read().reading().by_place().with_station("new").count(), 0, "not for others");
    tx.rollback().unwrap();
    assert_eq!(db.read().reading().by_place().len(), count, "gone");
    db.read().as_dynamic().check().unwrap();
}

#[test]
fn rows_are_found_from_any_id_in_both_directions() {
    let (_directory, db, model) = filled(&mut Random(29));
    let now = db.read();
    let mut ids: Vec<_> = model.values.keys().map(|&(_, id)| id).collect();
    ids.sort_unstable();
    for bounds in bounds(&[0, 1, 17, 150, 299, 300, u64::MAX]) {
        let expected: Vec<_> = ids.iter().copied().filter(|id| bounds.contains(id)).collect();
        let range = || {
            now.reading()
                .range((bounds.0.map(reading::Id::from_u64), bounds.1.map(reading::Id::from_u64)))
        };
        assert!(
            range().map(|row| row.unwrap().id().as_u64()).eq(expected.iter().copied()),
            "{bounds:?}"
        );
        let backward = range().rev().map(|row| row.unwrap().id().as_u64());
        assert!(backward.eq(expected.iter().rev().copied()), "{bounds:?}");
        assert_eq!(range().count(), expected.len(), "{bounds:?}");
        let last = range().last().map(|row| row.unwrap().id().as_u64());
        assert_eq!(last, expected.last().copied(), "{bounds:?}");
    }
}

#[test]
fn values_that_do_not_fit_are_an_error_wherever_they_are_asked_for() {
    let (_directory, db, model) = filled(&mut Random(31));
    let now = db.read();
    let index = now.as_dynamic().index(IndexNumber(0)).unwrap();
    let wrong = [ValueRef::Int32(4)];
    let kind = |error: Error| error.kind();
    assert_eq!(index.equal(&wrong).left().map_err(kind), Err(ErrorKind::Invalid));
    assert_eq!(
        index.equal(&wrong).nth(3).unwrap().map(|_| ()).map_err(kind),
        Err(ErrorKind::Invalid)
    );
    assert_eq!(index.equal(&wrong).size_hint(), (1, Some(1)), "the error");
    let mut ids = index.equal(&wrong).ids();
    assert_eq!(ids.next().unwrap().map_err(kind), Err(ErrorKind::Invalid));
    assert!(ids.next().is_none());
    let mut ids = index.equal(&wrong).ids();
    assert_eq!(ids.next_back().unwrap().map_err(kind), Err(ErrorKind::Invalid));
    assert!(ids.next().is_none());
    assert_eq!(index.rank(&wrong).map_err(kind), Err(ErrorKind::Invalid));
    let mut cursor = index.cursor();
    cursor.seek_rank(5).unwrap();
    assert_eq!(cursor.seek(&wrong).map_err(kind), Err(ErrorKind::Invalid));
    assert_eq!(cursor.seek_behind(&wrong).map_err(kind), Err(ErrorKind::Invalid));
    assert_eq!(cursor.rank().unwrap(), 5, "the cursor stays");
    let first = cursor.next().unwrap().unwrap();
    let station = first.read::<&str>(FieldNumber(0)).to_owned();
    let before = model.places.keys().filter(|((other, ..), _)| *other < station).count();
    assert_eq!(index.rank(&[ValueRef::String(&station)]).unwrap(), before as u64);
    assert_eq!(cursor.index().len(), model.places.len() as u64);
}

/// Looks for many keys at once, and for each alone: those that are there and others, in any number.
fn look_for_many(index: annals::store::IndexView<'_>, random: &mut Random) {
    for count in [0, 1, 15, 16, 17, 100] {
        let key = |_| {
            let station = ["", "A", "Ab", "B\0", "é", "none", "B"][random.next(7)];
            let (sensor, taken) = (SENSORS[random.next(5)], TIMES[random.next(6)]);
            let key = [station.into(), sensor.into(), ValueRef::Timestamp(taken)];
            key[..random.next(4)].to_vec()
        };
        let keys: Vec<Vec<ValueRef<'_>>> = (0..count).map(key).collect();
        let id = |row: annals::Result<Option<annals::Row<'_>>>| row.unwrap().map(|row| row.id());
        let alone: Vec<_> = keys.iter().map(|key| id(index.first(key))).collect();
        let first = |key: &Vec<ValueRef<'_>>| index.equal(key).next().map(|row| row.unwrap().id());
        assert_eq!(alone, keys.iter().map(first).collect::<Vec<_>>());
        assert_eq!(alone, index.first_of_each(&keys).map(id).collect::<Vec<_>>());
    }
    let keys = [ValueRef::String("A"), ValueRef::Bool(true), ValueRef::String("no")].map(|v| [v]);
    let found: Vec<_> = index.first_of_each(keys).collect();
    assert!(matches!((&found[0], &found[2]), (Ok(Some(_)), Ok(None))));
    assert_eq!(found[1].as_ref().unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn many_keys_are_found_as_each_alone() {
    let mut random = Random(0x0005_eed0_f42d);
    let (directory, db, _) = filled(&mut random);
    look_for_many(db.read().as_dynamic().index(IndexNumber(0)).unwrap(), &mut random);
    db.close().unwrap();
    let db = indexes::Database::open(directory.path().join("indexes.annals")).unwrap();
    look_for_many(db.read().as_dynamic().index(IndexNumber(0)).unwrap(), &mut random);
}
