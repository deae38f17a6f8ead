//! Values of rows, copied from pages that only a cache has: a row in hand then needs neither.

use annals_event::{from_cell, to_cell, width};
use annals_schema::{Type, ValueRef};

use crate::columns::raw::{ValueKind, kind_of_type};
use crate::pages::cells::place;

/// The width of the cell of a value of variable size: where it begins, and its length.
const PLACE: usize = 8;

/// The values of one field in some rows.
#[derive(Clone, Debug)]
pub(crate) struct CopiedColumn {
    ty: Type,
    kind: ValueKind,
    width: usize,
    cells: Vec<u8>,
    /// The rows that are null, if any was.
    nulls: Vec<bool>,
    /// The strings, or the bytes.
    text: String,
    bytes: Vec<u8>,
}

impl CopiedColumn {
    /// Makes room for the values of `len` rows; each is zero or empty.
    pub(crate) fn new(ty: Type, len: usize) -> Self {
        let width = width(ty).unwrap_or(PLACE);
        let (text, bytes) = Default::default();
        let (kind, cells) = (kind_of_type(ty), vec![0; len * width]);
        Self { ty, kind, width, cells, nulls: Vec::new(), text, bytes }
    }

    /// Returns the type of the values.
    pub(crate) const fn ty(&self) -> Type {
        self.ty
    }

    /// Sets the value of a row.
    #[inline]
    pub(crate) fn put(&mut self, at: usize, value: ValueRef<'_>) {
        let begin = at * self.width;
        let Some(cell) = self.cells.get_mut(begin..begin + self.width) else { return };
        match value {
            ValueRef::Null => {
                let rows = self.cells.len() / self.width;
                self.nulls.resize(rows, false);
                self.nulls[at] = true;
            }
            ValueRef::String(text) => {
                write_range(cell, self.text.len(), text.len());
                self.text.push_str(text);
            }
            ValueRef::Bytes(bytes) => {
                write_range(cell, self.bytes.len(), bytes.len());
                self.bytes.extend_from_slice(bytes);
            }
            value => write_cell(cell, value),
        }
    }

    /// Returns the value of a row.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> ValueRef<'_> {
        if self.nulls.get(at).is_some_and(|&is_null| is_null) {
            return ValueRef::Null;
        }
        let begin = at * self.width;
        let cell = self.cells.get(begin..begin + self.width).unwrap_or_default();
        match self.kind {
            ValueKind::String => ValueRef::String(self.text.get(range(cell)).unwrap_or_default()),
            ValueKind::Bytes => ValueRef::Bytes(self.bytes.get(range(cell)).unwrap_or_default()),
            _ => from_cell(self.ty, cell),
        }
    }
}

/// Writes the cell of a value of fixed size.
#[inline]
fn write_cell(cell: &mut [u8], value: ValueRef<'_>) {
    fn write<const W: usize>(cell: &mut [u8], value: ValueRef<'_>) {
        if let (Some(cell), Some(bytes)) = (cell.first_chunk_mut::<W>(), to_cell(value)) {
            *cell = bytes;
        }
    }
    match cell.len() {
        1 => write::<1>(cell, value),
        2 => write::<2>(cell, value),
        4 => write::<4>(cell, value),
        8 => write::<8>(cell, value),
        _ => write::<16>(cell, value),
    }
}

/// Writes where a value of variable size is. No more is copied at once than 32 bits count.
fn write_range(cell: &mut [u8], begin: usize, len: usize) {
    write_cell(cell, ValueRef::UInt64(begin as u64 | (len as u64) << 32));
}

/// Returns where a value of variable size is.
#[inline]
fn range(cell: &[u8]) -> std::ops::Range<usize> {
    let word = cell.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    let (begin, len) = (place(word & u64::from(u32::MAX)), place(word >> 32));
    begin..begin + len
}
