//! joedb's files: reading them, writing them, and converting their histories.
//!
//! In reading order: `format` defines the parts of a file. `reader` and `writer` read and write its entries, and know
//! nothing of Annals' tables. `survey` finds the valid part of a file, and `times` its times; `kind` maps
//! joedb's types to Annals' and back. `import` turns entries into transactions, and `export` events into entries. For
//! export, `plan` finds events that belong together, and `live` tracks existing rows. `names` makes names valid in
//! joedb, `unset` handles rows of zeros, `losses` counts values that joedb can't hold, and `text` has words for notes.
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
mod text;
mod times;
mod unset;
mod writer;

pub use export::{Export, Exported, Manner};
pub use import::{Choices, Imported, import};
pub use plan::Plan;
pub use survey::Until;
