//! JSON documents and lines: with a schema of ours, and any others.
//!
//! ```text
//! {"annals":1,"schema":["create_table city",..],
//! "counts":{"city":{"rows":1,"next_id":1}},
//! "tables":{
//! "city":[
//! {"id":0,"name":"Lille"}]}}
//!
//! {"annals":1,"schema":[..],"counts":{..}}
//! {"city":{"id":0,"name":"Lille"}}
//! ```

mod foreign;
mod read;
mod reader;
mod write;

use std::path::{Path, PathBuf};

use annals::{Error, Result};

use crate::files;

pub(crate) use read::import;
pub(crate) use reader::{Reader, Token};
pub(crate) use write::{document, lines};

/// The version of the layout.
const VERSION: &str = "1";

/// The layout of rows in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// One value.
    Document,
    /// A value in each line.
    Lines,
}

/// A file to take in.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// The layout of its rows.
    pub(crate) layout: Layout,
    /// True if texts that are times become such, in a file without a schema.
    pub(crate) times: bool,
}

impl Source {
    /// Opens the file; `bar` shows the progress of reading.
    pub(super) fn open(&self, bar: &indicatif::ProgressBar) -> Result<Reader> {
        let mut reader = Reader::new(files::open_input(&self.path, bar)?, &self.path);
        reader.skip_mark()?;
        Ok(reader)
    }
}

/// Returns the name that a table of a file without names of tables gets.
fn stem(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.split('.').next().unwrap_or_default().to_owned()
}

/// Returns the error for a key that an object has already.
pub(crate) fn twice(reader: &Reader, key: &str) -> Error {
    reader.wrong(format_args!("the key {key:?} is there twice"))
}
