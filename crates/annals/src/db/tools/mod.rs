//! Examining files.

pub(in crate::db) mod examine;
pub(in crate::db) mod inspect;
pub(in crate::db) mod remains;
