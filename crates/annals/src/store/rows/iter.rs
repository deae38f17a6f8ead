//! Walking over the rows in order of their ids, from both ends.

use annals_schema::RowId;

use super::super::btree::Range;
use super::super::cells::place;
use super::{Extent, RowMap};

/// Ids and slots of all rows, from both ends.
#[derive(Clone, Debug)]
pub(in super::super) struct RowIter<'a> {
    map: &'a RowMap,
    extents: Range<'a>,
    tail: Option<Extent>,
    front: Extent,
    back: Extent,
    /// How many rows neither end has given: so the ends never pass each other.
    left: u64,
}

impl RowMap {
    /// Gives all rows.
    pub(in super::super) fn iter(&self) -> RowIter<'_> {
        RowIter {
            map: self,
            extents: self.extents.range(&[], None),
            tail: (self.tail.len > 0).then_some(self.tail),
            front: Extent::default(),
            back: Extent::default(),
            left: self.len,
        }
    }
}

impl RowIter<'_> {
    /// Tells how many rows are left.
    pub(in super::super) const fn left(&self) -> u64 {
        self.left
    }
}

impl Iterator for RowIter<'_> {
    type Item = (RowId, usize);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        loop {
            let front = self.front;
            if let Some(slot) = self.map.live.first(front.base, front.base + place(front.len)) {
                let id = front.start + (slot - front.base) as u64;
                self.front = front.clip(id + 1, u64::MAX);
                return Some((RowId(id), slot));
            }
            let next = self.extents.next().map(|(key, value)| Extent::from_entry(key, value));
            // What the back has begun is left when nothing else is.
            self.front =
                next.or_else(|| self.tail.take()).unwrap_or_else(|| std::mem::take(&mut self.back));
            if self.front.len == 0 {
                return None;
            }
        }
    }
}

impl DoubleEndedIterator for RowIter<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        loop {
            let back = self.back;
            if let Some(slot) = self.map.live.last(back.base, back.base + place(back.len)) {
                let id = back.start + (slot - back.base) as u64;
                self.back = back.clip(0, id);
                return Some((RowId(id), slot));
            }
            let tail = self.tail.take();
            let next = tail.or_else(|| {
                self.extents.next_back().map(|(key, value)| Extent::from_entry(key, value))
            });
            self.back = next.unwrap_or_else(|| std::mem::take(&mut self.front));
            if self.back.len == 0 {
                return None;
            }
        }
    }
}
