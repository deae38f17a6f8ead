//! The state that threads of an open database share, and the work on it: one file for each task.

pub(in crate::db) mod backfill;
pub(in crate::db) mod background;
pub(in crate::db) mod checkpointer;
pub(in crate::db) mod commit;
pub(in crate::db) mod core;
pub(in crate::db) mod counts;
pub(in crate::db) mod forget;
pub(in crate::db) mod group;
pub(in crate::db) mod index_history;
pub(in crate::db) mod reopening;
pub(in crate::db) mod restart;
pub(in crate::db) mod retain;
pub(in crate::db) mod spill;
pub(in crate::db) mod state;
pub(in crate::db) mod trigger;
pub(in crate::db) mod uuids;
