//! A copy-on-write B+tree from byte strings to values of one size, in pages.
//!
//! Nodes are reached by number through a directory, so a copied child keeps its number and its
//! parents stay as they are. Keys may have any length; one that is too long for a node stands whole
//! in memory of its own, and in the node with its beginning and a number.
//!
//! Invariants
//! 1. All leaves are `height` steps below the root; entries of a leaf are sorted, and all its keys
//!    are at least the key of its place in the parent, and less than the next one there.
//! 2. The first key of an inner node means nothing: its child takes all that is less than the second.
//! 3. No node but the root of an empty tree is empty. `len` counts the entries of the leaves.
//! 4. A long key has one owner: one entry of one node.
//! 5. `counts` has the number of entries below each inner node but the root, and nothing else.

mod change;
mod count;
mod cursor;
mod node;
mod place;
mod range;

use std::num::NonZeroU64;
use std::sync::Arc;

use self::node::{LIMIT, LongKeys, Node};
use crate::store::pages::cells::Nodes;
use crate::store::pages::directory::Directory;
use crate::store::pages::page::Epoch;

pub(super) use self::cursor::Cursor;
pub(super) use self::range::Range;

/// The number that stands for no node.
const NONE: u32 = u32::MAX;

/// A tree.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    nodes: Nodes,
    free_nodes: Arc<Vec<u32>>,
    nodes_end: u32,
    long: LongKeys,
    free_long: Arc<Vec<u32>>,
    long_end: u32,
    counts: Directory<NonZeroU64>,
    root: u32,
    height: usize,
    len: u64,
    value_size: usize,
}

impl Tree {
    /// Makes an empty tree whose values have `value_size` bytes, at most 16.
    pub(super) fn new(value_size: usize) -> Self {
        debug_assert!(value_size <= 16, "four entries must fit in a node");
        Self {
            nodes: Nodes::default(),
            free_nodes: Arc::default(),
            nodes_end: 0,
            long: LongKeys::default(),
            free_long: Arc::default(),
            long_end: 0,
            counts: Directory::default(),
            root: NONE,
            height: 0,
            len: 0,
            value_size,
        }
    }

    /// Gives the number of entries.
    pub(super) const fn len(&self) -> u64 {
        self.len
    }

    #[inline]
    fn node(&self, number: u32) -> Node<'_> {
        Node::new(self.nodes.get(number))
    }

    /// Tells how much memory it takes, in bytes.
    pub(super) fn memory(&self) -> usize {
        let lists = (self.free_nodes.capacity() + self.free_long.capacity()) * 4;
        let long = self.long.memory(|key| key.len());
        self.nodes.memory() + long + self.counts.memory(|_| 0) + lists
    }

    fn add_node(&mut self, size: usize, epoch: &Epoch) -> u32 {
        let number = take(&mut self.free_nodes, &mut self.nodes_end);
        node::clear(self.nodes.get_mut(number, epoch), size);
        number
    }

    fn free_node(&mut self, number: u32) {
        self.forget_count(number);
        self.nodes.remove(number);
        Arc::make_mut(&mut self.free_nodes).push(number);
    }

    /// Keeps a key: gives the part that goes into a node, and the number of the whole.
    fn keep<'k>(&mut self, key: &'k [u8]) -> (&'k [u8], Option<u32>) {
        if key.len() <= LIMIT {
            return (key, None);
        }
        let number = take(&mut self.free_long, &mut self.long_end);
        self.long.set(number as usize, Some(Arc::from(key)));
        (&key[..LIMIT], Some(number))
    }

    fn forget(&mut self, long: Option<u32>) {
        if let Some(number) = long {
            self.long.set(number as usize, None);
            Arc::make_mut(&mut self.free_long).push(number);
        }
    }

    /// Executes the invariants; says what is wrong.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.root == NONE {
            return if self.len == 0 { Ok(()) } else { Err("entries without a root".to_owned()) };
        }
        let mut counted = 0;
        let entries = self.check_below((self.root, 0), (&[], None), &mut counted)?;
        let known = (0..self.nodes_end).filter(|&n| self.counts.get(n as usize).is_some()).count();
        if entries != self.len {
            Err(format!("{entries} entries are counted as {}", self.len))
        } else if known != counted {
            Err(format!("{known} nodes are counted, but there are {counted} to count"))
        } else {
            Ok(())
        }
    }

    /// Checks a node and what is below it; gives the number of entries there, and adds to `counted`
    /// the inner nodes whose entries are counted.
    fn check_below(
        &self,
        (number, level): (u32, usize),
        (low, high): (&[u8], Option<&[u8]>),
        counted: &mut usize,
    ) -> Result<u64, String> {
        let node = self.node(number);
        let count = node.count();
        let first = usize::from(level < self.height);
        if !node.check(first, &self.long) || (count == 0 && self.len > 0) {
            return Err(format!("node {number} is out of order"));
        }
        let key = |i: usize| node.key(i, &self.long);
        if (first..count).any(|i| key(i) < low || high.is_some_and(|high| key(i) >= high)) {
            return Err(format!("node {number} has keys of another node"));
        }
        if level == self.height {
            return Ok(count as u64);
        }
        let mut entries = 0;
        for i in 0..count {
            let low = if i == 0 { low } else { key(i) };
            let high = if i + 1 < count { Some(key(i + 1)) } else { high };
            entries += self.check_below((node.child(i), level + 1), (low, high), counted)?;
        }
        *counted += usize::from(level > 0);
        let known = self.below(number, level);
        if known == entries {
            Ok(entries)
        } else {
            Err(format!("{entries} entries below node {number} are counted as {known}"))
        }
    }
}

/// Takes a number from a list of free ones, or else a new one.
fn take(free: &mut Arc<Vec<u32>>, end: &mut u32) -> u32 {
    if free.is_empty() {
        *end += 1;
        return *end - 1;
    }
    Arc::make_mut(free).pop().expect("the list isn't empty")
}
