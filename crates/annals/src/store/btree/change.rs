//! Inserting and removing entries: nodes split when they are full, and join when they are empty
//! enough.

use super::node::{self, Entry, HEADER, Node, common};
use super::place::{LEVELS, child_for};
use super::{NONE, Tree};
use crate::store::pages::page::{Epoch, PAGE};

/// A node that uses fewer bytes than this looks for a neighbour to join.
const SPARSE: usize = PAGE / 4;

/// Two neighbours that use no more bytes than this together are joined.
const JOINED: usize = (PAGE - HEADER) / 4 * 3;

/// The way from the root to a leaf: inner nodes, and the place of the child in each.
type Path = Vec<(u32, usize)>;

impl Tree {
    /// Inserts an entry, or replaces the value of the one that has the key.
    pub(in super::super) fn insert(&mut self, key: &[u8], value: &[u8], epoch: &Epoch) {
        if self.root == NONE {
            self.root = self.add_node(self.value_size, epoch);
        }
        let mut leaf = self.root;
        let mut inner = [NONE; LEVELS];
        for place in &mut inner[..self.height] {
            *place = leaf;
            let node = self.node(leaf);
            leaf = node.child(child_for(node, key, self));
        }
        let at = match self.node(leaf).search(key, 0, &self.long) {
            Ok(at) => return node::set_value(self.nodes.get_mut(leaf, epoch), at, value),
            Err(at) => at,
        };
        self.len += 1;
        self.count_up(inner[..self.height].get(1..).unwrap_or_default());
        let (part, long) = self.keep(key);
        let entry = Entry { part, long, value };
        if !node::insert(self.nodes.get_mut(leaf, epoch), at, entry) {
            let mut path = self.path_to(key);
            self.split_and_insert(&mut path, leaf, (at, entry), epoch);
        }
    }

    fn path_to(&self, key: &[u8]) -> Path {
        let mut path = Vec::with_capacity(self.height);
        let mut number = self.root;
        for _ in 0..self.height {
            let inner = self.node(number);
            let at = child_for(inner, key, self);
            path.push((number, at));
            number = inner.child(at);
        }
        path
    }

    /// Splits a full node, puts the entry where it belongs, and tells the parent.
    fn split_and_insert(
        &mut self,
        path: &mut Path,
        number: u32,
        (at, entry): (usize, Entry<'_>),
        epoch: &Epoch,
    ) {
        let inner = path.len() < self.height;
        let full = self.node(number);
        let count = full.count();
        let split_at = if at == count { count } else { middle(full) };
        let size = entry.value.len();
        let right = self.add_node(size, epoch);
        if split_at < count {
            let mut moved = [0; PAGE];
            node::split(self.nodes.get_mut(number, epoch), &mut moved, split_at);
            *self.nodes.get_mut(right, epoch) = moved;
        }
        let (target, place) = if at > split_at || (at == split_at && at == count) {
            (right, at - split_at)
        } else {
            (number, at)
        };
        let fits = node::insert(self.nodes.get_mut(target, epoch), place, entry);
        debug_assert!(fits, "half a node has room for the largest entry");
        if inner {
            self.count_split(number, right, path.len());
        }
        let separator = self.separator(number, right, inner);
        match path.pop() {
            None => self.grow_root(number, right, &separator, epoch),
            Some((parent, child)) => {
                let (part, long) = self.keep(&separator);
                let value = right.to_le_bytes();
                let entry = Entry { part, long, value: &value };
                if !node::insert(self.nodes.get_mut(parent, epoch), child + 1, entry) {
                    self.split_and_insert(path, parent, (child + 1, entry), epoch);
                }
            }
        }
    }

    /// Gives the shortest key that parts two neighbours (for inner nodes, the right one's first).
    fn separator(&self, left: u32, right: u32, inner: bool) -> Vec<u8> {
        let (left, right) = (self.node(left), self.node(right));
        let first = right.key(0, &self.long);
        if inner {
            return first.to_vec();
        }
        let last = left.key(left.count() - 1, &self.long);
        first[..(common(last, first) + 1).min(first.len())].to_vec()
    }

    fn grow_root(&mut self, left: u32, right: u32, separator: &[u8], epoch: &Epoch) {
        let root = self.add_node(4, epoch);
        for (at, child) in [left, right].into_iter().enumerate() {
            let (part, long) = self.keep(separator);
            let entry = Entry { part, long, value: &child.to_le_bytes() };
            node::insert(self.nodes.get_mut(root, epoch), at, entry);
        }
        self.root = root;
        self.height += 1;
    }

    /// Removes an entry; tells whether it was there.
    pub(in super::super) fn remove(&mut self, key: &[u8], epoch: &Epoch) -> bool {
        if self.root == NONE {
            return false;
        }
        let mut path = self.path_to(key);
        let leaf = path.last().map_or(self.root, |&(parent, at)| self.node(parent).child(at));
        let Ok(at) = self.node(leaf).search(key, 0, &self.long) else {
            return false;
        };
        self.len -= 1;
        self.count_down(path.iter().skip(1).map(|&(number, _)| number));
        self.remove_entry(leaf, at, epoch);
        self.shrink(&mut path, leaf, epoch);
        true
    }

    fn remove_entry(&mut self, number: u32, at: usize, epoch: &Epoch) {
        self.forget(self.node(number).long(at));
        node::remove(self.nodes.get_mut(number, epoch), at);
    }

    /// Frees a node that became empty, joins one that became sparse, lowers the root.
    fn shrink(&mut self, path: &mut Path, mut number: u32, epoch: &Epoch) {
        while let Some((parent, at)) = path.pop() {
            let here = self.node(number);
            if here.count() == 0 {
                self.free_node(number);
                self.remove_entry(parent, at, epoch);
            } else if here.used() >= SPARSE || !self.join(parent, at, path.len() + 1, epoch) {
                break;
            }
            number = parent;
        }
        while self.height > 0 && self.node(self.root).count() == 1 {
            let old = self.root;
            self.root = self.node(old).child(0);
            self.forget(self.node(old).long(0));
            self.free_node(old);
            self.forget_count(self.root);
            self.height -= 1;
        }
        if self.len == 0 && self.root != NONE {
            self.free_node(self.root);
            (self.root, self.height) = (NONE, 0);
        }
    }

    /// Joins child `at` of a node with a neighbour; false if both together are too large.
    fn join(&mut self, parent: u32, at: usize, level: usize, epoch: &Epoch) -> bool {
        let node = self.node(parent);
        let fits = |left: usize| {
            left + 1 < node.count() && {
                let (a, b) = (self.node(node.child(left)), self.node(node.child(left + 1)));
                a.used() + b.used() <= JOINED
            }
        };
        let Some(left_at) =
            [at, at.wrapping_sub(1)].into_iter().find(|&a| a != usize::MAX && fits(a))
        else {
            return false;
        };
        let (left, right) = (node.child(left_at), node.child(left_at + 1));
        let separator = node.key(left_at + 1, &self.long).to_vec();
        let inner = level < self.height;
        let moved = *self.nodes.get(right);
        let moved = Node::new(&moved);
        for i in 0..moved.count() {
            let mut entry = moved.entry(i);
            if inner && i == 0 {
                // The first key of an inner node means nothing; between the two it must part them.
                self.forget(entry.long);
                (entry.part, entry.long) = self.keep(&separator);
            }
            let end = self.node(left).count();
            let fits = node::insert(self.nodes.get_mut(left, epoch), end, entry);
            debug_assert!(fits, "both together fit in one node");
        }
        if inner {
            self.count_joined(left, right);
        }
        self.free_node(right);
        self.remove_entry(parent, left_at + 1, epoch);
        true
    }
}

/// Finds where to split a node so that both parts take about the same number of bytes.
fn middle(node: Node<'_>) -> usize {
    let half = node.used() / 2;
    let mut bytes = 0;
    let at = (0..node.count()).take_while(|&i| {
        bytes += node.bytes_of(i..i + 1);
        bytes <= half
    });
    at.count().clamp(1, node.count() - 1)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
