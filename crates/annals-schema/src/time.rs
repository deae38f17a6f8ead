//! Points in time, and their text form.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use crate::Date;
use crate::date::{civil_from_days, days_from_civil, days_in_month, digits};

const MICROSECONDS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
const MICROSECONDS_PER_DAY: i64 = SECONDS_PER_DAY * MICROSECONDS_PER_SECOND;
/// The form of a timestamp.
pub(crate) const HOW_TO_WRITE_TIMESTAMPS: &str = "write 2021-11-02T22:10:25Z, with at most nine digits of a second, \
     or a date, or @ and the microseconds since 1970";

/// How long the text of a date is.
const DATE_LEN: usize = "2021-11-02".len();

/// A point in time: microseconds since 1970-01-01T00:00:00Z.
///
/// Sums have no operators, since years are limited to some 292,000 before and after 1970: `checked_add` and `checked_sub` return
/// `None` there, `saturating_add` and `saturating_sub` the last point in time. The features `jiff` and `chrono` of `annals`
/// convert to and from the types of those crates, which have time zones and months.
///
/// Its text form is that of RFC 3339 in UTC, and `@MICROSECONDS` for years outside 0 to 9999. A date without a time
/// is read as its midnight in UTC. Up to nine digits of a second are rounded to the nearest microsecond.
///
/// ```
/// use std::time::Duration;
///
/// use annals_schema::Timestamp;
///
/// let time: Timestamp = "2021-11-02T22:10:25+01:00".parse().unwrap();
/// assert_eq!(time.to_string(), "2021-11-02T21:10:25Z");
/// assert_eq!(Timestamp(1_500_000).to_string(), "1970-01-01T00:00:01.5Z");
///
/// let now = Timestamp::now();
/// assert!(now > time);
///
/// let hour = Duration::from_secs(3600);
/// let later = now.saturating_add(hour);
/// assert_eq!(later.duration_since(now), Some(hour));
/// assert_eq!(now.duration_since(later), None);
/// assert_eq!(time.checked_add(hour).unwrap().date(), "2021-11-02".parse().unwrap());
/// assert_eq!(Timestamp::MAX.checked_add(hour), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)] // as a row's id
pub struct Timestamp(pub i64);

/// A text that is no point in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimestampError(String);

impl fmt::Display for TimestampError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a timestamp: {}", self.0, HOW_TO_WRITE_TIMESTAMPS)
    }
}

impl std::error::Error for TimestampError {}

impl Timestamp {
    /// The last point in time, in the year 294247.
    pub const MAX: Self = Self(i64::MAX);
    /// The first point in time, in the year -290308.
    pub const MIN: Self = Self(i64::MIN);

    /// Returns the present, by the clock of the operating system.
    #[expect(
        clippy::disallowed_methods,
        reason = "it is for programs: the same lint keeps the library from calling it"
    )]
    #[must_use]
    pub fn now() -> Self {
        SystemTime::now().into()
    }

    /// Makes a point in time from whole seconds since 1970-01-01T00:00:00Z; the nearest there is
    /// if it is too far away (292,000 years).
    #[must_use]
    pub const fn from_seconds(seconds: i64) -> Self {
        Self(seconds.saturating_mul(MICROSECONDS_PER_SECOND))
    }

    /// Returns the whole seconds since 1970-01-01T00:00:00Z, rounded down.
    #[must_use]
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(MICROSECONDS_PER_SECOND)
    }

    /// Returns the microseconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub const fn microseconds(self) -> i64 {
        self.0
    }

    /// Returns the microseconds after [`seconds`](Self::seconds): 0 to 999,999.
    #[must_use]
    pub const fn subsecond_microseconds(self) -> i64 {
        self.0.rem_euclid(MICROSECONDS_PER_SECOND)
    }

    /// Returns the point in time that is later by the whole microseconds of a duration; `None` if it is after
    /// [`MAX`](Self::MAX).
    #[must_use]
    pub fn checked_add(self, duration: Duration) -> Option<Self> {
        let micros = u64::try_from(duration.as_micros()).ok()?;
        self.0.checked_add_unsigned(micros).map(Self)
    }

    /// Returns the point in time that is earlier by the whole microseconds of a duration; `None` if it is before
    /// [`MIN`](Self::MIN).
    #[must_use]
    pub fn checked_sub(self, duration: Duration) -> Option<Self> {
        let micros = u64::try_from(duration.as_micros()).ok()?;
        self.0.checked_sub_unsigned(micros).map(Self)
    }

    /// Returns what [`checked_add`](Self::checked_add) does, or [`MAX`](Self::MAX).
    #[must_use]
    pub fn saturating_add(self, duration: Duration) -> Self {
        self.checked_add(duration).unwrap_or(Self::MAX)
    }

    /// Returns what [`checked_sub`](Self::checked_sub) does, or [`MIN`](Self::MIN).
    #[must_use]
    pub fn saturating_sub(self, duration: Duration) -> Self {
        self.checked_sub(duration).unwrap_or(Self::MIN)
    }

    /// Returns the time since an earlier point in time, or the same one; `None` if it is a later one.
    #[must_use]
    pub fn duration_since(self, earlier: Self) -> Option<Duration> {
        (earlier <= self).then(|| self.abs_diff(earlier))
    }

    /// Returns the time between two points in time, whichever is the earlier one.
    #[must_use]
    pub const fn abs_diff(self, other: Self) -> Duration {
        Duration::from_micros(self.0.abs_diff(other.0))
    }

    /// Returns the day, in UTC.
    #[must_use]
    pub fn date(self) -> Date {
        // Days of all points in time are within 107 million.
        Date(i32::try_from(self.seconds().div_euclid(SECONDS_PER_DAY)).unwrap_or_default())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.seconds();
        let (year, month, day) = civil_from_days(seconds.div_euclid(SECONDS_PER_DAY));
        if !(0..=9999).contains(&year) {
            return f.pad(&format!("@{}", self.0));
        }
        let second = seconds.rem_euclid(SECONDS_PER_DAY);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let whole = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
        match self.subsecond_microseconds() {
            0 => f.pad(&(whole + "Z")),
            fraction => {
                let digits = format!("{fraction:06}");
                f.pad(&format!("{whole}.{}Z", digits.trim_end_matches('0')))
            }
        }
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    /// Understands RFC 3339, in UTC or with an offset, a date alone, and `@MICROSECONDS`.
    fn from_str(text: &str) -> Result<Self, TimestampError> {
        let time = match text.strip_prefix('@') {
            Some(number) => number.parse().ok(),
            None if text.len() == DATE_LEN => parse_rfc3339(format!("{text}T00:00:00Z").as_bytes()),
            None => parse_rfc3339(text.as_bytes()),
        };
        time.map(Self).ok_or_else(|| TimestampError(text.to_owned()))
    }
}

fn parse_rfc3339(text: &[u8]) -> Option<i64> {
    let (date, rest) = text.split_at_checked(19)?;
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if marks.iter().any(|&(place, mark)| date.get(place) != Some(&mark)) {
        return None;
    }
    let part = |start: usize, end: usize| digits(date.get(start..end)?);
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let (hour, minute, second) = (part(11, 13)?, part(14, 16)?, part(17, 19)?);
    if !(1..=12).contains(&month) || !(1..=days_in_month(year, month)).contains(&day) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (fraction, zone) = parse_fraction(rest)?;
    let offset = parse_offset(zone)?;
    let days = days_from_civil(year, month, day);
    let seconds = days * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second - offset;
    Some(seconds * MICROSECONDS_PER_SECOND + fraction)
}

/// Reads `.fffffffff` if present; returns microseconds, rounded to the nearest, and the rest.
fn parse_fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let Some(text) = text.strip_prefix(b".") else {
        return Some((0, text));
    };
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=9).contains(&count) {
        return None;
    }
    let (fraction, rest) = text.split_at_checked(count)?;
    let missing = u32::try_from(9 - count).ok()?;
    let nanoseconds = digits(fraction)? * 10_i64.pow(missing);
    Some(((nanoseconds + 500) / 1000, rest))
}

/// Reads `Z` or `+hh:mm`; returns seconds east of Greenwich.
fn parse_offset(text: &[u8]) -> Option<i64> {
    match text {
        [b'Z'] => Some(0),
        [sign @ (b'+' | b'-'), h1, h0, b':', m1, m0] => {
            let (hours, minutes) = (digits(&[*h1, *h0])?, digits(&[*m1, *m0])?);
            let offset = hours * 3600 + minutes * 60;
            let valid = hours <= 23 && minutes <= 59;
            valid.then_some(if *sign == b'-' { -offset } else { offset })
        }
        _ => None,
    }
}

impl Date {
    /// Returns the midnight, in UTC, at which the day begins; `None` if it is over 290,000 years away.
    #[must_use]
    pub fn midnight(self) -> Option<Timestamp> {
        i64::from(self.0).checked_mul(MICROSECONDS_PER_DAY).map(Timestamp)
    }
}
