//! Runs of cells: read and written a page at a time.

use std::sync::Arc;

use super::{Cells, SMALL};
use crate::store::pages::page::{Epoch, PAGE, Page};

/// What the pages that aren't there hold, aligned as pages are.
#[repr(align(64))]
struct Zeros([u8; PAGE]);

static ZEROS: Zeros = Zeros([0; PAGE]);

/// A part of a run that lies in one page: the page's number, the first place in it, and how many.
pub(super) type Part = (usize, usize, usize);

/// Parts a run of cells or bits, of which a page has `each`.
pub(super) fn parts(first: usize, len: usize, each: usize) -> impl Iterator<Item = Part> {
    let (mut at, end) = (first, first + len);
    std::iter::from_fn(move || {
        let count = (each - at % each).min(end - at);
        let part = (at / each, at % each, count);
        at += count;
        (count > 0).then_some(part)
    })
}

impl<const W: usize> Cells<W> {
    /// Borrows consecutive cells: `len` of them, or fewer where their page ends.
    pub(in crate::store) fn run(&self, slot: usize, len: usize) -> &[u8] {
        let (index, at) = (slot / Self::EACH, slot % Self::EACH);
        let len = len.min(Self::EACH - at);
        if let Some(page) = self.pages.get(index) {
            // SAFETY: as in `slice`: the view leads to the cells.
            return unsafe { page.slice(at * W, len * W) };
        }
        match self.small.as_ref().and_then(|small| small.get(slot * W..)) {
            Some(small) if !small.is_empty() => &small[..small.len().min(len * W)],
            _ => &ZEROS.0[..len * W],
        }
    }

    /// Makes a run of cells zeros; makes no page for it.
    pub(in crate::store) fn zero(&mut self, slot: usize, len: usize, fresh: bool, epoch: &Epoch) {
        for part in parts(slot, len, Self::EACH) {
            self.zero_part(part, fresh, epoch);
        }
    }

    fn zero_part(&mut self, (index, at, len): Part, fresh: bool, epoch: &Epoch) {
        if self.pages.get(index).is_none() {
            if index == 0
                && let Some(small) = &mut self.small
                && at * W < small.len()
            {
                let end = small.len().min((at + len) * W);
                Arc::make_mut(small)[at * W..end].fill(0);
            }
        } else if len == Self::EACH {
            self.pages.put(index, None);
        } else {
            let page = self.pages.for_writing(index, fresh, epoch);
            // SAFETY: owned, or fresh and not shared (invariant 2); `&mut self` ends all borrows.
            unsafe { page.write(at * W, &ZEROS.0[..len * W]) };
        }
    }

    /// Writes a run of cells, with one copy for each page.
    pub(in crate::store) fn write(
        &mut self,
        slot: usize,
        cells: &[u8],
        fresh: bool,
        epoch: &Epoch,
    ) {
        let mut rest = cells;
        for part in parts(slot, cells.len() / W, Self::EACH) {
            let (cells, behind) = rest.split_at(part.2 * W);
            rest = behind;
            self.write_part(part, cells, fresh, epoch);
        }
    }

    fn write_part(&mut self, part: Part, cells: &[u8], fresh: bool, epoch: &Epoch) {
        let (index, at, len) = part;
        let is_missing = self.pages.get(index).is_none();
        if is_missing && cells.iter().all(|&byte| byte == 0) {
            return self.zero_part(part, fresh, epoch);
        }
        if is_missing && index == 0 && (at + len) * W <= SMALL[1] {
            for (slot, cell) in (at..).zip(cells.as_chunks::<W>().0) {
                self.set(slot, *cell, fresh, epoch);
            }
            return;
        }
        if len == Self::EACH {
            // Nothing of the page that is there would be left in a copy of it.
            if !self.pages.get(index).is_some_and(|page| page.may_write(fresh, epoch)) {
                self.pages.put(index, Some(Page::zeroed(epoch)));
                self.small = self.small.take().filter(|_| index > 0);
            }
        }
        let page = self.pages.for_writing(index, fresh, epoch);
        if index == 0
            && let Some(small) = self.small.take()
        {
            // SAFETY: the page is owned: as long as there are small cells, there was no page 0.
            unsafe { page.write(0, &small) };
        }
        // SAFETY: owned, or fresh and not shared (invariant 2); `&mut self` ends all borrows.
        unsafe { page.write(at * W, cells) };
    }
}

impl super::Pages {
    /// Puts a page at a place, or takes away the one that is there.
    fn put(&mut self, index: usize, page: Option<Arc<Page>>) {
        self.hot = None;
        self.all.set(index, page);
    }
}
