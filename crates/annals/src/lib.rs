//! Annals: an embedded relational database that never forgets.
#![allow(
    rustdoc::private_intra_doc_links,
    reason = "the text above a folder's code is for those who work there, and names its private parts"
)]

mod db;
mod error;
pub mod event;
pub mod journal;
pub mod storage;
pub mod store;
pub mod typed;

pub use annals_macros::schema;
pub use annals_schema::{
    Command, Field, FieldNumber, Index, IndexNumber, RowId, Schema, Table, TableNumber, Timestamp,
    Type, Value, ValueRef,
};
pub use db::{
    Commit, Committed, Database, Inspection, Options, Reader, Sink, Snapshot, Transaction, inspect,
    inspect_in, scan, scan_in,
};
pub use error::{Error, ErrorKind, Result};
pub use journal::{Cut, Level, Point, Recovered, Recovery};
pub use store::{Cell, IndexRows, IndexView, Row, Rows, TableView, View};
