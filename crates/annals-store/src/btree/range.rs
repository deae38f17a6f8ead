//! Walking over a range of keys from both ends.

use super::node::Node;
use super::place::Place;
use super::{NONE, Tree};
use crate::Result;
use crate::pages::cells::NodePage;

/// The entries of a range of keys, from both ends. It ends at an error.
#[derive(Clone, Debug)]
pub(in super::super) struct Range<'a> {
    tree: &'a Tree,
    front: Place,
    back: Place,
    done: bool,
    /// The leaf that the front was in last: stepping on in it asks for no page.
    leaf: Option<(u32, NodePage<'a>)>,
}

impl Tree {
    /// Returns no entries, and reads nothing.
    pub(in super::super) const fn nothing(&self) -> Range<'_> {
        Range { tree: self, front: Place::NOWHERE, back: Place::NOWHERE, done: true, leaf: None }
    }

    /// Returns the entries with `low <= key < high`; without `high`, to the end.
    pub(in super::super) fn range(&self, low: &[u8], high: Option<&[u8]>) -> Result<Range<'_>> {
        if self.root == NONE || high.is_some_and(|high| high <= low) {
            return Ok(self.nothing());
        }
        let front = self.seek(low)?;
        let back = match high {
            Some(high) => self.seek_from(&front, high)?,
            None => self.end()?,
        };
        let mut range = Range { tree: self, front, back, done: false, leaf: None };
        range.look_for_the_end();
        Ok(range)
    }

    /// Returns the last entry whose key is at most `key` to `read`.
    pub(in super::super) fn floor<R>(
        &self,
        key: &[u8],
        read: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Result<Option<R>> {
        if self.root == NONE {
            return Ok(None);
        }
        let mut place = self.seek(key)?;
        let (leaf, at) = place.path[self.height];
        let page = self.leaf(leaf)?;
        let node = Node::new(&page);
        if at < node.count() {
            let found = node.key(at, &self.long)?;
            if *found == *key {
                return Ok(Some(read(&found, node.value(at))));
            }
        }
        self.step_back(&mut place, read)
    }
}

impl Range<'_> {
    /// Counts the entries that neither end has given, without visiting them.
    pub(in super::super) fn left(&self) -> Result<u64> {
        if self.done { Ok(0) } else { self.tree.distance(&self.front, &self.back) }
    }

    #[inline]
    fn look_for_the_end(&mut self) {
        let level = self.tree.height;
        self.done = self.front.path[level] == self.back.path[level];
    }

    /// Takes the entries before `high`, which is after the first one, and keeps the others.
    pub(in super::super) fn take_before(&mut self, high: Option<&[u8]>) -> Result<Self> {
        let middle = match high {
            Some(high) => self.tree.seek_from(&self.front, high)?,
            None => self.back,
        };
        let mut before = Self { back: middle, ..self.clone() };
        self.front = middle;
        before.look_for_the_end();
        self.look_for_the_end();
        Ok(before)
    }

    /// Drops `count` entries at the front, or all if there are fewer.
    fn drop_front(&mut self, count: u64) -> Result<()> {
        let left = self.left()?;
        self.done |= count >= left;
        if self.done { Ok(()) } else { self.tree.skip(&mut self.front, count) }
    }

    /// Drops `count` entries at the back, or all if there are fewer.
    fn drop_back(&mut self, count: u64) -> Result<()> {
        let left = self.left()?;
        self.done |= count >= left;
        if self.done {
            return Ok(());
        }
        self.back = self.front;
        self.tree.skip(&mut self.back, left - count)
    }

    /// Records whether `found` was the last entry; an error ends the walk.
    #[inline]
    fn given<R>(&mut self, found: Result<Option<R>>) -> Result<Option<R>> {
        match &found {
            Ok(Some(_)) => self.look_for_the_end(),
            Ok(None) | Err(_) => self.done = true,
        }
        found
    }

    /// Returns the first entry to `read`, and continues.
    #[inline]
    pub(in super::super) fn next_with<R>(
        &mut self,
        read: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Result<Option<R>> {
        if self.done {
            return Ok(None);
        }
        let level = self.tree.height;
        let (number, at) = self.front.path[level];
        if let Some((in_hand, page)) = &self.leaf
            && *in_hand == number
        {
            let node = Node::new(page);
            if at + 1 < node.count() && node.long(at).is_none() {
                let found = read(node.part(at), node.value(at));
                self.front.path[level].1 = at + 1;
                self.look_for_the_end();
                return Ok(Some(found));
            }
        }
        self.step_over(read)
    }

    /// Steps over the last entry of a leaf, or takes the leaf in hand.
    #[inline(never)] // so that stepping on in a leaf stays short
    fn step_over<R>(&mut self, read: impl FnOnce(&[u8], &[u8]) -> R) -> Result<Option<R>> {
        let found = self.tree.step(&mut self.front, read);
        let (number, _) = self.front.path[self.tree.height];
        if found.is_ok() && self.leaf.as_ref().is_none_or(|(in_hand, _)| *in_hand != number) {
            self.leaf = self.tree.leaf(number).ok().map(|page| (number, page));
        }
        self.given(found)
    }

    /// Returns the entry that is `ahead` after the first one to `read`, if that is in the same leaf; at once, or
    /// not at all.
    #[inline]
    pub(in super::super) fn glance<R>(
        &self,
        ahead: usize,
        read: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Option<R> {
        let (leaf, at) = self.front.path[self.tree.height];
        self.at_hand(leaf, at.checked_add(ahead)?, read)
    }

    /// Does as [`Self::glance`], with the entry that is `ahead` before the last one.
    #[inline]
    pub(in super::super) fn glance_back<R>(
        &self,
        ahead: usize,
        read: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Option<R> {
        let (leaf, at) = self.back.path[self.tree.height];
        self.at_hand(leaf, at.checked_sub(ahead + 1)?, read)
    }

    #[inline]
    fn at_hand<R>(&self, leaf: u32, at: usize, read: impl FnOnce(&[u8], &[u8]) -> R) -> Option<R> {
        if self.done {
            return None;
        }
        let node = Node::new(self.tree.nodes.at_hand(leaf)?);
        (at < node.count() && node.long(at).is_none()).then(|| read(node.part(at), node.value(at)))
    }

    /// Passes the last entry to `read`, and moves before it.
    #[inline]
    pub(in super::super) fn next_back_with<R>(
        &mut self,
        read: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Result<Option<R>> {
        if self.done {
            return Ok(None);
        }
        let found = self.tree.step_back(&mut self.back, read);
        self.given(found)
    }

    /// Takes back the last entries that the ends have given.
    pub(in super::super) fn take_back(&mut self, front: usize, back: usize) -> Result<()> {
        for _ in 0..front {
            self.tree.step_back(&mut self.front, |_, _| ())?;
        }
        for _ in 0..back {
            self.tree.step(&mut self.back, |_, _| ())?;
        }
        self.look_for_the_end();
        Ok(())
    }

    /// Leaves out some entries, and returns the next one to `read`, as [`Self::next_with`] does.
    pub(in super::super) fn nth_with<R>(
        &mut self,
        n: usize,
        read: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Result<Option<R>> {
        if n > 0 {
            self.drop_front(n as u64).inspect_err(|_| self.done = true)?;
        }
        self.next_with(read)
    }

    /// Leaves out some entries at the back, and returns the next one to `read`.
    pub(in super::super) fn nth_back_with<R>(
        &mut self,
        n: usize,
        read: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Result<Option<R>> {
        if n > 0 {
            self.drop_back(n as u64).inspect_err(|_| self.done = true)?;
        }
        self.next_back_with(read)
    }

    /// Returns bounds of the rest, without reading: exact if that is in one leaf. Collecting a few entries then
    /// allocates the right amount of memory.
    pub(in super::super) fn size_hint(&self) -> (usize, Option<usize>) {
        if self.done {
            return (0, Some(0));
        }
        let level = self.tree.height;
        let ((front, start), (back, end)) = (self.front.path[level], self.back.path[level]);
        if front == back {
            let len = end.saturating_sub(start);
            return (len, Some(len));
        }
        // One in front at least: a place is in front of an entry.
        (1 + end, usize::try_from(self.tree.len).ok())
    }
}
