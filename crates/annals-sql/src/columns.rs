//! Answers as record batches of Arrow.
//!
//! SQLite's columns have no types, those of Arrow have one each: that which the column of a table is declared with, or
//! that of the values.

use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Float64Builder, Int64Builder, StringBuilder,
    TimestampMicrosecondBuilder, UInt64Builder,
};
use arrow_array::{ArrayRef, NullArray, RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, Schema};
use rusqlite::types::ValueRef;

use crate::connection::Answer;
use crate::error::SqlError;
use crate::forms::read_large;

/// The most bytes of a column's texts: Arrow counts them so far.
const MOST_BYTES: usize = i32::MAX as usize;

/// Collects an answer as one record batch; of several statements the last answer counts.
///
/// Types: int64 for whole numbers, float64, utf8 and binary; uint64, bool and timestamp in microseconds where a column is
/// one of a table with that type. A column without any value has the type null.
#[derive(Debug)]
pub struct Columns {
    most: u64,
    bytes: u64,
    rows: usize,
    columns: Vec<Column>,
}

#[derive(Debug)]
struct Column {
    name: String,
    values: Values,
}

/// The values of a column so far.
#[derive(Debug)]
enum Values {
    /// Nulls.
    Nulls(usize),
    Truths(BooleanBuilder),
    Integers(Int64Builder),
    /// Declared as `UINT64`.
    Large(UInt64Builder),
    Times(TimestampMicrosecondBuilder),
    Reals(Float64Builder),
    Texts(StringBuilder),
    Bytes(BinaryBuilder),
}

impl Columns {
    /// Begins; an answer with more bytes than `most` ends the statement.
    #[must_use]
    pub const fn new(most: u64) -> Self {
        Self { most, bytes: 0, rows: 0, columns: Vec::new() }
    }

    /// Returns the answer.
    ///
    /// # Errors
    /// Arrow doesn't take the columns.
    pub fn into_batch(self) -> Result<RecordBatch, SqlError> {
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for column in self.columns {
            let array = column.values.finish();
            fields.push(Field::new(column.name, array.data_type().clone(), true));
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        let made =
            RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options);
        made.map_err(|error| SqlError::Statement(error.to_string()))
    }
}

impl Answer for Columns {
    fn begin(&mut self, columns: &[(String, Option<String>)]) -> Result<(), SqlError> {
        let column = |(name, declared): &(String, Option<String>)| Column {
            name: name.clone(),
            values: Values::declared(declared.as_deref()),
        };
        self.columns = columns.iter().map(column).collect();
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        for (column, &value) in self.columns.iter_mut().zip(values) {
            self.bytes += match value {
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => 8 + bytes.len() as u64,
                _ => 8,
            };
            let kind = column.values.kind();
            if !column.values.push(value, self.rows) {
                let (name, other) = (&column.name, value.data_type());
                return Err(SqlError::Statement(format!(
                    "column {name:?} has {kind} and, in row {}, {other}: one of Arrow has one type, so write CAST({name} \
                     AS TEXT) or another",
                    self.rows
                )));
            }
        }
        if self.bytes > self.most {
            return Err(SqlError::Bytes(self.most));
        }
        self.rows += 1;
        Ok(())
    }
}

impl Values {
    /// Begins a column, with the type that it is declared with.
    fn declared(ty: Option<&str>) -> Self {
        match ty {
            Some("BOOLEAN") => Self::Truths(BooleanBuilder::new()),
            Some("UINT64") => Self::Large(UInt64Builder::new()),
            Some("TIMESTAMP_MICROSECONDS") => {
                Self::Times(TimestampMicrosecondBuilder::new().with_timezone("UTC"))
            }
            Some("FLOAT32" | "FLOAT64") => Self::Reals(Float64Builder::new()),
            Some(ty) if ty == "INTEGER" || ty.starts_with("INT") || ty.starts_with("UINT") => {
                Self::Integers(Int64Builder::new())
            }
            Some(ty) if ty.starts_with("TEXT") => Self::Texts(StringBuilder::new()),
            Some(ty) if ty.ends_with("BLOB") || ty.starts_with("BLOB") => {
                Self::Bytes(BinaryBuilder::new())
            }
            _ => Self::Nulls(0),
        }
    }

    const fn kind(&self) -> &'static str {
        match self {
            Self::Nulls(_) => "nulls",
            Self::Truths(_) => "truth values",
            Self::Integers(_) | Self::Large(_) => "whole numbers",
            Self::Times(_) => "times",
            Self::Reals(_) => "numbers",
            Self::Texts(_) => "texts",
            Self::Bytes(_) => "bytes",
        }
    }

    /// Begins again with the type of the first value that isn't null, after so many nulls.
    fn of(value: ValueRef<'_>, nulls: usize) -> Self {
        let mut values = match value {
            ValueRef::Null => return Self::Nulls(nulls),
            ValueRef::Integer(_) => Self::Integers(Int64Builder::new()),
            ValueRef::Real(_) => Self::Reals(Float64Builder::new()),
            ValueRef::Text(_) => Self::Texts(StringBuilder::new()),
            ValueRef::Blob(_) => Self::Bytes(BinaryBuilder::new()),
        };
        for _ in 0..nulls {
            values.push_null();
        }
        values
    }

    fn push_null(&mut self) {
        match self {
            Self::Nulls(count) => *count += 1,
            Self::Truths(values) => values.append_null(),
            Self::Integers(values) => values.append_null(),
            Self::Large(values) => values.append_null(),
            Self::Times(values) => values.append_null(),
            Self::Reals(values) => values.append_null(),
            Self::Texts(values) => values.append_null(),
            Self::Bytes(values) => values.append_null(),
        }
    }

    /// Adds a value after so many rows; false if the column has another type.
    fn push(&mut self, value: ValueRef<'_>, rows: usize) -> bool {
        if matches!(self, Self::Nulls(_)) {
            *self = Self::of(value, rows);
        }
        if let (Self::Integers(values), ValueRef::Real(_)) = (&mut *self, value) {
            *self = Self::Reals(reals(values));
        }
        match (self, value) {
            (values, ValueRef::Null) => values.push_null(),
            (Self::Truths(values), ValueRef::Integer(value)) => values.append_value(value != 0),
            (Self::Integers(values), ValueRef::Integer(value)) => values.append_value(value),
            (Self::Times(values), ValueRef::Integer(value)) => values.append_value(value),
            (Self::Large(values), ValueRef::Integer(value)) => match u64::try_from(value) {
                Ok(value) => values.append_value(value),
                Err(_) => return false,
            },
            (Self::Large(values), ValueRef::Blob(bytes)) => match read_large(bytes) {
                Some(value) => values.append_value(value),
                None => return false,
            },
            (Self::Reals(values), ValueRef::Real(value)) => values.append_value(value),
            (Self::Reals(values), ValueRef::Integer(value)) => values.append_value(value as f64),
            // The form of what SQLite has no number for.
            (Self::Reals(values), ValueRef::Text(b"NaN")) => values.append_value(f64::NAN),
            (Self::Texts(values), ValueRef::Text(bytes)) => match std::str::from_utf8(bytes) {
                Ok(text) if values.values_slice().len() + text.len() <= MOST_BYTES => {
                    values.append_value(text);
                }
                _ => return false,
            },
            (Self::Bytes(values), ValueRef::Blob(bytes))
                if values.values_slice().len() + bytes.len() <= MOST_BYTES =>
            {
                values.append_value(bytes);
            }
            _ => return false,
        }
        true
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Nulls(count) => Arc::new(NullArray::new(count)),
            Self::Truths(mut values) => Arc::new(values.finish()),
            Self::Integers(mut values) => Arc::new(values.finish()),
            Self::Large(mut values) => Arc::new(values.finish()),
            Self::Times(mut values) => Arc::new(values.finish()),
            Self::Reals(mut values) => Arc::new(values.finish()),
            Self::Texts(mut values) => Arc::new(values.finish()),
            Self::Bytes(mut values) => Arc::new(values.finish()),
        }
    }
}

/// Returns whole numbers as numbers: a column that has both is one of numbers.
fn reals(values: &mut Int64Builder) -> Float64Builder {
    let mut reals = Float64Builder::new();
    for value in &values.finish() {
        reals.append_option(value.map(|value| value as f64));
    }
    reals
}
