//! The store: tables and indexes in memory, made of copy-on-write pages.
//!
//! In reading order: [`pages`] are the memory; [`columns`] have the values of a field by slot, the
//! [`rows`] say in which slot a row is, and a [`table`] is both. A [`btree`] holds sorted byte
//! strings; an [`index`] is one. A [`View`] is all tables and indexes, and where [`blobs`] are, at one
//! moment, read through [`row`] and the index's lookups and cursors; the [`Store`] is the writer's
//! side: [`mod@change`] rows, [`vector`] whole runs of them, [`define`] tables; what enforced
//! references ask for is in [`mod@reference`] and [`deletion`], what becomes of [`erased`] values in theirs. [`mod@save`] is the way of a view into
//! an image and back. [`check`] executes the invariants.
//!
//! The store knows nothing of files and of the journal.

mod blobs;
mod btree;
mod change;
mod check;
mod columns;
mod define;
mod deletion;
mod erased;
mod index;
mod pages;
mod reference;
mod retired;
mod row;
mod rows;
mod save;
mod successor;
mod table;
mod vector;
mod view;
mod writer;

pub(crate) use blobs::Piece as BlobPiece;
pub use check::Dangling;
pub use columns::fetched::Fetched;
pub use columns::primitive::Primitive;
pub(crate) use columns::primitive::sealed;
#[cfg(test)]
pub(crate) use columns::primitive::{from_cells, to_cells};
pub use columns::values::Values;
pub use columns::vector_view::VectorView;
pub use index::cursor::IndexCursor;
pub use index::each::FirstOfEach;
pub use index::lookup::{IndexRows, IndexView};
pub(crate) use pages::base::BaseRoot;
pub(crate) use pages::pager::Pager;
pub(crate) use pages::save::Saved;
pub(crate) use pages::save::{Keep, Piece};
#[cfg(test)]
pub(crate) use pages::testing::TestImage;
pub use row::{Cell, Row, Rows};
pub(crate) use successor::{Rescue, Shown};
pub use view::{TableView, View};
pub use writer::{Store, Uniqueness};
