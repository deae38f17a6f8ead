//! The row map of a table: which ids there are, and in which slot of the columns each row is.
//!
//! Runs of ids in a run of slots are *extents*. Rows that are appended lengthen the last extent, the tail, which is a
//! few numbers in the table's root. All others are in a tree by their first id. Ids are managed in blocks of 1024. A
//! block with more than half of its ids in use gets its own extent. One with an eighth or less in use in an extent is
//! removed from it. So memory is proportional to the rows, whatever their ids.
//!
//! Invariants
//! 1. Extents don't overlap, in ids nor in slots; no slot is both in an extent and free.
//! 2. The tail is after all extents of the tree.
//! 3. A row exists if its id is in an extent and its slot's live bit is set. `len` counts them.
//! 4. `slots_end` never decreases, except by rollback. No view refers to a slot at or after the `slots_end` that the
//!    view was published with, or to a slot that its tail hadn't reached.
//! 5. `next_id` is larger than any id ever used.

mod blocks;
mod finder;
mod free;
mod iter;
mod runs;

use annals_schema::RowId;

use self::free::FreeSlots;
use crate::btree::Tree;
use crate::ids::id_of;
use crate::pages::cells::{Bits, place};
use crate::pages::load::Loader;
use crate::pages::page::Epoch;
use crate::pages::paged::Counted;
use crate::pages::refresh::refresh;
use crate::pages::save::{Blanks, Saved, Saver};
use crate::pages::unique::NoWeak;
use crate::{Error, Result};

pub(super) use self::iter::RowIter;

/// The number of ids in a block.
const BLOCK: u64 = 1024;

/// The largest gap between ids that the tail bridges with dead slots.
const GAP: u64 = 3;

/// Consecutive ids in consecutive slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Extent {
    start: u64,
    base: usize,
    len: u64,
}

impl Extent {
    const fn end(&self) -> u64 {
        self.start + self.len
    }

    fn slot(&self, id: u64) -> usize {
        self.base + place(id - self.start)
    }

    /// Returns the part in a range of ids.
    fn clip(&self, from: u64, to: u64) -> Self {
        let start = self.start.max(from);
        let end = self.end().min(to).max(start);
        Self { start, base: self.base + place(start - self.start), len: end - start }
    }

    fn within(&self, ids: &std::ops::Range<u64>) -> Self {
        self.clip(ids.start, ids.end)
    }
}

/// The rows of a table.
#[derive(Clone, Debug)]
pub(super) struct RowMap {
    live: Bits,
    /// Changes more seldom than rows are added, so that a copy of the map shares it.
    extents: NoWeak<Tree>,
    tail: Extent,
    /// The slots up to here are kept for the tail.
    tail_reserved: usize,
    slots_end: usize,
    /// Changes as seldom as `extents`, and is shared for that reason, too.
    free: NoWeak<FreeSlots>,
    len: u64,
    next_id: u64,
    /// Slots from `fresh_end` on are fresh, and so are the tail's slots between the two of `fresh_tail`.
    fresh_end: usize,
    fresh_tail: (usize, usize),
    /// True if no slot of the tail's reserve was ever used.
    tail_fresh: bool,
}

refresh!(RowMap {
    live, extents, free;
    tail, tail_reserved, slots_end, len, next_id, fresh_end, fresh_tail, tail_fresh
});

fn key_of(id: u64) -> [u8; 8] {
    let mut key = [0; 8];
    let mut rest = id;
    for byte in key.iter_mut().rev() {
        *byte = rest.to_le_bytes()[0];
        rest >>= 8;
    }
    key
}

impl RowMap {
    /// Makes the map of a table without rows. Its next id is `next_id`.
    pub(super) fn new(next_id: u64) -> Self {
        Self {
            live: Bits::default(),
            extents: NoWeak::new(Tree::new(16)),
            tail: Extent::default(),
            tail_reserved: 0,
            slots_end: 0,
            free: NoWeak::new(FreeSlots::default()),
            len: 0,
            next_id,
            fresh_end: 0,
            fresh_tail: (0, 0),
            tail_fresh: true,
        }
    }

    /// Records the end of the published slots: slots after it are fresh in the next transaction.
    pub(super) fn begin(&mut self) {
        self.fresh_end = self.slots_end;
        self.fresh_tail = self.fresh_in_tail();
    }

    /// True if no published view refers to a slot.
    #[inline]
    fn is_fresh(&self, slot: usize) -> bool {
        slot >= self.fresh_end || (slot >= self.fresh_tail.0 && slot < self.fresh_tail.1)
    }

    /// Returns the number of rows.
    #[inline]
    pub(super) const fn len(&self) -> u64 {
        self.len
    }

    /// Returns the number of slots that columns must have.
    pub(super) const fn slots(&self) -> usize {
        self.slots_end
    }

    /// Returns the next id.
    #[inline]
    pub(super) const fn next_id(&self) -> u64 {
        self.next_id
    }

    /// Finds the slot of a row that needs no lookup, as most do: it is in the tail.
    #[inline(always)]
    pub(super) fn at_hand(&self, id: u64) -> Option<usize> {
        let behind = id.wrapping_sub(self.tail.start);
        if behind >= self.tail.len {
            return None;
        }
        let slot = self.tail.base + place(behind);
        self.live.at_hand(slot)?.then_some(slot)
    }

    /// Finds the slot of a row.
    ///
    /// # Errors
    /// Where it would be can't be loaded.
    #[inline]
    pub(super) fn find(&self, id: u64) -> Result<Option<usize>> {
        let slot = if self.in_tail(id) {
            self.tail.slot(id)
        } else {
            match self.find_extent(id)? {
                Some(extent) => extent.slot(id),
                None => return Ok(None),
            }
        };
        Ok(self.live.get(slot)?.then_some(slot))
    }

    /// Returns how much memory loaded pages may take, in bytes; 0 if there is no image.
    pub(super) fn budget(&self) -> usize {
        self.live.budget()
    }

    /// Returns the slot that a row of the tail has, or would have.
    #[inline]
    pub(super) fn slot_in_tail(&self, id: u64) -> Option<usize> {
        self.in_tail(id).then(|| self.tail.slot(id))
    }

    #[inline]
    fn in_tail(&self, id: u64) -> bool {
        id.wrapping_sub(self.tail.start) < self.tail.len
    }

    /// Reads an extent of the tree. An image is not trusted: a row is only where a published view may refer to.
    fn extent(&self, key: &[u8], value: &[u8]) -> Result<Extent> {
        let word = |at: usize| {
            value.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |w| u64::from_le_bytes(*w))
        };
        let (start, base, len) = (id_of(key).0, word(0), word(8));
        let ids_fit = start.checked_add(len).is_some_and(|end| end <= RowId::MAX.0 + 1);
        let end = base.checked_add(len).filter(|&end| end <= self.slots_end as u64 && ids_fit);
        let (used, reserved) = self.fresh_in_tail();
        match end {
            Some(end) if len > 0 && (end <= used as u64 || base >= reserved as u64) => {
                Ok(Extent { start, base: place(base), len })
            }
            _ => Err(no_extent(start)),
        }
    }

    /// Returns the slots of the tail's reserve that were never used.
    fn fresh_in_tail(&self) -> (usize, usize) {
        let used = self.tail.base + place(self.tail.len);
        if self.tail_fresh { (used, self.tail_reserved) } else { (0, 0) }
    }

    /// Finds the extent of the tree that has an id.
    fn find_extent(&self, id: u64) -> Result<Option<Extent>> {
        if id >= self.tail.start && self.tail.len > 0 {
            return Ok(None);
        }
        let found = self.extents.floor(&key_of(id), |key, value| self.extent(key, value))?;
        Ok(found.transpose()?.filter(|extent| id < extent.end()))
    }

    /// Finds the extent that has an id, the tail included.
    fn extent_of(&self, id: u64) -> Result<Option<Extent>> {
        if self.in_tail(id) { Ok(Some(self.tail)) } else { self.find_extent(id) }
    }

    /// Adds a row that doesn't exist; returns its slot. Afterwards `crowd` may move others.
    #[inline]
    pub(super) fn insert(&mut self, id: RowId, epoch: &Epoch) -> Result<usize> {
        let id = id.0;
        let next = self.tail.end();
        let slot = if id == next && self.tail.len > 0 && self.tail_has_room(1) {
            self.tail.len += 1;
            self.tail.slot(id)
        } else {
            self.insert_elsewhere(id, epoch)?
        };
        self.len += 1;
        self.next_id = self.next_id.max(id + 1);
        let write = self.write_at(slot, epoch);
        self.live.set(slot, true, write)?;
        Ok(slot)
    }

    #[inline]
    fn tail_has_room(&self, count: u64) -> bool {
        self.tail.base + place(self.tail.len + count) <= self.tail_reserved
    }

    fn insert_elsewhere(&mut self, id: u64, epoch: &Epoch) -> Result<usize> {
        if let Some(extent) = self.extent_of(id)? {
            return Ok(extent.slot(id));
        }
        if !self.is_behind_all(id)? {
            let slot = self.take_slot(epoch)?;
            self.put(Extent { start: id, base: slot, len: 1 }, epoch)?;
            return Ok(slot);
        }
        self.lengthen_tail(id, epoch)
    }

    /// Returns true if no extent has an id as large; the row isn't in the tail.
    fn is_behind_all(&self, id: u64) -> Result<bool> {
        if self.tail.len > 0 {
            return Ok(id >= self.tail.start);
        }
        let mut extents = self.extents.range(&[], None)?;
        let last = extents.next_back_with(|key, value| self.extent(key, value))?.transpose()?;
        Ok(last.is_none_or(|last| id >= last.end()))
    }

    /// Puts an id that is after the tail into it, or begins another tail with it.
    fn lengthen_tail(&mut self, id: u64, epoch: &Epoch) -> Result<usize> {
        let count = id - self.tail.end() + 1;
        let near = self.tail.len > 0 && count <= GAP + 1;
        if near && self.make_room(count, count) {
            for dead in self.tail.end()..id {
                let slot = self.tail.base + place(dead - self.tail.start);
                let write = self.write_at(slot, epoch);
                self.live.set(slot, false, write)?;
            }
            self.tail.len += count;
            return Ok(self.tail.slot(id));
        }
        self.close_tail(epoch)?;
        let taken = self.take_range(near)?;
        self.tail_fresh = taken.is_none();
        let (base, len) = taken.unwrap_or_else(|| (self.add_slots(1), 1));
        self.tail = Extent { start: id, base, len: 1 };
        self.tail_reserved = base + len;
        Ok(base)
    }

    /// Takes free slots for a tail, if there are any: whole blocks first, or last.
    fn take_range(&mut self, blocks_first: bool) -> Result<Option<(usize, usize)>> {
        match self.free.total() {
            0 => Ok(None),
            _ => self.free.make_mut().take_range(blocks_first, self.slots_end),
        }
    }

    /// Adds slots at the end; returns the first.
    const fn add_slots(&mut self, count: usize) -> usize {
        self.slots_end += count;
        self.slots_end - count
    }

    /// Adds the tail to the tree, and frees its unused slots.
    fn close_tail(&mut self, epoch: &Epoch) -> Result<()> {
        let tail = std::mem::take(&mut self.tail);
        let reserved = std::mem::take(&mut self.tail_reserved);
        if tail.len > 0 {
            self.put(tail, epoch)?;
            let used = tail.base + place(tail.len);
            self.give(used, reserved - used, epoch)?;
        }
        Ok(())
    }

    /// Frees slots.
    fn give(&mut self, base: usize, len: usize, epoch: &Epoch) -> Result<()> {
        self.free.make_mut().give(base, len, self.slots_end, epoch)
    }

    fn put(&mut self, extent: Extent, epoch: &Epoch) -> Result<()> {
        let mut value = [0; 16];
        value[..8].copy_from_slice(&(extent.base as u64).to_le_bytes());
        value[8..].copy_from_slice(&extent.len.to_le_bytes());
        self.extents.make_mut().insert(&key_of(extent.start), &value, epoch)
    }

    /// Takes a slot for a row outside the tail.
    fn take_slot(&mut self, epoch: &Epoch) -> Result<usize> {
        if self.free.total() > 0
            && let Some(slot) = self.free.make_mut().take_one(self.slots_end, epoch)?
        {
            return Ok(slot);
        }
        Ok(self.add_slots(1))
    }

    /// Returns which slots no view refers to, if this is a published one.
    pub(super) fn blanks(&self) -> Blanks {
        Blanks { from: self.slots_end, gap: self.fresh_in_tail() }
    }

    /// True if a part of it may have to be loaded.
    pub(super) const fn has_base(&self) -> bool {
        self.live.has_base()
    }

    /// Hands the map over to be saved.
    pub(super) fn save(&self, out: &mut Saver) {
        out.number(self.tail.start);
        out.number(self.tail.len);
        out.count(self.tail.base);
        out.count(self.tail_reserved);
        out.flag(self.tail_fresh);
        out.count(self.slots_end);
        out.number(self.len);
        out.number(self.next_id);
        self.live.save(out, &self.blanks());
        self.extents.save(out);
        self.free.save(out);
    }

    /// Loads the output of `save`.
    pub(super) fn load(input: &mut Loader<'_>) -> Result<Self> {
        let tail = Extent { start: input.number()?, len: input.number()?, base: input.count()? };
        let mut map = Self {
            tail,
            tail_reserved: input.count()?,
            tail_fresh: input.flag()?,
            slots_end: input.count()?,
            len: input.number()?,
            next_id: input.number()?,
            live: Bits::load(input)?,
            extents: NoWeak::new(Tree::load(input, 16)?),
            free: NoWeak::new(FreeSlots::load(input)?),
            fresh_end: 0,
            fresh_tail: (0, 0),
        };
        let ids_end = tail.start.checked_add(tail.len);
        let slots_end = (tail.base as u64).checked_add(tail.len);
        let tail_fits = ids_end.is_some_and(|end| end <= map.next_id)
            && slots_end.is_some_and(|end| end <= map.tail_reserved as u64);
        let has_none = tail == Extent::default() && map.tail_reserved == 0;
        let fits = (has_none || tail.len > 0 && tail_fits)
            && map.tail_reserved <= map.slots_end
            && map.free.total() <= map.slots_end
            && map.len <= map.slots_end as u64
            && map.next_id <= RowId::MAX.0 + 1;
        if !fits {
            return Err(Error::corrupt(format!(
                "the image's catalog is damaged: inconsistent row map ({} rows, {} slots, {} of them free, last extent \
                 from row {}, next id {})",
                map.len,
                map.slots_end,
                map.free.total(),
                tail.start,
                map.next_id
            )));
        }
        map.begin();
        Ok(map)
    }

    /// Continues from the stored base.
    pub(super) fn rebase(&mut self, saved: &Saved) {
        self.live.rebase(saved);
        self.extents.make_mut().rebase(saved);
        self.free.make_mut().rebase(saved);
    }

    /// Returns how much memory it takes, in bytes.
    pub(super) fn memory(&self, what: Counted) -> usize {
        self.live.memory(what) + self.extents.memory(what) + self.free.memory(what)
    }

    /// Executes the invariants; returns an error for a violation.
    pub(super) fn check(&self) -> Result<()> {
        self.extents.check().map_err(|problem| problem.within("row map"))?;
        let mut used = self.free.ranges(self.slots_end)?;
        if used.iter().map(|&(_, len)| len).sum::<usize>() != self.free.total() {
            return Err(Error::corrupt("the free slots are not counted right"));
        }
        let mut extents = self.extents.range(&[], None)?;
        let mut tail = (self.tail.len > 0).then_some(self.tail);
        let (mut behind, mut live) = (0, 0);
        loop {
            let next = extents.next_with(|key, value| self.extent(key, value))?.transpose()?;
            let Some(extent) = next.or_else(|| tail.take()) else { break };
            if extent.start < behind {
                let what = format!("the extent of row {} overlaps another", extent.start);
                return Err(Error::corrupt(what));
            }
            behind = extent.end();
            live += self.live.count(extent.base, place(extent.len))? as u64;
            used.push((extent.base, place(extent.len)));
        }
        if self.tail.len > 0 {
            let end = self.tail.base + place(self.tail.len);
            used.push((end, self.tail_reserved - end));
        }
        self.check_slots(used)?;
        let last = self.iter().next_back().transpose()?;
        if last.is_some_and(|(id, _)| id.0 >= self.next_id) {
            let what = format!("an id is not less than the next one, {}", self.next_id);
            return Err(Error::corrupt(what));
        }
        if live != self.len {
            return Err(Error::corrupt(format!("{live} rows are counted as {}", self.len)));
        }
        Ok(())
    }

    /// Checks that each slot is in one of these ranges.
    fn check_slots(&self, mut ranges: Vec<(usize, usize)>) -> Result<()> {
        ranges.retain(|&(_, len)| len > 0);
        ranges.sort_unstable();
        let mut slot = 0;
        for (base, len) in ranges {
            if base != slot {
                let what = format!("slots {slot} and {base} are lost or used twice");
                return Err(Error::corrupt(what));
            }
            slot = base + len;
        }
        if slot != self.slots_end {
            let what = format!("{slot} slots are counted as {}", self.slots_end);
            return Err(Error::corrupt(what));
        }
        Ok(())
    }
}

#[cold]
fn no_extent(start: u64) -> Error {
    Error::ill_written(format!("the rows from {start} on can't lie where it says"))
}

#[cfg(test)]
mod tests;
