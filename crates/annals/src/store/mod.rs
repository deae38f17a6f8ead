//! The store: tables and indexes in memory, made of copy-on-write pages.
//!
//! In reading order: a [`page`] is what is shared and copied (the
//! [`reserve`] makes empty ones ahead), a [`directory`] finds pages by number,
//! [`cells`] are arrays in pages; [`unique`] is how shared things are changed, [`numbered`] how they are
//! found by number. A [`column`] (with its [`strings`]) has the values of a field by
//! slot, the [`rows`] say in which slot a row is, and a [`table`] is both. A [`btree`] holds sorted
//! byte strings, made from values by [`key`]; an [`index`] is one. A [`View`] is all tables and
//! indexes at one moment, read through [`row`] and [`lookup`]; the [`Store`] is the writer's side:
//! [`mod@change`] rows, [`define`] tables. [`check`] executes the invariants.
//!
//! The store knows nothing of files and of the journal.

mod btree;
mod cells;
mod change;
mod check;
mod column;
mod define;
mod directory;
mod index;
mod key;
mod lookup;
mod numbered;
mod page;
mod reserve;
mod row;
mod rows;
mod strings;
mod table;
mod unique;
mod view;
mod writer;

pub use lookup::{IndexRows, IndexView};
pub use row::{Cell, Row, Rows};
pub use view::{TableView, View};
pub use writer::{Store, Uniqueness};
