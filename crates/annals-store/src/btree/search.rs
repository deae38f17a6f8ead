//! Looking for a key in a node.

use std::cmp::Ordering;

use super::hints;
use super::node::{LIMIT, LONG, Node, head_of};
use super::{HEADER, SLOT};
use crate::Result;
use crate::pages::cells::Longs;

impl Node<'_> {
    /// Searches a key among entries `from..`: returns its place, or else the place where it would be. `from` is at
    /// most 1.
    ///
    /// # Errors
    /// A long key can't be loaded.
    #[inline]
    pub(super) fn search(
        self,
        key: &[u8],
        from: usize,
        long: &Longs,
    ) -> Result<Result<usize, usize>> {
        let count = self.count();
        if from >= count {
            return Ok(Err(count));
        }
        let prefix = self.prefix();
        // Heads ignore the bytes after the limit.
        let head = head_of(key.get(..LIMIT).unwrap_or(key), prefix);
        let at = self.first_from(from, head);
        if prefix > 0 {
            // All keys have the same prefix. If any cell is read next, it is that of this one.
            let part = &self.part(at.min(count - 1))[..prefix];
            match key[..prefix.min(key.len())].cmp(part) {
                Ordering::Less => return Ok(Err(from)),
                Ordering::Greater => return Ok(Err(count)),
                Ordering::Equal => {}
            }
        }
        if at == count || self.head(at) != head {
            return Ok(Err(at));
        }
        match self.compare(at, key, long)? {
            Ordering::Equal => Ok(Ok(at)),
            Ordering::Greater => Ok(Err(at)),
            Ordering::Less => self.search_behind(at, key, head, long),
        }
    }

    /// Finds the first of the entries `from..` whose head is at least `head`.
    #[inline]
    fn first_from(self, from: usize, head: u32) -> usize {
        let (first, end) = hints::among(self.bytes, self.count(), head);
        let first = first.max(from);
        let slots = self.bytes.get(HEADER + first * SLOT..HEADER + end * SLOT).unwrap_or_default();
        let slots = slots.as_chunks::<SLOT>().0.iter();
        // Without a branch for each: none of them could be foreseen.
        let less = |slot: &[u8; SLOT]| {
            let [a, b, c, d, ..] = *slot;
            usize::from(u32::from_le_bytes([a, b, c, d]) < head)
        };
        first + slots.map(less).sum::<usize>()
    }

    /// Returns among which slots a key is or would be, if it has the prefix: the first, and the one after the last.
    #[inline]
    pub(super) fn may_be_among(self, key: &[u8]) -> (usize, usize) {
        let head = head_of(key.get(..LIMIT).unwrap_or(key), self.prefix());
        hints::among(self.bytes, self.count(), head)
    }

    /// Returns which entry a key is compared with first.
    #[inline]
    pub(super) fn may_be_at(self, key: &[u8]) -> Option<usize> {
        let head = head_of(key.get(..LIMIT).unwrap_or(key), self.prefix());
        let last = self.count().checked_sub(1)?;
        Some(self.first_from(0, head).min(last))
    }

    /// Searches a key after entry `at`, among those with the same head.
    #[inline(never)] // so that keys that their heads tell apart are found by little code
    fn search_behind(
        self,
        at: usize,
        key: &[u8],
        head: u32,
        long: &Longs,
    ) -> Result<Result<usize, usize>> {
        let end = head.checked_add(1).map(|behind| self.first_from(at, behind));
        let (mut low, mut high) = (at + 1, end.unwrap_or_else(|| self.count()));
        while low < high {
            let middle = low.midpoint(high);
            match self.compare(middle, key, long)? {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Ok(Ok(middle)),
            }
        }
        Ok(Err(low))
    }

    #[inline]
    fn compare(self, i: usize, key: &[u8], long: &Longs) -> Result<Ordering> {
        if self.slot(i).2 < LONG {
            return Ok(self.part(i).cmp(key));
        }
        self.compare_long(i, key, long)
    }

    #[cold]
    fn compare_long(self, i: usize, key: &[u8], long: &Longs) -> Result<Ordering> {
        match self.part(i).cmp(key.get(..LIMIT).unwrap_or(key)) {
            Ordering::Equal => Ok((*self.key(i, long)?).cmp(key)),
            order => Ok(order),
        }
    }
}
