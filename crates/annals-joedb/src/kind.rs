//! The correspondence of joedb's types and Annals', in both directions; the same for values.

use annals::model::{OnDelete, TypeClass, WideValue};
use annals::{TableNumber, Type, ValueRef};

use super::format::{Cell, Kind};

/// Returns the type that corresponds to joedb's. `target` is the table that a reference refers to.
pub(crate) const fn to_type(kind: Kind, target: TableNumber) -> Type {
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
pub(crate) fn of_type(ty: Type) -> Kind {
    match ty.class() {
        TypeClass::Bool => Kind::Bool,
        TypeClass::Integer { least, most } => {
            let has_room = |min: i32, max: i32| i128::from(min) <= least && most <= max.into();
            match () {
                () if has_room(i8::MIN.into(), i8::MAX.into()) => Kind::Int8,
                () if has_room(i16::MIN.into(), i16::MAX.into()) => Kind::Int16,
                () if has_room(i32::MIN, i32::MAX) => Kind::Int32,
                () => Kind::Int64,
            }
        }
        TypeClass::Timestamp => Kind::Int64,
        TypeClass::Float32 => Kind::Float32,
        TypeClass::Float64 => Kind::Float64,
        TypeClass::String | TypeClass::Bytes | TypeClass::Written => Kind::String,
        TypeClass::Blob => Kind::Blob,
        TypeClass::Reference => Kind::Reference,
    }
}

/// True if joedb has the type itself.
pub(crate) fn is_joedbs(ty: Type) -> bool {
    match ty {
        Type::Reference(_, on_delete) => !on_delete.is_enforced(),
        ty => to_type(of_type(ty), TableNumber(0)) == ty,
    }
}

/// True if zero is a text that isn't empty, as joedb's would be.
pub(crate) fn has_other_zero(ty: Type) -> bool {
    let is_text = ty.class() == TypeClass::Written || ty.is_variable();
    // joedb's zero of a reference is null, ours of a required one is row 0.
    matches!(ty, Type::Reference(..)) || is_text && !matches!(ty, Type::String | Type::Bytes)
}

/// Returns the value of a new row.
pub(crate) const fn zero(kind: Kind) -> Cell<'static> {
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
pub(crate) fn to_cell<'v>(
    ty: Type,
    value: ValueRef<'v>,
    place: impl FnOnce(annals::Blob) -> Option<(u64, u64)>,
) -> Option<Cell<'v>> {
    Some(match value.widen() {
        WideValue::Null => zero(of_type(ty)),
        WideValue::Bool(value) => Cell::Bool(value),
        WideValue::Integer(value) => match of_type(ty) {
            Kind::Int8 => Cell::Int8(value.try_into().ok()?),
            Kind::Int16 => Cell::Int16(value.try_into().ok()?),
            Kind::Int32 => Cell::Int32(value.try_into().ok()?),
            _ => Cell::Int64(value.try_into().ok()?),
        },
        WideValue::Timestamp(value) => Cell::Int64(value),
        WideValue::Float32(value) => Cell::Float32(value),
        WideValue::Float64(value) => Cell::Float64(value),
        WideValue::Written(value) => Cell::Written(value),
        WideValue::String(value) => Cell::String(value.as_bytes()),
        WideValue::Bytes(value) => Cell::String(value),
        WideValue::Blob(blob) => {
            let (position, size) = place(blob)?;
            Cell::Blob(position, size)
        }
        WideValue::Reference(id) => Cell::Reference(super::writer::row_of(id)?),
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
