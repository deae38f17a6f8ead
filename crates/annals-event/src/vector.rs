//! Runs of values of one field.

use annals_schema::{Type, ValueRef};

use crate::cell::{from_cell, width};

/// The values of one field in consecutive rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Vector<'a> {
    /// Values of a type of fixed size without nulls: consecutive, little-endian, each as wide as [`width`](crate::width) says. A
    /// bool is one byte, 0 or 1; references and blobs are their numbers.
    Cells(&'a [u8]),
    /// Any values.
    Values(&'a [ValueRef<'a>]),
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
        cells.map(move |cell| from_cell(ty, cell)).chain(values.iter().copied())
    }
}
