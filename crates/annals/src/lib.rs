//! Annals: an embedded relational database that never forgets.

mod db;
mod error;
pub mod event;
pub mod storage;
pub mod store;
pub mod typed;

pub use annals_macros::schema;
pub use annals_schema::{
    Command, Field, FieldNumber, Index, IndexNumber, RowId, Schema, Table, TableNumber, Timestamp,
    Type, Value, ValueRef,
};
pub use db::{
    Commit, Committed, Database, Level, Options, Reader, Recovered, Recovery, Sink, Snapshot,
    Transaction, scan,
};
pub use error::{Error, ErrorKind, Result};
pub use store::{Cell, IndexRows, IndexView, Row, Rows, TableView, View};
