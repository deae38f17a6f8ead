//! Rows, the past, changes and histories of Annals databases as Arrow record batches, and back.
//!
//! ```
//! use annals::{Database, ValueRef};
//! use annals_arrow::{Incoming, Inserting, TableBatches};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let text = "create_table city\nadd_field city name string\n";
//! let schema = annals_schema::parse(text).unwrap().schema;
//! let db = Database::in_memory()?;
//! db.upgrade(&schema, &mut |_, _| unreachable!("it has no custom function"))?;
//! let table = schema.table_named("city").unwrap();
//! db.write(|tx| tx.insert(table.number, &[ValueRef::String("Lille")]).map(drop))?;
//!
//! let batches: Vec<_> = TableBatches::of(&db.read(), table.number)?.collect::<Result<_, _>>()?;
//! assert_eq!(batches[0].num_rows(), 1);
//!
//! let mut incoming = Incoming::new(&schema, table.number, &batches[0].schema())?;
//! let copy = Database::in_memory()?;
//! copy.upgrade(&schema, &mut |_, _| unreachable!("it has no custom function"))?;
//! copy.write(|tx| incoming.insert(&batches[0], &mut Inserting::new(tx, table.number)))?;
//! assert_eq!(copy.read().table(table.number)?.len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! In reading order: `shape` is the Arrow schema of a table, `column` a column that is being filled, `pinned` the
//! values that are handed over without a copy, `batches` and `past` make record batches, `incoming` and `convert` read
//! them.

mod batches;
mod column;
mod convert;
mod incoming;
#[cfg(feature = "ipc")]
pub mod ipc;
#[cfg(feature = "parquet")]
pub mod parquet;
mod past;
mod pinned;
mod shape;

pub use batches::{Batches, Options, TableBatches};
pub use incoming::{Incoming, Inserting, Sink, are_ids};
pub use past::PastBatches;
pub use shape::{TYPE_KEY, field_type_of, table_schema};

use annals::{Error, ErrorKind, Result};
use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

/// Returns the library's error for one of Arrow's; one of the library that went through Arrow comes back as it was.
#[must_use]
pub fn from_arrow(error: ArrowError) -> Error {
    match error {
        ArrowError::ExternalError(error) => match error.downcast::<Error>() {
            Ok(error) => *error,
            Err(error) => Error::new(ErrorKind::Invalid, error.to_string()),
        },
        ArrowError::IoError(message, error) => Error::io(message, error),
        error => Error::new(ErrorKind::Invalid, error.to_string()),
    }
}

/// Returns a step of an iterator of batches, and notes when it was the last: at the end, or with an error.
pub(crate) fn step(
    batch: Result<Option<RecordBatch>>,
    is_over: &mut bool,
) -> Option<Result<RecordBatch, ArrowError>> {
    let batch = batch.map_err(|error| ArrowError::ExternalError(Box::new(error))).transpose();
    *is_over = !matches!(batch, Some(Ok(_)));
    batch
}
