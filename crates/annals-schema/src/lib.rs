//! The schema language of Annals.
//!
//! In reading order: [`Type`] and [`Value`] are what a field holds; [`Schema`] is the model, a log
//! of [`Command`]s and the tables they build.
//!
//! This crate knows nothing of files, and nothing of the runtime.

mod model;
mod time;
mod types;
mod value;

pub use model::{
    Command, Field, FieldNumber, Index, IndexNumber, RowId, Schema, SchemaError, Table, TableNumber,
};
pub use time::Timestamp;
pub use types::Type;
pub use value::{Value, ValueRef};
