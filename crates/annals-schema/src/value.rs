//! Values of fields, owned and borrowed, and their total order.

use std::cmp::Ordering;

use crate::{RowId, Timestamp};

/// A blob: its number, which names bytes in the journal. Numbers start at 1, and are never used
/// again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)] // as a row's id
pub struct Blob(pub u64);

impl Blob {
    /// The largest number a blob can have.
    pub const MAX: Self = Self(Self::LARGEST);
    pub(crate) const LARGEST: u64 = i64::MAX as u64 - 1;
}

/// A value of a field, owned.
#[derive(Clone, Debug)]
pub enum Value {
    /// No value; also the null reference.
    Null,
    /// A `bool`.
    Bool(bool),
    /// An `int8`.
    Int8(i8),
    /// An `int16`.
    Int16(i16),
    /// An `int32`.
    Int32(i32),
    /// An `int64`.
    Int64(i64),
    /// A `uint8`.
    UInt8(u8),
    /// A `uint16`.
    UInt16(u16),
    /// A `uint32`.
    UInt32(u32),
    /// A `uint64`.
    UInt64(u64),
    /// A `float32`.
    Float32(f32),
    /// A `float64`.
    Float64(f64),
    /// A `string`.
    String(String),
    /// A `bytes`.
    Bytes(Vec<u8>),
    /// A `timestamp`, in microseconds since 1970-01-01T00:00:00Z.
    Timestamp(i64),
    /// A `blob`.
    Blob(Blob),
    /// A reference to the row with this id.
    Reference(RowId),
}

/// A value of a field, borrowed.
#[derive(Clone, Copy, Debug)]
pub enum ValueRef<'a> {
    /// See [`Value::Null`].
    Null,
    /// See [`Value::Bool`].
    Bool(bool),
    /// See [`Value::Int8`].
    Int8(i8),
    /// See [`Value::Int16`].
    Int16(i16),
    /// See [`Value::Int32`].
    Int32(i32),
    /// See [`Value::Int64`].
    Int64(i64),
    /// See [`Value::UInt8`].
    UInt8(u8),
    /// See [`Value::UInt16`].
    UInt16(u16),
    /// See [`Value::UInt32`].
    UInt32(u32),
    /// See [`Value::UInt64`].
    UInt64(u64),
    /// See [`Value::Float32`].
    Float32(f32),
    /// See [`Value::Float64`].
    Float64(f64),
    /// See [`Value::String`].
    String(&'a str),
    /// See [`Value::Bytes`].
    Bytes(&'a [u8]),
    /// See [`Value::Timestamp`].
    Timestamp(i64),
    /// See [`Value::Blob`].
    Blob(Blob),
    /// See [`Value::Reference`].
    Reference(RowId),
}

impl Value {
    /// Borrows the value.
    #[must_use]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Null => ValueRef::Null,
            Self::Bool(v) => ValueRef::Bool(*v),
            Self::Int8(v) => ValueRef::Int8(*v),
            Self::Int16(v) => ValueRef::Int16(*v),
            Self::Int32(v) => ValueRef::Int32(*v),
            Self::Int64(v) => ValueRef::Int64(*v),
            Self::UInt8(v) => ValueRef::UInt8(*v),
            Self::UInt16(v) => ValueRef::UInt16(*v),
            Self::UInt32(v) => ValueRef::UInt32(*v),
            Self::UInt64(v) => ValueRef::UInt64(*v),
            Self::Float32(v) => ValueRef::Float32(*v),
            Self::Float64(v) => ValueRef::Float64(*v),
            Self::String(v) => ValueRef::String(v),
            Self::Bytes(v) => ValueRef::Bytes(v),
            Self::Timestamp(v) => ValueRef::Timestamp(*v),
            Self::Blob(v) => ValueRef::Blob(*v),
            Self::Reference(v) => ValueRef::Reference(*v),
        }
    }
}

/// Makes a `ValueRef` of a Rust value.
macro_rules! from_rust {
    ($($rust:ty => $variant:ident),+ $(,)?) => {$(
        impl<'a> From<$rust> for ValueRef<'a> {
            fn from(value: $rust) -> Self {
                Self::$variant(value)
            }
        }
    )+};
}

from_rust! {
    bool => Bool,
    i8 => Int8,
    i16 => Int16,
    i32 => Int32,
    i64 => Int64,
    u8 => UInt8,
    u16 => UInt16,
    u32 => UInt32,
    u64 => UInt64,
    f32 => Float32,
    f64 => Float64,
    &'a str => String,
    &'a [u8] => Bytes,
    Blob => Blob,
    RowId => Reference,
}

impl From<Timestamp> for ValueRef<'_> {
    fn from(value: Timestamp) -> Self {
        Self::Timestamp(value.0)
    }
}

impl<T: Into<Self>> From<Option<T>> for ValueRef<'_> {
    /// `None` is null.
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl ValueRef<'_> {
    /// Copies the value into an owned one.
    #[must_use]
    pub fn to_value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(v) => Value::Bool(v),
            Self::Int8(v) => Value::Int8(v),
            Self::Int16(v) => Value::Int16(v),
            Self::Int32(v) => Value::Int32(v),
            Self::Int64(v) => Value::Int64(v),
            Self::UInt8(v) => Value::UInt8(v),
            Self::UInt16(v) => Value::UInt16(v),
            Self::UInt32(v) => Value::UInt32(v),
            Self::UInt64(v) => Value::UInt64(v),
            Self::Float32(v) => Value::Float32(v),
            Self::Float64(v) => Value::Float64(v),
            Self::String(v) => Value::String(v.to_owned()),
            Self::Bytes(v) => Value::Bytes(v.to_vec()),
            Self::Timestamp(v) => Value::Timestamp(v),
            Self::Blob(v) => Value::Blob(v),
            Self::Reference(v) => Value::Reference(v),
        }
    }

    /// Compares two values of the same type: null first, then by value; strings and bytes byte by
    /// byte; -0 equals 0; there is one NaN, and it is last. Values of different types compare by
    /// the order of the types.
    #[must_use]
    pub fn total_cmp(&self, other: &Self) -> Ordering {
        use ValueRef as V;
        match (self, other) {
            (V::Null, V::Null) => Ordering::Equal,
            (V::Bool(a), V::Bool(b)) => a.cmp(b),
            (V::Int8(a), V::Int8(b)) => a.cmp(b),
            (V::Int16(a), V::Int16(b)) => a.cmp(b),
            (V::Int32(a), V::Int32(b)) => a.cmp(b),
            (V::Int64(a), V::Int64(b)) | (V::Timestamp(a), V::Timestamp(b)) => a.cmp(b),
            (V::UInt8(a), V::UInt8(b)) => a.cmp(b),
            (V::UInt16(a), V::UInt16(b)) => a.cmp(b),
            (V::UInt32(a), V::UInt32(b)) => a.cmp(b),
            (V::UInt64(a), V::UInt64(b)) => a.cmp(b),
            (V::Float32(a), V::Float32(b)) => compare_floats(f64::from(*a), f64::from(*b)),
            (V::Float64(a), V::Float64(b)) => compare_floats(*a, *b),
            (V::String(a), V::String(b)) => a.as_bytes().cmp(b.as_bytes()),
            (V::Bytes(a), V::Bytes(b)) => a.cmp(b),
            (V::Blob(a), V::Blob(b)) => a.cmp(b),
            (V::Reference(a), V::Reference(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    /// The place of the value's type in the order of types.
    const fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Bool(_) => 1,
            Self::Int8(_) => 2,
            Self::Int16(_) => 3,
            Self::Int32(_) => 4,
            Self::Int64(_) => 5,
            Self::UInt8(_) => 6,
            Self::UInt16(_) => 7,
            Self::UInt32(_) => 8,
            Self::UInt64(_) => 9,
            Self::Float32(_) => 10,
            Self::Float64(_) => 11,
            Self::String(_) => 12,
            Self::Bytes(_) => 13,
            Self::Timestamp(_) => 14,
            Self::Blob(_) => 15,
            Self::Reference(_) => 16,
        }
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
