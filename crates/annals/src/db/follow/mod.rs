//! Following a journal: a scan replays frames, after those of older segments, unless a commit doesn't apply; what
//! can be opened, and the image from which an opening begins.

pub(in crate::db) mod acquire;
pub mod beside;
pub(in crate::db) mod continuation;
pub(in crate::db) mod drafting;
pub(in crate::db) mod files;
pub(in crate::db) mod image_state;
pub(in crate::db) mod opening;
pub(in crate::db) mod options;
pub(in crate::db) mod pins;
pub(in crate::db) mod reading;
pub(in crate::db) mod recovery;
pub(in crate::db) mod report;
pub(in crate::db) mod scan;
pub(in crate::db) mod segments;
pub(in crate::db) mod source;
pub(in crate::db) mod spill;
pub(in crate::db) mod state;
pub(in crate::db) mod survey;
pub(in crate::db) mod unapplied;
pub(in crate::db) mod witness;
