//! Types and values as formats see them that have one kind of integer.

use crate::{Blob, RowId, Type, Value, ValueRef, column_types};

/// What a type is, where all integers are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeClass {
    /// `bool`
    Bool,
    /// A signed or unsigned integer.
    Integer {
        /// The least value.
        least: i128,
        /// The largest value.
        most: i128,
    },
    /// `float32`
    Float32,
    /// `float64`
    Float64,
    /// `string`
    String,
    /// `bytes`
    Bytes,
    /// `timestamp`
    Timestamp,
    /// `blob`
    Blob,
    /// `references`
    Reference,
}

/// A value, where all integers are one.
#[derive(Clone, Copy, Debug)]
pub enum WideValue<'a> {
    /// No value.
    Null,
    /// A `bool`.
    Bool(bool),
    /// A value of any integer type.
    Integer(i128),
    /// A `float32`.
    Float32(f32),
    /// A `float64`.
    Float64(f64),
    /// A `string`.
    String(&'a str),
    /// A `bytes`.
    Bytes(&'a [u8]),
    /// A `timestamp`, in microseconds since 1970-01-01T00:00:00Z.
    Timestamp(i64),
    /// A `blob`.
    Blob(Blob),
    /// A reference to the row with this id.
    Reference(RowId),
}

impl Type {
    /// Returns the class of the type.
    #[must_use]
    pub fn class(self) -> TypeClass {
        macro_rules! class {
            ($($variant:ident: $rust:ty;)*) => {
                match self {
                    $(Self::$variant => TypeClass::Integer {
                        least: <$rust>::MIN.into(),
                        most: <$rust>::MAX.into(),
                    },)*
                    Self::Bool => TypeClass::Bool,
                    Self::Float32 => TypeClass::Float32,
                    Self::Float64 => TypeClass::Float64,
                    Self::String => TypeClass::String,
                    Self::Bytes => TypeClass::Bytes,
                    Self::Timestamp => TypeClass::Timestamp,
                    Self::Blob => TypeClass::Blob,
                    Self::Reference(..) => TypeClass::Reference,
                }
            };
        }
        column_types!(integers, class)
    }

    /// Returns a number as a value of this type; `None` if the type is no integer, or has no such value.
    #[must_use]
    pub fn integer(self, number: i128) -> Option<Value> {
        macro_rules! integer {
            ($($variant:ident: $rust:ty;)*) => {
                match self {
                    $(Self::$variant => number.try_into().ok().map(Value::$variant),)*
                    _ => None,
                }
            };
        }
        column_types!(integers, integer)
    }

    /// Reads an integer as Rust writes it; `None` if the type is no integer, or has no such value.
    #[must_use]
    pub fn parse_integer(self, text: &str) -> Option<Value> {
        macro_rules! parse {
            ($($variant:ident: $rust:ty;)*) => {
                match self {
                    $(Self::$variant => text.parse().ok().map(Value::$variant),)*
                    _ => None,
                }
            };
        }
        column_types!(integers, parse)
    }
}

impl<'a> ValueRef<'a> {
    /// Returns the value; an integer is widened to the widest type.
    #[must_use]
    pub fn widen(self) -> WideValue<'a> {
        macro_rules! widen {
            ($($variant:ident: $rust:ty;)*) => {
                match self {
                    Self::Null => WideValue::Null,
                    $(Self::$variant(v) => WideValue::Integer(v.into()),)*
                    Self::Bool(v) => WideValue::Bool(v),
                    Self::Float32(v) => WideValue::Float32(v),
                    Self::Float64(v) => WideValue::Float64(v),
                    Self::String(v) => WideValue::String(v),
                    Self::Bytes(v) => WideValue::Bytes(v),
                    Self::Timestamp(v) => WideValue::Timestamp(v),
                    Self::Blob(v) => WideValue::Blob(v),
                    Self::Reference(v) => WideValue::Reference(v),
                }
            };
        }
        column_types!(integers, widen)
    }
}
