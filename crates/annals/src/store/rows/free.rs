//! Slots that are free: whole blocks apart, so that a table that is a queue finds them again.
//!
//! Both lists are stacks of (first slot, number of slots) in cells, so that snapshots and rollback
//! need nothing of their own.

use super::BLOCK;
use crate::store::pages::cells::{Cells, place};
use crate::store::pages::page::Epoch;

/// A stack of ranges of slots.
#[derive(Clone, Debug, Default)]
struct Stack {
    cells: Cells<16>,
    len: usize,
}

impl Stack {
    fn push(&mut self, base: usize, len: usize, epoch: &Epoch) {
        let mut cell = [0; 16];
        cell[..8].copy_from_slice(&(base as u64).to_le_bytes());
        cell[8..].copy_from_slice(&(len as u64).to_le_bytes());
        self.cells.set(self.len, cell, false, epoch);
        self.len += 1;
    }

    fn get(&self, at: usize) -> (usize, usize) {
        let [b0, b1, b2, b3, b4, b5, b6, b7, l0, l1, l2, l3, l4, l5, l6, l7] = self.cells.get(at);
        let base = u64::from_le_bytes([b0, b1, b2, b3, b4, b5, b6, b7]);
        let len = u64::from_le_bytes([l0, l1, l2, l3, l4, l5, l6, l7]);
        (place(base), place(len))
    }

    fn pop(&mut self) -> Option<(usize, usize)> {
        self.len = self.len.checked_sub(1)?;
        Some(self.get(self.len))
    }
}

/// The free slots of a table.
#[derive(Clone, Debug, Default)]
pub(super) struct FreeSlots {
    blocks: Stack,
    ranges: Stack,
    total: usize,
}

impl FreeSlots {
    /// Gives back some slots; joins them with those given back before, if they are neighbours.
    pub(super) fn give(&mut self, base: usize, len: usize, epoch: &Epoch) {
        if len == 0 {
            return;
        }
        self.total += len;
        if len == place(BLOCK) {
            self.blocks.push(base, len, epoch);
            return;
        }
        match self.ranges.pop() {
            Some((b, l)) if b + l == base => self.ranges.push(b, l + len, epoch),
            Some((b, l)) if base + len == b => self.ranges.push(base, l + len, epoch),
            Some((b, l)) => {
                self.ranges.push(b, l, epoch);
                self.ranges.push(base, len, epoch);
            }
            None => self.ranges.push(base, len, epoch),
        }
    }

    /// Gives the number of free slots.
    pub(super) const fn total(&self) -> usize {
        self.total
    }

    /// Takes a block of consecutive slots.
    pub(super) fn take_block(&mut self) -> Option<usize> {
        let (base, len) = self.blocks.pop()?;
        self.total -= len;
        Some(base)
    }

    /// Takes consecutive slots, however many; whole blocks first, or last.
    pub(super) fn take_range(&mut self, blocks_first: bool) -> Option<(usize, usize)> {
        let range = if blocks_first {
            self.blocks.pop().or_else(|| self.ranges.pop())
        } else {
            self.ranges.pop().or_else(|| self.blocks.pop())
        }?;
        self.total -= range.1;
        Some(range)
    }

    /// Takes one slot.
    pub(super) fn take_one(&mut self, epoch: &Epoch) -> Option<usize> {
        let (base, len) = self.ranges.pop().or_else(|| self.blocks.pop())?;
        self.total -= 1;
        if len > 1 {
            self.ranges.push(base + 1, len - 1, epoch);
        }
        Some(base)
    }

    /// Gives all ranges.
    pub(super) fn ranges(&self) -> Vec<(usize, usize)> {
        let of = |stack: &Stack| (0..stack.len).map(|at| stack.get(at)).collect::<Vec<_>>();
        [of(&self.blocks), of(&self.ranges)].concat()
    }

    /// Tells how much memory it takes, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.blocks.cells.memory() + self.ranges.cells.memory()
    }
}
