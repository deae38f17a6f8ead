//! The types a field can have.

use crate::TableNumber;

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// `bool` (joedb's `boolean` is understood too).
    Bool,
    /// `int8`
    Int8,
    /// `int16`
    Int16,
    /// `int32`
    Int32,
    /// `int64`
    Int64,
    /// `uint8`
    UInt8,
    /// `uint16`
    UInt16,
    /// `uint32`
    UInt32,
    /// `uint64`
    UInt64,
    /// `float32`
    Float32,
    /// `float64`
    Float64,
    /// `string`: UTF-8, at most 1 GiB, ordered by bytes.
    String,
    /// `bytes`: any bytes, at most 1 GiB.
    Bytes,
    /// `timestamp`: microseconds since 1970-01-01T00:00:00Z.
    Timestamp,
    /// `references T`: the id of a row of `T`, or null. It is always nullable.
    Reference(TableNumber),
}

impl Type {
    /// Tells whether a field of this type holds text or bytes of any length.
    #[must_use]
    pub const fn is_variable(self) -> bool {
        matches!(self, Self::String | Self::Bytes)
    }
}
