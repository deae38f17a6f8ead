//! The present: the current segment, the turn in shared mode, and the last published state.

pub(in crate::db) mod segment;
pub(in crate::db) mod snapshot;
pub(in crate::db) mod turns;
