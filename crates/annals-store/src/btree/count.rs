//! Counting entries without visiting them.
//!
//! A leaf knows how many entries it has, and the tree how many there are in all. The counts in between are in
//! `counts`, by the number of the inner node, and not in the node: otherwise an insert would have to copy all nodes
//! on its path, and not the leaf alone. So trees of one or two levels, up to some hundred thousand entries, have
//! nothing to keep up, and larger ones a number or two.
//!
//! Counting takes a step for each level, and each step reads the children of one node, or of two.

use std::ops::Range;

use super::node::Node;
use super::place::Place;
use super::{Tree, unfit};
use crate::Result;
use crate::pages::cells;
use crate::pages::page::Epoch;

impl Tree {
    /// Returns the entry of `counts` for a node.
    #[inline]
    pub(super) fn counted(&self, number: u32) -> Result<u64> {
        Ok(u64::from_le_bytes(self.counts.get(number as usize)?))
    }

    /// Returns the number of entries of a leaf, or below an inner node; `level` is the node's.
    #[inline]
    pub(super) fn below(&self, number: u32, level: usize) -> Result<u64> {
        if level == self.height {
            Ok(Node::new(&*self.leaf(number)?).count() as u64)
        } else if level == 0 {
            Ok(self.len)
        } else {
            self.counted(number)
        }
    }

    /// Adds up the entries below some children of a node; `level` is the children's.
    fn sum(&self, node: Node<'_>, level: usize, children: Range<usize>) -> Result<u64> {
        let mut sum = 0_u64;
        for i in children {
            sum = sum.checked_add(self.below(node.child(i), level)?).ok_or_else(unfit)?;
        }
        Ok(sum)
    }

    /// Counts the entries below a node that are before its place `at`, on the shorter side.
    fn before(&self, number: u32, at: usize, level: usize) -> Result<u64> {
        if level == self.height {
            return Ok(at as u64);
        }
        let page = self.inner(number)?;
        let node = Node::new(&page);
        if at <= node.count() / 2 {
            self.sum(node, level + 1, 0..at)
        } else {
            let behind = self.sum(node, level + 1, at..node.count())?;
            self.below(number, level)?.checked_sub(behind).ok_or_else(unfit)
        }
    }

    /// Counts the entries before a place.
    pub(super) fn rank(&self, place: &Place) -> Result<u64> {
        let mut rank = 0_u64;
        for level in 0..=self.height {
            let (number, at) = place.path[level];
            let before = self.before(number, at, level)?;
            rank = rank.checked_add(before).ok_or_else(unfit)?;
        }
        Ok(rank)
    }

    /// Counts the entries from one place to another that isn't before it.
    pub(super) fn distance(&self, from: &Place, to: &Place) -> Result<u64> {
        let differ = |&level: &usize| from.path[level] != to.path[level];
        let Some(parting) = (0..=self.height).find(differ) else {
            return Ok(0);
        };
        let ((number, start), (_, end)) = (from.path[parting], to.path[parting]);
        let apart = end.checked_sub(start).ok_or_else(unfit)?;
        if parting == self.height {
            return Ok(apart as u64);
        }
        let page = self.inner(number)?;
        let node = Node::new(&page);
        let mut distance = if apart <= node.count() / 2 {
            self.sum(node, parting + 1, start + 1..end)?
        } else {
            let before = self.before(number, start + 1, parting)?;
            self.before(number, end, parting)?.checked_sub(before).ok_or_else(unfit)?
        };
        for level in parting + 1..=self.height {
            let (number, at) = from.path[level];
            let first_behind = if level == self.height { at } else { at + 1 };
            let gone = self.before(number, first_behind, level)?;
            let behind = self.below(number, level)?.checked_sub(gone).ok_or_else(unfit)?;
            let (number, at) = to.path[level];
            let before = self.before(number, at, level)?;
            let both = behind.checked_add(before).ok_or_else(unfit)?;
            distance = distance.checked_add(both).ok_or_else(unfit)?;
        }
        Ok(distance)
    }

    /// Finds the place after the first `rank` entries; the end if there are fewer.
    pub(super) fn select(&self, rank: u64) -> Result<Place> {
        if rank >= self.len {
            return self.end();
        }
        let mut place = Place::NOWHERE;
        self.descend_to(&mut place, 0, self.root, rank)?;
        Ok(place)
    }

    /// Skips some entries; stops at the end if there are fewer.
    pub(super) fn skip(&self, place: &mut Place, count: u64) -> Result<()> {
        let (leaf, at) = place.path[self.height];
        let here = Node::new(&*self.leaf(leaf)?).count().saturating_sub(at) as u64;
        if count < here {
            place.path[self.height].1 += cells::place(count);
            return Ok(());
        }
        let mut left = count - here;
        for level in (0..self.height).rev() {
            let (number, at) = place.path[level];
            let page = self.inner(number)?;
            let node = Node::new(&page);
            if let Some(child) = self.child_with(node, level + 1, at + 1, &mut left)? {
                place.path[level].1 = child;
                return self.descend_to(place, level + 1, node.child(child), left);
            }
        }
        *place = self.end()?;
        Ok(())
    }

    /// Descends from a node at `level` to the entry that has `left` others below the node before it.
    fn descend_to(
        &self,
        place: &mut Place,
        level: usize,
        mut number: u32,
        mut left: u64,
    ) -> Result<()> {
        for level in level..self.height {
            let page = self.inner(number)?;
            let node = Node::new(&page);
            let child = self.child_with(node, level + 1, 0, &mut left)?.ok_or_else(unfit)?;
            place.path[level] = (number, child);
            number = node.child(child);
        }
        place.path[self.height] = (number, cells::place(left));
        Ok(())
    }

    /// Finds the child, from `first` on, that has the entry after `left` others; `left` becomes the
    /// number of entries before it in that child. `level` is the level of the children.
    fn child_with(
        &self,
        node: Node<'_>,
        level: usize,
        first: usize,
        left: &mut u64,
    ) -> Result<Option<usize>> {
        for i in first..node.count() {
            let below = self.below(node.child(i), level)?;
            if *left < below {
                return Ok(Some(i));
            }
            *left -= below;
        }
        Ok(None)
    }

    /// Adds one entry to the counts of inner nodes.
    #[inline]
    pub(super) fn count_up(&mut self, inner: &[u32], epoch: &Epoch) -> Result<()> {
        inner.iter().try_for_each(|&number| {
            let count = self.counted(number)?.checked_add(1).ok_or_else(unfit)?;
            self.recount(number, count, epoch)
        })
    }

    /// Corrects the counts of inner nodes, and that of the tree, after a leaf below them changed.
    pub(super) fn count_leaf(
        &mut self,
        mut inner: impl Iterator<Item = u32>,
        before: usize,
        after: usize,
        epoch: &Epoch,
    ) -> Result<()> {
        let (before, after) = (before as u64, after as u64);
        let corrected = |count: u64| count.checked_sub(before)?.checked_add(after);
        if before == after {
            return Ok(());
        }
        self.len = corrected(self.len).ok_or_else(unfit)?;
        inner.try_for_each(|number| {
            let count = corrected(self.counted(number)?).ok_or_else(unfit)?;
            self.recount(number, count, epoch)
        })
    }

    /// Subtracts one entry from the counts of inner nodes.
    pub(super) fn count_down(
        &mut self,
        mut inner: impl Iterator<Item = u32>,
        epoch: &Epoch,
    ) -> Result<()> {
        inner.try_for_each(|number| {
            let count = self.counted(number)?.checked_sub(1).ok_or_else(unfit)?;
            self.recount(number, count, epoch)
        })
    }

    /// Counts again after an inner node at `level` moved entries to a new one.
    pub(super) fn count_split(
        &mut self,
        left: u32,
        right: u32,
        level: usize,
        epoch: &Epoch,
    ) -> Result<()> {
        let page = self.inner(right)?;
        let node = Node::new(&page);
        let moved = self.sum(node, level + 1, 0..node.count())?;
        drop(page);
        let rest = self.below(left, level)?.checked_sub(moved).ok_or_else(unfit)?;
        self.recount(left, rest, epoch)?;
        self.recount(right, moved, epoch)
    }

    /// Adds the count of an inner node to that of the node that took its entries.
    pub(super) fn count_joined(&mut self, left: u32, right: u32, epoch: &Epoch) -> Result<()> {
        let (here, moved) = (self.counted(left)?, self.counted(right)?);
        self.recount(left, here.checked_add(moved).ok_or_else(unfit)?, epoch)
    }

    /// Drops the count of a node that is freed, or becomes the root.
    pub(super) fn forget_count(&mut self, number: u32, epoch: &Epoch) -> Result<()> {
        if self.counted(number)? > 0 { self.recount(number, 0, epoch) } else { Ok(()) }
    }

    #[inline]
    fn recount(&mut self, number: u32, count: u64, epoch: &Epoch) -> Result<()> {
        self.counts.set(number as usize, count.to_le_bytes(), epoch.seen())
    }
}
