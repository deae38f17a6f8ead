//! The types a field can have.

use crate::{Blob, RowId, TableNumber, ValueRef};

/// The rule of a reference for the deletion of its row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnDelete {
    /// `references T`: nothing. The reference dangles, and reads as absent.
    #[default]
    Dangle,
    /// `references T restrict`: the commit fails.
    Restrict,
    /// `references T cascade`: the row with the reference is deleted too.
    Cascade,
    /// `references T set_null`: the reference becomes null.
    SetNull,
}

impl OnDelete {
    /// True if a committed reference is never dangling.
    #[must_use]
    pub const fn is_enforced(self) -> bool {
        !matches!(self, Self::Dangle)
    }

    /// Returns the word after the table's name; none if nothing is enforced.
    #[must_use]
    pub const fn word(self) -> Option<&'static str> {
        match self {
            Self::Dangle => None,
            Self::Restrict => Some("restrict"),
            Self::Cascade => Some("cascade"),
            Self::SetNull => Some("set_null"),
        }
    }

    /// Finds the meaning of a word.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        [Self::Restrict, Self::Cascade, Self::SetNull]
            .into_iter()
            .find(|rule| rule.word() == Some(word))
    }
}

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
    /// `blob`: bytes of any length that stay in the journal and are read on demand, or null. It is
    /// always nullable.
    Blob,
    /// `references T [restrict|cascade|set_null]`: the id of a row of `T`, or null. It is always
    /// nullable.
    Reference(TableNumber, OnDelete),
}

impl Type {
    /// Returns the word that the schema language has for the type; for references `references`, which
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
            Self::Blob => "blob",
            Self::Reference(..) => "references",
        }
    }

    /// Finds a type other than a reference by its name; `boolean` is `bool`, as in joedb.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        let word = if word == "boolean" { "bool" } else { word };
        Self::PLAIN.into_iter().find(|ty| ty.name() == word)
    }

    /// All types but references.
    pub const PLAIN: [Self; 15] = [
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
        Self::Blob,
    ];

    /// True if a field of this type holds text or bytes of any length.
    #[must_use]
    pub const fn is_variable(self) -> bool {
        matches!(self, Self::String | Self::Bytes)
    }

    /// True if every field of this type may be null, and its null needs no separate bit.
    #[must_use]
    pub const fn is_always_nullable(self) -> bool {
        matches!(self, Self::Blob | Self::Reference(..))
    }

    /// Returns the initial value of a field of this type, as text; null if it may be null.
    #[must_use]
    pub(crate) const fn zero_word(self) -> &'static str {
        match self {
            Self::Bool => "false",
            Self::String => "\"\"",
            Self::Bytes => "0x",
            Self::Timestamp => "1970-01-01T00:00:00Z",
            Self::Blob | Self::Reference(..) => "null",
            _ => "0",
        }
    }

    /// True if a value is valid for a field of this type.
    #[must_use]
    pub fn accepts(self, nullable: bool, value: ValueRef<'_>) -> bool {
        use ValueRef as V;
        matches!(
            (self, value),
            (Self::Bool, V::Bool(_))
                | (Self::Int8, V::Int8(_))
                | (Self::Int16, V::Int16(_))
                | (Self::Int32, V::Int32(_))
                | (Self::Int64, V::Int64(_))
                | (Self::UInt8, V::UInt8(_))
                | (Self::UInt16, V::UInt16(_))
                | (Self::UInt32, V::UInt32(_))
                | (Self::UInt64, V::UInt64(_))
                | (Self::Float32, V::Float32(_))
                | (Self::Float64, V::Float64(_))
                | (Self::String, V::String(_))
                | (Self::Bytes, V::Bytes(_))
                | (Self::Timestamp, V::Timestamp(_))
                | (Self::Blob, V::Blob(Blob(0..=Blob::LARGEST)))
                | (Self::Reference(..), V::Reference(RowId(0..=RowId::LARGEST)))
        ) || (nullable && matches!(value, V::Null))
    }
}
