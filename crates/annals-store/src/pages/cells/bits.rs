//! Arrays of bits.

use super::runs::{PagePart, parts};
use super::{Pages, Shape};
use crate::Result;
use crate::pages::base::Form;
use crate::pages::load::Loader;
use crate::pages::page::{PAGE, PageRef, Write};
use crate::pages::paged::Counted;
use crate::pages::refresh::refresh;
use crate::pages::save::{Blanks, Saved, Saver};

/// The number of bits in a page.
pub(super) const PAGE_BITS: usize = PAGE * 8;

const SHAPE: Shape = Shape { each: PAGE_BITS, form: Form::BYTES };

/// How many words of bits an array has before it takes its first page.
const SMALL_WORDS: usize = 2;

/// Writes a bit of a word.
#[inline]
fn change(page: &PageRef, word: usize, slot: usize, bit: bool) {
    let (mask, old) = (1_u64 << (slot % 64), page.load(word));
    page.store(word, if bit { old | mask } else { old & !mask });
}

/// An array of bits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bits {
    pub(super) pages: Pages,
    pub(super) small: [u64; SMALL_WORDS],
}

refresh!(Bits { pages; small });

impl Bits {
    /// Makes an array of at least `len` bits that are all set, in one page or less.
    pub(crate) fn ones(len: usize) -> Self {
        if len <= SMALL_WORDS * 64 {
            let ones = if len == 0 { 0 } else { u64::MAX };
            return Self { pages: Pages::default(), small: [ones; SMALL_WORDS] };
        }
        let pages = Pages::filled(&PageRef::filled([0xff]), len.div_ceil(PAGE_BITS));
        Self { pages, small: [0; SMALL_WORDS] }
    }

    /// Returns the 64 bits from `index * 64` on.
    ///
    /// # Errors
    /// Their page can't be loaded.
    #[inline]
    pub(crate) fn word(&self, index: usize) -> Result<u64> {
        match self.pages.at_hand(index / (PAGE / 8)) {
            Some(page) => Ok(page.load(index % (PAGE / 8))),
            None => self.word_below(index),
        }
    }

    /// Reads a bit whose page needs no lookup.
    #[inline(always)]
    pub(crate) fn at_hand(&self, slot: usize) -> Option<bool> {
        let page = self.pages.at_hand(slot / PAGE_BITS)?;
        Some(page.load(slot / 64 % (PAGE / 8)) >> (slot % 64) & 1 != 0)
    }

    /// Returns bits whose page needs a lookup.
    #[inline(never)] // so that reading from one at hand stays short
    fn word_below(&self, index: usize) -> Result<u64> {
        match self.pages.all.below(index / (PAGE / 8))? {
            Some(page) => Ok(page.load(index % (PAGE / 8))),
            None => Ok(self.small.get(index).copied().unwrap_or(0)),
        }
    }

    /// Reads a bit.
    #[inline]
    pub(crate) fn get(&self, slot: usize) -> Result<bool> {
        Ok(self.word(slot / 64)? >> (slot % 64) & 1 != 0)
    }

    /// Returns true if a bit can be read again without loading anything. Loads it, if that wasn't done
    /// yet.
    ///
    /// # Errors
    /// Its page can't be loaded.
    #[inline]
    pub(crate) fn stays(&self, slot: usize) -> Result<bool> {
        self.pages.stays(slot / PAGE_BITS)
    }

    /// True if a bit that stays does so for all views over the same base.
    pub(crate) fn stays_below(&self, slot: usize) -> bool {
        self.pages.stays_below(slot / PAGE_BITS)
    }

    /// Returns how much memory loaded pages may take, in bytes; 0 if there is no image.
    pub(crate) fn budget(&self) -> usize {
        self.pages.all.base().map_or(0, |base| base.pager().budget())
    }

    /// True if a part of it is from an image.
    pub(crate) const fn has_base(&self) -> bool {
        self.pages.all.base().is_some()
    }

    /// Writes a bit; copies its page first unless it is owned, or the bit is `fresh`.
    #[inline]
    pub(crate) fn set(&mut self, slot: usize, bit: bool, write: Write<'_>) -> Result<()> {
        let (index, word) = (slot / PAGE_BITS, slot / 64 % (PAGE / 8));
        if let Some(page) = self.pages.hot(index, write) {
            change(page, word, slot, bit);
            return Ok(());
        }
        self.set_with_page(slot, bit, write)
    }

    /// Writes a bit whose page isn't the hot one, or can still be done without.
    #[cold]
    fn set_with_page(&mut self, slot: usize, bit: bool, write: Write<'_>) -> Result<()> {
        let (index, word) = (slot / PAGE_BITS, slot / 64 % (PAGE / 8));
        let is_missing = self.pages.here(index).is_none() && self.pages.is_missing(index)?;
        if is_missing && self.set_small(slot, bit) {
            return Ok(());
        }
        let page = self.pages.for_writing(index, write)?;
        if is_missing && index == 0 {
            self.small.iter().enumerate().for_each(|(at, &word)| page.store(at, word));
        }
        change(page, word, slot, bit);
        Ok(())
    }

    /// Writes a bit of a missing page without making one, if possible.
    #[cold]
    fn set_small(&mut self, slot: usize, bit: bool) -> bool {
        let Some(word) = self.small.get_mut(slot / 64) else { return !bit };
        *word = *word & !(1 << (slot % 64)) | u64::from(bit) << (slot % 64);
        true
    }

    /// Sets a run of bits, or clears it; makes no page for bits that are clear already.
    pub(crate) fn set_run(
        &mut self,
        slot: usize,
        len: usize,
        bit: bool,
        write: Write<'_>,
    ) -> Result<()> {
        for PagePart { index, at, len } in parts(slot, len, PAGE_BITS) {
            let is_missing = self.pages.is_missing(index)?;
            if is_missing && (!bit || index == 0 && at + len <= SMALL_WORDS * 64) {
                let end = if index == 0 { (at + len).min(SMALL_WORDS * 64) } else { 0 };
                (at..end).for_each(|slot| _ = self.set_small(slot, bit));
                continue;
            }
            let page = self.pages.for_writing(index, write)?;
            if is_missing && index == 0 {
                self.small.iter().enumerate().for_each(|(at, &word)| page.store(at, word));
            }
            for PagePart { index: word, at, len } in parts(at, len, 64) {
                let mask = (u64::MAX >> (64 - len)) << at;
                let old = page.load(word);
                page.store(word, if bit { old | mask } else { old & !mask });
            }
        }
        Ok(())
    }

    /// Clears a run of bits; makes no page for it.
    pub(crate) fn zero(&mut self, slot: usize, len: usize, write: Write<'_>) -> Result<()> {
        self.set_run(slot, len, false, write)
    }

    /// Finds the first bit that is clear among `slot..end`.
    pub(crate) fn first_clear(&self, slot: usize, end: usize) -> Result<Option<usize>> {
        let mut at = slot;
        while at < end {
            let word = !self.word(at / 64)? >> (at % 64);
            if word != 0 {
                let found = at + word.trailing_zeros() as usize;
                return Ok((found < end).then_some(found));
            }
            at = self.behind_full_words(at / 64 + 1) * 64;
        }
        Ok(None)
    }

    /// Returns the first word from `index` on that isn't known to be full: skips full ones in the same page, if that
    /// needs no lookup.
    #[inline]
    fn behind_full_words(&self, index: usize) -> usize {
        const WORDS: usize = PAGE / 8;
        let Some(page) = self.pages.at_hand(index / WORDS) else { return index };
        let rest = (index % WORDS..WORDS).take_while(|&word| page.load(word) == u64::MAX);
        index + rest.count()
    }

    /// Counts the bits that are set among `len` from `slot` on.
    pub(crate) fn count(&self, slot: usize, len: usize) -> Result<usize> {
        let end = slot + len;
        let mut count = 0;
        let mut at = slot;
        while at < end {
            let next = (at / 64 * 64 + 64).min(end);
            let word = self.word(at / 64)? >> (at % 64);
            let kept = if next - at == 64 { word } else { word & ((1 << (next - at)) - 1) };
            count += kept.count_ones() as usize;
            at = next;
        }
        Ok(count)
    }

    /// Finds the first bit that is set among `slot..end`.
    #[inline]
    pub(crate) fn first(&self, slot: usize, end: usize) -> Result<Option<usize>> {
        let mut at = slot;
        while at < end {
            let word = self.word(at / 64)? >> (at % 64);
            if word != 0 {
                let found = at + word.trailing_zeros() as usize;
                return Ok((found < end).then_some(found));
            }
            at = at / 64 * 64 + 64;
        }
        Ok(None)
    }

    /// Finds the last bit that is set among `slot..end`.
    #[inline]
    pub(crate) fn last(&self, slot: usize, end: usize) -> Result<Option<usize>> {
        let mut at = end;
        while at > slot {
            let top = at - 1;
            let word = self.word(top / 64)? << (63 - top % 64);
            if word != 0 {
                let found = top.checked_sub(word.leading_zeros() as usize);
                return Ok(found.filter(|&found| found >= slot));
            }
            at = top / 64 * 64;
        }
        Ok(None)
    }

    /// Hands the array over to be saved.
    pub(crate) fn save(&self, out: &mut Saver, blanks: &Blanks) {
        self.small.iter().for_each(|&word| out.number(word));
        self.pages.save(out, SHAPE, blanks, |page, part, out| {
            for PagePart { index: word, at, len } in parts(part.start, part.len(), 64) {
                let mask = (u64::MAX >> (64 - len)) << at;
                let place = &mut out[word * 8..word * 8 + 8];
                // Other bits of the word may be written meanwhile: hence the atomic load.
                let bits = page.load(word) & mask;
                for (to, from) in place.iter_mut().zip(bits.to_le_bytes()) {
                    *to |= from;
                }
            }
        });
    }

    /// Loads the output of `save`.
    pub(crate) fn load(input: &mut Loader<'_>) -> Result<Self> {
        let mut small = [0; SMALL_WORDS];
        for word in &mut small {
            *word = input.number()?;
        }
        Ok(Self { pages: Pages::load(input, SHAPE)?, small })
    }

    /// Continues from the stored base.
    pub(crate) fn rebase(&mut self, saved: &Saved) {
        self.pages.rebase(saved);
    }

    /// Returns how much memory it takes, in bytes.
    pub(crate) fn memory(&self, what: Counted) -> usize {
        self.pages.memory(what)
    }
}
