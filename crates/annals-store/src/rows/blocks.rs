//! Removing rows, and moving those of a block that is crowded or nearly empty.
//!
//! Moves are reported to the table, which moves the cells of its columns.

use annals_schema::RowId;

use super::{BLOCK, Extent, RowMap, key_of};
use crate::pages::cells::place;
use crate::pages::page::Epoch;
use crate::{Error, Result};

/// A block gets an extent when it has more than this many rows.
const CROWDED: usize = 512;
/// A block's part of an extent is dissolved when none of its slots is live. A part with at least this many slots is
/// dissolved when at most an eighth of them is live.
const SMALL: u64 = 64;

/// Rows that get another slot: from, to.
pub(in super::super) type Moves = Vec<(usize, usize)>;

impl RowMap {
    /// Removes the row of that id, which is in that slot; returns the rows that move because of it.
    pub(in super::super) fn remove(
        &mut self,
        id: RowId,
        slot: usize,
        epoch: &Epoch,
    ) -> Result<Moves> {
        let id = id.0;
        let write = self.write_at(slot, epoch);
        self.live.set(slot, false, write)?;
        // Only an image that was written with a mistake can claim fewer rows than exist.
        self.len = self
            .len
            .checked_sub(1)
            .ok_or_else(|| Error::ill_written(format!("row {id} isn't counted")))?;
        let in_tail = self.in_tail(id);
        let Some(extent) = self.extent_of(id)? else { return Ok(Moves::new()) };
        let block = id / BLOCK * BLOCK;
        let part = extent.clip(block, block + BLOCK);
        let live = self.live.count(part.base, place(part.len))? as u64;
        if live > 0 && (part.len < SMALL || live * 8 > part.len) {
            return Ok(Moves::new());
        }
        if in_tail {
            self.cut_tail(part.end(), epoch)?;
        }
        self.dissolve(part, extent, in_tail, epoch)
    }

    /// Adds the tail's ids before `end` to the tree, as a separate extent.
    fn cut_tail(&mut self, end: u64, epoch: &Epoch) -> Result<()> {
        if end == self.tail.end() {
            return self.close_tail(epoch);
        }
        self.put(self.tail.clip(0, end), epoch)?;
        self.tail = self.tail.clip(end, u64::MAX);
        Ok(())
    }

    /// Removes a part from an extent of the tree. The rows of that part get separate slots.
    fn dissolve(
        &mut self,
        part: Extent,
        extent: Extent,
        cut: bool,
        epoch: &Epoch,
    ) -> Result<Moves> {
        let extent = if cut { extent.clip(0, part.end()) } else { extent };
        let mut rows = Vec::new();
        self.add_live_rows(part, &mut rows)?;
        self.punch(part, extent, epoch)?;
        let mut moves = Moves::new();
        for (id, from) in rows {
            let to = self.take_slot(epoch)?;
            self.move_live(from, to, epoch)?;
            self.put(Extent { start: id, base: to, len: 1 }, epoch)?;
            moves.push((from, to));
        }
        self.give(part.base, place(part.len), epoch)?;
        Ok(moves)
    }

    fn move_live(&mut self, from: usize, to: usize, epoch: &Epoch) -> Result<()> {
        let write = self.write_at(from, epoch);
        self.live.set(from, false, write)?;
        let write = self.write_at(to, epoch);
        self.live.set(to, true, write)
    }

    fn add_live_rows(&self, part: Extent, rows: &mut Vec<(u64, usize)>) -> Result<()> {
        let end = part.base + place(part.len);
        let mut at = part.base;
        while let Some(slot) = self.live.first(at, end)? {
            rows.push((part.start + (slot - part.base) as u64, slot));
            at = slot + 1;
        }
        Ok(())
    }

    /// Keeps the parts of an extent of the tree before and after a removed part.
    fn punch(&mut self, part: Extent, extent: Extent, epoch: &Epoch) -> Result<()> {
        self.extents.make_mut().remove(&key_of(extent.start), epoch)?;
        let rests = [extent.clip(0, part.start), extent.clip(part.end(), u64::MAX)];
        let mut rests = rests.into_iter().filter(|rest| rest.len > 0);
        rests.try_for_each(|rest| self.put(rest, epoch))
    }

    /// After an insert: gives the block of the row its own extent if it is crowded with smaller ones. Reading every
    /// row would cost too much, so every sixteenth slot is checked.
    #[inline]
    pub(in super::super) fn crowd(
        &mut self,
        id: RowId,
        slot: usize,
        epoch: &Epoch,
    ) -> Result<Moves> {
        let block = id.0 / BLOCK * BLOCK;
        let touches_tail = self.tail.len > 0 && self.tail.start < block + BLOCK;
        if !slot.is_multiple_of(16) || touches_tail {
            return Ok(Moves::new());
        }
        self.crowd_block(block, epoch)
    }

    #[cold]
    fn crowd_block(&mut self, block: u64, epoch: &Epoch) -> Result<Moves> {
        let extents = self.extents_in(block)?;
        let parts: Vec<_> = extents.iter().map(|e| e.clip(block, block + BLOCK)).collect();
        let mut live = 0;
        for part in &parts {
            live += self.live.count(part.base, place(part.len))?;
        }
        let longest = parts.iter().map(|part| part.len).max().unwrap_or(0);
        if live <= CROWDED || longest == BLOCK {
            return Ok(Moves::new());
        }
        let mut rows = Vec::with_capacity(live);
        for &part in &parts {
            self.add_live_rows(part, &mut rows)?;
        }
        for (&part, &extent) in parts.iter().zip(&extents) {
            self.punch(part, extent, epoch)?;
        }
        let moves = self.settle(block, &rows, epoch)?;
        for part in parts {
            self.give(part.base, place(part.len), epoch)?;
        }
        Ok(moves)
    }

    /// Returns a block an extent, and moves its rows there.
    fn settle(&mut self, block: u64, rows: &[(u64, usize)], epoch: &Epoch) -> Result<Moves> {
        let free = self.free.make_mut().take_block(self.slots_end)?;
        let base = free.unwrap_or_else(|| self.add_slots(place(BLOCK)));
        let home = Extent { start: block, base, len: BLOCK };
        for slot in base..base + place(BLOCK) {
            let write = self.write_at(slot, epoch);
            self.live.set(slot, false, write)?;
        }
        self.put(home, epoch)?;
        let mut moves = Moves::new();
        for &(id, from) in rows {
            self.move_live(from, home.slot(id), epoch)?;
            moves.push((from, home.slot(id)));
        }
        Ok(moves)
    }

    /// Returns the extents of the tree that have ids of a block; at most one begins before it.
    fn extents_in(&self, block: u64) -> Result<Vec<Extent>> {
        let (low, high) = (key_of(block), key_of(block + BLOCK));
        let before = self.extents.floor(&low, |key, value| self.extent(key, value))?;
        let before = before.transpose()?;
        let before = before.filter(|extent| extent.start < block && extent.end() > block);
        let mut found = Vec::from_iter(before);
        let mut within = self.extents.range(&low, Some(&high))?;
        while let Some(next) = within.next_with(|key, value| self.extent(key, value))? {
            found.push(next?);
        }
        Ok(found)
    }
}
