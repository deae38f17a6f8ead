//! Removing rows, and moving those of a block that is crowded or nearly empty.
//!
//! What moves is told to the table, which moves the cells of its columns.

use annals_schema::RowId;

use super::{BLOCK, Extent, RowMap, key_of};
use crate::store::pages::cells::place;
use crate::store::pages::page::Epoch;

/// A block is given an extent when more than this many of its rows are there.
const CROWDED: usize = 512;
/// A part of an extent that is at least this long is dissolved when few of its rows are left.
const SMALL: u64 = 64;

/// Rows that get another slot: from, to.
pub(in super::super) type Moves = Vec<(usize, usize)>;

impl RowMap {
    /// Removes the row of that id, which is in that slot; gives the rows that move because of it.
    pub(in super::super) fn remove(&mut self, id: RowId, slot: usize, epoch: &Epoch) -> Moves {
        let id = id.0;
        let fresh = self.is_fresh(slot);
        self.live.set(slot, false, fresh, epoch);
        self.len -= 1;
        let in_tail = self.in_tail(id);
        let Some(extent) = (if in_tail { Some(self.tail) } else { self.find_extent(id) }) else {
            return Moves::new();
        };
        let block = id / BLOCK * BLOCK;
        let part = extent.clip(block, block + BLOCK);
        let live = self.live.count(part.base, place(part.len)) as u64;
        if live > 0 && (part.len < SMALL || live * 8 > part.len) {
            return Moves::new();
        }
        if in_tail {
            self.cut_tail(part.end(), epoch);
        }
        self.dissolve(part, extent, in_tail, epoch)
    }

    /// Puts the tail's ids before `end` into the tree, as an extent of its own.
    fn cut_tail(&mut self, end: u64, epoch: &Epoch) {
        if end == self.tail.end() {
            self.close_tail(epoch);
            return;
        }
        self.put(self.tail.clip(0, end), epoch);
        self.tail = self.tail.clip(end, u64::MAX);
    }

    /// Takes a part out of an extent of the tree; its rows get slots of their own.
    fn dissolve(&mut self, part: Extent, extent: Extent, cut: bool, epoch: &Epoch) -> Moves {
        let extent = if cut { extent.clip(0, part.end()) } else { extent };
        let rows = self.live_rows(part);
        self.punch(part, extent, epoch);
        let mut moves = Moves::new();
        for (id, from) in rows {
            let to = self.take_slot(epoch);
            self.move_live(from, to, epoch);
            self.put(Extent { start: id, base: to, len: 1 }, epoch);
            moves.push((from, to));
        }
        self.free.give(part.base, place(part.len), epoch);
        moves
    }

    fn move_live(&mut self, from: usize, to: usize, epoch: &Epoch) {
        let fresh = self.is_fresh(from);
        self.live.set(from, false, fresh, epoch);
        let fresh = self.is_fresh(to);
        self.live.set(to, true, fresh, epoch);
    }

    fn live_rows(&self, part: Extent) -> Vec<(u64, usize)> {
        let end = part.base + place(part.len);
        let mut rows = Vec::new();
        let mut at = part.base;
        while let Some(slot) = self.live.first(at, end) {
            rows.push((part.start + (slot - part.base) as u64, slot));
            at = slot + 1;
        }
        rows
    }

    /// Leaves of an extent of the tree what lies before and behind a part of it.
    fn punch(&mut self, part: Extent, extent: Extent, epoch: &Epoch) {
        self.extents.remove(&key_of(extent.start), epoch);
        let rests = [extent.clip(0, part.start), extent.clip(part.end(), u64::MAX)];
        for rest in rests.into_iter().filter(|rest| rest.len > 0) {
            self.put(rest, epoch);
        }
    }

    /// After an insert: gives the block of the row an extent of its own if it is crowded with
    /// smaller ones. To look at every row would cost too much, so every sixteenth slot is looked at.
    #[inline]
    pub(in super::super) fn crowd(&mut self, id: RowId, slot: usize, epoch: &Epoch) -> Moves {
        let block = id.0 / BLOCK * BLOCK;
        let touches_tail = self.tail.len > 0 && self.tail.start < block + BLOCK;
        if !slot.is_multiple_of(16) || touches_tail {
            return Moves::new();
        }
        self.crowd_block(block, epoch)
    }

    #[cold]
    fn crowd_block(&mut self, block: u64, epoch: &Epoch) -> Moves {
        let extents = self.extents_in(block);
        let parts: Vec<_> = extents.iter().map(|e| e.clip(block, block + BLOCK)).collect();
        let live: usize = parts.iter().map(|p| self.live.count(p.base, place(p.len))).sum();
        let longest = parts.iter().map(|part| part.len).max().unwrap_or(0);
        if live <= CROWDED || longest == BLOCK {
            return Moves::new();
        }
        let rows: Vec<_> = parts.iter().flat_map(|&part| self.live_rows(part)).collect();
        for (&part, &extent) in parts.iter().zip(&extents) {
            self.punch(part, extent, epoch);
        }
        let moves = self.settle(block, &rows, epoch);
        for part in parts {
            self.free.give(part.base, place(part.len), epoch);
        }
        moves
    }

    /// Gives a block an extent, and moves its rows there.
    fn settle(&mut self, block: u64, rows: &[(u64, usize)], epoch: &Epoch) -> Moves {
        let base = self.free.take_block().unwrap_or_else(|| {
            self.slots_end += place(BLOCK);
            self.slots_end - place(BLOCK)
        });
        let home = Extent { start: block, base, len: BLOCK };
        for slot in base..base + place(BLOCK) {
            let fresh = self.is_fresh(slot);
            self.live.set(slot, false, fresh, epoch);
        }
        self.put(home, epoch);
        let mut moves = Moves::new();
        for &(id, from) in rows {
            self.move_live(from, home.slot(id), epoch);
            moves.push((from, home.slot(id)));
        }
        moves
    }

    /// Gives the extents of the tree that have ids of a block.
    fn extents_in(&self, block: u64) -> Vec<Extent> {
        let (low, high) = (key_of(block), key_of(block + BLOCK));
        let before = self.extents.floor(&low).map(|(k, v)| Extent::from_entry(k, v));
        let before = before.filter(|extent| extent.start < block && extent.end() > block);
        let within = self.extents.range(&low, Some(&high)).map(|(k, v)| Extent::from_entry(k, v));
        before.into_iter().chain(within).collect()
    }
}
