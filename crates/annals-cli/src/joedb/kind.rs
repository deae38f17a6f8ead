//! The correspondence of joedb's types and Annals', in both directions; the same for values.

use annals::{OnDelete, TableNumber, Type, ValueRef};

use super::format::{Cell, Kind};

/// Returns the type that corresponds to joedb's. The target is that of a reference.
pub(super) const fn to_type(kind: Kind, target: TableNumber) -> Type {
    match kind {
        Kind::String => Type::String,
        Kind::Int32 => Type::Int32,
        Kind::Int64 => Type::Int64,
        Kind::Reference => Type::Reference(target, OnDelete::Dangle),
        Kind::Bool => Type::Bool,
        Kind::Float32 => Type::Float32,
        Kind::Float64 => Type::Float64,
        Kind::Int8 => Type::Int8,
        Kind::Int16 => Type::Int16,
        Kind::Blob => Type::Blob,
    }
}

/// Returns the smallest of joedb's types that has room for a type's values. (Of `uint64` only those below 2^63.)
pub(super) const fn of_type(ty: Type) -> Kind {
    match ty {
        Type::Bool => Kind::Bool,
        Type::Int8 => Kind::Int8,
        Type::Int16 | Type::UInt8 => Kind::Int16,
        Type::Int32 | Type::UInt16 => Kind::Int32,
        Type::Int64 | Type::UInt32 | Type::UInt64 | Type::Timestamp => Kind::Int64,
        Type::Float32 => Kind::Float32,
        Type::Float64 => Kind::Float64,
        Type::String | Type::Bytes => Kind::String,
        Type::Blob => Kind::Blob,
        Type::Reference(..) => Kind::Reference,
    }
}

/// True if joedb has the type itself.
pub(super) fn is_joedbs(ty: Type) -> bool {
    match ty {
        Type::Reference(_, on_delete) => !on_delete.is_enforced(),
        ty => to_type(of_type(ty), TableNumber(0)) == ty,
    }
}

/// Returns the value of a new row.
pub(super) const fn zero(kind: Kind) -> Cell<'static> {
    match kind {
        Kind::String => Cell::String(&[]),
        Kind::Int32 => Cell::Int32(0),
        Kind::Int64 => Cell::Int64(0),
        Kind::Reference => Cell::Reference(0),
        Kind::Bool => Cell::Bool(false),
        Kind::Float32 => Cell::Float32(0.0),
        Kind::Float64 => Cell::Float64(0.0),
        Kind::Int8 => Cell::Int8(0),
        Kind::Int16 => Cell::Int16(0),
        Kind::Blob => Cell::Blob(0, 0),
    }
}

/// Returns joedb's value for one of a field of a type; `None` if there is none: a number that is too large. Where
/// the bytes of a blob are is for `place` to say.
pub(super) fn to_cell<'v>(
    ty: Type,
    value: ValueRef<'v>,
    place: impl FnOnce(annals::Blob) -> Option<(u64, u64)>,
) -> Option<Cell<'v>> {
    Some(match value {
        ValueRef::Null => zero(of_type(ty)),
        ValueRef::Bool(value) => Cell::Bool(value),
        ValueRef::Int8(value) => Cell::Int8(value),
        ValueRef::Int16(value) => Cell::Int16(value),
        ValueRef::Int32(value) => Cell::Int32(value),
        ValueRef::Int64(value) | ValueRef::Timestamp(value) => Cell::Int64(value),
        ValueRef::UInt8(value) => Cell::Int16(value.into()),
        ValueRef::UInt16(value) => Cell::Int32(value.into()),
        ValueRef::UInt32(value) => Cell::Int64(value.into()),
        ValueRef::UInt64(value) => Cell::Int64(value.try_into().ok()?),
        ValueRef::Float32(value) => Cell::Float32(value),
        ValueRef::Float64(value) => Cell::Float64(value),
        ValueRef::String(value) => Cell::String(value.as_bytes()),
        ValueRef::Bytes(value) => Cell::String(value),
        ValueRef::Blob(blob) => {
            let (position, size) = place(blob)?;
            Cell::Blob(position, size)
        }
        ValueRef::Reference(id) => Cell::Reference(super::writer::row_of(id)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joedbs_types_are_their_own_and_others_have_room() {
        for kind in Kind::ALL {
            let ty = to_type(kind, TableNumber(3));
            assert_eq!(of_type(ty), kind);
            assert!(is_joedbs(ty));
            assert!(zero(kind).is_zero() && zero(kind).kind() == kind);
        }
        assert!(!is_joedbs(Type::Reference(TableNumber(0), OnDelete::Cascade)));
        assert_eq!(Type::PLAIN.into_iter().filter(|ty| is_joedbs(*ty)).count(), 9);
        let cell = |value| to_cell(Type::UInt64, ValueRef::UInt64(value), |_| None);
        assert!(matches!(cell(1 << 62), Some(Cell::Int64(value)) if value == 1 << 62));
        assert!(cell(1 << 63).is_none());
    }
}
