//! Walking over the rows in order of their ids, from both ends.

use std::ops::Range as Ids;

use annals_schema::RowId;

use super::{Extent, RowMap, key_of};
use crate::Result;
use crate::btree::Range;
use crate::ids::id_of;
use crate::pages::cells::place;

/// Ids and slots of the rows in a range of ids, from both ends. Nothing follows an error.
#[derive(Clone, Debug)]
pub(in super::super) struct RowIter<'a> {
    map: &'a RowMap,
    /// The extents that neither end has begun; the first and the last may have ids outside. They are looked up when
    /// the first of them is requested.
    extents: Option<Range<'a>>,
    tail: Option<Extent>,
    ids: Ids<u64>,
    /// The rows of the 64 slots at the front that it has not returned, and the id and the slot of the first bit.
    bits: u64,
    at: (u64, usize),
    /// The rest of the extent that the front has begun.
    front: Extent,
    back: Extent,
    /// How many rows neither end has given, if that is known.
    left: Option<u64>,
}

impl RowMap {
    /// Returns all rows.
    pub(in super::super) fn iter(&self) -> RowIter<'_> {
        RowIter { left: Some(self.len), ..self.range(0..u64::MAX) }
    }

    /// Returns the rows with ids in a range.
    pub(in super::super) fn range(&self, ids: Ids<u64>) -> RowIter<'_> {
        let ids = ids.start.min(self.next_id)..ids.end.min(self.next_id);
        RowIter {
            map: self,
            extents: None,
            tail: Some(self.tail.within(&ids)),
            ids,
            bits: 0,
            at: (0, 0),
            front: Extent::default(),
            back: Extent::default(),
            left: None,
        }
    }

    /// Finds the extents that may have ids of a range.
    fn extents_with(&self, ids: &Ids<u64>) -> Result<Range<'_>> {
        let (low, high) = (key_of(ids.start), key_of(ids.end));
        // The extent that has the first id may begin before it.
        let first = self.extents.floor(&low, |key, _| key_of(id_of(key).0))?;
        self.extents.range(&first.unwrap_or(low), Some(&high))
    }
}

impl RowIter<'_> {
    /// Counts one row as returned; false if it is known that no row is left.
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

    /// Returns the result; an error is the last.
    #[inline]
    fn give<T>(&mut self, found: Result<Option<T>>) -> Option<Result<T>> {
        if found.is_err() {
            self.left = Some(0);
        }
        found.transpose()
    }

    /// Returns the ids from which neither end has given a row, after an error.
    pub(in super::super) fn rest(&self) -> Ids<u64> {
        let start = match self.bits {
            0 => self.ids.start,
            bits => self.at.0 + u64::from(bits.trailing_zeros()),
        };
        start..self.ids.end
    }

    /// Leaves out the rows before an id, if none of the others was given.
    pub(in super::super) fn skip_to(&mut self, id: u64) {
        self.ids.start = id;
    }

    /// Finds the extents, if that wasn't done yet.
    fn begin(&mut self) -> Result<()> {
        if self.extents.is_none() {
            self.extents = Some(self.map.extents_with(&self.ids)?);
        }
        Ok(())
    }

    fn next_extent(&mut self) -> Result<Option<Extent>> {
        self.begin()?;
        let Some(extents) = &mut self.extents else { return Ok(None) };
        let next = extents.next_with(|key, value| self.map.extent(key, value))?;
        Ok(next.transpose()?.map(|extent| extent.within(&self.ids)))
    }

    fn next_back_extent(&mut self) -> Result<Option<Extent>> {
        self.begin()?;
        let Some(extents) = &mut self.extents else { return Ok(None) };
        let next = extents.next_back_with(|key, value| self.map.extent(key, value))?;
        Ok(next.transpose()?.map(|extent| extent.within(&self.ids)))
    }

    #[inline(always)]
    fn step(&mut self) -> Result<Option<(RowId, usize)>> {
        while self.bits == 0 {
            if !self.look_at_more()? {
                return Ok(None);
            }
        }
        let place = self.bits.trailing_zeros();
        self.bits &= self.bits - 1;
        Ok(Some((RowId(self.at.0 + u64::from(place)), self.at.1 + place as usize)))
    }

    /// Reads the next slots of the front, up to 64; false if there are no more. There may be no row in them.
    #[inline(never)] // so that giving a row stays short
    fn look_at_more(&mut self) -> Result<bool> {
        while self.front.len == 0 {
            // The rest at the back is used when nothing else is left.
            let next = self.next_extent()?.or_else(|| self.tail.take());
            self.front = match next {
                Some(next) => next,
                None if self.back.len == 0 => return Ok(false),
                None => std::mem::take(&mut self.back),
            };
        }
        let Extent { start, base, len } = self.front;
        let first = base % 64;
        let count = len.min(64 - first as u64);
        let bits = self.map.live.word(base / 64)? >> first;
        self.bits = bits & (u64::MAX >> (64 - count));
        self.at = (start, base);
        self.front = self.front.clip(start + count, u64::MAX);
        self.ids.start = start + count;
        Ok(true)
    }

    /// Takes the part that the front has begun and not returned.
    fn take_front(&mut self) -> Extent {
        let rest = std::mem::take(&mut self.front);
        let bits = std::mem::take(&mut self.bits);
        if bits == 0 {
            return rest;
        }
        let place = bits.trailing_zeros();
        let (start, base) = (self.at.0 + u64::from(place), self.at.1 + place as usize);
        self.ids.start = start;
        Extent { start, base, len: rest.end() - start }
    }

    #[inline]
    fn step_back(&mut self) -> Result<Option<(RowId, usize)>> {
        loop {
            let back = self.back;
            if let Some(slot) = self.map.live.last(back.base, back.base + place(back.len))? {
                let id = back.start + (slot - back.base) as u64;
                self.back = back.clip(0, id);
                self.ids.end = id;
                return Ok(Some((RowId(id), slot)));
            }
            let next = match self.tail.take() {
                Some(tail) => Some(tail),
                None => self.next_back_extent()?,
            };
            self.back = match next {
                Some(next) => next,
                None => match self.take_front() {
                    Extent { len: 0, .. } => return Ok(None),
                    rest => rest,
                },
            };
        }
    }

    /// Adds the number of rows that neither end has given, up to an error.
    fn count_rest(&mut self, count: &mut usize) -> Result<()> {
        let tail = self.tail.take();
        let mut next = Some(self.take_front());
        let mut begun = [Some(self.back), tail].into_iter().flatten();
        while let Some(part) = next {
            *count += self.map.live.count(part.base, place(part.len))?;
            next = match begun.next() {
                Some(part) => Some(part),
                None => self.next_extent()?,
            };
        }
        Ok(())
    }
}

impl Iterator for RowIter<'_> {
    type Item = Result<(RowId, usize)>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if !self.take_one() {
            return None;
        }
        let found = self.step();
        self.give(found)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let Some(left) = self.left else {
            let rest = self.rest();
            let most = rest.end.saturating_sub(rest.start).min(self.map.len);
            return (0, usize::try_from(most).ok());
        };
        let left = usize::try_from(left).ok();
        (left.unwrap_or(usize::MAX), left)
    }

    /// Counts the rows without returning them; an error is counted as one row.
    fn count(mut self) -> usize {
        if let Some(left) = self.left {
            return usize::try_from(left).unwrap_or(usize::MAX);
        }
        let mut count = 0;
        let met = self.count_rest(&mut count);
        count + usize::from(met.is_err())
    }
}

impl DoubleEndedIterator for RowIter<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        if !self.take_one() {
            return None;
        }
        let found = self.step_back();
        self.give(found)
    }
}
