//! Reading many cells, bits and bytes: each keeps its last page in hand.

use super::bits::PAGE_BITS;
use super::heap::nowhere;
use super::{Bits, Cells, Heap};
use crate::Result;
use crate::pages::in_hand::InHand;
use crate::pages::page::PAGE;

/// Reads cells.
#[derive(Debug)]
pub(crate) struct CellReader<'a, const W: usize> {
    cells: &'a Cells<W>,
    page: InHand<'a>,
}

impl<const W: usize> Cells<W> {
    /// Begins to read.
    pub(crate) const fn reader(&self) -> CellReader<'_, W> {
        CellReader { cells: self, page: InHand::new(&self.pages.all) }
    }
}

impl<const W: usize> CellReader<'_, W> {
    /// Reads a cell.
    ///
    /// # Errors
    /// Its page can't be loaded.
    #[inline]
    pub(crate) fn get(&mut self, slot: usize) -> Result<[u8; W]> {
        match self.page.page(slot / Cells::<W>::EACH)? {
            // SAFETY: the view refers to the cell (invariant 1).
            Some(page) => Ok(unsafe { page.read(slot % Cells::<W>::EACH * W) }),
            None => Ok(self.cells.small(slot, 0, W).first_chunk().copied().unwrap_or([0; W])),
        }
    }
}

/// Reads bits.
#[derive(Debug)]
pub(crate) struct BitReader<'a> {
    bits: &'a Bits,
    page: InHand<'a>,
}

impl Bits {
    /// Begins to read.
    pub(crate) const fn reader(&self) -> BitReader<'_> {
        BitReader { bits: self, page: InHand::new(&self.pages.all) }
    }
}

impl BitReader<'_> {
    /// Reads a bit.
    ///
    /// # Errors
    /// Its page can't be loaded.
    #[inline]
    pub(crate) fn get(&mut self, slot: usize) -> Result<bool> {
        let word = match self.page.page(slot / PAGE_BITS)? {
            Some(page) => page.load(slot / 64 % (PAGE / 8)),
            None => self.bits.small.get(slot / 64).copied().unwrap_or(0),
        };
        Ok(word >> (slot % 64) & 1 != 0)
    }
}

/// Reads appended bytes.
#[derive(Debug)]
pub(crate) struct HeapReader<'a>(InHand<'a>);

impl Heap {
    /// Begins to read.
    pub(crate) const fn reader(&self) -> HeapReader<'_> {
        HeapReader(InHand::new(&self.pages))
    }
}

impl HeapReader<'_> {
    /// Borrows bytes that were appended.
    ///
    /// # Errors
    /// Their page can't be loaded, or there are no such bytes.
    #[inline]
    pub(crate) fn slice(&mut self, number: usize, offset: usize, len: usize) -> Result<&[u8]> {
        match self.0.page(number)? {
            Some(page) if len <= PAGE && offset <= PAGE - len => {
                // SAFETY: the view refers to these bytes (invariant 1), and appended bytes are not written again as
                // long as a view refers to them.
                Ok(unsafe { page.slice(offset, len) })
            }
            // Only an image can contain that.
            _ => Err(nowhere()),
        }
    }
}
