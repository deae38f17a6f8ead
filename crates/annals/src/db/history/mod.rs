//! The history index, and what it tells of a journal.
//!
//! In reading order: `files` are those of a journal up to a commit; `find` tells which parts of them have to be read;
//! `moments` are looked up so, too; `row` is a row as events make it, by the `schema` of then; `collect` makes zones and
//! entries of frames; `keeping` is what an open database knows of the index, and `inspection` looks at it from outside.

pub(in crate::db) mod collect;
pub(in crate::db) mod files;
pub(in crate::db) mod find;
pub(in crate::db) mod inspection;
pub(in crate::db) mod keeping;
pub(in crate::db) mod moments;
pub(in crate::db) mod row;
pub(in crate::db) mod schema;

pub use inspection::HistoryCheck;
pub(super) use inspection::{inspect, witness};
pub(super) use moments::txid_of;
