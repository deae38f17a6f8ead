//! A place in a tree: between two entries, or at an end.
//!
//! Invariant: a place is in front of an entry, or else after the last one of the tree. So the gap
//! between two leaves is one place, in front of the second leaf's first entry.

use super::node::Node;
use super::{NONE, Tree};
use crate::Result;
use crate::pages::cells::Longs;

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
    pub(super) fn seek(&self, key: &[u8]) -> Result<Place> {
        let mut place = Place::NOWHERE;
        let mut number = self.root;
        for level in 0..self.height {
            let page = self.inner(number)?;
            let node = Node::new(&page);
            let at = child_for(node, key, &self.long)?;
            place.path[level] = (number, at);
            number = node.child(at);
        }
        let page = self.leaf(number)?;
        let node = Node::new(&page);
        let at = node.search(key, 0, &self.long)?.unwrap_or_else(|at| at);
        place.path[self.height] = (number, at);
        if at == node.count() {
            self.next_leaf(&mut place)?;
        }
        Ok(place)
    }

    /// Finds the place in front of the first key that is at least `key`, which is after `place`:
    /// most ranges end in the leaf where they begin.
    pub(super) fn seek_from(&self, place: &Place, key: &[u8]) -> Result<Place> {
        let (leaf, _) = place.path[self.height];
        let page = self.leaf(leaf)?;
        let node = Node::new(&page);
        let at = node.search(key, 0, &self.long)?.unwrap_or_else(|at| at);
        if at == node.count() {
            return self.seek(key);
        }
        let mut found = *place;
        found.path[self.height].1 = at;
        Ok(found)
    }

    /// Finds the place after the last key.
    pub(super) fn end(&self) -> Result<Place> {
        let mut place = Place::NOWHERE;
        if self.root == NONE {
            return Ok(place);
        }
        self.descend(&mut place, 0, self.root, true)?;
        let (leaf, _) = place.path[self.height];
        place.path[self.height].1 = Node::new(&*self.leaf(leaf)?).count();
        Ok(place)
    }

    /// Descends from a node at `level` along its first or last children.
    fn descend(&self, place: &mut Place, level: usize, mut number: u32, last: bool) -> Result<()> {
        for level in level..self.height {
            let page = self.inner(number)?;
            let node = Node::new(&page);
            let at = if last { node.count() - 1 } else { 0 };
            place.path[level] = (number, at);
            number = node.child(at);
        }
        // The first place of a leaf needs no read of it.
        let at = if last { Node::new(&*self.leaf(number)?).count().saturating_sub(1) } else { 0 };
        place.path[self.height] = (number, at);
        Ok(())
    }

    /// Moves to the first entry of the next leaf; stays if there is none.
    fn next_leaf(&self, place: &mut Place) -> Result<()> {
        for level in (0..self.height).rev() {
            let (number, at) = place.path[level];
            let page = self.inner(number)?;
            let node = Node::new(&page);
            if at + 1 < node.count() {
                place.path[level].1 = at + 1;
                return self.descend(place, level + 1, node.child(at + 1), false);
            }
        }
        Ok(())
    }

    /// Moves to the last entry of the previous leaf; false if there is none.
    fn last_leaf(&self, place: &mut Place) -> Result<bool> {
        for level in (0..self.height).rev() {
            let (number, at) = place.path[level];
            if at > 0 {
                let child = Node::new(&*self.inner(number)?).child(at - 1);
                place.path[level].1 = at - 1;
                self.descend(place, level + 1, child, true)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the entry after a place to `read`; `None` at the end.
    #[inline]
    pub(super) fn peek<R>(
        &self,
        place: &Place,
        read: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Result<Option<R>> {
        let (leaf, at) = place.path[self.height];
        let page = self.leaf(leaf)?;
        let node = Node::new(&page);
        if at >= node.count() {
            return Ok(None);
        }
        let key = node.key(at, &self.long)?;
        Ok(Some(read(&key, node.value(at))))
    }

    /// Passes the entry after a place to `read`, and moves past it; `None` at the end. After an error the place is
    /// where it was.
    #[inline]
    pub(super) fn step<R>(
        &self,
        place: &mut Place,
        read: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Result<Option<R>> {
        let (leaf, at) = place.path[self.height];
        let page = self.leaf(leaf)?;
        let node = Node::new(&page);
        let count = node.count();
        if at >= count {
            return Ok(None);
        }
        let key = node.key(at, &self.long)?;
        let found = read(&key, node.value(at));
        if at + 1 < count {
            place.path[self.height].1 = at + 1;
        } else {
            let mut next = *place;
            next.path[self.height].1 = count;
            self.next_leaf(&mut next)?;
            *place = next;
        }
        Ok(Some(found))
    }

    /// Moves to the entry before a place, and passes it to `read`; `None` if there is none. After an error the place
    /// is where it was.
    #[inline]
    pub(super) fn step_back<R>(
        &self,
        place: &mut Place,
        read: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Result<Option<R>> {
        let (leaf, at) = place.path[self.height];
        if at > 0 {
            let page = self.leaf(leaf)?;
            let node = Node::new(&page);
            if at > node.count() {
                return Ok(None);
            }
            let key = node.key(at - 1, &self.long)?;
            place.path[self.height].1 = at - 1;
            return Ok(Some(read(&key, node.value(at - 1))));
        }
        let mut before = *place;
        if !self.last_leaf(&mut before)? {
            return Ok(None);
        }
        let found = self.peek(&before, read)?;
        *place = before;
        Ok(found)
    }
}

/// Returns which child of an inner node has, or would have, the key.
#[inline]
pub(super) fn child_for(node: Node<'_>, key: &[u8], long: &Longs) -> Result<usize> {
    Ok(match node.search(key, 1, long)? {
        Ok(at) => at,
        Err(at) => at - 1, // at least 1, as an inner node has a child
    })
}
