//! Reading values that need no lookup, as in [`crate::columns::column`].

use std::ops::Range;

use super::{Cell, HEAD, INLINE, PINNED, Strings, text, word_at};

impl Strings {
    /// Borrows the cell of a slot, if it needs no lookup.
    #[inline]
    pub(crate) fn cell_at_hand(&self, slot: usize) -> Option<&[u8]> {
        self.cells.slice_at_hand(slot, 0, size_of::<Cell>())
    }

    /// Borrows the value of a slot, if no part of it needs a lookup.
    #[inline]
    pub(crate) fn at_hand(&self, slot: usize) -> Option<&[u8]> {
        let cell = self.cells.at_hand(slot)?;
        let len = word_at(&cell, 0) as usize;
        if len <= INLINE {
            return self.cells.slice_at_hand(slot, 4, len);
        }
        let (number, offset) = (word_at(&cell, 8), word_at(&cell, 12));
        let begin = (offset as usize).saturating_add(HEAD);
        if offset >= PINNED || self.is_beyond_tail(number, begin, len) {
            return None;
        }
        self.heap.slice_at_hand(number as usize, begin, len)
    }

    /// Borrows the value of a slot of a column of strings, after [`is_at_hand`](Self::is_at_hand) or
    /// [`value_stays`](Self::value_stays) has checked it.
    #[inline]
    #[allow(unsafe_code, reason = "checking every string twice would cost more than reading it")]
    pub(crate) fn text_at_hand(&self, slot: usize) -> Option<&str> {
        let bytes = self.at_hand(slot)?;
        debug_assert!(text(bytes).is_ok(), "whoever loaded the row has looked at it");
        // SAFETY: invariant 5: columns of strings are given `&str` only; and values from an image were checked when
        // the row was loaded, and can't have been written since.
        Some(unsafe { std::str::from_utf8_unchecked(bytes) })
    }

    /// True if all values of some slots are in their cells, as in the base, and are UTF-8 if they are `text`. Then
    /// the same holds for all views over the same base; their own changes are in memory anyway. It may be so even if
    /// this returns false.
    pub(crate) fn are_short_below(&self, slots: Range<usize>, is_text: bool) -> bool {
        if !self.cells.is_below(slots.start) {
            return false;
        }
        let mut cells = slots.map(|slot| self.cells.at_hand(slot));
        cells.all(|cell| {
            let Some(cell) = cell else { return false };
            let bytes = cell[4..].get(..word_at(&cell, 0) as usize);
            bytes.is_some_and(|bytes| !is_text || text(bytes).is_ok())
        })
    }

    /// True if the value of a slot is at hand, and is UTF-8 if it `is_text`.
    #[inline]
    pub(crate) fn is_at_hand(&self, slot: usize, is_text: bool) -> bool {
        self.at_hand(slot).is_some_and(|bytes| !is_text || text(bytes).is_ok())
    }
}
