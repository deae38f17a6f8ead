//! Queries over rows, against std's collections.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use annals::{Decimal, Error, ErrorKind, Query, Timestamp};

use super::generated_for_tests::indexes::{self, reading};

const STATIONS: [&str; 4] = ["a", "b", "c", "d"];

/// The station, time and code of a row.
type Values = (&'static str, i64, Option<i32>);

/// Makes a database of 500 rows, and the values of each.
fn filled() -> (indexes::Database, Vec<Values>) {
    let db = indexes::Database::in_memory().unwrap();
    let rows: Vec<_> = (0..500_i32)
        .zip(STATIONS.into_iter().cycle())
        .map(|(n, station)| (station, i64::from(n * 7919 % 101), (n % 3 > 0).then_some(n)))
        .collect();
    db.write(|tx| {
        for &(station, taken, code) in &rows {
            let taken = Timestamp(taken);
            tx.insert(reading::New { station, taken, code, ..Default::default() })?;
        }
        Ok(())
    })
    .unwrap();
    (db, rows)
}

#[test]
fn rows_are_filtered_mapped_sorted_and_counted() {
    let (db, rows) = filled();
    let now = db.read();
    let late = || now.reading().query().filter(|row| row.taken().0 > 50);
    let expected: Vec<_> = rows.iter().filter(|row| row.1 > 50).collect();
    assert_eq!(late().count().unwrap(), expected.len() as u64);
    assert_eq!(
        late().sum(|row| row.taken().0).unwrap(),
        expected.iter().map(|row| row.1).sum::<i64>()
    );
    let taken = || late().map(|row| row.taken().0);
    assert_eq!(taken().max().unwrap(), expected.iter().map(|row| row.1).max());
    assert_eq!(taken().min().unwrap(), expected.iter().map(|row| row.1).min());
    assert_eq!(taken().first().unwrap(), Some(expected[0].1));
    assert_eq!(taken().filter(|_| false).max().unwrap(), None);
    let sorted: Vec<_> =
        late().sort_by_key(|row| Reverse(row.taken())).map(|row| row.code()).collect().unwrap();
    let mut by_hand = expected.clone();
    by_hand.sort_by_key(|row| Reverse(row.1));
    assert_eq!(
        sorted,
        by_hand.iter().map(|row| row.2).collect::<Vec<_>>(),
        "equal ones stay in order"
    );
    for n in [0, 1, 10, 100, 1000, usize::MAX] {
        let top: Vec<_> =
            late().top(n, reading::Row::taken).map(|row| row.code()).collect().unwrap();
        assert_eq!(top, sorted.iter().copied().take(n).collect::<Vec<_>>(), "the first {n}");
    }
    let page: Vec<_> =
        now.reading().query().rev().skip(20).take(3).map(|row| row.taken().0).collect().unwrap();
    assert_eq!(page, rows.iter().rev().skip(20).take(3).map(|row| row.1).collect::<Vec<_>>());
    let stations: Vec<_> = now
        .reading()
        .by_place()
        .query()
        .distinct_by(|row| row.station().to_owned())
        .map(|row| row.station().to_owned())
        .collect()
        .unwrap();
    assert_eq!(
        stations,
        STATIONS.into_iter().filter(|s| rows.iter().any(|row| row.0 == *s)).collect::<Vec<_>>()
    );
}

#[test]
fn groups_are_counted_summed_and_folded() {
    let (db, rows) = filled();
    let now = db.read();
    let grouped = || now.reading().query().group_by(|row| row.station().to_owned());
    let mut expected: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for row in &rows {
        expected.entry(row.0.to_owned()).or_default().push(row.1);
    }
    let counts: BTreeMap<_, _> = grouped().count().collect().unwrap();
    assert_eq!(counts, expected.iter().map(|(k, v)| (k.clone(), v.len() as u64)).collect());
    let sums: BTreeMap<_, i64> = grouped().sum(|row| row.taken().0).collect().unwrap();
    assert_eq!(sums, expected.iter().map(|(k, v)| (k.clone(), v.iter().sum())).collect());
    let lists: BTreeMap<_, _> = grouped()
        .fold(Vec::new, |mut list, row| {
            list.push(row.taken().0);
            list
        })
        .collect()
        .unwrap();
    assert_eq!(lists, expected);
    let first: Vec<_> = grouped().count().map(|(station, _)| station).collect().unwrap();
    assert_eq!(first[0], rows[0].0, "in the order in which they first occur");
}

#[test]
fn sums_are_exact_or_errors() {
    let halves =
        || Query::over(["0.5", "-1.25", "7"].map(|n| Ok(n.parse::<Decimal<2>>().unwrap())));
    assert_eq!(halves().sum(|n| *n).unwrap().to_string(), "6.25");
    let full = || Query::over([Ok(1), Ok(i64::MAX)]);
    assert_eq!(full().sum(|n| *n).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(full().sum(|n| i128::from(*n)).unwrap(), 1 << 63);
    let grouped = full().group_by(|_| ()).sum(|n| *n).first();
    assert_eq!(grouped.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(full().sum(|_| 0.5_f64).unwrap().to_bits(), 1.0_f64.to_bits());
}

#[test]
fn joins_pair_rows_and_leave_out_those_without() {
    let (db, rows) = filled();
    let now = db.read();
    let doubled = |code: Option<i32>| now.reading().by_code().get(code.map(|code| code * 2));
    let pairs: Vec<_> = (now.reading().query())
        .join(|row| if row.code().is_some() { doubled(row.code()) } else { Ok(None) })
        .map(|(one, two)| (one.code().unwrap(), two.code().unwrap()))
        .collect()
        .unwrap();
    let expected = rows.iter().filter_map(|row| row.2).filter(|n| n * 2 < 500);
    assert_eq!(pairs, expected.map(|n| (n, n * 2)).collect::<Vec<_>>());
    let here = now.reading().by_place();
    let pairs =
        Query::over(STATIONS.map(Ok)).join_many(|station| here.with_station(station)).count();
    assert_eq!(pairs.unwrap(), rows.len() as u64);
}

#[test]
fn an_error_comes_out_of_the_last_step() {
    let items = || Query::over([Ok(1), Err(Error::invalid("no")), Ok(3)]);
    assert!(items().count().is_err());
    assert!(items().map(|n| n * 2).filter(|n| *n > 5).collect::<Vec<_>>().is_err());
    assert!(items().sort_by_key(|n| *n).first().is_err(), "instead of the values");
    assert!(items().top(1, |n| *n).first().is_err());
    assert!(items().group_by(|n| *n).count().first().is_err());
    assert!(items().max().is_err());
    assert_eq!(items().first().unwrap(), Some(1), "what is before it can be read");
    let joined = items().join_many(|n| [Ok(*n), Err(Error::invalid("inner")), Ok(7)]);
    let kinds: Vec<_> = joined.into_iter().map(|pair| pair.is_ok()).collect();
    assert_eq!(kinds, [true, false, true, false, true, false, true]);
    assert!(Query::over([Ok(1)]).try_map(|_| Err::<(), _>(Error::invalid("no"))).count().is_err());
}

#[test]
fn values_are_asked_about_as_an_iterator_is() {
    let (db, rows) = filled();
    let now = db.read();
    let taken = || now.reading().query().map(|row| row.taken().0);
    let mut seen = Vec::new();
    taken().for_each(|n| seen.push(n)).unwrap();
    assert_eq!(seen, rows.iter().map(|row| row.1).collect::<Vec<_>>());
    for limit in [-1, 50, 100, 101] {
        assert_eq!(taken().any(|n| *n > limit).unwrap(), seen.iter().any(|n| *n > limit));
        assert_eq!(taken().all(|n| *n <= limit).unwrap(), seen.iter().all(|n| *n <= limit));
    }
    assert_eq!(taken().last().unwrap(), seen.last().copied());
    let code = || now.reading().query().map(|row| (row.taken().0, row.id()));
    let by_hand =
        || rows.iter().zip(now.reading().query()).map(|(row, at)| (row.1, at.unwrap().id()));
    let first = |a: &(i64, _), b: &(i64, _)| a.0.cmp(&b.0);
    assert_eq!(code().min_by(first).unwrap(), by_hand().min_by(first), "the first of equal ones");
    assert_eq!(code().max_by(first).unwrap(), by_hand().max_by(first), "the last of equal ones");
    let mean = seen.iter().sum::<i64>() as f64 / seen.len() as f64;
    assert!((taken().average(|n| *n).unwrap().unwrap() - mean).abs() < 1e-9);
    let none = || taken().filter(|_| false);
    assert_eq!((none().average(|n| *n).unwrap(), none().last().unwrap()), (None, None));
    assert!(none().all(|_| false).unwrap() && !none().any(|_| true).unwrap());
    let wrong = || Query::over([Ok(1), Err(Error::invalid("no"))]);
    assert!(wrong().any(|n| *n == 1).unwrap(), "no more is read");
    assert!(wrong().any(|n| *n == 2).is_err() && wrong().all(|n| *n == 1).is_err());
    assert!(wrong().last().is_err() && wrong().for_each(|_| ()).is_err());
}
