//! The row map of a table: which ids there are, and in which slot of the columns each row is.
//!
//! Runs of ids that lie in a run of slots are *extents*. Rows that are appended lengthen the last
//! extent, the tail, which is a few numbers in the table's root. All others are in a tree by their
//! first id. Ids are looked after in blocks of 1024: a block of which more than half is in use gets an
//! extent of its own, and one of which an eighth or less is in use in an extent is taken out of it; so
//! memory follows the rows, whatever their ids.
//!
//! Invariants
//! 1. Extents don't overlap, in ids nor in slots; no slot is both in an extent and free.
//! 2. The tail is behind all extents of the tree.
//! 3. A row is there if its id is in an extent and its slot's live bit is set. `len` counts them.
//! 4. `slots_end` never falls, but by rollback; no view leads to a slot at or behind the
//!    `slots_end` that it was published with, nor to one of its tail that its tail hadn't reached.
//! 5. `next_id` is larger than any id ever used.

mod blocks;
mod free;
mod iter;
mod runs;

use annals_schema::RowId;

use self::free::FreeSlots;
use crate::store::btree::Tree;
use crate::store::pages::cells::{Bits, place};
use crate::store::pages::page::Epoch;

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

    /// Gives the part that lies in a range of ids.
    fn clip(&self, from: u64, to: u64) -> Self {
        let start = self.start.max(from);
        let end = self.end().min(to).max(start);
        Self { start, base: self.base + place(start - self.start), len: end - start }
    }

    fn within(&self, ids: &std::ops::Range<u64>) -> Self {
        self.clip(ids.start, ids.end)
    }

    fn from_entry(key: &[u8], value: &[u8]) -> Self {
        let word = |at: usize| {
            value.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |w| u64::from_le_bytes(*w))
        };
        Self { start: crate::store::index::key::id_of(key).0, base: place(word(0)), len: word(8) }
    }
}

/// The rows of a table.
#[derive(Clone, Debug)]
pub(super) struct RowMap {
    live: Bits,
    extents: Tree,
    tail: Extent,
    /// The slots up to here are kept for the tail.
    tail_reserved: usize,
    slots_end: usize,
    free: FreeSlots,
    len: u64,
    next_id: u64,
    /// Slots from here on are fresh, and so are those of the tail between these two.
    fresh_end: usize,
    fresh_tail: (usize, usize),
    /// Whether no slot of the tail's reserve was ever used.
    tail_fresh: bool,
}

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
    /// Makes the map of a table without rows.
    pub(super) fn new() -> Self {
        Self {
            live: Bits::default(),
            extents: Tree::new(16),
            tail: Extent::default(),
            tail_reserved: 0,
            slots_end: 0,
            free: FreeSlots::default(),
            len: 0,
            next_id: 0,
            fresh_end: 0,
            fresh_tail: (0, 0),
            tail_fresh: true,
        }
    }

    /// Notes what is published: what lies behind it is fresh in the transaction that begins.
    pub(super) fn begin(&mut self) {
        self.fresh_end = self.slots_end;
        let used = self.tail.base + place(self.tail.len);
        self.fresh_tail = if self.tail_fresh { (used, self.tail_reserved) } else { (0, 0) };
    }

    /// Tells whether no published view leads to a slot.
    #[inline]
    pub(super) fn is_fresh(&self, slot: usize) -> bool {
        slot >= self.fresh_end || (slot >= self.fresh_tail.0 && slot < self.fresh_tail.1)
    }

    /// Gives the number of rows.
    #[inline]
    pub(super) const fn len(&self) -> u64 {
        self.len
    }

    /// Gives the number of slots that columns must have.
    pub(super) const fn slots(&self) -> usize {
        self.slots_end
    }

    /// Gives the next id.
    #[inline]
    pub(super) const fn next_id(&self) -> u64 {
        self.next_id
    }

    /// Finds the slot of a row.
    #[inline]
    pub(super) fn find(&self, id: u64) -> Option<usize> {
        let slot =
            if self.in_tail(id) { self.tail.slot(id) } else { self.find_extent(id)?.slot(id) };
        self.live.get(slot).then_some(slot)
    }

    #[inline]
    fn in_tail(&self, id: u64) -> bool {
        id.wrapping_sub(self.tail.start) < self.tail.len
    }

    /// Finds the extent of the tree that has an id.
    fn find_extent(&self, id: u64) -> Option<Extent> {
        if id >= self.tail.start && self.tail.len > 0 {
            return None;
        }
        let (key, value) = self.extents.floor(&key_of(id))?;
        Some(Extent::from_entry(key, value)).filter(|extent| id < extent.end())
    }

    /// Adds a row that isn't there; gives its slot. Afterwards `crowd` may move others.
    #[inline]
    pub(super) fn insert(&mut self, id: RowId, epoch: &Epoch) -> usize {
        let id = id.0;
        self.len += 1;
        let next = self.tail.end();
        let slot = if id == next && self.tail.len > 0 && self.tail_has_room(1) {
            self.tail.len += 1;
            self.tail.slot(id)
        } else {
            self.insert_elsewhere(id, epoch)
        };
        self.next_id = self.next_id.max(id + 1);
        let fresh = self.is_fresh(slot);
        self.live.set(slot, true, fresh, epoch);
        slot
    }

    #[inline]
    fn tail_has_room(&self, count: u64) -> bool {
        self.tail.base + place(self.tail.len + count) <= self.tail_reserved
    }

    fn insert_elsewhere(&mut self, id: u64, epoch: &Epoch) -> usize {
        if self.in_tail(id) {
            return self.tail.slot(id);
        }
        if !self.is_behind_all(id) {
            if let Some(extent) = self.find_extent(id) {
                return extent.slot(id);
            }
            let slot = self.take_slot(epoch);
            self.put(Extent { start: id, base: slot, len: 1 }, epoch);
            return slot;
        }
        self.lengthen_tail(id, epoch)
    }

    /// Tells whether no extent has an id as large; the row isn't in the tail.
    fn is_behind_all(&self, id: u64) -> bool {
        if self.tail.len > 0 {
            return id >= self.tail.start;
        }
        let last = self.extents.range(&[], None).next_back();
        last.is_none_or(|(key, value)| id >= Extent::from_entry(key, value).end())
    }

    /// Puts an id that is behind the tail into it, or begins another tail with it.
    fn lengthen_tail(&mut self, id: u64, epoch: &Epoch) -> usize {
        let count = id - self.tail.end() + 1;
        let near = self.tail.len > 0 && count <= GAP + 1;
        if near && self.make_room(count) {
            for dead in self.tail.end()..id {
                let slot = self.tail.base + place(dead - self.tail.start);
                let fresh = self.is_fresh(slot);
                self.live.set(slot, false, fresh, epoch);
            }
            self.tail.len += count;
            return self.tail.slot(id);
        }
        self.close_tail(epoch);
        self.tail_fresh = false;
        let (base, len) = self.free.take_range(near).unwrap_or_else(|| {
            self.tail_fresh = true;
            self.slots_end += 1;
            (self.slots_end - 1, 1)
        });
        self.tail = Extent { start: id, base, len: 1 };
        self.tail_reserved = base + len;
        base
    }

    /// Makes room for some more ids in the tail where it lies; false if there is none, or if there
    /// are enough free slots elsewhere.
    fn make_room(&mut self, count: u64) -> bool {
        if self.tail_has_room(count) {
            return true;
        }
        let reusable = self.free.total() >= place(BLOCK);
        if self.tail_reserved != self.slots_end || reusable {
            return false;
        }
        self.slots_end += place(self.tail.len.clamp(count, BLOCK));
        self.tail_reserved = self.slots_end;
        true
    }

    /// Puts the tail into the tree, and gives back what it didn't use.
    fn close_tail(&mut self, epoch: &Epoch) {
        let tail = std::mem::take(&mut self.tail);
        if tail.len > 0 {
            self.put(tail, epoch);
            let used = tail.base + place(tail.len);
            self.free.give(used, self.tail_reserved - used, epoch);
        }
        self.tail_reserved = 0;
    }

    fn put(&mut self, extent: Extent, epoch: &Epoch) {
        let mut value = [0; 16];
        value[..8].copy_from_slice(&(extent.base as u64).to_le_bytes());
        value[8..].copy_from_slice(&extent.len.to_le_bytes());
        self.extents.insert(&key_of(extent.start), &value, epoch);
    }

    /// Takes a slot for a row outside the tail.
    fn take_slot(&mut self, epoch: &Epoch) -> usize {
        self.free.take_one(epoch).unwrap_or_else(|| {
            self.slots_end += 1;
            self.slots_end - 1
        })
    }

    /// Tells how much memory it takes, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.live.memory() + self.extents.memory() + self.free.memory()
    }

    /// Executes the invariants; says what is wrong.
    pub(super) fn check(&self) -> Result<(), String> {
        self.extents.check().map_err(|problem| format!("row map: {problem}"))?;
        let mut used = self.free.ranges();
        if used.iter().map(|&(_, len)| len).sum::<usize>() != self.free.total() {
            return Err("the free slots are not counted right".to_owned());
        }
        let mut behind = 0;
        let mut live = 0;
        let tail = (self.tail.len > 0).then_some(self.tail);
        let all = self.extents.range(&[], None).map(|(k, v)| Extent::from_entry(k, v));
        for extent in all.chain(tail) {
            if extent.start < behind || extent.len == 0 {
                return Err(format!("the extent of row {} overlaps another", extent.start));
            }
            behind = extent.end();
            live += self.live.count(extent.base, place(extent.len)) as u64;
            used.push((extent.base, place(extent.len)));
        }
        if tail.is_some() {
            let end = self.tail.base + place(self.tail.len);
            used.push((end, self.tail_reserved - end));
        }
        used.retain(|&(_, len)| len > 0);
        used.sort_unstable();
        let mut slot = 0;
        for (base, len) in used {
            if base != slot {
                return Err(format!("slots {slot} and {base} are lost or used twice"));
            }
            slot = base + len;
        }
        if slot != self.slots_end {
            return Err(format!("{slot} slots are counted as {}", self.slots_end));
        }
        if self.iter().next_back().is_some_and(|(id, _)| id.0 >= self.next_id) {
            return Err(format!("an id is not less than the next one, {}", self.next_id));
        }
        if live != self.len {
            return Err(format!("{live} rows are counted as {}", self.len));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
