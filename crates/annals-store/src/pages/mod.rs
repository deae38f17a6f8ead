//! Pages: the memory of the store, shared between views and copied when it is changed.
//!
//! In reading order: a [`page`] is shared and copied, some of them allocated from a [`reserve`], and is in the
//! [arena](crate::arena). A [`directory`] finds pages by number; their [`difference`] is the items that only one has.
//! A [`base`] finds and loads those of an image, through the [`pager`]. Its loaded items are in a [`once_array`], and
//! [`resident_blocks`] records which rows are completely in memory. A [`paged`] array is both, the directory over the
//! base; an [`item`] is the content of its places, and a reader of many keeps its last page [`in_hand`]. [`cells`] are arrays in pages. [`save`] and [`load`] are the two
//! ways between a view and an image; [`keep`] is the target of the first. [`grow`] makes the next base, and
//! [`rebase`] lets an array continue from it. [`unique`] is how shared things are changed, [`numbered`] how tables
//! and indexes are found by number.

pub(super) mod base;
pub(super) mod cells;
mod difference;
pub(super) mod directory;
pub(super) mod grow;
pub(super) mod in_hand;
pub(super) mod item;
pub(super) mod keep;
pub(super) mod load;
pub(super) mod numbered;
mod once_array;
pub(super) mod packing;
pub(super) mod page;
pub(super) mod paged;
pub(super) mod pager;
mod rebase;
pub(super) mod refresh;
mod reserve;
pub(super) mod resident_blocks;
pub(super) mod save;
#[cfg(any(test, feature = "testing"))]
pub(super) mod testing;
#[cfg(test)]
mod tests;
pub(super) mod unique;
