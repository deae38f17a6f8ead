//! The values of a column.

use std::sync::Arc;

use annals::Date;
use annals::model::AnyDecimal;
use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float64Builder, Int64Builder,
    StringBuilder, TimestampMicrosecondBuilder, UInt64Builder,
};
use arrow_array::{ArrayRef, Float64Array, Int64Array, NullArray};
use arrow_schema::{DataType, TimeUnit};
use rusqlite::types::ValueRef;

use crate::forms::read_large;

/// The values of a column since the last whole batch.
#[derive(Debug)]
pub(super) enum Values {
    /// Nulls.
    Nulls(usize),
    Truths(BooleanBuilder),
    Integers(Int64Builder),
    /// Declared as `UINT64`.
    Large(UInt64Builder),
    Times(TimestampMicrosecondBuilder),
    Days(Date32Builder),
    Decimals(Decimal128Builder, u8),
    Reals(Float64Builder),
    Texts(StringBuilder),
    Bytes(BinaryBuilder),
}

/// Does something with the builder of each kind.
macro_rules! each {
    ($values:expr, $count:ident => $nulls:expr, $builder:ident => $do:expr) => {
        match $values {
            Self::Nulls($count) => $nulls,
            Self::Truths($builder) => $do,
            Self::Integers($builder) => $do,
            Self::Large($builder) => $do,
            Self::Times($builder) => $do,
            Self::Days($builder) => $do,
            Self::Decimals($builder, _) => $do,
            Self::Reals($builder) => $do,
            Self::Texts($builder) => $do,
            Self::Bytes($builder) => $do,
        }
    };
}

impl Values {
    /// Begins a column, with the type that it is declared with.
    pub(super) fn declared(ty: Option<&str>) -> Self {
        match ty.unwrap_or_default() {
            "BOOLEAN" => Self::Truths(BooleanBuilder::new()),
            "UINT64" => Self::Large(UInt64Builder::new()),
            "TIMESTAMP_MICROSECONDS" => {
                Self::Times(TimestampMicrosecondBuilder::new().with_timezone("UTC"))
            }
            "FLOAT32" | "FLOAT64" => Self::Reals(Float64Builder::new()),
            "TEXT DATE" => Self::Days(Date32Builder::new()),
            ty if ty == "INTEGER" || ty.starts_with("INT") || ty.starts_with("UINT") => {
                Self::Integers(Int64Builder::new())
            }
            ty if ty.starts_with("TEXT") => match scale(ty) {
                Some(scale) => {
                    let ty = DataType::Decimal128(38, scale.cast_signed());
                    Self::Decimals(Decimal128Builder::new().with_data_type(ty), scale)
                }
                None => Self::Texts(StringBuilder::new()),
            },
            ty if ty.ends_with("BLOB") || ty.starts_with("BLOB") => {
                Self::Bytes(BinaryBuilder::new())
            }
            _ => Self::Nulls(0),
        }
    }

    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Nulls(_) => "nulls",
            Self::Truths(_) => "truth values",
            Self::Integers(_) | Self::Large(_) => "whole numbers",
            Self::Times(_) => "times",
            Self::Days(_) => "days",
            Self::Decimals(..) => "decimals of at most 38 digits",
            Self::Reals(_) => "numbers",
            Self::Texts(_) => "texts",
            Self::Bytes(_) => "bytes",
        }
    }

    pub(super) fn data_type(&self) -> DataType {
        match self {
            Self::Nulls(_) => DataType::Null,
            Self::Truths(_) => DataType::Boolean,
            Self::Integers(_) => DataType::Int64,
            Self::Large(_) => DataType::UInt64,
            Self::Times(_) => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Self::Days(_) => DataType::Date32,
            Self::Decimals(_, scale) => DataType::Decimal128(38, scale.cast_signed()),
            Self::Reals(_) => DataType::Float64,
            Self::Texts(_) => DataType::Utf8,
            Self::Bytes(_) => DataType::Binary,
        }
    }

    /// Begins again with the type of the first value that isn't null, after so many nulls.
    fn of(value: ValueRef<'_>, nulls: usize) -> Self {
        let mut values = match value {
            ValueRef::Null => return Self::Nulls(nulls),
            ValueRef::Integer(_) => Self::Integers(Int64Builder::new()),
            ValueRef::Real(_) => Self::Reals(Float64Builder::new()),
            ValueRef::Text(_) => Self::Texts(StringBuilder::new()),
            ValueRef::Blob(bytes) if read_large(bytes).is_some() => {
                Self::Large(UInt64Builder::new())
            }
            ValueRef::Blob(_) => Self::Bytes(BinaryBuilder::new()),
        };
        for _ in 0..nulls {
            values.push_null();
        }
        values
    }

    fn push_null(&mut self) {
        each!(self, count => *count += 1, values => values.append_null());
    }

    /// Adds a value to a column of no declared type, after so many rows of the batch; false if it has another type.
    pub(super) fn push_any(&mut self, value: ValueRef<'_>, rows: usize) -> bool {
        if matches!(self, Self::Nulls(_)) {
            *self = Self::of(value, rows);
        }
        if let (Self::Integers(values), ValueRef::Real(_)) = (&mut *self, value) {
            let mut wider = Float64Builder::new();
            wider.append_array(&reals(&values.finish()));
            *self = Self::Reals(wider);
        }
        if let (Self::Integers(values), ValueRef::Blob(bytes)) = (&mut *self, value)
            && read_large(bytes).is_some()
        {
            let known = values.finish();
            let mut wider = UInt64Builder::new();
            for number in &known {
                match number.map(u64::try_from).transpose() {
                    Ok(number) => wider.append_option(number),
                    Err(_) => return false,
                }
            }
            *self = Self::Large(wider);
        }
        self.push(value)
    }

    /// Adds a value; false if the column has another type.
    pub(super) fn push(&mut self, value: ValueRef<'_>) -> bool {
        match (self, value) {
            (values, ValueRef::Null) => values.push_null(),
            (Self::Truths(values), ValueRef::Integer(value @ (0 | 1))) => {
                values.append_value(value == 1);
            }
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
            (Self::Bytes(values), ValueRef::Blob(bytes)) => values.append_value(bytes),
            (values, ValueRef::Text(bytes)) => {
                return std::str::from_utf8(bytes).is_ok_and(|text| values.push_text(text));
            }
            _ => return false,
        }
        true
    }

    fn push_text(&mut self, text: &str) -> bool {
        match self {
            Self::Texts(values) => values.append_value(text),
            Self::Days(values) => match text.parse::<Date>() {
                Ok(day) => values.append_value(day.0),
                Err(_) => return false,
            },
            Self::Decimals(values, scale) => match AnyDecimal::parse(text, *scale) {
                Ok(decimal) if decimal.units().unsigned_abs() < 10_u128.pow(38) => {
                    values.append_value(decimal.units());
                }
                _ => return false,
            },
            _ => return false,
        }
        true
    }

    /// Returns the values, and begins again with the same type.
    pub(super) fn finish(&mut self) -> ArrayRef {
        each!(self, count => Arc::new(NullArray::new(std::mem::take(count))), values => Arc::new(values.finish()))
    }
}

/// Returns the digits after the point of a column of decimals.
fn scale(declared: &str) -> Option<u8> {
    declared.strip_prefix("TEXT DECIMAL(")?.strip_suffix(')')?.parse().ok()
}

/// Returns whole numbers as numbers: a column that has both is one of numbers.
pub(super) fn reals(numbers: &Int64Array) -> Float64Array {
    numbers.iter().map(|number| number.map(|number| number as f64)).collect()
}
