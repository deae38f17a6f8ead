//! Walking over the rows in order of their ids, from both ends.

use std::ops::Range as Ids;

use annals_schema::RowId;

use super::{Extent, RowMap, key_of};
use crate::store::btree::Range;
use crate::store::pages::cells::place;

/// Ids and slots of the rows in a range of ids, from both ends.
#[derive(Clone, Debug)]
pub(in super::super) struct RowIter<'a> {
    map: &'a RowMap,
    /// The extents that neither end has begun; the first and the last may have ids outside.
    extents: Range<'a>,
    tail: Option<Extent>,
    ids: Ids<u64>,
    front: Extent,
    back: Extent,
    /// How many rows neither end has given, if that is known.
    left: Option<u64>,
}

impl RowMap {
    /// Gives all rows.
    pub(in super::super) fn iter(&self) -> RowIter<'_> {
        RowIter { left: Some(self.len), ..self.range(0..u64::MAX) }
    }

    /// Gives the rows with ids in a range.
    pub(in super::super) fn range(&self, ids: Ids<u64>) -> RowIter<'_> {
        let ids = ids.start.min(self.next_id)..ids.end.min(self.next_id);
        let (low, high) = (key_of(ids.start), key_of(ids.end));
        // The extent that has the first id may begin before it.
        let first = self.extents.floor(&low).map_or(&low[..], |(key, _)| key);
        RowIter {
            map: self,
            extents: self.extents.range(first, Some(&high)),
            tail: Some(self.tail.within(&ids)),
            ids,
            front: Extent::default(),
            back: Extent::default(),
            left: None,
        }
    }
}

impl RowIter<'_> {
    /// Notes that a row is given; false if it is known that there is none.
    #[inline]
    fn take_one(&mut self) -> bool {
        match &mut self.left {
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
            None => true,
        }
    }

    fn extent(&self, (key, value): (&[u8], &[u8])) -> Extent {
        Extent::from_entry(key, value).within(&self.ids)
    }
}

impl Iterator for RowIter<'_> {
    type Item = (RowId, usize);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if !self.take_one() {
            return None;
        }
        loop {
            let front = self.front;
            if let Some(slot) = self.map.live.first(front.base, front.base + place(front.len)) {
                let id = front.start + (slot - front.base) as u64;
                self.front = front.clip(id + 1, u64::MAX);
                return Some((RowId(id), slot));
            }
            let next = self.extents.next().map(|entry| self.extent(entry));
            // What the back has begun is left when nothing else is.
            let next = next.or_else(|| self.tail.take());
            self.front = match next {
                Some(next) => next,
                None if self.back.len == 0 => return None,
                None => std::mem::take(&mut self.back),
            };
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let Some(left) = self.left else {
            let most = self.ids.end.saturating_sub(self.ids.start).min(self.map.len);
            return (0, usize::try_from(most).ok());
        };
        let left = usize::try_from(left).ok();
        (left.unwrap_or(usize::MAX), left)
    }

    fn count(self) -> usize {
        if let Some(left) = self.left {
            return usize::try_from(left).unwrap_or(usize::MAX);
        }
        let begun = [self.front, self.back, self.tail.unwrap_or_default()];
        let rest = self.extents.clone().map(|entry| self.extent(entry));
        let parts = begun.into_iter().chain(rest);
        parts.map(|part| self.map.live.count(part.base, place(part.len))).sum()
    }
}

impl DoubleEndedIterator for RowIter<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        if !self.take_one() {
            return None;
        }
        loop {
            let back = self.back;
            if let Some(slot) = self.map.live.last(back.base, back.base + place(back.len)) {
                let id = back.start + (slot - back.base) as u64;
                self.back = back.clip(0, id);
                return Some((RowId(id), slot));
            }
            let tail = self.tail.take();
            let next = tail.or_else(|| self.extents.next_back().map(|entry| self.extent(entry)));
            self.back = match next {
                Some(next) => next,
                None if self.front.len == 0 => return None,
                None => std::mem::take(&mut self.front),
            };
        }
    }
}
