//! The store: tables and indexes in memory, made of copy-on-write pages.
//!
//! In reading order: a [`page`] is what is shared and copied (the
//! [`reserve`] makes empty ones ahead), a [`directory`] finds pages by number,
//! [`cells`] are arrays in pages; [`unique`] is how shared things are changed, [`numbered`] how they are
//! found by number. A [`column`] (with its [`strings`]) has the values of a field by
//! slot, the [`rows`] say in which slot a row is, and a [`table`] is both. A [`btree`] holds sorted
//! byte strings, made from values by [`key`]; an [`index`] is one. A [`View`] is all tables and
//! indexes, and where [`blobs`] are, at one moment, read through [`row`] and [`lookup`]; the
//! [`Store`] is the writer's side: [`mod@change`] rows, [`vector`] and [`index_run`] whole runs of
//! them, [`define`] tables; what enforced references ask for is in [`mod@reference`] and [`deletion`]. A
//! program gives runs as [`Values`] and reads them as a [`VectorView`], made of [`primitive`] types.
//! [`check`] executes the invariants.
//!
//! The store knows nothing of files and of the journal.

mod blobs;
mod btree;
mod cells;
mod change;
mod check;
mod column;
mod cursor;
mod define;
mod deletion;
mod directory;
mod index;
mod index_run;
mod key;
mod lookup;
mod numbered;
mod page;
mod primitive;
mod reference;
mod reserve;
mod row;
mod rows;
mod strings;
mod table;
mod unique;
mod values;
mod vector;
mod vector_view;
mod view;
mod writer;

pub(crate) use blobs::Piece;
pub use check::Dangling;
pub use cursor::IndexCursor;
pub use lookup::{IndexRows, IndexView};
pub use primitive::Primitive;
pub(crate) use primitive::sealed;
pub use row::{Cell, Row, Rows};
pub use values::Values;
pub use vector_view::VectorView;
pub use view::{TableView, View};
pub use writer::{Store, Uniqueness};
