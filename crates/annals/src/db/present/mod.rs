//! The present: the current segment, the turn in shared mode, the last published state; and plain reports.

pub(in crate::db) mod image_use;
pub(in crate::db) mod outcome;
pub(in crate::db) mod segment;
pub(in crate::db) mod snapshot;
pub(in crate::db) mod stats;
pub(in crate::db) mod threads;
pub(in crate::db) mod turns;
