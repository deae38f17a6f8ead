//! Reading what needs no looking for, as in [`crate::columns::column`].

use std::ops::Range;

use super::{Cell, HEAD, INLINE, PINNED, Strings, text, word_at};

impl Strings {
    /// Borrows the cell of a slot, if it needs no looking for.
    #[inline]
    pub(crate) fn cell_at_hand(&self, slot: usize) -> Option<&[u8]> {
        self.cells.slice_at_hand(slot, 0, size_of::<Cell>())
    }

    /// Borrows the value of a slot, if nothing of it has to be looked for.
    #[inline]
    pub(crate) fn at_hand(&self, slot: usize) -> Option<&[u8]> {
        let cell = self.cells.at_hand(slot)?;
        let len = word_at(&cell, 0) as usize;
        if len <= INLINE {
            return self.cells.slice_at_hand(slot, 4, len);
        }
        let (number, offset) = (word_at(&cell, 8), word_at(&cell, 12));
        let begin = (offset as usize).saturating_add(HEAD);
        if offset >= PINNED || number == self.tail && begin.saturating_add(len) > self.tail_used {
            return None;
        }
        self.heap.slice_at_hand(number as usize, begin, len)
    }

    /// Borrows the value of a slot of a column of strings, as [`is_at_hand`](Self::is_at_hand) or
    /// [`stays`](Self::stays) has looked at it.
    #[inline]
    #[allow(unsafe_code, reason = "checking every string twice would cost more than reading it")]
    pub(crate) fn text_at_hand(&self, slot: usize) -> Option<&str> {
        let bytes = self.at_hand(slot)?;
        debug_assert!(text(bytes).is_ok(), "whoever loaded the row has looked at it");
        // SAFETY: invariant 5: columns of strings are given `&str` only; and what came from an image was
        // looked at when the row was loaded, since when nobody could write to it.
        Some(unsafe { std::str::from_utf8_unchecked(bytes) })
    }

    /// True if all values of some slots lie in their cells, as the base has them, and are UTF-8 if they are
    /// `text`. Then that is so for all views over the same base, but for what they have changed themselves, which is in
    /// memory as they have it. It may be so though this says that it isn't.
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
