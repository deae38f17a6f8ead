//! Days of the calendar, and their text form.
//!
//! Dates are counted in the proleptic Gregorian calendar with Howard Hinnant's algorithms `days_from_civil` and
//! `civil_from_days`. Years begin in March there, so that the leap day is the last day of a year. Everything repeats
//! after an era of 400 years.

use std::fmt;
use std::str::FromStr;

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

const DAYS_PER_ERA: i64 = 146_097;

/// Days from 0000-03-01, where the first era begins, to 1970-01-01.
const EPOCH_IN_ERAS: i64 = 719_468;

pub(crate) fn digits(text: &[u8]) -> Option<i64> {
    text.iter().try_fold(0, |number, byte| {
        byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0'))
    })
}

pub(crate) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Howard Hinnant's `days_from_civil`: days from 1970-01-01 to a date.
pub(crate) fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * DAYS_PER_ERA + day_of_era - EPOCH_IN_ERAS
}

/// Howard Hinnant's `civil_from_days`: year, month and day of the day this many days after 1970-01-01.
pub(crate) fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH_IN_ERAS;
    let era = days.div_euclid(DAYS_PER_ERA);
    let day_of_era = days.rem_euclid(DAYS_PER_ERA);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}
