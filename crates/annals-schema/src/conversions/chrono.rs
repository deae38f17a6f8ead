//! The types of `chrono`: moments and days of some 262,000 years before and after year 0.

use chrono::{DateTime, Datelike, NaiveDate, Utc};

use super::TimeRangeError;
use crate::{Date, Timestamp};

/// The days from the one before 0001-01-01, which is day 0 of `chrono`, to 1970-01-01.
const EPOCH_IN_COMMON_ERA: i32 = 719_163;

impl From<DateTime<Utc>> for Timestamp {
    /// Rounds down to microseconds. A moment in a leap second is one in the second after it.
    fn from(time: DateTime<Utc>) -> Self {
        Self(time.timestamp_micros())
    }
}

impl TryFrom<Timestamp> for DateTime<Utc> {
    type Error = TimeRangeError;

    /// Fails outside `MIN_UTC` to `MAX_UTC`: the years -262143 to 262142.
    fn try_from(time: Timestamp) -> Result<Self, TimeRangeError> {
        let limits = || format!("{:?} to {:?}", Self::MIN_UTC, Self::MAX_UTC);
        Self::from_timestamp_micros(time.0)
            .ok_or_else(|| TimeRangeError::new(time, "chrono::DateTime<Utc>", limits()))
    }
}

impl From<NaiveDate> for Date {
    fn from(date: NaiveDate) -> Self {
        Self(date.num_days_from_ce() - EPOCH_IN_COMMON_ERA)
    }
}

impl TryFrom<Date> for NaiveDate {
    type Error = TimeRangeError;

    /// Fails outside `NaiveDate::MIN` to `NaiveDate::MAX`: the years -262143 to 262142.
    fn try_from(date: Date) -> Result<Self, TimeRangeError> {
        let limits = || format!("{} to {}", Self::MIN, Self::MAX);
        (date.0.checked_add(EPOCH_IN_COMMON_ERA))
            .and_then(Self::from_num_days_from_ce_opt)
            .ok_or_else(|| TimeRangeError::new(date, "chrono::NaiveDate", limits()))
    }
}
