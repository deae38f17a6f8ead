//! Where a table's cells stay in memory, all columns together.
//!
//! A row is given only when all its values can be read without an error. Checking each column for that costs more
//! than reading one of them; so it is recorded here for the neighbouring rows, which are in the same pages.
//!
//! Invariants
//! 1. Views share the record as long as the bases of the table are the same: other bases reset it. So the record
//!    holds for all of them, with or without their changes. It says nothing of the changes of one view, unless the
//!    base's items below stay, too. Moving a base's item to another slot resets the record: that slot may not have
//!    been checked.
//! 2. A new column is in memory for every view that has it. Dropping one resets the record, since other views still
//!    have it.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::once_array::OnceArray;
use super::page::PAGE;

/// This many neighbouring slots are in the same page of every column: as many as a page of the largest cells has.
const BLOCK: usize = PAGE / 16;
/// How many words of bits there are: enough for 17 thousand million slots.
const WORDS: usize = 1 << 18;

/// A bit for each block of slots.
#[derive(Debug, Default)]
pub(crate) struct ResidentBlocks(OnceArray<AtomicU64>);

impl ResidentBlocks {
    /// True if the cells of a slot stay.
    #[inline]
    pub(crate) fn has(&self, slot: usize) -> bool {
        let word = self.0.get(slot / BLOCK / 64);
        // Pairs with `note`: who sees the bit sees the pages in their places.
        word.is_some_and(|word| word.load(Ordering::Acquire) >> (slot / BLOCK % 64) & 1 != 0)
    }

    /// Returns the slots for which the same is noted as for this one.
    pub(crate) const fn around(slot: usize) -> Range<usize> {
        let first = slot / BLOCK * BLOCK;
        first..first + BLOCK
    }

    /// Records that the slots around this one are in memory.
    #[cold]
    pub(crate) fn note(&self, slot: usize) {
        let index = slot / BLOCK / 64;
        if index < WORDS {
            let word = self.0.put(index, WORDS, AtomicU64::new(0));
            word.fetch_or(1 << (slot / BLOCK % 64), Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_noted_and_no_other() {
        let resident = ResidentBlocks::default();
        let slots = [0, 5 * BLOCK + 7, 64 * BLOCK, 40_000 * BLOCK];
        for slot in slots {
            assert!(!resident.has(slot));
            resident.note(slot);
            assert!(resident.has(slot) && resident.has(slot / BLOCK * BLOCK));
            assert!(!resident.has(slot + BLOCK));
        }
        resident.note(usize::MAX);
        assert!(!resident.has(usize::MAX));
        assert!(slots.iter().all(|&slot| resident.has(slot)));
    }
}
