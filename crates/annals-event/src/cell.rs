//! A value of fixed width as a cell: its little-endian bytes. A bool is one byte, 0 or 1; references
//! and blobs are their numbers.

use annals_schema::{AnyDecimal, Blob, RowId, Type, ValueRef, column_types};

/// Returns how many bytes the cell of a value of a type has; `None`: the type has no fixed width.
#[must_use]
pub const fn width(ty: Type) -> Option<usize> {
    macro_rules! width {
        ($($variant:ident: $rust:ty;)*) => {
            match ty {
                $(Type::$variant => Some(size_of::<$rust>()),)*
                Type::Bool => Some(1),
                Type::Blob | Type::Reference(..) => Some(8),
                Type::Decimal(_) => Some(size_of::<i128>()),
                Type::Enum(_) => Some(size_of::<u16>()),
                Type::String | Type::Json | Type::Bytes | Type::FixedBytes(_) => None,
            }
        };
    }
    column_types!(cells, width)
}

/// Returns the cell of a value; `None` if it has another width, or none.
#[inline]
#[must_use]
pub fn to_cell<const W: usize>(value: ValueRef<'_>) -> Option<[u8; W]> {
    macro_rules! to_cell {
        ($($variant:ident: $rust:ty;)*) => {
            match value {
                $(ValueRef::$variant(v) => v.to_le_bytes().as_slice().try_into().ok(),)*
                ValueRef::Bool(v) => [u8::from(v)].as_slice().try_into().ok(),
                ValueRef::Decimal(v) => v.units().to_le_bytes().as_slice().try_into().ok(),
                ValueRef::Enum(v) => v.number().to_le_bytes().as_slice().try_into().ok(),
                ValueRef::Blob(v) => v.0.to_le_bytes().as_slice().try_into().ok(),
                ValueRef::Reference(v) => v.0.to_le_bytes().as_slice().try_into().ok(),
                ValueRef::Null | ValueRef::String(_) | ValueRef::Bytes(_) => None,
            }
        };
    }
    column_types!(cells, to_cell)
}

/// Returns the value of a type that a cell of its width holds; null for types without a width, and for a number that no
/// variant has.
#[inline]
#[must_use]
pub fn from_cell(ty: Type, cell: &[u8]) -> ValueRef<'static> {
    macro_rules! from_cell {
        ($($variant:ident: $rust:ty;)*) => {
            match ty {
                $(Type::$variant => ValueRef::$variant(<$rust>::from_le_bytes(bytes(cell))),)*
                Type::Bool => ValueRef::Bool(bytes(cell) != [0]),
                Type::Blob => ValueRef::Blob(Blob(u64::from_le_bytes(bytes(cell)))),
                Type::Reference(..) => ValueRef::Reference(RowId(u64::from_le_bytes(bytes(cell)))),
                Type::Decimal(scale) => {
                    ValueRef::Decimal(AnyDecimal::new(i128::from_le_bytes(bytes(cell)), scale))
                }
                Type::Enum(variants) => {
                    variants.get(u16::from_le_bytes(bytes(cell))).map_or(ValueRef::Null, ValueRef::Enum)
                }
                Type::String | Type::Json | Type::Bytes | Type::FixedBytes(_) => ValueRef::Null,
            }
        };
    }
    column_types!(cells, from_cell)
}

#[inline]
fn bytes<const W: usize>(cell: &[u8]) -> [u8; W] {
    cell.first_chunk().copied().unwrap_or([0; W])
}
