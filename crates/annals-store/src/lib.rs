//! The store of [Annals](https://docs.rs/annals): tables and indexes in copy-on-write pages, and the image that holds
//! them in a file. Programs use the crate `annals`, which re-exports the parts that they need.
//!
//! In reading order: [`pages`] are the memory; [`columns`] have the values of a field by slot, the [`rows`] say in
//! which slot a row is, and a [`table`] is both. A [`btree`] holds sorted byte strings; an [`index`] is one. A
//! [`View`] is all tables and indexes, and the positions of [`blobs`], at one moment. It is read through [`row`] and
//! the index's lookups and cursors. The [`Store`] is the writer's side: [`mod@change`] rows, [`vector`] whole runs of
//! them, [`define`] tables; what a load [owes](owed) to the indexes is merged into them later. Checks of enforced references are in [`mod@reference`] and [`deletion`], the handling of
//! [`erased`] values in theirs. [`mod@save`] is the way of a view into an image and back. [`check`] executes the
//! invariants.
//!
//! The tables know nothing of files, and nothing here knows the journal. An [`mod@image`] is a file of pages. For each
//! stored page the tables know only its entry. The [`arena`] is the memory of pages.
#![allow(
    rustdoc::private_intra_doc_links,
    reason = "the text above the code is for those who work there, and names its private parts"
)]

mod ahead;
mod arena;
mod blobs;
mod btree;
mod cell_of;
mod change;
mod check;
#[doc(hidden)]
pub mod collation;
mod columns;
mod define;
mod deletion;
mod enforcement;
mod entries;
mod erased;
mod foreign;
pub mod history;
mod ids;
pub mod image;
mod index;
mod index_build;
mod lazy;
mod lookup;
mod owed;
mod pages;
mod past;
mod pieces;
mod previous_view;
mod reference;
mod row;
mod row_runs;
mod row_walk;
mod rows;
mod save;
mod saved;
mod savepoint;
mod select;
mod table;
mod vector;
mod vector_view;
mod view;
mod writer;

use annals_storage::{Error, ErrorKind, Result, Violation};

pub use arena::{PagesOfProcess, pages_of_process};
pub use blobs::Piece as BlobPiece;
#[doc(hidden)]
pub use cell_of::CellOf;
pub use check::Dangling;
pub use columns::fetched::Fetched;
#[doc(hidden)]
pub use columns::primitive::sealed;
pub use columns::primitive::{Primitive, VariantNumber};
pub use columns::primitive::{from_cells, to_cells};
pub use columns::values::Values;
pub use lookup::cursor::IndexCursor;
pub use lookup::each::FirstOfEach;
pub use lookup::groups::Groups;
pub use lookup::{IndexRows, IndexView};
pub use pages::base::BaseRoot;
pub use pages::keep::{Keep, Piece};
pub use pages::pager::{Pager, PagerUse};
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub use pages::testing::TestImage;
pub use past::{Past, PastRow};
pub use row::{Cell, Row};
#[doc(hidden)]
pub use row_runs::RowRuns;
pub use row_walk::Rows;
pub use saved::SavedView as Saved;
pub use savepoint::Savepoint;
pub use select::Selected;
pub use vector_view::VectorView;
pub use view::{TableView, View};
pub use writer::{Store, Uniqueness};
