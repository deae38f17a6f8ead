//! Reading many values: the pages that were read last are kept in hand.

use std::sync::Arc;

use super::{Cell, HEAD, INLINE, PINNED, Strings, leads_nowhere, text, word_at};
use crate::Result;
use crate::pages::cells::{CellReader, HeapReader};
use crate::pages::item::Held;

/// Reads strings or bytes.
#[derive(Debug)]
pub(crate) struct StringReader<'a> {
    strings: &'a Strings,
    cells: CellReader<'a, 16>,
    heap: HeapReader<'a>,
    /// The cell, and the long value, that were read last.
    cell: Cell,
    long: Option<Held<'a, Arc<[u8]>>>,
}

impl Strings {
    /// Begins to read.
    pub(crate) const fn reader(&self) -> StringReader<'_> {
        StringReader {
            strings: self,
            cells: self.cells.reader(),
            heap: self.heap.reader(),
            cell: [0; 16],
            long: None,
        }
    }
}

impl StringReader<'_> {
    /// Borrows the value of a slot.
    ///
    /// # Errors
    /// It can't be loaded, or the cell is dangling.
    #[inline]
    pub(crate) fn get(&mut self, slot: usize) -> Result<&[u8]> {
        self.cell = self.cells.get(slot)?;
        let len = word_at(&self.cell, 0) as usize;
        if len <= INLINE {
            return Ok(self.cell.get(4..4 + len).unwrap_or_default());
        }
        let (number, offset) = (word_at(&self.cell, 8), word_at(&self.cell, 12));
        if offset >= PINNED {
            let value = self.long.insert(self.strings.large.get(number)?);
            return if value.len() == len { Ok(value) } else { Err(leads_nowhere()) };
        }
        let begin = (offset as usize).saturating_add(HEAD);
        if self.strings.is_beyond_tail(number, begin, len) {
            return Err(leads_nowhere());
        }
        self.heap.slice(number as usize, begin, len)
    }

    /// Borrows the value of a slot of a column of strings.
    ///
    /// # Errors
    /// As [`get`](Self::get); `Corrupt` if the value is from an image and isn't UTF-8.
    #[inline]
    #[allow(unsafe_code, reason = "checking every string again would cost more than reading it")]
    pub(crate) fn get_str(&mut self, slot: usize) -> Result<&str> {
        let is_own = !self.strings.heap.has_base();
        let bytes = self.get(slot)?;
        match is_own {
            // SAFETY: as in `Strings::get_str`: columns of strings are given `&str` only, and by invariant 6 the heap
            // says that this value isn't from an image.
            true => Ok(unsafe { std::str::from_utf8_unchecked(bytes) }),
            false => text(bytes),
        }
    }
}
