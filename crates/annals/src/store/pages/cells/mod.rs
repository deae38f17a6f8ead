//! Arrays of cells in pages: fixed-size cells, bits, appended bytes, and whole pages for tree nodes.
//!
//! These types turn the raw pages into calls that are safe to make within the store.
//!
//! Invariants (those of [`crate::store::pages::page`] apply)
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

mod bits;
mod heap;
mod runs;

use std::sync::Arc;

use crate::store::pages::directory::Directory;
use crate::store::pages::page::{Epoch, PAGE, Page};

pub(in crate::store) use self::bits::Bits;
pub(in crate::store) use self::heap::{Heap, Nodes};

/// Turns a number that was kept in a page into a place in memory.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "it was made from a place in this memory")]
pub(in crate::store) const fn place(number: u64) -> usize {
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
pub(in crate::store) struct Cells<const W: usize> {
    pages: Pages,
    small: Option<Arc<Vec<u8>>>,
}

impl<const W: usize> Cells<W> {
    const EACH: usize = PAGE / W;

    /// Makes an array that has the same cell in at least the first `len` places, in one page or less.
    pub(in crate::store) fn filled(cell: [u8; W], len: usize) -> Self {
        if len <= SMALL[1] / W {
            let small = (len > 0).then(|| Arc::new(cell.repeat(len)));
            return Self { pages: Pages::default(), small };
        }
        let page = Page::filled(cell);
        Self { pages: Pages::filled(&page, len.div_ceil(Self::EACH)), small: None }
    }

    /// Reads a cell.
    #[inline]
    pub(in crate::store) fn get(&self, slot: usize) -> [u8; W] {
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
    pub(in crate::store) fn slice(&self, slot: usize, offset: usize, len: usize) -> &[u8] {
        match self.pages.get(slot / Self::EACH) {
            // SAFETY: the view leads to the cell (invariant 1); to write to it needs a `&mut` of
            // the array or, in a later transaction, a copy of the page.
            Some(page) => unsafe { page.slice(slot % Self::EACH * W + offset, len) },
            None => self.small(slot, offset, len),
        }
    }

    /// Writes a cell; copies its page first unless it is owned, or the cell is `fresh`.
    #[inline]
    pub(in crate::store) fn set(&mut self, slot: usize, cell: [u8; W], fresh: bool, epoch: &Epoch) {
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
    pub(in crate::store) fn memory(&self) -> usize {
        let small = self.small.as_ref().map_or(0, |small| small.capacity() + size_of::<Vec<u8>>());
        self.pages.memory() + small
    }
}

#[cfg(test)]
mod tests;
