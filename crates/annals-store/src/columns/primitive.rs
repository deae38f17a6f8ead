//! Rust types whose values are in a column as in memory, except for the order of their bytes.
#![allow(unsafe_code, reason = "a run of numbers is borrowed as bytes, and back, without a copy")]

use std::borrow::Cow;

use annals_schema::{Blob, Date, Decimal, RowId, Timestamp, Type, Uuid, column_types};

/// A Rust type of fixed size whose slices are columns' cells: the integers, the floats, `Timestamp`,
/// `RowId`, `Blob` and typed ids. It can't be implemented elsewhere.
///
/// # Safety
/// The type is as wide as the fields that it [`fits`](Self::fits), has no padding, any bytes are a
/// valid value, and each value is one number, or bytes if it says so.
pub unsafe trait Primitive: sealed::Sealed + Copy + 'static {
    /// True if a value is a number, whose bytes have another order on some machines.
    #[doc(hidden)]
    const IS_NUMBER: bool = true;

    /// True if a field of that type holds such values.
    #[doc(hidden)]
    fn fits(ty: Type) -> bool;
}

/// Keeps the trait in this crate.
pub mod sealed {
    /// The sealed part that only this crate can implement.
    pub trait Sealed {}
}

/// The number of a variant of an `enum`.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct VariantNumber(pub u16);

macro_rules! primitive {
    ($($variant:ident: $rust:ty $(, $also:ident)?;)*) => {$(
        impl sealed::Sealed for $rust {}
        // SAFETY: it is a number of the width of these types, or a transparent struct of one.
        unsafe impl Primitive for $rust {
            fn fits(ty: Type) -> bool {
                matches!(ty, Type::$variant { .. } $(| Type::$also)?)
            }
        }
    )*};
}

column_types!(numbers, primitive);

primitive! {
    Timestamp: Timestamp;
    Date: Date;
    Blob: Blob;
    Reference: RowId;
    Enum: VariantNumber;
}

impl sealed::Sealed for Uuid {}
// SAFETY: it is a transparent struct of its bytes.
unsafe impl Primitive for Uuid {
    const IS_NUMBER: bool = false;

    fn fits(ty: Type) -> bool {
        ty == Type::Uuid
    }
}

impl<const SCALE: u8> sealed::Sealed for Decimal<SCALE> {}
// SAFETY: it is a transparent struct of a number.
unsafe impl<const SCALE: u8> Primitive for Decimal<SCALE> {
    fn fits(ty: Type) -> bool {
        ty == Type::Decimal(SCALE)
    }
}

/// Returns values as the cells of a column, without a copy on a little-endian machine.
pub fn to_cells<T: Primitive>(values: &[T]) -> Cow<'_, [u8]> {
    // SAFETY: a primitive has no padding, so all its bytes are initialised.
    let bytes =
        unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values)) };
    if cfg!(target_endian = "little") || !T::IS_NUMBER {
        return Cow::Borrowed(bytes);
    }
    let mut swapped = bytes.to_vec();
    swapped.chunks_exact_mut(size_of::<T>()).for_each(<[u8]>::reverse);
    Cow::Owned(swapped)
}

/// The bytes of the widest cell.
const WIDEST: usize = 16;

/// Returns the cells of a column as values, without a copy where they are aligned, on a little-endian
/// machine.
pub fn from_cells<T: Primitive>(cells: &[u8]) -> Cow<'_, [T]> {
    if cfg!(target_endian = "little") || !T::IS_NUMBER {
        // SAFETY: any bytes are a primitive.
        let (before, values, after) = unsafe { cells.align_to::<T>() };
        if before.is_empty() && after.is_empty() {
            return Cow::Borrowed(values);
        }
    }
    let mut values = Vec::with_capacity(cells.len() / size_of::<T>());
    for cell in cells.chunks_exact(size_of::<T>()) {
        let mut native = [0; WIDEST];
        native[..cell.len()].copy_from_slice(cell);
        if cfg!(target_endian = "big") && T::IS_NUMBER {
            native[..cell.len()].reverse();
        }
        // SAFETY: a primitive has at most so many bytes, and any bytes are one.
        values.push(unsafe { native.as_ptr().cast::<T>().read_unaligned() });
    }
    Cow::Owned(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_cells_and_back_wherever_they_lie() {
        let numbers = [1_i64, -2, i64::MAX];
        let cells = to_cells(&numbers);
        assert_eq!(cells[8..16], (-2_i64).to_le_bytes());
        assert_eq!(from_cells::<i64>(&cells)[..], numbers);
        for shift in 1..8 {
            let mut moved = vec![0; shift];
            moved.extend_from_slice(&cells);
            assert_eq!(from_cells::<i64>(&moved[shift..])[..], numbers);
        }
        assert_eq!(to_cells(&[RowId(7)])[..], 7_u64.to_le_bytes());
        assert_eq!(from_cells::<f32>(&to_cells(&[1.5_f32]))[..], [1.5]);
        assert!(from_cells::<u8>(&to_cells::<u8>(&[])).is_empty());
    }
}
