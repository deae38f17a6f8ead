//! Finding the spot of one key, without a path back up, or for inserting there.
//!
//! A lookup mostly waits for memory. A search for several keys prefetches the memory of the next step for all of them
//! before the first takes it ([`Tree::ask_for_slots`], [`Tree::ask_for_cell`]).

use super::node::Node;
use super::place::{LEVELS, child_for};
use super::{HEADER, SLOT};
use super::{NONE, Tree};
use crate::Result;
use crate::pages::page::ask_for;

/// Which leaf has a key, or would have it.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Way {
    /// The inner nodes on the way, from the root on.
    pub(super) inner: [u32; LEVELS],
    pub(super) leaf: u32,
    /// True if there is no leaf after this one.
    is_last: bool,
}

/// The position of a key, or where it would be inserted. It means that until the tree is changed.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Spot {
    pub(super) way: Way,
    /// The place in the leaf, or the one where it would be.
    pub(super) at: std::result::Result<usize, usize>,
}

impl Tree {
    /// Finds the way to a key in a tree that has a root.
    #[inline]
    fn way(&self, key: &[u8]) -> Result<Way> {
        let mut way = Way { inner: [NONE; LEVELS], leaf: self.root, is_last: true };
        for place in way.inner.iter_mut().take(self.height) {
            *place = way.leaf;
            let page = self.inner(way.leaf)?;
            let node = Node::new(&page);
            let at = child_for(node, key, &self.long)?;
            way.is_last &= at + 1 == node.count();
            way.leaf = node.child(at);
        }
        Ok(way)
    }

    /// Finds a key in a tree that has a root.
    #[inline]
    pub(super) fn spot(&self, key: &[u8]) -> Result<Spot> {
        let way = self.way(key)?;
        let at = Node::new(&*self.leaf(way.leaf)?).search(key, 0, &self.long)?;
        Ok(Spot { way, at })
    }

    /// Returns the first entry whose key begins with these bytes to `read`.
    #[inline]
    pub(in super::super) fn first_with<R>(
        &self,
        prefix: &[u8],
        read: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Result<Option<R>> {
        self.first_or_spot(prefix, read).map(|(found, _)| found)
    }

    /// Returns the first entry whose key begins with these bytes to `read`. If there is none, returns a spot for
    /// inserting one with any value, if that is simple to determine.
    #[inline]
    pub(in super::super) fn first_or_spot<R>(
        &self,
        prefix: &[u8],
        read: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Result<(Option<R>, Option<Spot>)> {
        if self.root == NONE {
            return Ok((None, None));
        }
        let way = self.way(prefix)?;
        self.first_or_spot_on(&way, prefix, read)
    }

    /// Does as [`Self::first_or_spot`], given the way there.
    #[inline]
    fn first_or_spot_on<R>(
        &self,
        way: &Way,
        prefix: &[u8],
        read: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Result<(Option<R>, Option<Spot>)> {
        let read = |key: &[u8], value: &[u8]| key.starts_with(prefix).then(|| read(key, value));
        let page = self.leaf(way.leaf)?;
        let node = Node::new(&page);
        let found = node.search(prefix, 0, &self.long)?;
        let (at, spot) = (found.unwrap_or_else(|at| at), Some(Spot { way: *way, at: found }));
        if at < node.count() {
            // This leaf continues after all that begin with these bytes, if this entry doesn't.
            let found = node.key(at, &self.long)?;
            return Ok((read(&found, node.value(at)), spot));
        }
        if way.is_last {
            return Ok((None, spot));
        }
        // The next leaf may begin between those, even if none of them is left.
        Ok((self.peek(&self.seek(prefix)?, read)?.flatten(), None))
    }

    /// Returns the first entry whose key begins with these bytes to `read`, given the way there.
    #[inline]
    pub(in super::super) fn first_on<R>(
        &self,
        way: &Way,
        prefix: &[u8],
        read: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Result<Option<R>> {
        self.first_or_spot_on(way, prefix, read).map(|(found, _)| found)
    }

    /// Finds the way to a key, if there is any, and asks for the hints of its leaf.
    pub(in super::super) fn ask_for_hints(&self, key: &[u8]) -> Result<Option<Way>> {
        if self.root == NONE {
            return Ok(None);
        }
        let way = self.way(key)?;
        if let Some(page) = self.nodes.at_hand(way.leaf) {
            ask_for(&page[..HEADER]);
        }
        Ok(Some(way))
    }

    /// Prefetches the slots of a leaf that a key may be among.
    pub(in super::super) fn ask_for_slots(&self, way: &Way, key: &[u8]) {
        let Some(page) = self.nodes.at_hand(way.leaf) else { return };
        let (first, end) = Node::new(page).may_be_among(key);
        ask_for(page.get(HEADER + first * SLOT..HEADER + end * SLOT).unwrap_or_default());
    }

    /// Prefetches the entry of a leaf that a key must be compared with.
    pub(in super::super) fn ask_for_cell(&self, way: &Way, key: &[u8]) {
        let Some(page) = self.nodes.at_hand(way.leaf) else { return };
        let node = Node::new(page);
        if let Some(at) = node.may_be_at(key) {
            ask_for(node.part(at));
        }
    }
}
