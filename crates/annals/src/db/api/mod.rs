//! Opening, and what a program asks of an open database as a whole.

pub(in crate::db) mod embedded;
pub mod erasure;
pub(in crate::db) mod open;
pub(in crate::db) mod read_only;
pub(in crate::db) mod restarting;
pub(in crate::db) mod upkeep;
