//! Times and days as those of other crates: the features `jiff` and `chrono`.

use std::fmt::{Debug, Display};

use annals_schema::{Date, TimeRangeError, Timestamp};
use chrono::{DateTime, Datelike as _, NaiveDate, Utc};
use jiff::civil;

use crate::literal::Random;

const TIMES: usize = 50_000;

/// Numbers of all magnitudes, and those around some limits.
fn numbers(seed: u64, limits: &[i64]) -> impl Iterator<Item = i64> {
    let mut random = Random(seed);
    let any = std::iter::repeat_with(move || random.any());
    let near = |limit: &i64| [limit.saturating_sub(1), *limit, limit.saturating_add(1)];
    let edges: Vec<i64> = limits.iter().chain(&[0, i64::MIN, i64::MAX]).flat_map(near).collect();
    edges.into_iter().chain(any.take(TIMES))
}

/// Checks a conversion there and back, the limits of the other type, and the error outside of them.
fn round_trip<T, F>(value: T, inside: bool, [least, most]: [&str; 2])
where
    T: Copy + Debug + Display + PartialEq + From<F>,
    F: TryFrom<T, Error = TimeRangeError>,
{
    match F::try_from(value) {
        Ok(there) => {
            assert!(inside, "{value} is outside");
            assert_eq!(T::from(there), value);
        }
        Err(error) => {
            let text = error.to_string();
            assert!(!inside, "{value} is inside: {text}");
            for part in [&format!("`{value}` is outside"), least, most] {
                assert!(text.contains(part), "{text} lacks {part}");
            }
        }
    }
}

#[test]
fn every_moment_of_jiff_is_a_timestamp_and_back() {
    let limits = [jiff::Timestamp::MIN, jiff::Timestamp::MAX];
    let [least, most] = limits.map(|limit| limit.as_microsecond());
    let texts = ["-009999-01-02T01:59:59Z", "9999-12-30T22:00:00.999999999Z"];
    for micros in numbers(1, &[least, most]) {
        let inside = (least..=most).contains(&micros);
        round_trip::<Timestamp, jiff::Timestamp>(Timestamp(micros), inside, texts);
    }
    let nanos = limits.map(|limit| limit.as_nanosecond());
    let span = u64::try_from((nanos[1] - nanos[0]) / 1000).unwrap();
    let mut random = Random(2);
    for _ in 0..TIMES {
        let micros = i128::from(random.next() % span);
        let nanos = nanos[0] + micros * 1000 + i128::from(random.next() % 1000);
        let time = jiff::Timestamp::from_nanosecond(nanos).unwrap();
        let floor = i128::from(Timestamp::from(time).0) * 1000;
        assert!((floor..floor + 1000).contains(&nanos), "{time} isn't rounded down");
    }
}

#[test]
fn every_moment_of_chrono_is_a_timestamp_and_back() {
    let limits = [DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC];
    let [least, most] = limits.map(|limit| limit.timestamp_micros());
    let texts = ["-262143-01-01T00:00:00Z", "+262142-12-31T23:59:59.999999999Z"];
    for micros in numbers(3, &[least, most]) {
        let inside = (least..=most).contains(&micros);
        round_trip::<Timestamp, DateTime<Utc>>(Timestamp(micros), inside, texts);
    }
    let mut random = Random(4);
    let seconds = limits.map(|limit| limit.timestamp());
    let span = u64::try_from(seconds[1] - seconds[0]).unwrap();
    for _ in 0..TIMES {
        let second = seconds[0] + (random.next() % span).cast_signed();
        let nanos = u32::try_from(random.next() % 1_000_000_000).unwrap();
        let time = DateTime::from_timestamp(second, nanos).unwrap();
        let floor = i128::from(second) * 1_000_000 + i128::from(nanos / 1000);
        assert_eq!(i128::from(Timestamp::from(time).0), floor, "{time}");
    }
}

#[test]
fn days_of_jiff_and_chrono_are_dates_and_back() {
    let jiff = [civil::Date::MIN, civil::Date::MAX].map(|limit| Date::from(limit).0);
    let chrono = [NaiveDate::MIN, NaiveDate::MAX].map(|limit| Date::from(limit).0);
    let edges = [jiff, chrono].concat().into_iter().chain([i32::MIN, i32::MAX]).map(i64::from);
    for number in numbers(5, &edges.collect::<Vec<_>>()) {
        let Ok(day) = Date::try_from(number) else { continue };
        let inside = (jiff[0]..=jiff[1]).contains(&day.0);
        round_trip::<Date, civil::Date>(day, inside, ["-009999-01-01", "9999-12-31"]);
        let inside = (chrono[0]..=chrono[1]).contains(&day.0);
        round_trip::<Date, NaiveDate>(day, inside, ["-262143-01-01", "+262142-12-31"]);
        if let Ok(there) = civil::Date::try_from(day) {
            let parts = (i32::from(there.year()), there.month(), there.day());
            let (month, date) = (u8::try_from(day.month()), u8::try_from(day.day()));
            assert_eq!(
                parts,
                (day.year(), month.unwrap().cast_signed(), date.unwrap().cast_signed())
            );
        }
        if let Ok(there) = NaiveDate::try_from(day) {
            assert_eq!(
                (there.year(), there.month(), there.day()),
                (day.year(), day.month(), day.day())
            );
        }
    }
}

#[test]
fn a_leap_second_is_in_the_second_after_it() {
    let leap = NaiveDate::from_ymd_opt(2016, 12, 31).unwrap();
    let leap = leap.and_hms_micro_opt(23, 59, 59, 1_500_000).unwrap().and_utc();
    assert_eq!(Timestamp::from(leap), "2017-01-01T00:00:00.5Z".parse().unwrap());
}
