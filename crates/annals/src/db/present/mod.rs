//! What there is now: the segment that is written, whose turn it is, and the state that was published last.

pub(in crate::db) mod segment;
pub(in crate::db) mod snapshot;
pub(in crate::db) mod turns;
