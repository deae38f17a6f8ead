//! Arrays of cells in pages: fixed-size cells, bits, appended bytes, and whole pages for tree nodes.
//!
//! These types turn the raw pages into calls that are safe to make within the store.
//!
//! Invariants (those of [`crate::pages::page`] apply)
//! 1. A cell is read only if the view that holds the array refers to it.
//! 2. `fresh` is set only for a cell that no published view refers to.
//! 3. Node pages are written only while they are owned, never after a length.
//! 4. A missing page is zeros, except the first one of an array of cells or bits: as long as that is missing, its
//!    first cells are in `small`, and zeros follow. So a table of a thousand columns and a few rows takes no thousand
//!    pages.
#![allow(
    unsafe_code,
    reason = "the safe face of the pages' raw cells, for the store's own modules only"
)]

mod bits;
mod heap;
mod numbers;
mod reader;
mod runs;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use crate::pages::base::Form;
use crate::pages::item::Held;
use crate::pages::load::Loader;
use crate::pages::page::{Epoch, PAGE, PageRef, Write};
use crate::pages::paged::{Counted, Paged};
use crate::pages::refresh::refresh;
use crate::pages::save::{Blanks, Saved, Saver, filled_parts};
use crate::{Error, Result};

pub(crate) use self::bits::Bits;
pub(crate) use self::heap::{Heap, Longs, NodePage, Nodes};
pub(crate) use self::numbers::FreeNumbers;
pub(crate) use self::reader::{BitReader, CellReader, HeapReader};

/// Turns a number that was kept in a page into a place in memory.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "it was made from a place in this memory")]
pub(crate) const fn place(number: u64) -> usize {
    number as usize
}

/// What the pages of an array have.
#[derive(Clone, Copy)]
struct Shape {
    /// How many cells or bits.
    each: usize,
    form: Form<PageRef>,
}

/// The pages of an array.
///
/// Invariant: `hot` is a page that the overlay has too, at that index; or none.
#[derive(Clone, Debug, Default)]
struct Pages {
    all: Paged<PageRef>,
    /// The page that was last changed, so that a run of appends finds it without a walk.
    hot: Option<(usize, PageRef)>,
}

refresh!(Pages { all, hot; });

impl Pages {
    fn filled(page: &PageRef, len: usize) -> Self {
        Self { all: Paged::filled(page, len), hot: None }
    }

    /// Returns a page that is in memory as a change.
    #[inline]
    fn here(&self, index: usize) -> Option<&PageRef> {
        self.all.here(index)
    }

    /// Returns a page that needs no lookup.
    #[inline(always)]
    fn at_hand(&self, index: usize) -> Option<&PageRef> {
        self.all.at_hand(index)
    }

    #[inline]
    fn get(&self, index: usize) -> Result<Option<Held<'_, PageRef>>> {
        self.all.get(index)
    }

    /// Returns true if the item at a place can be read again without loading anything. Loads it, if that wasn't done
    /// yet.
    #[inline]
    fn stays(&self, index: usize) -> Result<bool> {
        Ok(!matches!(self.get(index)?, Some(Held::Kept(_))))
    }

    /// True if the item at a place, which stays, does so for all views over the same base.
    fn stays_below(&self, index: usize) -> bool {
        self.all.stays_below(index)
    }

    /// Returns true if there is no page.
    fn is_missing(&self, index: usize) -> Result<bool> {
        Ok(self.get(index)?.is_none())
    }

    /// Returns the page in which a cell may be written, if it is the one that was last changed.
    #[inline]
    fn hot(&self, index: usize, write: Write<'_>) -> Option<&PageRef> {
        match &self.hot {
            Some((at, page)) if *at == index && page.may_write(write) => Some(page),
            _ => None,
        }
    }

    /// Returns a page in which a cell may be written; copies it first unless it is owned, or the cell
    /// is `fresh`.
    fn for_writing(&mut self, index: usize, write: Write<'_>) -> Result<&PageRef> {
        let found = self.all.here(index).filter(|page| page.may_write(write)).cloned();
        let page = match found {
            Some(page) => page,
            None => {
                self.hot = None;
                own(&mut self.all, index, write.epoch)?.clone()
            }
        };
        Ok(&self.hot.insert((index, page)).1)
    }

    fn save(
        &self,
        out: &mut Saver,
        shape: Shape,
        blanks: &Blanks,
        copy: impl Fn(&PageRef, Range<usize>, &mut [u8]),
    ) {
        let Shape { each, form } = shape;
        out.pages(&self.all, form, |index, page| {
            filled_parts(page, index, each, blanks, |part, out| copy(page, part, out))
        });
    }

    fn load(input: &mut Loader<'_>, shape: Shape) -> Result<Self> {
        Ok(Self { all: input.array(shape.form)?, hot: None })
    }

    fn rebase(&mut self, saved: &Saved) {
        self.hot = None;
        saved.rebase_pages(&mut self.all);
    }

    fn memory(&self, what: Counted) -> usize {
        self.all.memory(what)
    }
}

/// Makes page `index` one that the current transaction owns.
#[cold]
fn own<'d>(pages: &'d mut Paged<PageRef>, index: usize, epoch: &Epoch) -> Result<&'d PageRef> {
    let page = match pages.unseen(index)? {
        // A page to copy is loaded directly as the copy.
        Some((base, stored)) => {
            let page = base.pager().load_own(&base.wanted(stored), epoch)?;
            base.check(stored, &page)?;
            page
        }
        None => match pages.get(index)? {
            Some(page) => page.copy(epoch),
            None => PageRef::zeroed_for(pages.id(), index, epoch),
        },
    };
    pages.put(index, page);
    Ok(pages.here(index).expect("it was just put there"))
}

/// How many bytes of cells an array has before it takes its first page: few, then some.
const SMALL: [usize; 2] = [128, 1024];

/// An array of cells of `W` bytes, a power of two.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cells<const W: usize> {
    pages: Pages,
    small: Option<Arc<Vec<u8>>>,
}

refresh!(impl [const W: usize] for Cells<W> { pages, small; });

impl<const W: usize> Cells<W> {
    const EACH: usize = PAGE / W;

    const SHAPE: Shape =
        Shape { each: Self::EACH, form: if W <= 8 { Form::cells(W) } else { Form::BYTES } };

    /// Makes an array that has the same cell in at least the first `len` places, in one page or less.
    pub(crate) fn filled(cell: [u8; W], len: usize) -> Self {
        if len <= SMALL[1] / W {
            let small = (len > 0).then(|| Arc::new(cell.repeat(len)));
            return Self { pages: Pages::default(), small };
        }
        let page = PageRef::filled(cell);
        Self { pages: Pages::filled(&page, len.div_ceil(Self::EACH)), small: None }
    }

    /// Reads a cell.
    ///
    /// # Errors
    /// Its page can't be loaded.
    #[inline]
    pub(crate) fn get(&self, slot: usize) -> Result<[u8; W]> {
        self.at_hand(slot).map_or_else(|| self.get_below(slot), Ok)
    }

    /// Reads a cell whose page needs no lookup.
    #[inline(always)]
    pub(crate) fn at_hand(&self, slot: usize) -> Option<[u8; W]> {
        let page = self.pages.at_hand(slot / Self::EACH)?;
        // SAFETY: the view refers to the cell (invariant 1).
        Some(unsafe { page.read(slot % Self::EACH * W) })
    }

    /// Borrows a part of a cell whose page needs no lookup.
    #[inline]
    pub(crate) fn slice_at_hand(&self, slot: usize, offset: usize, len: usize) -> Option<&[u8]> {
        let page = self.pages.at_hand(slot / Self::EACH)?;
        // SAFETY: the view refers to the cell (invariant 1); to write to it needs a `&mut` of the array or, in a
        // later transaction, a copy of the page.
        Some(unsafe { page.slice(slot % Self::EACH * W + offset, len) })
    }

    /// True if the page of a cell is in memory as the base has it: no change covers it.
    pub(crate) fn is_below(&self, slot: usize) -> bool {
        self.pages.here(slot / Self::EACH).is_none()
            && self.pages.at_hand(slot / Self::EACH).is_some()
    }

    /// Prefetches the page of a cell, if it is in memory: a KiB of it in a step, since the processor then continues
    /// by itself.
    #[inline]
    pub(crate) fn fetch(&self, slot: usize) {
        if let Some(page) = self.pages.at_hand(slot / Self::EACH) {
            (0..PAGE).step_by(1024).for_each(|offset| page.fetch(offset));
        }
    }

    /// Reads a cell whose page needs a lookup.
    #[inline(never)] // so that reading from one at hand stays short
    fn get_below(&self, slot: usize) -> Result<[u8; W]> {
        match self.pages.all.below(slot / Self::EACH)? {
            // SAFETY: the view refers to the cell (invariant 1).
            Some(page) => Ok(unsafe { page.read(slot % Self::EACH * W) }),
            None => Ok(self.small(slot, 0, W).first_chunk().copied().unwrap_or([0; W])),
        }
    }

    /// Borrows a part of a cell of a missing page; returns nothing for zeros.
    fn small(&self, slot: usize, offset: usize, len: usize) -> &[u8] {
        let small = self.small.as_ref().filter(|_| slot < SMALL[1] / W);
        let at = |small| <[u8]>::get(small, slot * W + offset..slot * W + offset + len);
        small.and_then(|small| at(small)).unwrap_or_default()
    }

    /// Borrows a part of a cell, or copies it if only a cache has it.
    ///
    /// # Errors
    /// Its page can't be loaded.
    #[inline]
    pub(crate) fn slice(&self, slot: usize, offset: usize, len: usize) -> Result<Cow<'_, [u8]>> {
        let at = slot % Self::EACH * W + offset;
        match self.pages.get(slot / Self::EACH)? {
            // SAFETY: the view refers to the cell (invariant 1); to write to it needs a `&mut` of the array or, in a
            // later transaction, a copy of the page.
            Some(Held::Here(page)) => Ok(Cow::Borrowed(unsafe { page.slice(at, len) })),
            // SAFETY: the view refers to the cell, and it is copied at once.
            Some(Held::Kept(page)) => Ok(Cow::Owned(unsafe { page.slice(at, len) }.to_vec())),
            None => Ok(Cow::Borrowed(self.small(slot, offset, len))),
        }
    }

    /// Returns true if a cell can be read again without loading anything. Loads it, if that wasn't done
    /// yet.
    ///
    /// # Errors
    /// Its page can't be loaded.
    #[inline]
    pub(crate) fn stays(&self, slot: usize) -> Result<bool> {
        self.pages.stays(slot / Self::EACH)
    }

    /// True if a cell that stays does so for all views over the same base.
    pub(crate) fn stays_below(&self, slot: usize) -> bool {
        self.pages.stays_below(slot / Self::EACH)
    }

    /// Writes a cell; copies its page first unless it is owned, or the cell is `fresh`.
    ///
    /// # Errors
    /// Its page can't be loaded.
    #[inline]
    pub(crate) fn set(&mut self, slot: usize, cell: [u8; W], write: Write<'_>) -> Result<()> {
        let (index, offset) = (slot / Self::EACH, slot % Self::EACH * W);
        if let Some(page) = self.pages.hot(index, write) {
            // SAFETY: owned, or fresh and not shared (invariant 2); `&mut self` ends all borrows.
            unsafe { page.put(offset, cell) };
            return Ok(());
        }
        self.set_with_page(slot, cell, write)
    }

    /// Writes a cell whose page isn't the hot one, or can still be done without.
    #[cold]
    fn set_with_page(&mut self, slot: usize, cell: [u8; W], write: Write<'_>) -> Result<()> {
        let (index, offset) = (slot / Self::EACH, slot % Self::EACH * W);
        let here = self.pages.here(index);
        if let Some(page) = here.filter(|page| !write.fresh && page.is_owned(write.epoch)) {
            // A change here and there must not push aside the page to which rows are appended.
            // SAFETY: owned; `&mut self` ends all borrows.
            unsafe { page.put(offset, cell) };
            return Ok(());
        }
        if here.is_none() && self.pages.is_missing(index)? && self.set_small(slot, cell) {
            return Ok(());
        }
        let page = self.pages.for_writing(index, write)?;
        if index == 0
            && let Some(small) = self.small.take()
        {
            // SAFETY: the page is owned: as long as there are small cells, there was no page 0.
            unsafe { page.write(0, &small) };
        }
        // SAFETY: owned, or fresh and not shared (invariant 2); `&mut self` ends all borrows.
        unsafe { page.put(offset, cell) };
        Ok(())
    }

    /// Writes a cell of a missing page without making one, if possible.
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

    /// Hands the array over to be saved.
    pub(crate) fn save(&self, out: &mut Saver, blanks: &Blanks) {
        out.bytes(self.small.as_ref().map_or(&[], |small| small));
        self.pages.save(out, Self::SHAPE, blanks, |page, part, out| {
            // SAFETY: a published view refers to these cells, so they aren't written.
            out[part.start * W..part.end * W]
                .copy_from_slice(unsafe { page.slice(part.start * W, part.len() * W) });
        });
    }

    /// Loads the output of `save`.
    pub(crate) fn load(input: &mut Loader<'_>) -> Result<Self> {
        let small = input.bytes()?;
        if small.len() > SMALL[1] || !small.len().is_multiple_of(W) {
            let len = small.len();
            return Err(Error::corrupt(format!("{len} bytes of small cells can't be")));
        }
        let small = (!small.is_empty()).then(|| Arc::new(small.to_vec()));
        Ok(Self { pages: Pages::load(input, Self::SHAPE)?, small })
    }

    /// Continues from the stored base.
    pub(crate) fn rebase(&mut self, saved: &Saved) {
        self.pages.rebase(saved);
    }

    /// Returns how much memory it takes, in bytes.
    pub(crate) fn memory(&self, what: Counted) -> usize {
        let small = self.small.as_ref().map_or(0, |small| small.capacity() + size_of::<Vec<u8>>());
        self.pages.memory(what) + small
    }
}

#[cfg(test)]
mod tests;
