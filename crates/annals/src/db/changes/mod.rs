//! Changes, moments, and the feed of commits to subscribers.

pub(in crate::db) mod changed;
pub(in crate::db) mod feed;
pub(in crate::db) mod moment;
pub(in crate::db) mod rows;
pub(in crate::db) mod touched;
pub(in crate::db) mod window;
