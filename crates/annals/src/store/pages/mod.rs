//! Pages: the memory of the store, shared between views and copied when it is changed.
//!
//! In reading order: a [`page`] is what is shared and copied (the [`reserve`] makes empty ones ahead),
//! a [`directory`] finds pages by number, [`cells`] are arrays in pages; [`unique`] is how shared
//! things are changed, [`numbered`] how tables and indexes are found by number.

pub(super) mod cells;
pub(super) mod directory;
pub(super) mod numbered;
pub(super) mod page;
mod reserve;
pub(super) mod unique;
