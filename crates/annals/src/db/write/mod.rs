//! Writing: the database and its transactions, the recipe of a commit, and what threads of one process share.

pub(in crate::db) mod blobs;
pub(in crate::db) mod bulk;
pub(in crate::db) mod changed;
pub(in crate::db) mod checkpointer;
pub(in crate::db) mod checks;
pub(in crate::db) mod commit;
pub(in crate::db) mod compact;
pub(in crate::db) mod core;
pub(in crate::db) mod counts;
pub(in crate::db) mod database;
pub(in crate::db) mod feed;
pub(in crate::db) mod forget;
pub(in crate::db) mod gate;
pub(in crate::db) mod group;
pub(in crate::db) mod inner;
pub(in crate::db) mod keeping;
pub(in crate::db) mod next_segment;
pub(in crate::db) mod pack;
pub(in crate::db) mod parts;
pub(in crate::db) mod pending;
pub(in crate::db) mod references;
pub(in crate::db) mod reopening;
pub(in crate::db) mod rows;
pub(in crate::db) mod savepoints;
pub(in crate::db) mod segment_state;
pub(in crate::db) mod shared;
pub(in crate::db) mod sharing;
pub(in crate::db) mod spill;
pub(in crate::db) mod statement;
#[cfg(test)]
mod tests;
pub(in crate::db) mod touched;
pub(in crate::db) mod transaction;
pub(in crate::db) mod upgrade;
pub(in crate::db) mod uuids;
pub(in crate::db) mod window;
