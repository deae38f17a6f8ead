//! The handle of a database and its transactions: the functions that programs call.

pub(in crate::db) mod blobs;
pub(in crate::db) mod bulk;
pub(in crate::db) mod checks;
pub(in crate::db) mod compact;
pub(in crate::db) mod database;
pub(in crate::db) mod follow;
pub(in crate::db) mod gate;
pub(in crate::db) mod inner;
pub(in crate::db) mod lifetime;
pub(in crate::db) mod pack;
pub(in crate::db) mod parts;
pub(in crate::db) mod pending;
pub(in crate::db) mod references;
pub(in crate::db) mod restarting;
pub(in crate::db) mod savepoints;
pub(in crate::db) mod shared;
pub(in crate::db) mod shared_image;
pub(in crate::db) mod sharing;
pub(in crate::db) mod statement;
#[cfg(test)]
mod tests;
pub(in crate::db) mod transaction;
pub(in crate::db) mod upgrade;
pub(in crate::db) mod upkeep;
