//! Types and values as formats see them that have one kind of integer.

use std::fmt;

use crate::{AnyDecimal, Blob, Date, RowId, Type, Uuid, Value, ValueRef, Variant, column_types};

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
    /// `string` or `json`
    String,
    /// `bytes`, of any length or of one
    Bytes,
    /// `timestamp`
    Timestamp,
    /// A type whose values formats keep as their texts: `date`, `uuid`, `decimal`, `enum`.
    Written,
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
    /// A value that formats keep as its text.
    Written(Written),
    /// A `blob`.
    Blob(Blob),
    /// A reference to the row with this id.
    Reference(RowId),
}

/// A value that formats without such a type keep as its text.
#[derive(Clone, Copy, Debug)]
pub enum Written {
    /// A `date`.
    Date(Date),
    /// A `uuid`.
    Uuid(Uuid),
    /// A `decimal`.
    Decimal(AnyDecimal),
    /// A variant of an `enum`.
    Enum(Variant),
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Date(value) => fmt::Display::fmt(value, f),
            Self::Uuid(value) => fmt::Display::fmt(value, f),
            Self::Decimal(value) => fmt::Display::fmt(value, f),
            Self::Enum(value) => fmt::Display::fmt(value, f),
        }
    }
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
                    Self::String | Self::Json => TypeClass::String,
                    Self::Bytes | Self::FixedBytes(_) => TypeClass::Bytes,
                    Self::Date | Self::Uuid | Self::Decimal(_) | Self::Enum(_) => TypeClass::Written,
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

    /// Reads the text of a [`Written`] value; `None` if the type has no such values, or not this one.
    #[must_use]
    pub fn parse_written(self, text: &str) -> Option<Value> {
        match self {
            Self::Date => text.parse().ok().map(Value::Date),
            Self::Uuid => text.parse().ok().map(Value::Uuid),
            Self::Decimal(scale) => AnyDecimal::parse(text, scale).ok().map(Value::Decimal),
            Self::Enum(variants) => variants.named(text).map(Value::Enum),
            _ => None,
        }
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
                    Self::Date(v) => WideValue::Written(Written::Date(v)),
                    Self::Uuid(v) => WideValue::Written(Written::Uuid(v)),
                    Self::Decimal(v) => WideValue::Written(Written::Decimal(v)),
                    Self::Enum(v) => WideValue::Written(Written::Enum(v)),
                    Self::Blob(v) => WideValue::Blob(v),
                    Self::Reference(v) => WideValue::Reference(v),
                }
            };
        }
        column_types!(integers, widen)
    }
}
