//! Days of the calendar, and their text form.

use std::fmt;
use std::str::FromStr;

use crate::Timestamp;
use crate::time::{MICROSECONDS_PER_DAY, civil_from_days, days_from_civil, days_in_month, digits};

/// The form of a date.
pub(crate) const HOW_TO_WRITE_DATES: &str = "write a day that exists, like 2021-11-02; years outside 0 to 9999 have a sign and five to seven digits";

/// A day: the number of days since 1970-01-01, in the proleptic Gregorian calendar.
///
/// Its text form is that of ISO 8601. A year outside 0 to 9999 has a sign. Year 0 is the one before year 1.
///
/// ```
/// use annals_schema::Date;
///
/// let day: Date = "2021-11-02".parse().unwrap();
/// assert_eq!((day.year(), day.month(), day.day()), (2021, 11, 2));
/// assert_eq!(day.checked_add_days(30).unwrap().to_string(), "2021-12-02");
/// assert_eq!(day.days_since("2021-01-01".parse().unwrap()), 305);
/// assert_eq!(day.midnight().unwrap().to_string(), "2021-11-02T00:00:00Z");
/// assert_eq!(Date::new(2023, 2, 29), None);
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)] // as a timestamp
pub struct Date(pub i32);

/// A text that is no day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DateError(String);

impl fmt::Display for DateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a date: {HOW_TO_WRITE_DATES}", self.0)
    }
}

impl std::error::Error for DateError {}

impl Date {
    /// The last day, in the year 5881580.
    pub const MAX: Self = Self(i32::MAX);
    /// The first day, in the year -5877641.
    pub const MIN: Self = Self(i32::MIN);

    /// Returns a day of the calendar; `None` if there is none, or it is millions of years away.
    #[must_use]
    pub fn new(year: i32, month: u32, day: u32) -> Option<Self> {
        let (year, month, day) = (year.into(), month.into(), day.into());
        let exists = (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
        exists.then(|| days_from_civil(year, month, day).try_into().ok().map(Self))?
    }

    /// Returns the year.
    #[must_use]
    pub fn year(self) -> i32 {
        i32::try_from(civil_from_days(self.0.into()).0).unwrap_or_default()
    }

    /// Returns the month, from 1 on.
    #[must_use]
    pub fn month(self) -> u32 {
        u32::try_from(civil_from_days(self.0.into()).1).unwrap_or_default()
    }

    /// Returns the day of the month, from 1 on.
    #[must_use]
    pub fn day(self) -> u32 {
        u32::try_from(civil_from_days(self.0.into()).2).unwrap_or_default()
    }

    /// Returns the day that is so many days later, or earlier if the number is negative; `None` if there is none.
    #[must_use]
    pub fn checked_add_days(self, days: i64) -> Option<Self> {
        i64::from(self.0).checked_add(days)?.try_into().ok().map(Self)
    }

    /// Returns the number of days since another day: negative if that is later.
    #[must_use]
    pub const fn days_since(self, other: Self) -> i64 {
        self.0 as i64 - other.0 as i64
    }

    /// Returns the midnight, in UTC, at which the day begins; `None` if it is over 290,000 years away.
    #[must_use]
    pub fn midnight(self) -> Option<Timestamp> {
        i64::from(self.0).checked_mul(MICROSECONDS_PER_DAY).map(Timestamp)
    }

    /// Returns the bytes of its cell.
    #[doc(hidden)]
    #[must_use]
    pub const fn to_le_bytes(self) -> [u8; 4] {
        self.0.to_le_bytes()
    }

    /// Returns the day of a cell.
    #[doc(hidden)]
    #[must_use]
    pub const fn from_le_bytes(bytes: [u8; 4]) -> Self {
        Self(i32::from_le_bytes(bytes))
    }
}

impl From<Date> for i64 {
    fn from(date: Date) -> Self {
        date.0.into()
    }
}

impl TryFrom<i64> for Date {
    type Error = std::num::TryFromIntError;

    fn try_from(days: i64) -> Result<Self, Self::Error> {
        days.try_into().map(Self)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_from_days(self.0.into());
        f.pad(&match year {
            0..=9999 => format!("{year:04}-{month:02}-{day:02}"),
            _ => format!("{year:+06}-{month:02}-{day:02}"),
        })
    }
}

impl fmt::Debug for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Date {
    type Err = DateError;

    fn from_str(text: &str) -> Result<Self, DateError> {
        parse(text.as_bytes()).ok_or_else(|| DateError(crate::shorten(text).into_owned()))
    }
}

fn parse(text: &[u8]) -> Option<Date> {
    let (year, rest) = text.split_at_checked(text.len().checked_sub("-11-02".len())?)?;
    let [b'-', m1, m0, b'-', d1, d0] = *rest else { return None };
    let year = match year {
        [b'+', year @ ..] if (5..=7).contains(&year.len()) => digits(year)?,
        [b'-', year @ ..] if (5..=7).contains(&year.len()) => -digits(year)?,
        year if year.len() == 4 => digits(year)?,
        _ => return None,
    };
    let part = |part: [u8; 2]| u32::try_from(digits(&part)?).ok();
    Date::new(year.try_into().ok()?, part([m1, m0])?, part([d1, d0])?)
}
