//! Answers as record batches of Arrow.
//!
//! SQLite's columns have no types, those of Arrow have one each: that which the column of a table is declared with, or
//! that of the values.

mod values;

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{
    Array as _, ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchOptions, RecordBatchReader,
    new_null_array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use rusqlite::types::ValueRef;

use crate::connection::Answer;
use crate::error::SqlError;
use crate::render::keys;
use values::{Values, reals};

/// The most rows of a batch.
const MOST_ROWS: usize = 64 * 1024;
/// The bytes after which a batch ends, so that texts have far fewer than the 2 GiB that Arrow counts.
const MOST_BYTES: u64 = 64 << 20;

/// Collects an answer as record batches; of several statements the last answer counts.
///
/// Types: int64 for whole numbers, float64, utf8 and binary. Where a column is one of a table with that type: uint64, bool,
/// timestamp in microseconds, date32, and decimal128 of 38 digits. A column without any value has the type null.
///
/// A name that was there gets a number, as in JSON. Memory: that of the answer, but for batches that were taken.
#[derive(Debug)]
pub struct Columns {
    most: u64,
    bytes: u64,
    /// The bytes at the end of the last whole batch.
    begun: u64,
    /// The rows after the last whole batch.
    rows: usize,
    /// The rows in batches that are whole.
    before: usize,
    columns: Vec<Column>,
    whole: Vec<Whole>,
}

#[derive(Debug)]
struct Column {
    name: String,
    values: Values,
    /// True if the type is that of a table's column: it stays as it is.
    is_declared: bool,
}

/// The rows of a batch, whose columns may get another type by later rows.
#[derive(Debug)]
struct Whole {
    rows: usize,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    /// Begins; an answer with more bytes than `most` ends the statement.
    #[must_use]
    pub const fn new(most: u64) -> Self {
        Self {
            most,
            bytes: 0,
            begun: 0,
            rows: 0,
            before: 0,
            columns: Vec::new(),
            whole: Vec::new(),
        }
    }

    /// Takes the batches that are whole, if no later row can change their types; else none, and they stay.
    ///
    /// # Errors
    /// Arrow doesn't take the columns.
    pub fn take_whole(&mut self) -> Result<Vec<RecordBatch>, SqlError> {
        match self.columns.iter().all(|column| column.is_declared) {
            true => self.take(),
            false => Ok(Vec::new()),
        }
    }

    /// Takes the batches up to the last row, at least one; the answer is over.
    ///
    /// # Errors
    /// Arrow doesn't take the columns.
    pub fn take_all(&mut self) -> Result<Vec<RecordBatch>, SqlError> {
        if self.rows > 0 || self.before == 0 {
            self.cut();
        }
        self.take()
    }

    /// Returns the answer, in at least one batch.
    ///
    /// # Errors
    /// Arrow doesn't take the columns.
    pub fn into_reader(
        mut self,
    ) -> Result<impl RecordBatchReader + Send + 'static + use<>, SqlError> {
        let batches = self.take_all()?;
        let schema = self.schema();
        Ok(RecordBatchIterator::new(batches.into_iter().map(Ok), schema))
    }

    /// Returns the types so far.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        let column = |column: &Column| Field::new(&column.name, column.values.data_type(), true);
        Arc::new(Schema::new(self.columns.iter().map(column).collect::<Vec<_>>()))
    }

    /// Ends a batch.
    fn cut(&mut self) {
        let arrays = self.columns.iter_mut().map(|column| column.values.finish()).collect();
        let rows = std::mem::take(&mut self.rows);
        (self.before, self.begun) = (self.before + rows, self.bytes);
        self.whole.push(Whole { rows, arrays });
    }

    fn take(&mut self) -> Result<Vec<RecordBatch>, SqlError> {
        let schema = self.schema();
        let batch = |whole: Whole| {
            let columns = whole.arrays.iter().zip(schema.fields());
            let arrays = columns.map(|(array, field)| widened(array, field.data_type()));
            let options = RecordBatchOptions::new().with_row_count(Some(whole.rows));
            RecordBatch::try_new_with_options(Arc::clone(&schema), arrays.collect(), &options)
                .map_err(|error| SqlError::Statement(error.to_string()))
        };
        std::mem::take(&mut self.whole).into_iter().map(batch).collect()
    }
}

/// Returns values as those of the type that their column has got by later rows.
fn widened(array: &ArrayRef, ty: &DataType) -> ArrayRef {
    match array.as_primitive_opt::<Int64Type>() {
        _ if array.data_type() == &DataType::Null => new_null_array(ty, array.len()),
        Some(numbers) if *ty == DataType::Float64 => Arc::new(reals(numbers)),
        _ => Arc::clone(array),
    }
}

impl Answer for Columns {
    fn begin(&mut self, columns: &[(String, Option<String>)]) -> Result<(), SqlError> {
        let column = |(name, (_, declared)): (String, &(_, Option<String>))| {
            let values = Values::declared(declared.as_deref());
            let is_declared = !matches!(values, Values::Nulls(_));
            Column { name, values, is_declared }
        };
        *self = Self::new(self.most);
        self.columns = keys(columns).into_iter().zip(columns).map(column).collect();
        Ok(())
    }

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        for (column, &value) in self.columns.iter_mut().zip(values) {
            self.bytes += match value {
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => 8 + bytes.len() as u64,
                _ => 8,
            };
            let kind = column.values.kind();
            let is_taken = match column.is_declared {
                true => column.values.push(value),
                false => column.values.push_any(value, self.rows),
            };
            if !is_taken {
                let (name, row) = (&column.name, self.before + self.rows);
                let other = shown(value);
                return Err(SqlError::Statement(format!(
                    "column {name:?} has {kind} and, in row {row} of the answer, {other}: one of Arrow has one type, \
                     so write CAST({name} AS TEXT) or another"
                )));
            }
        }
        if self.bytes > self.most {
            return Err(SqlError::Bytes(self.most));
        }
        self.rows += 1;
        if self.rows == MOST_ROWS || self.bytes - self.begun > MOST_BYTES {
            self.cut();
        }
        Ok(())
    }
}

/// Returns a value for a message.
fn shown(value: ValueRef<'_>) -> String {
    let mut text = String::new();
    match value {
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(value) => text = format!("the text {value:?}"),
            Err(_) => text.push_str("a text that isn't UTF-8"),
        },
        ValueRef::Blob(bytes) if crate::read_large(bytes).is_none() => text.push_str("bytes"),
        value => crate::push_plain(&mut text, value),
    }
    match text.char_indices().nth(100) {
        Some((end, _)) => text.split_at(end).0.to_owned() + "..",
        None => text,
    }
}
