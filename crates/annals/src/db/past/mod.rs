//! Past states: the nearest earlier root of the image, and a replay from there.

pub(in crate::db) mod at;
pub(in crate::db) mod lazy;
