//! Walking over a range of keys from both ends.

use super::place::Place;
use super::{NONE, Tree};

/// The entries of a range of keys, from both ends.
#[derive(Clone, Debug)]
pub(in super::super) struct Range<'a> {
    tree: &'a Tree,
    front: Place,
    back: Place,
    done: bool,
}

impl Tree {
    /// Gives the entries with `low <= key < high`; without `high`, to the end.
    pub(in super::super) fn range(&self, low: &[u8], high: Option<&[u8]>) -> Range<'_> {
        let empty = self.root == NONE || high.is_some_and(|high| high <= low);
        if empty {
            return Range { tree: self, front: Place::NOWHERE, back: Place::NOWHERE, done: true };
        }
        let front = self.seek(low);
        let back = high.map_or_else(|| self.end(), |high| self.seek_from(&front, high));
        let mut range = Range { tree: self, front, back, done: false };
        range.look_for_the_end();
        range
    }

    /// Gives the first entry whose key begins with these bytes.
    pub(in super::super) fn first_with(&self, prefix: &[u8]) -> Option<(&[u8], &[u8])> {
        if self.root == NONE {
            return None;
        }
        self.at(&self.seek(prefix)).filter(|(key, _)| key.starts_with(prefix))
    }

    /// Gives the last entry whose key is at most `key`.
    pub(in super::super) fn floor(&self, key: &[u8]) -> Option<(&[u8], &[u8])> {
        if self.root == NONE {
            return None;
        }
        let mut place = self.seek(key);
        if let Some((found, value)) = self.at(&place)
            && found == key
        {
            return Some((found, value));
        }
        if self.step_back(&mut place) { self.at(&place) } else { None }
    }
}

impl Range<'_> {
    /// Counts the entries that neither end has given, without visiting them.
    pub(in super::super) fn left(&self) -> u64 {
        if self.done { 0 } else { self.tree.distance(&self.front, &self.back) }
    }

    #[inline]
    fn look_for_the_end(&mut self) {
        let level = self.tree.height;
        self.done = self.front.path[level] == self.back.path[level];
    }

    /// Drops some entries at the front; false if there weren't more than these.
    fn drop_front(&mut self, count: usize) -> bool {
        self.done |= count as u64 >= self.left();
        if !self.done {
            self.tree.skip(&mut self.front, count as u64);
        }
        !self.done
    }

    /// Drops some entries at the back; false if there weren't more than these.
    fn drop_back(&mut self, count: usize) -> bool {
        let left = self.left();
        self.done |= count as u64 >= left;
        if !self.done {
            self.back = self.front;
            self.tree.skip(&mut self.back, left - count as u64);
        }
        !self.done
    }
}

impl<'a> Iterator for Range<'a> {
    type Item = (&'a [u8], &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let found = self.tree.at(&self.front);
        self.tree.step(&mut self.front);
        self.look_for_the_end();
        found
    }

    /// Exact if what is left is in one leaf: what collects a few entries then asks for the right
    /// amount of memory, and the many that don't care pay nothing.
    fn size_hint(&self) -> (usize, Option<usize>) {
        if self.done {
            return (0, Some(0));
        }
        let level = self.tree.height;
        let ((front, start), (back, end)) = (self.front.path[level], self.back.path[level]);
        if front == back {
            return (end - start, Some(end - start));
        }
        let least = self.tree.node(front).count() - start + end;
        (least, usize::try_from(self.tree.len).ok())
    }

    fn count(self) -> usize {
        usize::try_from(self.left()).unwrap_or(usize::MAX)
    }

    fn last(mut self) -> Option<Self::Item> {
        self.next_back()
    }

    fn nth(&mut self, n: usize) -> Option<Self::Item> {
        if n > 0 && !self.drop_front(n) {
            return None;
        }
        self.next()
    }
}

impl DoubleEndedIterator for Range<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.done || !self.tree.step_back(&mut self.back) {
            return None;
        }
        self.look_for_the_end();
        self.tree.at(&self.back)
    }

    fn nth_back(&mut self, n: usize) -> Option<Self::Item> {
        if n > 0 && !self.drop_back(n) {
            return None;
        }
        self.next_back()
    }
}
