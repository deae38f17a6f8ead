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
    /// Gives the word that the schema language has for the type; for references `references`, which
    /// the table's name follows.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::UInt8 => "uint8",
            Self::UInt16 => "uint16",
            Self::UInt32 => "uint32",
            Self::UInt64 => "uint64",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Timestamp => "timestamp",
            Self::Reference(_) => "references",
        }
    }

    /// Finds a type other than a reference by its word; `boolean` is `bool`, as in joedb.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        let word = if word == "boolean" { "bool" } else { word };
        Self::PLAIN.into_iter().find(|ty| ty.name() == word)
    }

    /// All types but references.
    pub const PLAIN: [Self; 14] = [
        Self::Bool,
        Self::Int8,
        Self::Int16,
        Self::Int32,
        Self::Int64,
        Self::UInt8,
        Self::UInt16,
        Self::UInt32,
        Self::UInt64,
        Self::Float32,
        Self::Float64,
        Self::String,
        Self::Bytes,
        Self::Timestamp,
    ];

    /// Tells whether a field of this type holds text or bytes of any length.
    #[must_use]
    pub const fn is_variable(self) -> bool {
        matches!(self, Self::String | Self::Bytes)
    }
}
