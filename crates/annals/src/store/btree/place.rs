//! A place in a tree: between two entries, or at an end.
//!
//! Invariant: a place is in front of an entry, or else behind the last one of the tree. So the gap
//! between two leaves is one place, in front of the second leaf's first entry.

use super::node::Node;
use super::{NONE, Tree};

/// The most levels a tree can have: four entries a node and 2^32 nodes.
pub(super) const LEVELS: usize = 16;

/// A place in a tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// From the root down to the leaf: node, and place in it.
    pub(super) path: [(u32, usize); LEVELS],
}

impl Place {
    /// The place in a tree without nodes.
    pub(super) const NOWHERE: Self = Self { path: [(NONE, 0); LEVELS] };
}

impl Tree {
    /// Finds the place in front of the first key that is at least `key`.
    pub(super) fn seek(&self, key: &[u8]) -> Place {
        let mut place = Place::NOWHERE;
        let mut number = self.root;
        for level in 0..self.height {
            let node = self.node(number);
            let at = child_for(node, key, self);
            place.path[level] = (number, at);
            number = node.child(at);
        }
        let node = self.node(number);
        let at = node.search(key, 0, &self.long).unwrap_or_else(|at| at);
        place.path[self.height] = (number, at);
        if at == node.count() {
            self.next_leaf(&mut place);
        }
        place
    }

    /// Finds the place in front of the first key that is at least `key`, which is behind `place`:
    /// most ranges end in the leaf where they begin.
    pub(super) fn seek_from(&self, place: &Place, key: &[u8]) -> Place {
        let (leaf, _) = place.path[self.height];
        let node = self.node(leaf);
        let at = node.search(key, 0, &self.long).unwrap_or_else(|at| at);
        if at == node.count() {
            return self.seek(key);
        }
        let mut found = *place;
        found.path[self.height].1 = at;
        found
    }

    /// Finds the place behind the last key.
    pub(super) fn end(&self) -> Place {
        let mut place = Place::NOWHERE;
        if self.root == NONE {
            return place;
        }
        self.descend(&mut place, 0, self.root, true);
        let (leaf, _) = place.path[self.height];
        place.path[self.height].1 = self.node(leaf).count();
        place
    }

    /// Goes from a node at `level` down along its first or last children.
    fn descend(&self, place: &mut Place, level: usize, mut number: u32, last: bool) {
        for level in level..=self.height {
            let node = self.node(number);
            let at = if last { node.count().saturating_sub(1) } else { 0 };
            place.path[level] = (number, at);
            if level < self.height {
                number = node.child(at);
            }
        }
    }

    /// Goes on to the first entry of the next leaf; stays where it is if there is none.
    fn next_leaf(&self, place: &mut Place) {
        for level in (0..self.height).rev() {
            let (number, at) = place.path[level];
            let node = self.node(number);
            if at + 1 < node.count() {
                place.path[level].1 = at + 1;
                self.descend(place, level + 1, node.child(at + 1), false);
                return;
            }
        }
    }

    /// Gives the entry behind a place; `None` at the end.
    #[inline]
    pub(super) fn at(&self, place: &Place) -> Option<(&[u8], &[u8])> {
        let (leaf, at) = place.path[self.height];
        let node = self.node(leaf);
        (at < node.count()).then(|| (node.key(at, &self.long), node.value(at)))
    }

    /// Goes behind the next entry, which there is.
    #[inline]
    pub(super) fn step(&self, place: &mut Place) {
        let (leaf, at) = place.path[self.height];
        place.path[self.height].1 = at + 1;
        if at + 1 == self.node(leaf).count() {
            self.next_leaf(place);
        }
    }

    /// Goes to the entry before; false if there is none.
    #[inline]
    pub(super) fn step_back(&self, place: &mut Place) -> bool {
        if place.path[self.height].1 > 0 {
            place.path[self.height].1 -= 1;
            return true;
        }
        for level in (0..self.height).rev() {
            let (number, at) = place.path[level];
            if at > 0 {
                place.path[level].1 = at - 1;
                self.descend(place, level + 1, self.node(number).child(at - 1), true);
                return true;
            }
        }
        false
    }
}

/// Tells which child of an inner node has, or would have, the key.
#[inline]
pub(super) fn child_for(node: Node<'_>, key: &[u8], tree: &Tree) -> usize {
    match node.search(key, 1, &tree.long) {
        Ok(at) => at,
        Err(at) => at - 1,
    }
}
