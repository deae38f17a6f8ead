//! Runs of values of one field.

use annals_schema::{Blob, RowId, Type, ValueRef};

/// The values of one field in consecutive rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Vector<'a> {
    /// Values of a type of fixed size without nulls: consecutive, little-endian, each as wide as [`width`] says. A
    /// bool is one byte, 0 or 1; references and blobs are their numbers.
    Cells(&'a [u8]),
    /// Any values.
    Values(&'a [ValueRef<'a>]),
}

/// Returns how many bytes a value of a type takes in [`Vector::Cells`]; `None`: it has no fixed size.
#[must_use]
pub const fn width(ty: Type) -> Option<usize> {
    match ty {
        Type::Bool | Type::Int8 | Type::UInt8 => Some(1),
        Type::Int16 | Type::UInt16 => Some(2),
        Type::Int32 | Type::UInt32 | Type::Float32 => Some(4),
        Type::Int64
        | Type::UInt64
        | Type::Float64
        | Type::Timestamp
        | Type::Blob
        | Type::Reference(..) => Some(8),
        Type::String | Type::Bytes => None,
    }
}

impl<'a> Vector<'a> {
    /// Returns the number of values of a field of this type; `None` if the cells are no whole number
    /// of such values.
    #[must_use]
    pub fn len(&self, ty: Type) -> Option<usize> {
        match (self, width(ty)) {
            (Self::Values(values), _) => Some(values.len()),
            (Self::Cells(cells), Some(width)) if cells.len() % width == 0 => {
                Some(cells.len() / width)
            }
            _ => None,
        }
    }

    /// Returns the values in order.
    pub fn iter(&self, ty: Type) -> impl Iterator<Item = ValueRef<'a>> + use<'a> {
        let (cells, values): (&[u8], &[ValueRef<'a>]) = match *self {
            Self::Cells(cells) => (cells, &[]),
            Self::Values(values) => (&[], values),
        };
        let cells = cells.chunks_exact(width(ty).unwrap_or(usize::MAX));
        cells.map(move |cell| read(ty, cell)).chain(values.iter().copied())
    }
}

/// Reads a cell, which has the width of the type.
fn read(ty: Type, cell: &[u8]) -> ValueRef<'static> {
    let mut wide = [0; 8];
    for (to, &from) in wide.iter_mut().zip(cell) {
        *to = from;
    }
    let [a, b, c, d, ..] = wide;
    let four = [a, b, c, d];
    match ty {
        Type::Bool => ValueRef::Bool(a != 0),
        Type::Int8 => ValueRef::Int8(i8::from_le_bytes([a])),
        Type::UInt8 => ValueRef::UInt8(a),
        Type::Int16 => ValueRef::Int16(i16::from_le_bytes([a, b])),
        Type::UInt16 => ValueRef::UInt16(u16::from_le_bytes([a, b])),
        Type::Int32 => ValueRef::Int32(i32::from_le_bytes(four)),
        Type::UInt32 => ValueRef::UInt32(u32::from_le_bytes(four)),
        Type::Float32 => ValueRef::Float32(f32::from_le_bytes(four)),
        Type::Int64 => ValueRef::Int64(i64::from_le_bytes(wide)),
        Type::UInt64 => ValueRef::UInt64(u64::from_le_bytes(wide)),
        Type::Float64 => ValueRef::Float64(f64::from_le_bytes(wide)),
        Type::Timestamp => ValueRef::Timestamp(i64::from_le_bytes(wide)),
        Type::Blob => ValueRef::Blob(Blob(u64::from_le_bytes(wide))),
        Type::Reference(..) => ValueRef::Reference(RowId(u64::from_le_bytes(wide))),
        Type::String | Type::Bytes => ValueRef::Null,
    }
}
