//! The times of the standard library.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::TimeRangeError;
use crate::Timestamp;

impl From<SystemTime> for Timestamp {
    /// Rounds down to microseconds; the nearest there is if the time is too far away.
    fn from(time: SystemTime) -> Self {
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => Self(i64::try_from(after.as_micros()).unwrap_or(i64::MAX)),
            Err(error) => {
                let before = error.duration().as_nanos().div_ceil(1000);
                Self(i64::try_from(before).map_or(i64::MIN, |before| -before))
            }
        }
    }
}

impl TryFrom<Timestamp> for SystemTime {
    type Error = TimeRangeError;

    /// Fails if the operating system can't count so far.
    fn try_from(time: Timestamp) -> Result<Self, TimeRangeError> {
        let distance = Duration::from_micros(time.0.unsigned_abs());
        let there = if time.0 < 0 {
            UNIX_EPOCH.checked_sub(distance)
        } else {
            UNIX_EPOCH.checked_add(distance)
        };
        let system = "which the operating system sets";
        there.ok_or_else(|| TimeRangeError::new(time, "std::time::SystemTime", system))
    }
}
