//! Slots that are free: whole blocks apart, so that a table that is a queue finds them again.
//!
//! Both lists are stacks of (first slot, number of slots) in cells, so that snapshots and rollback
//! need no extra work.

use super::BLOCK;
use crate::pages::cells::{Cells, place};
use crate::pages::load::Loader;
use crate::pages::page::Epoch;
use crate::pages::paged::Counted;
use crate::pages::refresh::refresh;
use crate::pages::save::{Blanks, Saved, Saver};
use crate::{Error, Result};

/// A stack of ranges of slots.
#[derive(Clone, Debug, Default)]
struct Stack {
    cells: Cells<16>,
    len: usize,
}

refresh!(Stack { cells; len });

impl Stack {
    fn push(&mut self, base: usize, len: usize, epoch: &Epoch) -> Result<()> {
        let mut cell = [0; 16];
        cell[..8].copy_from_slice(&(base as u64).to_le_bytes());
        cell[8..].copy_from_slice(&(len as u64).to_le_bytes());
        self.cells.set(self.len, cell, epoch.seen())?;
        self.len += 1;
        Ok(())
    }

    /// Returns a range, which is before slot `end`.
    fn get(&self, at: usize, end: usize) -> Result<(usize, usize)> {
        let cell = self.cells.get(at)?;
        let [b0, b1, b2, b3, b4, b5, b6, b7, l0, l1, l2, l3, l4, l5, l6, l7] = cell;
        let base = u64::from_le_bytes([b0, b1, b2, b3, b4, b5, b6, b7]);
        let len = u64::from_le_bytes([l0, l1, l2, l3, l4, l5, l6, l7]);
        if base.checked_add(len).is_some_and(|behind| len > 0 && behind <= end as u64) {
            return Ok((place(base), place(len)));
        }
        Err(no_range(base, len))
    }

    fn pop(&mut self, end: usize) -> Result<Option<(usize, usize)>> {
        let Some(last) = self.len.checked_sub(1) else { return Ok(None) };
        let range = self.get(last, end)?;
        self.len = last;
        Ok(Some(range))
    }

    fn save(&self, out: &mut Saver) {
        out.count(self.len);
        self.cells.save(out, &Blanks::NONE);
    }

    fn load(input: &mut Loader<'_>) -> Result<Self> {
        Ok(Self { len: input.count()?, cells: Cells::load(input)? })
    }
}

#[cold]
fn no_range(base: u64, len: u64) -> Error {
    Error::ill_written(format!("{len} slots from {base} on can't be free"))
}

/// The free slots of a table. All its functions take the slot before which the ranges are.
#[derive(Clone, Debug, Default)]
pub(super) struct FreeSlots {
    blocks: Stack,
    ranges: Stack,
    total: usize,
}

refresh!(FreeSlots { blocks, ranges; total });

impl FreeSlots {
    /// Frees some slots; joins them with neighbouring free ones.
    pub(super) fn give(
        &mut self,
        base: usize,
        len: usize,
        end: usize,
        epoch: &Epoch,
    ) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        self.total += len;
        if len == place(BLOCK) {
            return self.blocks.push(base, len, epoch);
        }
        match self.ranges.pop(end)? {
            Some((b, l)) if b + l == base => self.ranges.push(b, l + len, epoch),
            Some((b, l)) if base + len == b => self.ranges.push(base, l + len, epoch),
            Some((b, l)) => {
                self.ranges.push(b, l, epoch)?;
                self.ranges.push(base, len, epoch)
            }
            None => self.ranges.push(base, len, epoch),
        }
    }

    /// Returns the number of free slots.
    pub(super) const fn total(&self) -> usize {
        self.total
    }

    /// Takes a block of consecutive slots.
    pub(super) fn take_block(&mut self, end: usize) -> Result<Option<usize>> {
        let block = self.blocks.pop(end)?;
        match self.count_off(block)? {
            Some((base, len)) if len == place(BLOCK) => Ok(Some(base)),
            Some((base, len)) => Err(no_range(base as u64, len as u64)),
            None => Ok(None),
        }
    }

    /// Takes consecutive slots, however many; whole blocks first, or last.
    pub(super) fn take_range(
        &mut self,
        blocks_first: bool,
        end: usize,
    ) -> Result<Option<(usize, usize)>> {
        let Self { blocks, ranges, .. } = self;
        let [first, second] = if blocks_first { [blocks, ranges] } else { [ranges, blocks] };
        let range = match first.pop(end)? {
            Some(range) => Some(range),
            None => second.pop(end)?,
        };
        self.count_off(range)
    }

    /// Marks slots as used.
    fn count_off(&mut self, range: Option<(usize, usize)>) -> Result<Option<(usize, usize)>> {
        if let Some((base, len)) = range {
            let left = self.total.checked_sub(len);
            self.total = left.ok_or_else(|| no_range(base as u64, len as u64))?;
        }
        Ok(range)
    }

    /// Takes one slot.
    pub(super) fn take_one(&mut self, end: usize, epoch: &Epoch) -> Result<Option<usize>> {
        let Some((base, len)) = self.take_range(false, end)? else { return Ok(None) };
        if len > 1 {
            self.ranges.push(base + 1, len - 1, epoch)?;
            self.total += len - 1;
        }
        Ok(Some(base))
    }

    /// Returns all ranges.
    pub(super) fn ranges(&self, end: usize) -> Result<Vec<(usize, usize)>> {
        let of =
            |stack: &Stack| (0..stack.len).map(|at| stack.get(at, end)).collect::<Result<Vec<_>>>();
        Ok([of(&self.blocks)?, of(&self.ranges)?].concat())
    }

    /// Hands the ranges over to be saved.
    pub(super) fn save(&self, out: &mut Saver) {
        out.count(self.total);
        self.blocks.save(out);
        self.ranges.save(out);
    }

    /// Loads the output of `save`.
    pub(super) fn load(input: &mut Loader<'_>) -> Result<Self> {
        let total = input.count()?;
        Ok(Self { total, blocks: Stack::load(input)?, ranges: Stack::load(input)? })
    }

    /// Continues from the stored base.
    pub(super) fn rebase(&mut self, saved: &Saved) {
        self.blocks.cells.rebase(saved);
        self.ranges.cells.rebase(saved);
    }

    /// Returns how much memory it takes, in bytes.
    pub(super) fn memory(&self, what: Counted) -> usize {
        self.blocks.cells.memory(what) + self.ranges.cells.memory(what)
    }
}
