//! Counting entries without visiting them.
//!
//! A leaf knows how many entries it has, and the tree how many there are in all. What lies between
//! stands in `counts`, by the number of the inner node, and not in the node: an insert would else
//! have to copy all nodes on its way, and not the leaf alone. So trees of one or two levels, up to
//! some hundred thousand entries, have nothing to keep up, and larger ones a number or two.
//!
//! Counting takes a step for each level, and in each looks at the children of one node, or of two.

use std::num::NonZeroU64;
use std::ops::Range;

use super::node::Node;
use super::place::Place;
use super::{NONE, Tree};
use crate::store::pages::cells;

impl Tree {
    /// Gives the number of entries of a leaf, or below an inner node; `level` is the node's.
    #[inline]
    pub(super) fn below(&self, number: u32, level: usize) -> u64 {
        if level == self.height {
            self.node(number).count() as u64
        } else if level == 0 {
            self.len
        } else {
            self.counts.get(number as usize).map_or(0, |count| count.get())
        }
    }

    /// Adds up the entries below some children of a node; `level` is the children's.
    pub(super) fn sum(&self, node: Node<'_>, level: usize, children: Range<usize>) -> u64 {
        children.map(|i| self.below(node.child(i), level)).sum()
    }

    /// Counts the entries below a node that are before its place `at`, on the shorter side.
    fn before(&self, (number, at): (u32, usize), level: usize) -> u64 {
        if level == self.height {
            return at as u64;
        }
        let node = self.node(number);
        if at <= node.count() / 2 {
            self.sum(node, level + 1, 0..at)
        } else {
            self.below(number, level) - self.sum(node, level + 1, at..node.count())
        }
    }

    /// Counts the entries before a place.
    pub(super) fn rank(&self, place: &Place) -> u64 {
        if self.root == NONE {
            return 0;
        }
        (0..=self.height).map(|level| self.before(place.path[level], level)).sum()
    }

    /// Counts the entries from one place to another that isn't before it.
    pub(super) fn distance(&self, from: &Place, to: &Place) -> u64 {
        let differ = |&level: &usize| from.path[level] != to.path[level];
        let Some(parting) = (0..=self.height).find(differ) else {
            return 0;
        };
        let ((number, start), (_, end)) = (from.path[parting], to.path[parting]);
        if parting == self.height {
            return (end - start) as u64;
        }
        let node = self.node(number);
        let between = if end - start <= node.count() / 2 {
            self.sum(node, parting + 1, start + 1..end)
        } else {
            self.before((number, end), parting) - self.before((number, start + 1), parting)
        };
        let rest = (parting + 1..=self.height).map(|level| {
            let (number, at) = from.path[level];
            let first_behind = if level == self.height { at } else { at + 1 };
            let behind = self.below(number, level) - self.before((number, first_behind), level);
            behind + self.before(to.path[level], level)
        });
        between + rest.sum::<u64>()
    }

    /// Finds the place behind the first `rank` entries; the end if there are fewer.
    pub(super) fn select(&self, rank: u64) -> Place {
        if rank >= self.len {
            return self.end();
        }
        let mut place = Place::NOWHERE;
        self.descend_to(&mut place, 0, self.root, rank);
        place
    }

    /// Goes on by some entries; to the end if there are fewer.
    pub(super) fn skip(&self, place: &mut Place, count: u64) {
        let (leaf, at) = place.path[self.height];
        let here = (self.node(leaf).count() - at) as u64;
        if count < here {
            place.path[self.height].1 += cells::place(count);
            return;
        }
        let mut left = count - here;
        for level in (0..self.height).rev() {
            let (number, at) = place.path[level];
            let node = self.node(number);
            if let Some(child) = self.child_with(node, level + 1, at + 1, &mut left) {
                place.path[level].1 = child;
                self.descend_to(place, level + 1, node.child(child), left);
                return;
            }
        }
        *place = self.end();
    }

    /// Goes from a node at `level` down to the entry that has `left` others below the node before it.
    fn descend_to(&self, place: &mut Place, level: usize, mut number: u32, mut left: u64) {
        for level in level..self.height {
            let node = self.node(number);
            let child = self.child_with(node, level + 1, 0, &mut left);
            let child = child.expect("the node has more entries than that");
            place.path[level] = (number, child);
            number = node.child(child);
        }
        place.path[self.height] = (number, cells::place(left));
    }

    /// Finds the child, from `first` on, that has the entry behind `left` others; `left` becomes the
    /// number of those before it in that child. `level` is the children's.
    fn child_with(
        &self,
        node: Node<'_>,
        level: usize,
        first: usize,
        left: &mut u64,
    ) -> Option<usize> {
        (first..node.count()).find(|&i| {
            let below = self.below(node.child(i), level);
            let found = *left < below;
            if !found {
                *left -= below;
            }
            found
        })
    }

    /// Notes that inner nodes have one entry more.
    #[inline]
    pub(super) fn count_up(&mut self, inner: &[u32]) {
        inner.iter().for_each(|&number| self.recount(number, |count| count + 1));
    }

    /// Notes that inner nodes have one entry less.
    pub(super) fn count_down(&mut self, inner: impl Iterator<Item = u32>) {
        inner.for_each(|number| self.recount(number, |count| count - 1));
    }

    /// Counts anew after an inner node at `level` gave entries to a new one.
    pub(super) fn count_split(&mut self, left: u32, right: u32, level: usize) {
        let node = self.node(right);
        let moved = self.sum(node, level + 1, 0..node.count());
        let rest = self.below(left, level) - moved;
        self.recount(left, |_| rest);
        self.recount(right, |_| moved);
    }

    /// Notes that an inner node took all entries of another.
    pub(super) fn count_joined(&mut self, left: u32, right: u32) {
        let moved = self.counts.get(right as usize).map_or(0, |count| count.get());
        self.recount(left, |count| count + moved);
    }

    /// Forgets what was counted of a node that is freed, or becomes the root.
    pub(super) fn forget_count(&mut self, number: u32) {
        if self.counts.get(number as usize).is_some() {
            self.recount(number, |_| 0);
        }
    }

    /// Changes a count; none is zero.
    fn recount(&mut self, number: u32, change: impl FnOnce(u64) -> u64) {
        let count = self.counts.slot(number as usize);
        *count = NonZeroU64::new(change(count.map_or(0, NonZeroU64::get)));
    }
}
