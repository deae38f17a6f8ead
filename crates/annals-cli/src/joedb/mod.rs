//! joedb's files: reading them, writing them, and what their histories are in Annals.
//!
//! In reading order: `format` says what a file is made of; `reader` and `writer` take and make its
//! entries, and know nothing of Annals' tables; `survey` finds the part of a file that counts, and `times` when
//! it was written; `kind` says which
//! of Annals' types stand for joedb's, and the other way; `import` turns entries into transactions, `export` events
//! into entries, with the help of `plan`, which events belong together, `live`, the rows that are there, `names`, those
//! that joedb takes, `unset`, rows of zeros, and `losses`, what joedb can't hold.
//!
//! The format isn't Annals': it is described in `docs/joedb.md`.
#![deny(clippy::indexing_slicing)]

mod export;
mod format;
mod import;
mod kind;
mod live;
mod losses;
mod names;
mod numbers;
mod plan;
mod reader;
mod survey;
mod times;
mod unset;
mod writer;

pub(crate) use export::{Export, Exported, Manner};
pub(crate) use import::{Choices, Imported, import};
pub(crate) use plan::Plan;
pub(crate) use survey::Until;
