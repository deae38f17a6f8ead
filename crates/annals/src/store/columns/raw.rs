//! Values as columns keep them: the kinds of cells, and the codes of types.

use annals_schema::{Blob, RowId, Type, ValueRef};

/// A value as its column keeps it.
pub(super) enum Raw<'a> {
    Bit(bool),
    One([u8; 1]),
    Two([u8; 2]),
    Four([u8; 4]),
    Eight([u8; 8]),
    Variable(&'a [u8]),
}

/// The code of null.
pub(super) const NULL: u8 = 0;

/// Gives each kind of value a number, in the order of its kinds: so it costs a load.
#[inline]
pub(super) const fn code_of(value: &ValueRef<'_>) -> u8 {
    match value {
        ValueRef::Null => NULL,
        ValueRef::Bool(_) => 1,
        ValueRef::Int8(_) => 2,
        ValueRef::Int16(_) => 3,
        ValueRef::Int32(_) => 4,
        ValueRef::Int64(_) => 5,
        ValueRef::UInt8(_) => 6,
        ValueRef::UInt16(_) => 7,
        ValueRef::UInt32(_) => 8,
        ValueRef::UInt64(_) => 9,
        ValueRef::Float32(_) => 10,
        ValueRef::Float64(_) => 11,
        ValueRef::String(_) => 12,
        ValueRef::Bytes(_) => 13,
        ValueRef::Timestamp(_) => 14,
        ValueRef::Blob(_) => 15,
        ValueRef::Reference(_) => 16,
    }
}

/// Gives zero, false or nothing, as a value of a type.
pub(super) const fn zero_of(ty: Type) -> ValueRef<'static> {
    match ty {
        Type::Bool => ValueRef::Bool(false),
        Type::Int8 => ValueRef::Int8(0),
        Type::Int16 => ValueRef::Int16(0),
        Type::Int32 => ValueRef::Int32(0),
        Type::Int64 => ValueRef::Int64(0),
        Type::UInt8 => ValueRef::UInt8(0),
        Type::UInt16 => ValueRef::UInt16(0),
        Type::UInt32 => ValueRef::UInt32(0),
        Type::UInt64 => ValueRef::UInt64(0),
        Type::Float32 => ValueRef::Float32(0.0),
        Type::Float64 => ValueRef::Float64(0.0),
        Type::String => ValueRef::String(""),
        Type::Bytes => ValueRef::Bytes(&[]),
        Type::Timestamp => ValueRef::Timestamp(0),
        Type::Blob => ValueRef::Blob(Blob(0)),
        Type::Reference(..) => ValueRef::Reference(RowId(0)),
    }
}

/// Gives the code of a type's values.
pub(super) const fn code_of_type(ty: Type) -> u8 {
    code_of(&zero_of(ty))
}

impl<'a> Raw<'a> {
    /// Takes a value apart; `None` for null.
    #[inline]
    pub(super) fn of(value: ValueRef<'a>) -> Option<Self> {
        Some(match value {
            ValueRef::Null => return None,
            ValueRef::Bool(v) => Self::Bit(v),
            ValueRef::Int8(v) => Self::One(v.to_le_bytes()),
            ValueRef::UInt8(v) => Self::One(v.to_le_bytes()),
            ValueRef::Int16(v) => Self::Two(v.to_le_bytes()),
            ValueRef::UInt16(v) => Self::Two(v.to_le_bytes()),
            ValueRef::Int32(v) => Self::Four(v.to_le_bytes()),
            ValueRef::UInt32(v) => Self::Four(v.to_le_bytes()),
            ValueRef::Float32(v) => Self::Four(v.to_le_bytes()),
            ValueRef::Int64(v) | ValueRef::Timestamp(v) => Self::Eight(v.to_le_bytes()),
            ValueRef::UInt64(v) => Self::Eight(v.to_le_bytes()),
            ValueRef::Float64(v) => Self::Eight(v.to_le_bytes()),
            ValueRef::Blob(v) => Self::Eight(v.0.to_le_bytes()),
            ValueRef::Reference(v) => Self::Eight(v.0.to_le_bytes()),
            ValueRef::String(v) => Self::Variable(v.as_bytes()),
            ValueRef::Bytes(v) => Self::Variable(v),
        })
    }
}
