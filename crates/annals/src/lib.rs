//! Annals: an embedded relational database that never forgets.

mod error;
pub mod event;
pub mod storage;
pub mod store;

pub use annals_schema::{
    Command, Field, FieldNumber, Index, IndexNumber, RowId, Schema, Table, TableNumber, Type,
    Value, ValueRef,
};
pub use error::{Error, ErrorKind, Result};
