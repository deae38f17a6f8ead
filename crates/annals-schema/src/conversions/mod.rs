//! Conversions of times and days to and from the types of other crates and of the operating system.

#[cfg(feature = "chrono")]
mod chrono;
#[cfg(feature = "jiff")]
mod jiff;
mod system;

use std::fmt;

/// A time or a day that another type has no room for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeRangeError {
    value: String,
    target: &'static str,
    limits: String,
}

impl TimeRangeError {
    fn new(value: impl fmt::Display, target: &'static str, limits: impl Into<String>) -> Self {
        Self { value: value.to_string(), target, limits: limits.into() }
    }
}

impl fmt::Display for TimeRangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { value, target, limits } = self;
        write!(f, "`{value}` is outside the range of `{target}`, {limits}")
    }
}

impl std::error::Error for TimeRangeError {}
