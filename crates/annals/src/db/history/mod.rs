//! The history index, and lookups in it.
//!
//! In reading order: `files` are those of a journal up to a commit; `find` returns the parts of them to read;
//! `moments` finds transactions with it. `row` applies events to a row, by the `schema` of that time; `collect` makes
//! zones and entries of frames. `keeping` is the state of the index in an open database, and `inspection` examines it
//! without opening.

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
