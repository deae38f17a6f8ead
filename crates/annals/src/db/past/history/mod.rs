//! The history index, and lookups in it.
//!
//! In reading order: `files` are those of a journal up to a commit; `about` says how far an index goes, and what its
//! places mean; a `block` is a part of a long frame. `collect` makes entries of frames, which `cut` cuts into blocks.
//! `current` is the index up to a published state; `kept` is the part of one that isn't forgotten. `places` reads the
//! places that it leads to. `ask` asks the journal where an index can't be read; `moments` finds transactions. `row` applies events to a row, by the `schema` of that time.
//! `keeping` is how an open database keeps the index; `check` compares it with the journal.

mod about;
pub(in crate::db) mod ask;
mod block;
pub(in crate::db) mod check;
mod collect;
pub(in crate::db) mod current;
mod cut;
pub(in crate::db) mod files;
mod kept;
pub(in crate::db) mod moments;
pub(in crate::db) mod places;
pub(in crate::db) mod row;
pub(in crate::db) mod schema;
#[cfg(test)]
mod tests;

pub(super) use crate::db::past::history::moments::txid_of;
