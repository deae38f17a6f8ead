//! Points in time as text and as the operating system's.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use annals_schema::{Date, Timestamp};

fn micros(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().0
}

#[test]
fn known_dates() {
    for (text, seconds) in [
        ("0000-01-01T00:00:00Z", -62_167_219_200),
        ("0000-02-29T00:00:00Z", -62_162_121_600),
        ("1900-03-01T00:00:00Z", -2_203_891_200),
        ("1969-12-31T23:59:59Z", -1),
        ("1970-01-01T00:00:00Z", 0),
        ("2000-02-29T12:00:00Z", 951_825_600),
        ("2021-11-02T22:10:25Z", 1_635_891_025),
        ("2100-03-01T00:00:00Z", 4_107_542_400),
        ("9999-12-31T23:59:59Z", 253_402_300_799),
    ] {
        assert_eq!(micros(text), seconds * 1_000_000, "{text}");
        assert_eq!(Timestamp::from_seconds(seconds).to_string(), text);
        assert_eq!(Timestamp::from_seconds(seconds).seconds(), seconds, "{text}");
    }
}

#[test]
fn every_day_of_four_centuries_is_the_day_after_the_one_before() {
    let first = micros("1800-01-01T00:00:00Z");
    let mut before = String::new();
    for day in 0..146_097_i64 {
        let time = Timestamp(first + day * 86_400_000_000);
        let text = time.to_string();
        assert_eq!(micros(&text), time.0, "{text}");
        assert!(before < text, "{before} comes before {text}");
        before = text;
    }
    assert_eq!(before, "2199-12-31T00:00:00Z");
}

#[test]
fn fractions_and_offsets() {
    assert_eq!(micros("1970-01-01T00:00:00.000001Z"), 1);
    assert_eq!(Timestamp(-1).to_string(), "1969-12-31T23:59:59.999999Z");
    assert_eq!(Timestamp(-1).seconds(), -1);
    assert_eq!(Timestamp(-1).subsecond_microseconds(), 999_999);
    assert_eq!(micros("1970-01-01T00:00:00.5-00:30"), 1_800_500_000);
    assert_eq!(Timestamp(253_402_300_800_000_000).to_string(), "@253402300800000000");
    assert_eq!(Timestamp(i64::MAX).to_string().parse(), Ok(Timestamp(i64::MAX)));
}

#[test]
fn a_date_alone_is_its_midnight() {
    assert_eq!(micros("2021-11-02"), micros("2021-11-02T00:00:00Z"));
    assert_eq!(micros("2000-02-29"), micros("2000-02-29T00:00:00Z"));
}

#[test]
fn finer_times_are_rounded_to_microseconds() {
    for (nanoseconds, expected) in [
        ("000000499", 0),
        ("0000005", 1),
        ("123456499", 123_456),
        ("123456500", 123_457),
        ("999999500", 1_000_000),
    ] {
        assert_eq!(micros(&format!("1970-01-01T00:00:00.{nanoseconds}Z")), expected);
        let before = micros(&format!("1969-12-31T23:59:59.{nanoseconds}Z"));
        assert_eq!(before, expected - 1_000_000, "{nanoseconds}");
    }
}

#[test]
fn what_is_no_time_is_refused() {
    for text in [
        "",
        "@",
        "@1.5",
        "@9223372036854775808",
        "2021-11-2",
        "2021-11-31",
        "2021-11-02Z",
        "2021-11-02T22:10:25",
        "2021-11-02 22:10:25Z",
        "2021-13-02T22:10:25Z",
        "2021-00-02T22:10:25Z",
        "2021-11-31T22:10:25Z",
        "1900-02-29T00:00:00Z",
        "2021-11-02T24:00:00Z",
        "2021-11-02T22:60:25Z",
        "2021-11-02T22:10:60Z",
        "2021-11-02T22:10:25.Z",
        "2021-11-02T22:10:25.1234567890Z",
        "2021-11-02T22:10:25+1:00",
        "2021-11-02T22:10:25Zé",
        "+021-11-02T22:10:25Z",
    ] {
        let error = text.parse::<Timestamp>().unwrap_err().to_string();
        assert!(error.contains(text) && error.contains("2021-11-02T22:10:25Z"), "{error}");
    }
}

#[test]
fn system_time_there_and_back() {
    for micros in [0, 1, -1, 1_635_891_025_123_456, -5_000_000] {
        let time = SystemTime::try_from(Timestamp(micros)).unwrap();
        assert_eq!(Timestamp::from(time), Timestamp(micros));
    }
    // Windows counts in steps of 100 nanoseconds.
    let between = UNIX_EPOCH - Duration::from_nanos(100);
    assert_eq!(Timestamp::from(between), Timestamp(-1), "rounded down");
}

#[expect(clippy::disallowed_methods, reason = "they are compared")]
#[test]
fn the_present_is_that_of_the_operating_system() {
    let before = SystemTime::now().into();
    let now = Timestamp::now();
    assert!((before..=SystemTime::now().into()).contains(&now), "{now} isn't after {before}");
}

#[test]
fn sums_and_differences_end_at_the_limits() {
    let micro = Duration::from_micros(1);
    let all = Timestamp::MAX.abs_diff(Timestamp::MIN);
    assert_eq!(all, Duration::from_micros(u64::MAX));
    assert_eq!(Timestamp::MIN.checked_add(all), Some(Timestamp::MAX));
    assert_eq!(Timestamp::MAX.checked_sub(all), Some(Timestamp::MIN));
    for (first, duration) in [(Timestamp(1), Duration::MAX), (Timestamp::MAX, micro)] {
        assert_eq!(first.checked_add(duration), None);
        assert_eq!(first.saturating_add(duration), Timestamp::MAX);
    }
    for (first, duration) in [(Timestamp(1), Duration::MAX), (Timestamp::MIN, micro)] {
        assert_eq!(first.checked_sub(duration), None);
        assert_eq!(first.saturating_sub(duration), Timestamp::MIN);
    }
    for micros in [0, 1, -1, 5, -7_777_777, i64::MAX, i64::MIN] {
        let time = Timestamp(micros);
        assert_eq!(time.checked_add(Duration::from_nanos(999)), Some(time), "whole microseconds");
        assert_eq!(time.checked_sub(Duration::from_nanos(999)), Some(time), "whole microseconds");
        assert_eq!(time.duration_since(time), Some(Duration::ZERO));
        if let Some(later) = time.checked_add(micro) {
            assert_eq!(later.0, micros + 1);
            assert_eq!(later.duration_since(time), Some(micro));
            assert_eq!(time.duration_since(later), None);
            assert_eq!(later.checked_sub(micro), Some(time));
        }
    }
}

#[test]
fn a_day_begins_at_its_midnight() {
    let day_of = |text: &str| text.parse::<Date>().unwrap();
    for (time, day) in [
        ("1969-12-31T23:59:59.999999Z", "1969-12-31"),
        ("1970-01-01T00:00:00Z", "1970-01-01"),
        ("2021-11-03T00:30:00+01:00", "2021-11-02"),
    ] {
        assert_eq!(Timestamp(micros(time)).date(), day_of(day), "{time}");
    }
    for time in [Timestamp::MIN, Timestamp(-1), Timestamp(0), Timestamp::MAX] {
        let day = time.date();
        let midnight = day.midnight();
        assert_eq!(midnight.is_none(), time == Timestamp::MIN, "its day began before");
        assert!(midnight.is_none_or(|midnight| midnight <= time && midnight.date() == day));
        let next = day.checked_add_days(1).and_then(Date::midnight);
        assert_eq!(next.is_none(), time == Timestamp::MAX);
        assert!(next.is_none_or(|next| next > time), "{time}");
    }
    assert_eq!((Date::MIN.midnight(), Date::MAX.midnight()), (None, None));
}

#[test]
fn days_are_counted_up_to_the_limits() {
    let all = i64::from(u32::MAX);
    assert_eq!(Date::MAX.days_since(Date::MIN), all);
    assert_eq!(Date::MIN.days_since(Date::MAX), -all);
    assert_eq!(Date::MIN.checked_add_days(all), Some(Date::MAX));
    assert_eq!(Date::MAX.checked_add_days(-all), Some(Date::MIN));
    for days in [1, i64::MAX] {
        assert_eq!(Date::MAX.checked_add_days(days), None);
        assert_eq!(Date::MIN.checked_add_days(-days), None);
    }
}
