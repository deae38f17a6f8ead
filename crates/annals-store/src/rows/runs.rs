//! Runs of rows: consecutive ids, in consecutive slots.

use super::{BLOCK, Extent, RowMap, key_of};
use crate::Result;
use crate::pages::cells::place;
use crate::pages::page::{Epoch, Write};

/// A gap between extents that is shorter than this is filled row by row, so that the tree doesn't
/// get many small extents.
const GAP_RUN: u64 = 64;

/// A part of a run of slots, all of which are written in the same way.
pub(in super::super) struct SlotRun<'e> {
    pub(in super::super) slot: usize,
    pub(in super::super) len: usize,
    pub(in super::super) write: Write<'e>,
}

impl RowMap {
    /// Finds the first row whose id is among `count` from `id` on.
    pub(in super::super) fn first_in(&self, id: u64, count: u64) -> Result<Option<u64>> {
        let end = id.saturating_add(count);
        let before = self.extents.floor(&key_of(id), |key, value| self.extent(key, value))?;
        let mut next = before.transpose()?;
        let mut tail = (self.tail.len > 0).then_some(self.tail);
        let mut within = self.extents.range(&key_of(id + 1), Some(&key_of(end)))?;
        loop {
            if let Some(extent) = next {
                let part = extent.clip(id, end);
                if let Some(slot) = self.live.first(part.base, part.base + place(part.len))? {
                    return Ok(Some(part.start + (slot - part.base) as u64));
                }
            }
            let found = within.next_with(|key, value| self.extent(key, value))?.transpose()?;
            next = found.or_else(|| tail.take());
            if next.is_none() {
                return Ok(None);
            }
        }
    }

    /// Finds the slots of the rows from `id` on: the first, and how many follow one another in it,
    /// at most `most`; `None` if there is no row of that id.
    pub(in super::super) fn run_at(&self, id: u64, most: u64) -> Result<Option<(usize, u64)>> {
        let Some(extent) = self.extent_of(id)? else { return Ok(None) };
        let part = extent.clip(id, id.saturating_add(most));
        let end = part.base + place(part.len);
        let dead = self.live.first_clear(part.base, end)?.unwrap_or(end);
        Ok((dead > part.base).then_some((part.base, (dead - part.base) as u64)))
    }

    /// Adds rows that don't exist, with ids from `id` on: `count`, or as many as get consecutive slots. Returns the
    /// first slot and the number of rows; `None` if the row must be inserted alone.
    pub(in super::super) fn insert_run(
        &mut self,
        id: u64,
        count: u64,
        epoch: &Epoch,
    ) -> Result<Option<(usize, u64)>> {
        let run = if !self.in_tail(id) && self.is_behind_all(id)? {
            Some(self.append_run(id, count, epoch)?)
        } else {
            self.fill_gap(id, count, epoch)?
        };
        let Some((slot, len)) = run else { return Ok(None) };
        for part in self.write_parts(slot, place(len), epoch) {
            self.live.set_run(part.slot, part.len, true, part.write)?;
        }
        self.len += len;
        self.next_id = self.next_id.max(id + len);
        Ok(Some((slot, len)))
    }

    /// True if a row of that id would be right after the last one of the tail: then the id is unused.
    #[inline]
    pub(in super::super) fn is_next(&self, id: u64) -> bool {
        id == self.tail.end() && self.tail.len > 0 && self.tail_has_room(1)
    }

    /// Adds the row that [is next](Self::is_next); returns its slot, and how that is written.
    #[inline]
    pub(in super::super) fn append<'e>(&mut self, epoch: &'e Epoch) -> Result<(usize, Write<'e>)> {
        let slot = self.tail.base + place(self.tail.len);
        self.tail.len += 1;
        self.len += 1;
        self.next_id = self.next_id.max(self.tail.end());
        let write = self.write_at(slot, epoch);
        self.live.set(slot, true, write)?;
        Ok((slot, write))
    }

    /// Adds rows after the last one of the tail, of which the first [is next](Self::is_next): all, or as many as it
    /// has room for. Each gets the slot that it would get alone. Returns the first slot, and their number.
    pub(in super::super) fn append_many(
        &mut self,
        count: u64,
        epoch: &Epoch,
    ) -> Result<(usize, u64)> {
        let slot = self.tail.base + place(self.tail.len);
        let len = count.min((self.tail_reserved - slot) as u64);
        self.tail.len += len;
        self.len += len;
        self.next_id = self.next_id.max(self.tail.end());
        for part in self.write_parts(slot, place(len), epoch) {
            self.live.set_run(part.slot, part.len, true, part.write)?;
        }
        Ok((slot, len))
    }

    /// Makes room in place for more ids in the tail: for `needed`, or for as many as are `wanted` if it has to grow;
    /// false if it can't, or if there are enough free slots elsewhere.
    pub(super) fn make_room(&mut self, needed: u64, wanted: u64) -> bool {
        if self.tail_has_room(needed) {
            return true;
        }
        let reusable = self.free.total() >= place(BLOCK);
        if self.tail_reserved != self.slots_end || reusable {
            return false;
        }
        self.add_slots(place(wanted.max(self.tail.len.min(BLOCK))));
        self.tail_reserved = self.slots_end;
        true
    }

    /// Appends to the tail, or begins another one with one row.
    fn append_run(&mut self, id: u64, count: u64, epoch: &Epoch) -> Result<(usize, u64)> {
        let adjoins = self.tail.len > 0 && id == self.tail.end();
        if !adjoins || !self.make_room(1, count) {
            return Ok((self.lengthen_tail(id, epoch)?, 1));
        }
        let slot = self.tail.slot(id);
        let len = count.min((self.tail_reserved - slot) as u64);
        self.tail.len += len;
        Ok((slot, len))
    }

    /// Puts ids before the tail, which are in no extent, into one of their own.
    fn fill_gap(&mut self, id: u64, count: u64, epoch: &Epoch) -> Result<Option<(usize, u64)>> {
        if self.extent_of(id)?.is_some() {
            return Ok(None);
        }
        let mut behind = self.extents.range(&key_of(id), None)?;
        let next = behind.next_with(|key, value| self.extent(key, value))?.transpose()?;
        let tail = (self.tail.len > 0).then_some(self.tail);
        let end = next.or(tail).map_or(u64::MAX, |extent| extent.start);
        let count = count.min(end.saturating_sub(id));
        if count < GAP_RUN {
            return Ok(None);
        }
        let (base, room) = match self.take_range(true)? {
            Some((base, len)) if len as u64 >= GAP_RUN => (base, len),
            short => {
                if let Some((base, len)) = short {
                    self.give(base, len, epoch)?;
                }
                (self.add_slots(place(count)), place(count))
            }
        };
        let len = count.min(room as u64);
        self.give(base + place(len), room - place(len), epoch)?;
        self.put(Extent { start: id, base, len }, epoch)?;
        Ok(Some((base, len)))
    }

    /// Returns how a slot is written.
    #[inline]
    pub(in super::super) fn write_at<'e>(&self, slot: usize, epoch: &'e Epoch) -> Write<'e> {
        Write { fresh: self.is_fresh(slot), epoch }
    }

    /// Splits a run of slots by how they are written: by whether published views refer to them.
    pub(in super::super) fn write_parts<'e>(
        &self,
        slot: usize,
        len: usize,
        epoch: &'e Epoch,
    ) -> impl Iterator<Item = SlotRun<'e>> + use<'e> {
        let ((low, high), rest) = (self.fresh_tail, self.fresh_end);
        let (mut at, end) = (slot, slot + len);
        std::iter::from_fn(move || {
            let next = [low, high, rest].into_iter().filter(|&border| border > at).min();
            let fresh = at >= rest || (at >= low && at < high);
            let (slot, len) = (at, next.map_or(end, |next| next.min(end)) - at);
            at += len;
            (len > 0).then_some(SlotRun { slot, len, write: Write { fresh, epoch } })
        })
    }
}
