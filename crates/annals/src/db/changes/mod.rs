//! What changed, when, and how those hear of it who follow.

pub(in crate::db) mod changed;
pub(in crate::db) mod feed;
pub(in crate::db) mod moment;
pub(in crate::db) mod rows;
