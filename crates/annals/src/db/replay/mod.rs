//! From a journal to a state: a scan replays frames, after those of older segments, unless a commit doesn't apply.

pub(in crate::db) mod scan;
pub(in crate::db) mod segments;
pub(in crate::db) mod state;
pub(in crate::db) mod unapplied;
pub(in crate::db) mod witness;
