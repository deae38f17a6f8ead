//! Arrays of cells in pages: fixed-size cells, bits, appended bytes, and whole pages for tree nodes.
//!
//! These types turn the raw pages into calls that are safe to make within the store.
//!
//! Invariants (those of [`super::page`] apply)
//! 1. A cell is read only when the view that holds the array leads to it.
//! 2. `fresh` is said only of a cell that no published view leads to.
//! 3. Node pages are written only while they are owned, never behind a length.
//! 4. A page that isn't there is zeros, but for the first one of an array of cells or bits: as long as
//!    that isn't there, its first cells are in `small`, and behind those are zeros. So a table of a
//!    thousand columns and a few rows takes no thousand pages.
#![allow(
    unsafe_code,
    reason = "the safe face of the pages' raw cells, for the store's own modules only"
)]

use std::sync::Arc;

use super::directory::Directory;
use super::page::{Epoch, PAGE, Page};

/// The number of bits in a page.
const PAGE_BITS: usize = PAGE * 8;

/// Turns a number that was kept in a page into a place in memory.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "it was made from a place in this memory")]
pub(super) const fn place(number: u64) -> usize {
    number as usize
}

fn page_memory(page: &Arc<Page>) -> usize {
    if page.is_shared() { 0 } else { size_of::<Page>() + 2 * size_of::<usize>() }
}

/// The pages of an array.
///
/// Invariant: `hot` is a page that the directory has too, at that index; or none.
#[derive(Clone, Debug, Default)]
struct Pages {
    all: Directory<Arc<Page>>,
    /// The page that was last changed, so that a run of appends finds it without a walk.
    hot: Option<(usize, Arc<Page>)>,
}

impl Pages {
    fn filled(page: &Arc<Page>, len: usize) -> Self {
        Self { all: Directory::filled(page, len), hot: None }
    }

    #[inline]
    fn get(&self, index: usize) -> Option<&Arc<Page>> {
        self.all.get(index)
    }

    /// Gives the page in which a cell may be written, if it is the one that was last changed.
    #[inline]
    fn hot(&self, index: usize, fresh: bool, epoch: &Epoch) -> Option<&Page> {
        match &self.hot {
            Some((at, page)) if *at == index && page.may_write(fresh, epoch) => Some(page),
            _ => None,
        }
    }

    /// Gives a page in which a cell may be written; copies it first unless it is owned, or the cell
    /// is `fresh`.
    fn for_writing(&mut self, index: usize, fresh: bool, epoch: &Epoch) -> &Page {
        self.heat(index, fresh, epoch);
        &self.hot.as_ref().expect("it was just made hot").1
    }

    fn heat(&mut self, index: usize, fresh: bool, epoch: &Epoch) {
        let found = self.all.get(index).filter(|page| page.may_write(fresh, epoch)).cloned();
        let page = found.unwrap_or_else(|| {
            self.hot = None;
            own(&mut self.all, index, epoch);
            Arc::clone(self.all.get(index).expect("it was just put there"))
        });
        self.hot = Some((index, page));
    }

    fn memory(&self) -> usize {
        self.all.memory(page_memory)
    }
}

/// Makes page `index` one that the current transaction owns.
#[cold]
fn own<'d>(pages: &'d mut Directory<Arc<Page>>, index: usize, epoch: &Epoch) -> &'d Page {
    let page = match pages.get(index) {
        Some(page) => page.copy(epoch),
        None => Page::zeroed(epoch),
    };
    pages.set(index, Some(page));
    pages.get(index).expect("it was just put there")
}

/// How many bytes of cells an array has before it takes its first page: few, then some.
const SMALL: [usize; 2] = [128, 1024];

/// An array of cells of `W` bytes, a power of two.
#[derive(Clone, Debug, Default)]
pub(super) struct Cells<const W: usize> {
    pages: Pages,
    small: Option<Arc<Vec<u8>>>,
}

impl<const W: usize> Cells<W> {
    const EACH: usize = PAGE / W;

    /// Makes an array that has the same cell in at least the first `len` places, in one page or less.
    pub(super) fn filled(cell: [u8; W], len: usize) -> Self {
        if len <= SMALL[1] / W {
            let small = (len > 0).then(|| Arc::new(cell.repeat(len)));
            return Self { pages: Pages::default(), small };
        }
        let page = Page::filled(cell);
        Self { pages: Pages::filled(&page, len.div_ceil(Self::EACH)), small: None }
    }

    /// Reads a cell.
    #[inline]
    pub(super) fn get(&self, slot: usize) -> [u8; W] {
        match self.pages.get(slot / Self::EACH) {
            // SAFETY: the view leads to the cell (invariant 1).
            Some(page) => unsafe { page.read(slot % Self::EACH * W) },
            None => self.small(slot, 0, W).first_chunk().copied().unwrap_or([0; W]),
        }
    }

    /// Borrows a part of a cell whose page isn't there; gives nothing for zeros.
    #[inline(never)] // so that reading from a page stays short
    fn small(&self, slot: usize, offset: usize, len: usize) -> &[u8] {
        let small = self.small.as_ref().filter(|_| slot < SMALL[1] / W);
        let at = |small| <[u8]>::get(small, slot * W + offset..slot * W + offset + len);
        small.and_then(|small| at(small)).unwrap_or_default()
    }

    /// Borrows a part of a cell.
    #[inline]
    pub(super) fn slice(&self, slot: usize, offset: usize, len: usize) -> &[u8] {
        match self.pages.get(slot / Self::EACH) {
            // SAFETY: the view leads to the cell (invariant 1); to write to it needs a `&mut` of
            // the array or, in a later transaction, a copy of the page.
            Some(page) => unsafe { page.slice(slot % Self::EACH * W + offset, len) },
            None => self.small(slot, offset, len),
        }
    }

    /// Writes a cell; copies its page first unless it is owned, or the cell is `fresh`.
    #[inline]
    pub(super) fn set(&mut self, slot: usize, cell: [u8; W], fresh: bool, epoch: &Epoch) {
        let (index, offset) = (slot / Self::EACH, slot % Self::EACH * W);
        if let Some(page) = self.pages.hot(index, fresh, epoch) {
            // SAFETY: owned, or fresh and not shared (invariant 2); `&mut self` ends all borrows.
            unsafe { page.put(offset, cell) };
            return;
        }
        self.set_with_page(slot, cell, fresh, epoch);
    }

    /// Writes a cell whose page isn't the hot one, or can still be done without.
    #[cold]
    fn set_with_page(&mut self, slot: usize, cell: [u8; W], fresh: bool, epoch: &Epoch) {
        let (index, offset) = (slot / Self::EACH, slot % Self::EACH * W);
        if self.pages.get(index).is_none() && self.set_small(slot, cell) {
            return;
        }
        let page = self.pages.for_writing(index, fresh, epoch);
        if index == 0
            && let Some(small) = self.small.take()
        {
            // SAFETY: the page is owned: as long as there are small cells, there was no page 0.
            unsafe { page.write(0, &small) };
        }
        // SAFETY: owned, or fresh and not shared (invariant 2); `&mut self` ends all borrows.
        unsafe { page.put(offset, cell) };
    }

    /// Writes a cell whose page isn't there without making one, if that can be.
    fn set_small(&mut self, slot: usize, cell: [u8; W]) -> bool {
        let len = self.small.as_ref().map_or(0, |small| small.len());
        if slot >= len / W {
            if cell == [0; W] {
                return true;
            }
            let Some(more) = SMALL.into_iter().find(|size| slot < size / W) else { return false };
            Arc::make_mut(self.small.get_or_insert_default()).resize(more, 0);
        }
        let small = Arc::make_mut(self.small.get_or_insert_default());
        small[slot * W..][..W].copy_from_slice(&cell);
        true
    }

    /// Tells how much memory it takes, in bytes.
    pub(super) fn memory(&self) -> usize {
        let small = self.small.as_ref().map_or(0, |small| small.capacity() + size_of::<Vec<u8>>());
        self.pages.memory() + small
    }
}

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
pub(super) struct Bits {
    pages: Pages,
    small: [u64; SMALL_WORDS],
}

impl Bits {
    /// Makes an array of at least `len` bits that are all set, in one page or less.
    pub(super) fn ones(len: usize) -> Self {
        if len <= SMALL_WORDS * 64 {
            let ones = if len == 0 { 0 } else { u64::MAX };
            return Self { pages: Pages::default(), small: [ones; SMALL_WORDS] };
        }
        let pages = Pages::filled(&Page::filled([0xff]), len.div_ceil(PAGE_BITS));
        Self { pages, small: [0; SMALL_WORDS] }
    }

    /// Gives the 64 bits from `index * 64` on.
    #[inline]
    pub(super) fn word(&self, index: usize) -> u64 {
        match self.pages.get(index / (PAGE / 8)) {
            Some(page) => page.load(index % (PAGE / 8)),
            None => self.small.get(index).copied().unwrap_or(0),
        }
    }

    /// Reads a bit.
    #[inline]
    pub(super) fn get(&self, slot: usize) -> bool {
        self.word(slot / 64) >> (slot % 64) & 1 != 0
    }

    /// Writes a bit; copies its page first unless it is owned, or the bit is `fresh`.
    #[inline]
    pub(super) fn set(&mut self, slot: usize, bit: bool, fresh: bool, epoch: &Epoch) {
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

    /// Counts the bits that are set among `len` from `slot` on.
    pub(super) fn count(&self, slot: usize, len: usize) -> usize {
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
    pub(super) fn first(&self, slot: usize, end: usize) -> Option<usize> {
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
    pub(super) fn last(&self, slot: usize, end: usize) -> Option<usize> {
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
    pub(super) fn memory(&self) -> usize {
        self.pages.memory()
    }
}

/// Pages to which bytes are appended.
#[derive(Clone, Debug, Default)]
pub(super) struct Heap {
    pages: Directory<Arc<Page>>,
}

impl Heap {
    /// Adds an empty page, or replaces one by it.
    pub(super) fn add(&mut self, number: usize, epoch: &Epoch) {
        self.pages.set(number, Some(Page::zeroed(epoch)));
    }

    /// Takes a page away.
    pub(super) fn remove(&mut self, number: usize) {
        self.pages.set(number, None);
    }

    /// Borrows bytes that were appended.
    #[inline]
    pub(super) fn slice(&self, number: usize, offset: usize, len: usize) -> &[u8] {
        match self.pages.get(number) {
            // SAFETY: the view leads to these bytes (invariant 1), and bytes that were appended
            // are not written again as long as a view leads to them.
            Some(page) => unsafe { page.slice(offset, len) },
            None => &[],
        }
    }

    /// Writes bytes that no view leads to yet, in this transaction's working view neither.
    #[inline]
    pub(super) fn append(&mut self, number: usize, offset: usize, bytes: &[u8]) {
        if let Some(page) = self.pages.get(number) {
            // SAFETY: the bytes are fresh (invariant 2), and heap pages are never shared.
            unsafe { page.write(offset, bytes) };
        }
    }

    /// Tells how much memory it takes, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.pages.memory(page_memory)
    }
}

/// Whole pages, as the nodes of a tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Nodes {
    pages: Directory<Arc<Page>>,
}

impl Nodes {
    /// Borrows a node.
    #[inline]
    pub(super) fn get(&self, number: u32) -> &[u8; PAGE] {
        let page = self.pages.get(number as usize).expect("a tree knows its nodes");
        // SAFETY: node pages are written only when owned, through `get_mut` (invariant 3).
        unsafe { page.whole() }
    }

    /// Borrows a node for writing; copies it first unless it is owned. A missing one is zeros.
    #[inline]
    pub(super) fn get_mut(&mut self, number: u32, epoch: &Epoch) -> &mut [u8; PAGE] {
        let index = number as usize;
        if !self.pages.get(index).is_some_and(|page| page.is_owned(epoch)) {
            own(&mut self.pages, index, epoch);
        }
        let page = self.pages.get(index).expect("it is owned, so it is there");
        // SAFETY: the page is owned, and reached through this `&mut self`.
        unsafe { page.whole_mut() }
    }

    /// Takes a node away.
    pub(super) fn remove(&mut self, number: u32) {
        self.pages.set(number as usize, None);
    }

    /// Tells how much memory it takes, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.pages.memory(page_memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_cells_stay_and_fresh_ones_are_written_in_place() {
        let mut epoch = Epoch::first();
        let mut cells = Cells::<8>::default();
        (0..3000_usize).for_each(|slot| cells.set(slot, (slot as u64).to_le_bytes(), true, &epoch));
        epoch.advance();
        let published = cells.clone();
        cells.set(3000, [9; 8], true, &epoch);
        assert_eq!(published.memory(), cells.memory());
        cells.set(5, [7; 8], false, &epoch);
        assert_eq!((published.get(5), cells.get(5)), (5_u64.to_le_bytes(), [7; 8]));
        assert_eq!((cells.get(2999), cells.get(3000)), (2999_u64.to_le_bytes(), [9; 8]));
        assert_eq!(cells.slice(5, 1, 2), [7, 7]);
    }

    #[test]
    fn a_few_cells_take_no_page_and_move_into_the_first() {
        let mut epoch = Epoch::first();
        let (mut cells, mut bits) = (Cells::<4>::default(), Bits::default());
        let mut kept = Vec::new();
        for slot in 0..700_usize {
            kept.push((cells.clone(), bits.clone()));
            epoch.advance();
            cells.set(slot, [u8::try_from(slot % 7).unwrap(); 4], true, &epoch);
            bits.set(slot, slot % 7 == 1, true, &epoch);
            assert!(slot > 30 || cells.memory() + bits.memory() < 200);
            assert!(slot > 250 || cells.memory() < 1200);
        }
        kept.push((cells.clone(), bits.clone()));
        for (len, (cells, bits)) in kept.iter().enumerate() {
            for slot in 0..len {
                let cell = u8::try_from(slot % 7).unwrap();
                assert_eq!(cells.get(slot), [cell; 4], "{slot} of {len}");
                assert_eq!(bits.get(slot), cell == 1, "{slot} of {len}");
            }
        }
        let filled = Cells::filled([9; 16], 64);
        assert_eq!(
            (filled.get(63), filled.get(64), filled.slice(3, 2, 2)),
            ([9; 16], [0; 16], &[9, 9][..])
        );
        let (mut zeros, mut unset) = (Cells::<16>::default(), Bits::default());
        for slot in [0, 5, 40_000] {
            zeros.set(slot, [0; 16], true, &epoch);
            unset.set(slot, false, true, &epoch);
        }
        assert_eq!(zeros.memory() + unset.memory(), 0);
        zeros.set(5000, [1; 16], true, &epoch);
        zeros.set(1, [2; 16], true, &epoch);
        assert_eq!((zeros.get(1), zeros.get(5000), zeros.get(0)), ([2; 16], [1; 16], [0; 16]));
        let mut ones = Bits::ones(10);
        ones.set(9, false, false, &epoch);
        ones.set(5000, true, true, &epoch);
        assert_eq!((ones.count(0, 10), ones.get(9), ones.get(5000)), (9, false, true));
    }

    #[test]
    fn filled_cells_take_no_memory_until_they_differ() {
        let epoch = Epoch::first();
        let mut cells = Cells::filled([1, 2, 3, 4], 100_000);
        assert!(cells.memory() < PAGE);
        cells.set(99_999, [5; 4], true, &epoch);
        assert_eq!((cells.get(99_998), cells.get(99_999)), ([1, 2, 3, 4], [5; 4]));
        assert_eq!(cells.get(3), [1, 2, 3, 4]);
    }

    #[test]
    fn bits_are_found_and_counted() {
        let epoch = Epoch::first();
        let mut bits = Bits::default();
        for slot in [3, 64, 200, PAGE_BITS + 1] {
            bits.set(slot, true, true, &epoch);
        }
        assert_eq!(bits.first(4, 1000), Some(64));
        assert_eq!(bits.first(65, 200), None);
        assert_eq!(bits.first(201, PAGE_BITS * 2), Some(PAGE_BITS + 1));
        assert_eq!(bits.last(0, 200), Some(64));
        assert_eq!(bits.last(0, 201), Some(200));
        assert_eq!(bits.last(65, 200), None);
        assert_eq!(bits.last(0, 3), None);
        assert_eq!(bits.count(3, 198), 3);
        assert_eq!(bits.count(4, 60), 0);
        bits.set(64, false, true, &epoch);
        assert!(!bits.get(64) && bits.get(200) && Bits::ones(10).get(9));
    }
}
