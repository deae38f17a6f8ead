//! Values of fields, owned and borrowed, and their total order.

use std::cmp::Ordering;

use crate::{AnyDecimal, Blob, Date, Decimal, RowId, Timestamp, Uuid, Variant, column_types};

/// Defines [`Value`] and [`ValueRef`], and what turns one into the other.
macro_rules! define_values {
    ($($variant:ident: $owned:ty, $borrowed:ty, $word:literal, $code:literal, $coding:ident, $doc:expr;)*) => {
        /// A value of a field, owned.
        #[derive(Clone, Debug)]
        pub enum Value {
            /// No value; also the null reference.
            Null,
            $(
                #[doc = $doc]
                $variant($owned),
            )*
            /// A `decimal`, whose scale is that of its type.
            Decimal(AnyDecimal),
            /// A variant of an `enum`.
            Enum(Variant),
            /// A reference to the row with this id.
            Reference(RowId),
        }

        /// A value of a field, borrowed.
        #[derive(Clone, Copy, Debug)]
        pub enum ValueRef<'a> {
            /// No value; also the null reference.
            Null,
            $(
                #[doc = $doc]
                $variant($borrowed),
            )*
            /// A `decimal`, whose scale is that of its type.
            Decimal(AnyDecimal),
            /// A variant of an `enum`.
            Enum(Variant),
            /// A reference to the row with this id.
            Reference(RowId),
        }

        impl ValueRef<'_> {
            /// Copies the value into an owned one.
            #[must_use]
            pub fn to_value(self) -> Value {
                match self {
                    Self::Null => Value::Null,
                    $(Self::$variant(v) => Value::$variant(v.into()),)*
                    Self::Decimal(v) => Value::Decimal(v),
                    Self::Enum(v) => Value::Enum(v),
                    Self::Reference(v) => Value::Reference(v),
                }
            }

            /// The place of the value's type in the order of types.
            const fn rank(&self) -> u8 {
                match self {
                    Self::Null => 0,
                    $(Self::$variant(_) => $code,)*
                    Self::Decimal(_) => u8::MAX - 2,
                    Self::Enum(_) => u8::MAX - 1,
                    Self::Reference(_) => u8::MAX,
                }
            }
        }
    };
}

column_types!(all, define_values);

impl Value {
    /// Borrows the value.
    #[must_use]
    pub fn as_ref(&self) -> ValueRef<'_> {
        macro_rules! borrow {
            ($($variant:ident: $rust:ty;)*) => {
                match self {
                    Self::Null => ValueRef::Null,
                    Self::Bool(v) => ValueRef::Bool(*v),
                    $(Self::$variant(v) => ValueRef::$variant(*v),)*
                    Self::String(v) => ValueRef::String(v),
                    Self::Bytes(v) => ValueRef::Bytes(v),
                    Self::Decimal(v) => ValueRef::Decimal(*v),
                    Self::Enum(v) => ValueRef::Enum(*v),
                    Self::Blob(v) => ValueRef::Blob(*v),
                    Self::Reference(v) => ValueRef::Reference(*v),
                }
            };
        }
        column_types!(cells, borrow)
    }
}

/// Makes a `ValueRef` of a Rust value.
macro_rules! from_rust {
    ($($variant:ident: $rust:ty $(, $also:ident)?;)*) => {$(
        impl<'a> From<$rust> for ValueRef<'a> {
            fn from(value: $rust) -> Self {
                Self::$variant(value)
            }
        }
    )*};
}

column_types!(numbers, from_rust);

from_rust! {
    Bool: bool;
    String: &'a str;
    Bytes: &'a [u8];
    Date: Date;
    Uuid: Uuid;
    Decimal: AnyDecimal;
    Enum: Variant;
    Blob: Blob;
    Reference: RowId;
}

impl From<Timestamp> for ValueRef<'_> {
    fn from(value: Timestamp) -> Self {
        Self::Timestamp(value.0)
    }
}

impl<const SCALE: u8> From<Decimal<SCALE>> for ValueRef<'_> {
    fn from(value: Decimal<SCALE>) -> Self {
        Self::Decimal(value.into())
    }
}

impl<'a, const LEN: usize> From<&'a [u8; LEN]> for ValueRef<'a> {
    fn from(value: &'a [u8; LEN]) -> Self {
        Self::Bytes(value)
    }
}

impl<T: Into<Self>> From<Option<T>> for ValueRef<'_> {
    /// `None` is null.
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl ValueRef<'_> {
    /// Compares two values of the same type: null first, then by value; strings and bytes byte by
    /// byte; -0 equals 0; there is one NaN, and it is last. Values of different types compare by
    /// the order of the types.
    #[must_use]
    pub fn total_cmp(&self, other: &Self) -> Ordering {
        macro_rules! compare {
            ($($variant:ident: $rust:ty;)*) => {
                match (self, other) {
                    $((Self::$variant(a), Self::$variant(b)) => a.cmp(b),)*
                    (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
                    (Self::Float32(a), Self::Float32(b)) => compare_floats((*a).into(), (*b).into()),
                    (Self::Float64(a), Self::Float64(b)) => compare_floats(*a, *b),
                    (Self::String(a), Self::String(b)) => a.as_bytes().cmp(b.as_bytes()),
                    (Self::Bytes(a), Self::Bytes(b)) => a.cmp(b),
                    (Self::Timestamp(a), Self::Timestamp(b)) => a.cmp(b),
                    (Self::Date(a), Self::Date(b)) => a.cmp(b),
                    (Self::Uuid(a), Self::Uuid(b)) => a.cmp(b),
                    (Self::Decimal(a), Self::Decimal(b)) => a.cmp(b),
                    (Self::Enum(a), Self::Enum(b)) => a.cmp(b),
                    (Self::Blob(a), Self::Blob(b)) => a.cmp(b),
                    (Self::Reference(a), Self::Reference(b)) => a.cmp(b),
                    _ => self.rank().cmp(&other.rank()),
                }
            };
        }
        column_types!(integers, compare)
    }
}

/// Orders floats with one NaN, last, and -0 equal to 0.
fn compare_floats(a: f64, b: f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (false, false) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        (a_nan, b_nan) => a_nan.cmp(&b_nan),
    }
}

impl PartialEq for ValueRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.total_cmp(other) == Ordering::Equal
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.as_ref() == other.as_ref()
    }
}
