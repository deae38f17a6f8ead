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

pub(crate) use read::{Source, import, twice};
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
