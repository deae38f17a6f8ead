//! CSV: a file for each table, and a file with the schema beside them.
//!
//! An unquoted empty cell is null; the empty string is quoted.

mod infer;
mod numbers;
mod records;
mod source;
mod write;

pub(crate) use infer::infer;
pub(crate) use source::{Folder, Manner, Source, folder};
pub(crate) use write::{FORMAT, Format, SCHEMA_FILE, write_folder};
