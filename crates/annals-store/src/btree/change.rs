//! Inserting and removing entries: nodes split when they are full, and join when they are empty
//! enough.
//!
//! An error leaves the tree partly changed: the caller must return to the previous one.

use super::node::{self, Entry, Node, common};
use super::place::{LEVELS, child_for};
use super::spot::Spot;
use super::{CHILD, NONE, Tree, unfit};
use super::{HEADER, SLOT};
use crate::Result;
use crate::pages::page::{Epoch, PAGE};

/// A node that uses fewer bytes than this is joined with a neighbour if possible.
const SPARSE: usize = PAGE / 4;

/// Two neighbours that use no more bytes than this together are joined.
const JOINED: usize = (PAGE - HEADER) / 4 * 3;

/// The way from the root to a leaf: inner nodes, and the place of the child in each.
pub(super) type Path = Vec<(u32, usize)>;

impl Tree {
    /// Inserts an entry. If the key exists already, replaces its value.
    pub(in super::super) fn insert(
        &mut self,
        key: &[u8],
        value: &[u8],
        epoch: &Epoch,
    ) -> Result<()> {
        debug_assert!(value.len() == self.value_size, "all values have the same size");
        if self.root == NONE {
            self.root = self.add_node(self.value_size, epoch)?;
        }
        let spot = self.spot(key)?;
        if let Ok(at) = spot.at {
            node::set_value(self.nodes.get_mut(spot.way.leaf, epoch)?, at, value);
            return Ok(());
        }
        self.insert_at(&spot, key, value, epoch)
    }

    /// Inserts an entry with a new key, at the given spot.
    pub(in super::super) fn insert_at(
        &mut self,
        spot: &Spot,
        key: &[u8],
        value: &[u8],
        epoch: &Epoch,
    ) -> Result<()> {
        let at = spot.at.unwrap_or_else(|at| at);
        debug_assert!(
            self.spot(key).is_ok_and(|own| (own.way.leaf, own.at) == (spot.way.leaf, Err(at))),
            "the tree wasn't changed since, and hasn't got the key"
        );
        self.len += 1;
        self.count_up(spot.way.inner[..self.height].get(1..).unwrap_or_default(), epoch)?;
        let (part, long) = self.keep(key, epoch)?;
        let entry = Entry { part, long, value };
        if node::insert(self.nodes.get_mut(spot.way.leaf, epoch)?, at, entry) {
            return Ok(());
        }
        let mut path = self.path_to(key)?;
        self.split_and_insert(&mut path, spot.way.leaf, at, entry, epoch)
    }

    pub(super) fn path_to(&self, key: &[u8]) -> Result<Path> {
        let mut path = Vec::with_capacity(self.height);
        let mut number = self.root;
        for _ in 0..self.height {
            let page = self.inner(number)?;
            let inner = Node::new(&page);
            let at = child_for(inner, key, &self.long)?;
            path.push((number, at));
            number = inner.child(at);
        }
        Ok(path)
    }

    /// Splits a full node, inserts the entry, and updates the parent.
    fn split_and_insert(
        &mut self,
        path: &mut Path,
        number: u32,
        at: usize,
        entry: Entry<'_>,
        epoch: &Epoch,
    ) -> Result<()> {
        let inner = path.len() < self.height;
        let (count, split_at) = {
            let page = self.node(number, path.len())?;
            let full = Node::new(&page);
            (full.count(), if is_in_order(full, at, entry) { at } else { middle(full) })
        };
        let right = self.add_node(entry.value.len(), epoch)?;
        if split_at < count {
            let mut moved = [0; PAGE];
            node::split(self.nodes.get_mut(number, epoch)?, &mut moved, split_at);
            *self.nodes.get_mut(right, epoch)? = moved;
        }
        let (target, place) = if at > split_at || (at == split_at && at == count) {
            (right, at - split_at)
        } else {
            (number, at)
        };
        // Half a node has room for the largest entry.
        if !node::insert(self.nodes.get_mut(target, epoch)?, place, entry) {
            return Err(unfit());
        }
        if inner {
            self.count_split(number, right, path.len(), epoch)?;
        }
        let separator = self.separator(number, right, path.len())?;
        self.link(path, number, right, &separator, epoch)
    }

    /// Makes a new node the right neighbour of another, to which the path leads.
    pub(super) fn link(
        &mut self,
        path: &mut Path,
        left: u32,
        right: u32,
        separator: &[u8],
        epoch: &Epoch,
    ) -> Result<()> {
        let Some((parent, child)) = path.pop() else {
            return self.grow_root(left, right, separator, epoch);
        };
        let (part, long) = self.keep(separator, epoch)?;
        let value = right.to_le_bytes();
        let entry = Entry { part, long, value: &value };
        if node::insert(self.nodes.get_mut(parent, epoch)?, child + 1, entry) {
            return Ok(());
        }
        self.split_and_insert(path, parent, child + 1, entry, epoch)
    }

    /// Returns the shortest key that parts two neighbours at a level (for inner nodes, the right one's
    /// first).
    pub(super) fn separator(&self, left: u32, right: u32, level: usize) -> Result<Vec<u8>> {
        let (left, right) = (self.node(left, level)?, self.node(right, level)?);
        let (left, right) = (Node::new(&left), Node::new(&right));
        let first = right.key(0, &self.long)?;
        if level < self.height {
            return Ok(first.to_vec());
        }
        let last = left.key(left.count().checked_sub(1).ok_or_else(unfit)?, &self.long)?;
        Ok(first[..(common(&last, &first) + 1).min(first.len())].to_vec())
    }

    fn grow_root(&mut self, left: u32, right: u32, separator: &[u8], epoch: &Epoch) -> Result<()> {
        if self.height + 1 == LEVELS {
            return Err(unfit());
        }
        let root = self.add_node(CHILD, epoch)?;
        for (at, child) in [left, right].into_iter().enumerate() {
            let (part, long) = self.keep(separator, epoch)?;
            let entry = Entry { part, long, value: &child.to_le_bytes() };
            node::insert(self.nodes.get_mut(root, epoch)?, at, entry);
        }
        self.root = root;
        self.height += 1;
        Ok(())
    }

    /// Removes an entry; returns true if it existed.
    pub(in super::super) fn remove(&mut self, key: &[u8], epoch: &Epoch) -> Result<bool> {
        if self.root == NONE {
            return Ok(false);
        }
        let place = self.seek(key)?;
        let (leaf, at) = place.path[self.height];
        let path = &place.path[..self.height];
        let is_there = {
            let page = self.leaf(leaf)?;
            let node = Node::new(&page);
            at < node.count() && *node.key(at, &self.long)? == *key
        };
        if !is_there {
            return Ok(false);
        }
        self.len = self.len.checked_sub(1).ok_or_else(unfit)?;
        self.count_down(path.iter().skip(1).map(|&(number, _)| number), epoch)?;
        self.remove_entry(leaf, self.height, at, epoch)?;
        // Nearly always enough is left, and there is no way back to the root to keep in memory.
        if Node::new(&*self.leaf(leaf)?).used() < SPARSE {
            self.shrink(&mut path.to_vec(), leaf, epoch)?;
        }
        Ok(true)
    }

    fn remove_entry(&mut self, number: u32, level: usize, at: usize, epoch: &Epoch) -> Result<()> {
        let long = {
            let page = self.node(number, level)?;
            let node = Node::new(&page);
            if at >= node.count() {
                return Err(unfit());
            }
            node.long(at)
        };
        self.forget(long, epoch)?;
        node::remove(self.nodes.get_mut(number, epoch)?, at);
        Ok(())
    }

    /// Frees a node that became empty, joins one that became sparse, lowers the root.
    fn shrink(&mut self, path: &mut Path, mut number: u32, epoch: &Epoch) -> Result<()> {
        while let Some((parent, at)) = path.pop() {
            let level = path.len() + 1;
            let (count, used) = {
                let page = self.node(number, level)?;
                (Node::new(&page).count(), Node::new(&page).used())
            };
            if count == 0 {
                self.free_node(number, epoch)?;
                self.remove_entry(parent, level - 1, at, epoch)?;
            } else if used >= SPARSE || !self.join(parent, at, level, epoch)? {
                break;
            }
            number = parent;
        }
        while self.height > 0 {
            let old = self.root;
            let (child, long) = {
                let page = self.node(old, 0)?;
                let node = Node::new(&page);
                if node.count() != 1 {
                    break;
                }
                (node.child(0), node.long(0))
            };
            self.root = child;
            self.forget(long, epoch)?;
            self.free_node(old, epoch)?;
            self.forget_count(child, epoch)?;
            self.height -= 1;
        }
        if self.len == 0 && self.root != NONE {
            self.free_node(self.root, epoch)?;
            (self.root, self.height) = (NONE, 0);
        }
        Ok(())
    }

    /// Finds a neighbour that child `at` of a node can be joined with: the place of the left one of
    /// both, and both.
    fn neighbours(
        &self,
        parent: u32,
        at: usize,
        level: usize,
    ) -> Result<Option<(usize, u32, u32)>> {
        let page = self.inner(parent)?;
        let node = Node::new(&page);
        for left_at in [Some(at), at.checked_sub(1)].into_iter().flatten() {
            if left_at + 1 < node.count() {
                let (left, right) = (node.child(left_at), node.child(left_at + 1));
                let (a, b) = (self.node(left, level)?, self.node(right, level)?);
                if Node::new(&a).used() + Node::new(&b).used() <= JOINED {
                    return Ok(Some((left_at, left, right)));
                }
            }
        }
        Ok(None)
    }

    /// Joins child `at` of a node with a neighbour; false if both together are too large.
    fn join(&mut self, parent: u32, at: usize, level: usize, epoch: &Epoch) -> Result<bool> {
        let Some((left_at, left, right)) = self.neighbours(parent, at, level)? else {
            return Ok(false);
        };
        let inner = level < self.height;
        let separator = if inner {
            Node::new(&*self.inner(parent)?).key(left_at + 1, &self.long)?.to_vec()
        } else {
            Vec::new()
        };
        let moved = *self.node(right, level)?;
        let moved = Node::new(&moved);
        let end = Node::new(&*self.node(left, level)?).count();
        for i in 0..moved.count() {
            let mut entry = moved.entry(i);
            if inner && i == 0 {
                // The first key of an inner node means nothing; between the two it must part them.
                self.forget(entry.long, epoch)?;
                (entry.part, entry.long) = self.keep(&separator, epoch)?;
            }
            // Both together fit in one node.
            if !node::insert(self.nodes.get_mut(left, epoch)?, end + i, entry) {
                return Err(unfit());
            }
        }
        if inner {
            self.count_joined(left, right, epoch)?;
        }
        self.free_node(right, epoch)?;
        self.remove_entry(parent, level - 1, left_at + 1, epoch)?;
        Ok(true)
    }
}

/// True if a full node is split where the new entry is inserted: at its end, or where keys come in their order. Then
/// only what is after them moves away, and they fill the node.
fn is_in_order(node: Node<'_>, at: usize, entry: Entry<'_>) -> bool {
    let count = node.count();
    let long = if entry.long.is_some() { CHILD } else { 0 };
    let needed = SLOT + entry.part.len() + long + entry.value.len();
    at == count || (node.is_in_order(at) && node.bytes_of(at..count) >= needed)
}

/// Finds where to split a node so that both parts take about the same number of bytes.
fn middle(node: Node<'_>) -> usize {
    let half = node.used() / 2;
    let mut bytes = 0;
    let at = (0..node.count()).take_while(|&i| {
        bytes += node.bytes_of(i..i + 1);
        bytes <= half
    });
    at.count().min(node.count().saturating_sub(1)).max(1)
}
