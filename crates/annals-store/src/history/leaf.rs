//! Leaves: entries, sorted and compact.
//!
//! ```text
//! leaf:   groups │ where stretches of groups begin, 2 bytes each │ how many stretches, 2 bytes
//!
//! group:  a compact number: how far its row is after that of the group before, times 4, plus
//!         0  one row, one place:    place
//!         1  one row, some places:  how many, the first place, how far each is after the one before
//!         2  some rows, or a record (then the number of rows is 0, and the numbers are written as they are):
//!            the number of rows; then as in 1
//!         3  another table: the number is its key; rows are counted from 0 again
//! ```
//!
//! A stretch begins with a table, so that a search begins there. The highest bit of its place is set if rows of a
//! group before it reach beyond its first row.

use std::sync::Arc;

use super::{Entry, Key, NODE};
use annals_event::compact;

/// The bytes that a group takes at most beside its places, including the start of a new table.
const GROUP_AT_MOST: usize = 5 * 9;
/// The bytes that a place takes at most.
const PLACE_AT_MOST: usize = 9;
/// A stretch has at least this many bytes, unless it is the last.
const STRETCH: usize = 192;
/// The bytes of a place of a stretch.
const STRETCH_LEN: usize = 2;
/// Marks a stretch that rows of an earlier group reach into.
const IS_REACHED: u16 = 1 << 15;
/// Marks that the kind of a group doesn't fit into the lowest bits of a row's number.
const WIDE: u64 = 1 << 61;

/// A made node: its bytes, its first key, and the key after the rows in it.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) bytes: Arc<[u8]>,
    pub(super) first: Key,
    pub(super) end: Key,
}

/// Makes leaves.
#[derive(Debug, Default)]
pub(super) struct Builder {
    bytes: Vec<u8>,
    /// The places of the last group, which isn't among the bytes yet.
    group: Vec<u64>,
    of: Option<Entry>,
    /// The last row in the bytes.
    last: Option<Key>,
    first: Option<Key>,
    end: Key,
    /// The key after the rows of all groups in the bytes.
    reach: Key,
    /// Where stretches begin.
    stretches: Vec<u16>,
    /// Where the last one begins.
    stretch: usize,
}

impl Builder {
    /// Returns the most bytes that it needs with the group so far.
    fn len(&self) -> usize {
        let directory = (self.stretches.len() + 2) * STRETCH_LEN;
        self.bytes.len() + GROUP_AT_MOST + self.group.len() * PLACE_AT_MOST + directory
    }

    /// Adds an entry, which isn't before the others, unless the leaf would be longer than `most`: then returns the
    /// leaf so far, and begins another.
    pub(super) fn push(&mut self, entry: &Entry, most: usize) -> Option<Made> {
        let goes_on = self.of.is_some_and(|of| of.is_of(entry));
        let mut made = None;
        if !goes_on {
            self.end_group();
        }
        // The numbers of a record stay together.
        let is_full = self.len() + GROUP_AT_MOST + PLACE_AT_MOST > most;
        if is_full && self.first.is_some() && !(goes_on && entry.count == 0) {
            made = self.finish();
        }
        if self.of.is_none() {
            self.of = Some(*entry);
            self.first.get_or_insert(entry.key);
        }
        self.group.push(entry.place);
        self.end = self.end.max(entry.end());
        made
    }

    fn end_group(&mut self) {
        let Some(of) = self.of.take() else { return };
        let begins = self.bytes.is_empty() || self.bytes.len() - self.stretch >= STRETCH;
        if begins {
            self.stretch = self.bytes.len();
            let is_reached = if self.reach > of.key { IS_REACHED } else { 0 };
            self.stretches.push(u16::try_from(self.stretch).unwrap_or(0) | is_reached);
        }
        self.reach = self.reach.max(of.end());
        let last = self.last.filter(|last| !begins && last.table == of.key.table);
        if last.is_none() {
            compact::put(&mut self.bytes, of.key.table << 2 | 3);
        }
        let after = of.key.row - last.map_or(0, |last| last.row);
        let kind = match (of.count, self.group.len()) {
            (1, 1) => 0,
            (1, _) => 1,
            _ => 2,
        };
        match after < WIDE {
            true => compact::put(&mut self.bytes, after << 2 | kind),
            false => {
                compact::put(&mut self.bytes, WIDE << 2 | kind);
                compact::put(&mut self.bytes, after);
            }
        }
        if kind == 2 {
            compact::put(&mut self.bytes, of.count);
        }
        if kind > 0 {
            compact::put(&mut self.bytes, self.group.len() as u64);
        }
        let mut before = 0;
        for place in self.group.drain(..) {
            compact::put(&mut self.bytes, place.wrapping_sub(before));
            before = if of.count == 0 { 0 } else { place };
        }
        self.last = Some(of.key);
    }

    /// Returns the leaf so far, if it has anything, and begins another.
    pub(super) fn finish(&mut self) -> Option<Made> {
        self.end_group();
        let first = self.first.take()?;
        let end = self.end;
        let count = u16::try_from(self.stretches.len()).unwrap_or(0);
        let directory = self.stretches.iter().chain([&count]);
        self.bytes.extend(directory.flat_map(|at| at.to_le_bytes()));
        let made = Made { bytes: self.bytes.as_slice().into(), first, end };
        *self = Self::default();
        Some(made)
    }
}

/// Returns the length to which each leaf of some entries is filled, so that they are evenly full.
pub(super) fn split(entries: &[Entry]) -> usize {
    let mut all = Builder::default();
    for entry in entries {
        all.push(entry, usize::MAX);
    }
    let len = all.finish().map_or(0, |made| made.bytes.len()) + 2 * (GROUP_AT_MOST + PLACE_AT_MOST);
    if len <= NODE {
        return NODE;
    }
    let parts = len.div_ceil(NODE - 4 * (GROUP_AT_MOST + PLACE_AT_MOST));
    (len.div_ceil(parts) + 3 * (GROUP_AT_MOST + PLACE_AT_MOST)).min(NODE)
}

/// Returns the groups of a leaf, and where its stretches begin.
fn parts_of(leaf: &[u8]) -> (&[u8], &[[u8; STRETCH_LEN]]) {
    let parts = || {
        let (rest, count) = leaf.split_last_chunk::<STRETCH_LEN>()?;
        let len = usize::from(u16::from_le_bytes(*count)) * STRETCH_LEN;
        let (groups, stretches) = rest.split_at_checked(rest.len().checked_sub(len)?)?;
        Some((groups, stretches.as_chunks().0))
    };
    parts().unwrap_or_default()
}

/// Reads the entries of a leaf, in order. It ends at the first byte that makes no sense.
#[derive(Debug)]
pub(super) struct LeafReader<'l> {
    bytes: &'l [u8],
    key: Key,
    count: u64,
    left: u64,
    place: u64,
}

impl<'l> LeafReader<'l> {
    pub(super) fn new(leaf: &'l [u8]) -> Self {
        Self::of_groups(parts_of(leaf).0)
    }

    const fn of_groups(bytes: &'l [u8]) -> Self {
        Self { bytes, key: Key { table: 0, row: 0 }, count: 0, left: 0, place: 0 }
    }

    /// Begins where the first entry may be that has a row.
    pub(super) fn near(leaf: &'l [u8], key: Key) -> Self {
        let (groups, stretches) = parts_of(leaf);
        let at = |stretch: &[u8; STRETCH_LEN]| {
            let groups = groups.get(usize::from(u16::from_le_bytes(*stretch) & !IS_REACHED)..);
            Self::of_groups(groups.unwrap_or_default())
        };
        let is_before =
            |stretch: &[u8; STRETCH_LEN]| at(stretch).next().is_some_and(|entry| entry.key <= key);
        let is_reached =
            |stretch: &[u8; STRETCH_LEN]| u16::from_le_bytes(*stretch) & IS_REACHED != 0;
        let count = stretches.partition_point(is_before);
        let begun = stretches.get(..count).unwrap_or_default();
        let place = begun.iter().rposition(|stretch| !is_reached(stretch));
        match place.and_then(|place| begun.get(place)) {
            Some(stretch) => at(stretch),
            None => Self::of_groups(groups),
        }
    }

    #[inline]
    fn take(&mut self) -> Option<u64> {
        compact::take(&mut self.bytes).ok()
    }

    #[inline]
    fn begin_group(&mut self) -> Option<()> {
        let mut number = self.take()?;
        if number & 3 == 3 {
            self.key = Key { table: number >> 2, row: 0 };
            number = self.take()?;
        }
        let after = match number >> 2 {
            WIDE => self.take()?,
            after => after,
        };
        self.key.row = self.key.row.checked_add(after)?;
        self.count = if number & 3 == 2 { self.take()? } else { 1 };
        self.left = if number & 3 == 0 { 1 } else { self.take()? };
        self.place = 0;
        Some(())
    }
}

impl Iterator for LeafReader<'_> {
    type Item = Entry;

    #[inline]
    fn next(&mut self) -> Option<Entry> {
        if self.left == 0 {
            if self.bytes.is_empty() {
                return None;
            }
            self.begin_group()?;
        }
        let before = if self.count == 0 { 0 } else { self.place };
        self.place = before.checked_add(self.take()?)?;
        self.left = self.left.checked_sub(1)?;
        Some(Entry { key: self.key, count: self.count, place: self.place })
    }
}
