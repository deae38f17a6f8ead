//! Values as columns keep them: the kinds of cells, and of values.

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

/// The kinds of values, in the order of [`ValueRef`]'s: so telling one costs a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are named like the values")]
pub(crate) enum ValueKind {
    Null,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Float32,
    Float64,
    String,
    Bytes,
    Timestamp,
    Blob,
    Reference,
}

/// Returns the kind of a value.
#[inline]
pub(super) const fn kind_of(value: &ValueRef<'_>) -> ValueKind {
    match value {
        ValueRef::Null => ValueKind::Null,
        ValueRef::Bool(_) => ValueKind::Bool,
        ValueRef::Int8(_) => ValueKind::Int8,
        ValueRef::Int16(_) => ValueKind::Int16,
        ValueRef::Int32(_) => ValueKind::Int32,
        ValueRef::Int64(_) => ValueKind::Int64,
        ValueRef::UInt8(_) => ValueKind::UInt8,
        ValueRef::UInt16(_) => ValueKind::UInt16,
        ValueRef::UInt32(_) => ValueKind::UInt32,
        ValueRef::UInt64(_) => ValueKind::UInt64,
        ValueRef::Float32(_) => ValueKind::Float32,
        ValueRef::Float64(_) => ValueKind::Float64,
        ValueRef::String(_) => ValueKind::String,
        ValueRef::Bytes(_) => ValueKind::Bytes,
        ValueRef::Timestamp(_) => ValueKind::Timestamp,
        ValueRef::Blob(_) => ValueKind::Blob,
        ValueRef::Reference(_) => ValueKind::Reference,
    }
}

/// Returns zero, false or nothing, as a value of a type.
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

/// Returns the kind of a type's values.
pub(super) const fn kind_of_type(ty: Type) -> ValueKind {
    kind_of(&zero_of(ty))
}

/// Decodes a value of one byte; `None` for null, and for values of another size.
#[inline]
pub(super) const fn one(value: ValueRef<'_>) -> Option<[u8; 1]> {
    match value {
        ValueRef::Int8(v) => Some(v.to_le_bytes()),
        ValueRef::UInt8(v) => Some(v.to_le_bytes()),
        _ => None,
    }
}

/// Takes a value of two bytes apart.
#[inline]
pub(super) const fn two(value: ValueRef<'_>) -> Option<[u8; 2]> {
    match value {
        ValueRef::Int16(v) => Some(v.to_le_bytes()),
        ValueRef::UInt16(v) => Some(v.to_le_bytes()),
        _ => None,
    }
}

/// Takes a value of four bytes apart.
#[inline]
pub(super) const fn four(value: ValueRef<'_>) -> Option<[u8; 4]> {
    match value {
        ValueRef::Int32(v) => Some(v.to_le_bytes()),
        ValueRef::UInt32(v) => Some(v.to_le_bytes()),
        ValueRef::Float32(v) => Some(v.to_le_bytes()),
        _ => None,
    }
}

/// Takes a value of eight bytes apart.
#[inline]
pub(super) const fn eight(value: ValueRef<'_>) -> Option<[u8; 8]> {
    match value {
        ValueRef::Int64(v) | ValueRef::Timestamp(v) => Some(v.to_le_bytes()),
        ValueRef::UInt64(v) => Some(v.to_le_bytes()),
        ValueRef::Float64(v) => Some(v.to_le_bytes()),
        ValueRef::Blob(v) => Some(v.0.to_le_bytes()),
        ValueRef::Reference(v) => Some(v.0.to_le_bytes()),
        _ => None,
    }
}

/// Takes a value of variable size apart.
#[inline]
pub(super) const fn variable(value: ValueRef<'_>) -> Option<&[u8]> {
    match value {
        ValueRef::String(v) => Some(v.as_bytes()),
        ValueRef::Bytes(v) => Some(v),
        _ => None,
    }
}

impl<'a> Raw<'a> {
    /// Takes a value apart; `None` for null.
    #[inline]
    pub(super) fn of(value: ValueRef<'a>) -> Option<Self> {
        if let ValueRef::Bool(bit) = value {
            return Some(Self::Bit(bit));
        }
        let cell = one(value).map(Self::One).or_else(|| two(value).map(Self::Two));
        let cell = cell.or_else(|| four(value).map(Self::Four));
        let cell = cell.or_else(|| eight(value).map(Self::Eight));
        cell.or_else(|| variable(value).map(Self::Variable))
    }
}
