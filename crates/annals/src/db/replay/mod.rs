//! From a journal to a state: a source of frames, which a replay applies, unless a commit doesn't apply; or a scan passes
//! their events on.

pub(in crate::db) mod scan;
pub(in crate::db) mod segments;
pub(in crate::db) mod source;
pub(in crate::db) mod state;
pub(in crate::db) mod unapplied;
pub(in crate::db) mod witness;
