//! Runs of cells: read and written a page at a time.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Cells, SMALL};
use crate::Result;
use crate::pages::item::Held;
use crate::pages::page::{PAGE, PageRef, Write};

/// The contents of missing pages, aligned as pages are.
#[repr(align(64))]
struct Zeros([u8; PAGE]);

static ZEROS: Zeros = Zeros([0; PAGE]);

/// So many cells are gathered before they are written.
const GATHERED: usize = 64;

/// A part of a run in one page.
pub(super) struct PagePart {
    /// The number of the page.
    pub(super) index: usize,
    /// The first place in the page.
    pub(super) at: usize,
    pub(super) len: usize,
}

/// Parts a run of cells or bits, of which a page has `each`.
pub(super) fn parts(first: usize, len: usize, each: usize) -> impl Iterator<Item = PagePart> {
    let (mut at, end) = (first, first + len);
    std::iter::from_fn(move || {
        let len = (each - at % each).min(end - at);
        let part = PagePart { index: at / each, at: at % each, len };
        at += len;
        (len > 0).then_some(part)
    })
}

impl<const W: usize> Cells<W> {
    /// Borrows consecutive cells: `len` of them, or fewer where their page ends.
    /// Copies them if only a cache has their page.
    ///
    /// # Errors
    /// Their page can't be loaded.
    pub(crate) fn run(&self, slot: usize, len: usize) -> Result<Cow<'_, [u8]>> {
        let (index, at) = (slot / Self::EACH, slot % Self::EACH);
        let len = len.min(Self::EACH - at);
        match self.pages.get(index)? {
            Some(Held::Here(page)) => {
                // SAFETY: as in `slice`: the view refers to the cells.
                return Ok(Cow::Borrowed(unsafe { page.slice(at * W, len * W) }));
            }
            Some(Held::Kept(page)) => {
                // SAFETY: as in `slice`: they are copied at once.
                return Ok(Cow::Owned(unsafe { page.slice(at * W, len * W) }.to_vec()));
            }
            None => {}
        }
        Ok(Cow::Borrowed(match self.small.as_ref().and_then(|small| small.get(slot * W..)) {
            Some(small) if !small.is_empty() => &small[..small.len().min(len * W)],
            _ => &ZEROS.0[..len * W],
        }))
    }

    /// Writes the results of `cell_of` for some values to consecutive cells; zeros where it has none.
    ///
    /// # Errors
    /// Their page can't be loaded.
    pub(crate) fn write_of<V: Copy>(
        &mut self,
        slot: usize,
        values: &[V],
        cell_of: impl Fn(V) -> Option<[u8; W]>,
        write: Write<'_>,
    ) -> Result<()> {
        let mut cells = [[0; W]; GATHERED];
        for (number, values) in values.chunks(GATHERED).enumerate() {
            for (cell, &value) in cells.iter_mut().zip(values) {
                *cell = cell_of(value).unwrap_or([0; W]);
            }
            let bytes = cells.as_flattened().get(..values.len() * W).unwrap_or_default();
            self.write(slot + number * GATHERED, bytes, write)?;
        }
        Ok(())
    }

    /// Makes a run of cells zeros; makes no page for it.
    pub(crate) fn zero(&mut self, slot: usize, len: usize, write: Write<'_>) -> Result<()> {
        parts(slot, len, Self::EACH).try_for_each(|part| self.zero_part(part, write))
    }

    fn zero_part(&mut self, part: PagePart, write: Write<'_>) -> Result<()> {
        let PagePart { index, at, len } = part;
        if len == Self::EACH {
            self.pages.take_away(index);
            self.small = self.small.take().filter(|_| index > 0);
        } else if self.pages.is_missing(index)? {
            if index == 0
                && let Some(small) = &mut self.small
                && at * W < small.len()
            {
                let end = small.len().min((at + len) * W);
                Arc::make_mut(small)[at * W..end].fill(0);
            }
        } else {
            let page = self.pages.for_writing(index, write)?;
            // SAFETY: owned, or fresh and not shared (invariant 2); `&mut self` ends all borrows.
            unsafe { page.write(at * W, &ZEROS.0[..len * W]) };
        }
        Ok(())
    }

    /// Writes a run of cells, with one copy for each page.
    pub(crate) fn write(&mut self, slot: usize, cells: &[u8], write: Write<'_>) -> Result<()> {
        let mut rest = cells;
        for part in parts(slot, cells.len() / W, Self::EACH) {
            let (cells, behind) = rest.split_at(part.len * W);
            rest = behind;
            self.write_part(part, cells, write)?;
        }
        Ok(())
    }

    fn write_part(&mut self, part: PagePart, cells: &[u8], write: Write<'_>) -> Result<()> {
        let PagePart { index, at, len } = part;
        // A page that is overwritten as a whole needn't be loaded.
        let is_whole = len == Self::EACH;
        let is_missing =
            self.pages.here(index).is_none() && !is_whole && self.pages.is_missing(index)?;
        if (is_missing || is_whole) && cells.iter().all(|&byte| byte == 0) {
            return self.zero_part(part, write);
        }
        if is_missing && index == 0 && (at + len) * W <= SMALL[1] {
            let mut cells = (at..).zip(cells.as_chunks::<W>().0);
            return cells.try_for_each(|(slot, cell)| self.set(slot, *cell, write));
        }
        // Nothing of the existing page would be left in a copy of it.
        if is_whole && !self.pages.here(index).is_some_and(|page| page.may_write(write)) {
            let page = PageRef::zeroed_for(self.pages.all.id(), index, write.epoch);
            self.pages.renew(index, page);
        }
        let page = self.pages.for_writing(index, write)?;
        if index == 0
            && let Some(small) = self.small.take()
        {
            // SAFETY: the page is owned: as long as there are small cells, there was no page 0.
            unsafe { page.write(0, &small) };
        }
        // SAFETY: owned, or fresh and not shared (invariant 2); `&mut self` ends all borrows.
        unsafe { page.write(at * W, cells) };
        Ok(())
    }
}

impl super::Pages {
    /// Puts a new page at a place.
    fn renew(&mut self, index: usize, page: PageRef) {
        self.hot = None;
        self.all.put(index, page);
    }

    /// Removes the page at a place. The first one leaves a page of zeros, so that no few cells are stored without a
    /// page: a backfill that stored the page meanwhile would cover them.
    fn take_away(&mut self, index: usize) {
        self.hot = None;
        if self.all.here(index).is_some() || self.all.base().is_some() {
            match index {
                0 => self.all.put(0, PageRef::gone()),
                _ => self.all.remove(index),
            }
        }
    }
}
