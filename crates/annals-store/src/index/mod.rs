//! Indexes: the rows of a table in the order of some of their fields.
//!
//! In reading order: a [`key`] is the sorted form of values, which [`decode`] reads again, a [`tree`] holds the keys of a table. [`checked`] has
//! those of a new row between their check and their insertion, [`run`] changes those of many rows at once.
//! [`lookup`] and [`cursor`] read, [`each`] for many keys at once.

pub(super) mod checked;
pub(super) mod decode;
pub(super) mod key;
pub(super) mod tree;
