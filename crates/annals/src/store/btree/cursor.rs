//! Finding keys, and walking over a range of them from both ends.

use super::node::Node;
use super::{NONE, Tree};

/// The most levels a tree can have: four entries a node and 2^32 nodes.
const LEVELS: usize = 16;

/// A place in a tree: between two entries, or at an end.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// From the root down to the leaf: node, and place in it.
    path: [(u32, usize); LEVELS],
}

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
            let nowhere = Place { path: [(NONE, 0); LEVELS] };
            return Range { tree: self, front: nowhere, back: nowhere, done: true };
        }
        let front = self.seek(low);
        let back = high.map_or_else(|| self.end(), |high| self.seek_from(&front, high));
        let done = front.path[self.height] == back.path[self.height];
        Range { tree: self, front, back, done }
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

    /// Finds the place in front of the first key that is at least `key`.
    fn seek(&self, key: &[u8]) -> Place {
        let mut place = Place { path: [(NONE, 0); LEVELS] };
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
    fn seek_from(&self, place: &Place, key: &[u8]) -> Place {
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
    fn end(&self) -> Place {
        let mut place = Place { path: [(NONE, 0); LEVELS] };
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

    #[inline]
    fn at(&self, place: &Place) -> Option<(&[u8], &[u8])> {
        let (leaf, at) = place.path[self.height];
        let node = self.node(leaf);
        (at < node.count()).then(|| (node.key(at, &self.long), node.value(at)))
    }

    #[inline]
    fn step(&self, place: &mut Place) {
        let (leaf, at) = place.path[self.height];
        place.path[self.height].1 = at + 1;
        if at + 1 == self.node(leaf).count() {
            self.next_leaf(place);
        }
    }

    /// Goes to the entry before; false if there is none.
    #[inline]
    fn step_back(&self, place: &mut Place) -> bool {
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

impl<'a> Iterator for Range<'a> {
    type Item = (&'a [u8], &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let found = self.tree.at(&self.front);
        self.tree.step(&mut self.front);
        let level = self.tree.height;
        self.done = self.front.path[level] == self.back.path[level];
        found
    }
}

impl DoubleEndedIterator for Range<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.done || !self.tree.step_back(&mut self.back) {
            return None;
        }
        let level = self.tree.height;
        self.done = self.front.path[level] == self.back.path[level];
        self.tree.at(&self.back)
    }
}
