//! Examining files, and replacing the files of a journal.

pub(in crate::db) mod erase;
pub(in crate::db) mod examine;
pub(in crate::db) mod inspect;
pub(in crate::db) mod remains;
