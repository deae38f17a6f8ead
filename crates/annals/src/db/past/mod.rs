//! The past: states of earlier moments, the history index, histories and changes, and the handle that only reads.

pub(in crate::db) mod at;
pub(in crate::db) mod history;
pub(in crate::db) mod index_history;
pub(in crate::db) mod lazy;
pub(in crate::db) mod moment;
pub(in crate::db) mod reader;
pub(in crate::db) mod time;
