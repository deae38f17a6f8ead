//! The types of `jiff`: moments and days up to the year 9999.

use jiff::civil;

use super::TimeRangeError;
use crate::date::days_from_civil;
use crate::{Date, Timestamp};

impl From<jiff::Timestamp> for Timestamp {
    /// Rounds down to microseconds.
    fn from(time: jiff::Timestamp) -> Self {
        // Ten thousand years are far within the range.
        Self(i64::try_from(time.as_nanosecond().div_euclid(1000)).unwrap_or_default())
    }
}

impl TryFrom<Timestamp> for jiff::Timestamp {
    type Error = TimeRangeError;

    /// Fails outside `jiff::Timestamp::MIN` to `jiff::Timestamp::MAX`: the years -9999 to 9999.
    fn try_from(time: Timestamp) -> Result<Self, TimeRangeError> {
        let limits = || format!("{} to {}", Self::MIN, Self::MAX);
        // `from_microsecond` of version 1.0 refuses the last second.
        Self::from_nanosecond(i128::from(time.0) * 1000)
            .map_err(|_| TimeRangeError::new(time, "jiff::Timestamp", limits()))
    }
}

impl From<civil::Date> for Date {
    fn from(date: civil::Date) -> Self {
        let days = days_from_civil(date.year().into(), date.month().into(), date.day().into());
        // Ten thousand years are far within the range.
        Self(i32::try_from(days).unwrap_or_default())
    }
}

impl TryFrom<Date> for civil::Date {
    type Error = TimeRangeError;

    /// Fails outside the years -9999 to 9999.
    fn try_from(date: Date) -> Result<Self, TimeRangeError> {
        let there = || {
            let (month, day) = (date.month().try_into().ok()?, date.day().try_into().ok()?);
            Self::new(date.year().try_into().ok()?, month, day).ok()
        };
        let limits = || format!("{} to {}", Self::MIN, Self::MAX);
        there().ok_or_else(|| TimeRangeError::new(date, "jiff::civil::Date", limits()))
    }
}
