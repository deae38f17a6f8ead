//! Arrays of bits.

use super::Pages;
use super::runs::parts;
use crate::store::pages::page::{Epoch, PAGE, Page};

/// The number of bits in a page.
pub(super) const PAGE_BITS: usize = PAGE * 8;

/// How many words of bits an array has before it takes its first page.
const SMALL_WORDS: usize = 2;

/// Writes a bit of a word.
#[inline]
fn change(page: &Page, word: usize, slot: usize, bit: bool) {
    let (mask, old) = (1_u64 << (slot % 64), page.load(word));
    page.store(word, if bit { old | mask } else { old & !mask });
}

/// An array of bits.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct Bits {
    pages: Pages,
    small: [u64; SMALL_WORDS],
}

impl Bits {
    /// Makes an array of at least `len` bits that are all set, in one page or less.
    pub(in crate::store) fn ones(len: usize) -> Self {
        if len <= SMALL_WORDS * 64 {
            let ones = if len == 0 { 0 } else { u64::MAX };
            return Self { pages: Pages::default(), small: [ones; SMALL_WORDS] };
        }
        let pages = Pages::filled(&Page::filled([0xff]), len.div_ceil(PAGE_BITS));
        Self { pages, small: [0; SMALL_WORDS] }
    }

    /// Gives the 64 bits from `index * 64` on.
    #[inline]
    pub(in crate::store) fn word(&self, index: usize) -> u64 {
        match self.pages.get(index / (PAGE / 8)) {
            Some(page) => page.load(index % (PAGE / 8)),
            None => self.small.get(index).copied().unwrap_or(0),
        }
    }

    /// Reads a bit.
    #[inline]
    pub(in crate::store) fn get(&self, slot: usize) -> bool {
        self.word(slot / 64) >> (slot % 64) & 1 != 0
    }

    /// Writes a bit; copies its page first unless it is owned, or the bit is `fresh`.
    #[inline]
    pub(in crate::store) fn set(&mut self, slot: usize, bit: bool, fresh: bool, epoch: &Epoch) {
        let (index, word) = (slot / PAGE_BITS, slot / 64 % (PAGE / 8));
        if let Some(page) = self.pages.hot(index, fresh, epoch) {
            change(page, word, slot, bit);
            return;
        }
        self.set_with_page(slot, bit, fresh, epoch);
    }

    /// Writes a bit whose page isn't the hot one, or can still be done without.
    #[cold]
    fn set_with_page(&mut self, slot: usize, bit: bool, fresh: bool, epoch: &Epoch) {
        let (index, word) = (slot / PAGE_BITS, slot / 64 % (PAGE / 8));
        let is_missing = self.pages.get(index).is_none();
        if is_missing && self.set_small(slot, bit) {
            return;
        }
        let page = self.pages.for_writing(index, fresh, epoch);
        if is_missing && index == 0 {
            self.small.iter().enumerate().for_each(|(at, &word)| page.store(at, word));
        }
        change(page, word, slot, bit);
    }

    /// Writes a bit whose page isn't there without making one, if that can be.
    #[cold]
    fn set_small(&mut self, slot: usize, bit: bool) -> bool {
        let Some(word) = self.small.get_mut(slot / 64) else { return !bit };
        *word = *word & !(1 << (slot % 64)) | u64::from(bit) << (slot % 64);
        true
    }

    /// Sets a run of bits, or clears it; makes no page for bits that are clear already.
    pub(in crate::store) fn set_run(
        &mut self,
        (slot, len): (usize, usize),
        bit: bool,
        fresh: bool,
        epoch: &Epoch,
    ) {
        for (index, at, len) in parts(slot, len, PAGE_BITS) {
            let is_missing = self.pages.get(index).is_none();
            if is_missing && (!bit || index == 0 && at + len <= SMALL_WORDS * 64) {
                let end = if index == 0 { (at + len).min(SMALL_WORDS * 64) } else { 0 };
                (at..end).for_each(|slot| _ = self.set_small(slot, bit));
                continue;
            }
            let page = self.pages.for_writing(index, fresh, epoch);
            if is_missing && index == 0 {
                self.small.iter().enumerate().for_each(|(at, &word)| page.store(at, word));
            }
            for (word, first, count) in parts(at, len, 64) {
                let mask = (u64::MAX >> (64 - count)) << first;
                let old = page.load(word);
                page.store(word, if bit { old | mask } else { old & !mask });
            }
        }
    }

    /// Finds the first bit that is clear among `slot..end`.
    pub(in crate::store) fn first_clear(&self, slot: usize, end: usize) -> Option<usize> {
        let mut at = slot;
        while at < end {
            let word = !self.word(at / 64) >> (at % 64);
            if word != 0 {
                let found = at + word.trailing_zeros() as usize;
                return (found < end).then_some(found);
            }
            at = at / 64 * 64 + 64;
        }
        None
    }

    /// Counts the bits that are set among `len` from `slot` on.
    pub(in crate::store) fn count(&self, slot: usize, len: usize) -> usize {
        let end = slot + len;
        let mut count = 0;
        let mut at = slot;
        while at < end {
            let next = (at / 64 * 64 + 64).min(end);
            let word = self.word(at / 64) >> (at % 64);
            let kept = if next - at == 64 { word } else { word & ((1 << (next - at)) - 1) };
            count += kept.count_ones() as usize;
            at = next;
        }
        count
    }

    /// Finds the first bit that is set among `slot..end`.
    #[inline]
    pub(in crate::store) fn first(&self, slot: usize, end: usize) -> Option<usize> {
        let mut at = slot;
        while at < end {
            let word = self.word(at / 64) >> (at % 64);
            if word != 0 {
                let found = at + word.trailing_zeros() as usize;
                return (found < end).then_some(found);
            }
            at = at / 64 * 64 + 64;
        }
        None
    }

    /// Finds the last bit that is set among `slot..end`.
    #[inline]
    pub(in crate::store) fn last(&self, slot: usize, end: usize) -> Option<usize> {
        let mut at = end;
        while at > slot {
            let top = at - 1;
            let word = self.word(top / 64) << (63 - top % 64);
            if word != 0 {
                return top.checked_sub(word.leading_zeros() as usize).filter(|&f| f >= slot);
            }
            at = top / 64 * 64;
        }
        None
    }

    /// Tells how much memory it takes, in bytes.
    pub(in crate::store) fn memory(&self) -> usize {
        self.pages.memory()
    }
}
