//! A copy-on-write B+tree from byte strings to values of one size, in pages.
//!
//! Nodes are reached by number through a directory, so a copied child keeps its number and its parents stay as they
//! are. Keys may have any length; one that is too long for a node is stored whole in separate memory, and in the node
//! with its beginning and a number.
//!
//! Nodes and long keys may be in an image, whose bytes are those written, but a hostile program may have written
//! them. So a loaded node is checked once, and references between nodes are not trusted: they may give the wrong
//! entries, but never leave a page, and never loop endlessly.
//!
//! Invariants
//! 1. All leaves are `height` steps below the root. Entries of a leaf are sorted; all its keys are at least the key
//!    of its place in the parent, and less than the next one there.
//! 2. The first key of an inner node means nothing: its child takes all that is less than the second.
//! 3. No node but the root of an empty tree is empty. `len` counts the entries of the leaves.
//! 4. A long key has one owner: one entry of one node.
//! 5. `counts` has the number of entries below each inner node but the root, and zeros else.

mod change;
mod check;
mod count;
mod cursor;
mod hints;
mod merge;
mod node;
mod packing;
mod place;
mod range;
mod search;
mod spot;

/// The number of bytes before the slots.
const HEADER: usize = 128;

/// The size of a slot.
const SLOT: usize = 8;

#[inline]
fn get16(bytes: &[u8; PAGE], at: usize) -> usize {
    usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

#[inline]
fn get32(bytes: &[u8; PAGE], at: usize) -> u32 {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(four)
}

#[cfg(test)]
mod tests;

use self::node::{LIMIT, MAX_VALUE, Node};
use self::packing::FORM;
use self::place::LEVELS;
use crate::arena::PAGE;
use crate::pages::cells::{Cells, FreeNumbers, Longs, NodePage, Nodes};
use crate::pages::load::Loader;
use crate::pages::page::Epoch;
use crate::pages::paged::Counted;
use crate::pages::refresh::refresh;
use crate::pages::save::{Blanks, Saved, Saver};
use crate::{Error, Result};

pub(super) use self::cursor::TreeCursor;
pub(super) use self::range::Range;
pub(super) use self::spot::{Spot, Way};

/// The number that means no node.
const NONE: u32 = u32::MAX;

/// The size of a child's number.
const CHILD: usize = 4;

/// A tree.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    nodes: Nodes,
    free_nodes: FreeNumbers,
    long: Longs,
    free_long: FreeNumbers,
    counts: Cells<8>,
    root: u32,
    height: usize,
    len: u64,
    value_size: usize,
}

refresh!(Tree { nodes, free_nodes, long, free_long, counts; root, height, len, value_size });

impl Tree {
    /// Makes an empty tree whose values have `value_size` bytes, at most 16.
    pub(super) fn new(value_size: usize) -> Self {
        debug_assert!(value_size <= MAX_VALUE, "four entries must fit in a node");
        Self {
            nodes: Nodes::default(),
            free_nodes: FreeNumbers::default(),
            long: Longs::default(),
            free_long: FreeNumbers::default(),
            counts: Cells::default(),
            root: NONE,
            height: 0,
            len: 0,
            value_size,
        }
    }

    /// Returns the number of entries.
    pub(super) const fn len(&self) -> u64 {
        self.len
    }

    /// Returns how much memory it takes, in bytes.
    pub(super) fn memory(&self, what: Counted) -> usize {
        let lists = self.free_nodes.memory(what) + self.free_long.memory(what);
        self.nodes.memory(what) + self.long.memory(what) + self.counts.memory(what) + lists
    }

    /// Passes the tree on to be saved.
    pub(super) fn save(&self, out: &mut Saver) {
        out.number(u64::from(self.root));
        out.count(self.height);
        out.number(self.len);
        self.nodes.save(out, FORM);
        self.free_nodes.save(out);
        self.long.save(out);
        self.free_long.save(out);
        self.counts.save(out, &Blanks::NONE);
    }

    /// Loads the output of `save`.
    ///
    /// # Errors
    /// It is no tree.
    pub(super) fn load(input: &mut Loader<'_>, value_size: usize) -> Result<Self> {
        let (root, height, len) = (input.word()?, input.count()?, input.number()?);
        let is_empty = root == NONE;
        // The number of entries has room to grow.
        let is_tree = height < LEVELS && len <= u64::MAX >> 8;
        if !is_tree || is_empty != (len == 0) || (is_empty && height > 0) {
            return Err(unfit());
        }
        Ok(Self {
            nodes: Nodes::load(input, FORM)?,
            free_nodes: FreeNumbers::load(input)?,
            long: Longs::load(input)?,
            free_long: FreeNumbers::load(input)?,
            counts: Cells::load(input)?,
            root,
            height,
            len,
            value_size,
        })
    }

    /// Continues from the stored base.
    pub(super) fn rebase(&mut self, saved: &Saved) {
        self.nodes.rebase(saved);
        self.free_nodes.rebase(saved);
        self.long.rebase(saved);
        self.free_long.rebase(saved);
        self.counts.rebase(saved);
    }

    /// Borrows a node at a level; an inner one may have lost its last entry.
    #[inline]
    fn node(&self, number: u32, level: usize) -> Result<NodePage<'_>> {
        let size = if level == self.height { self.value_size } else { CHILD };
        let page = self.nodes.get(number)?;
        if Node::new(&page).is_of(size) { Ok(page) } else { Err(unfit()) }
    }

    /// Borrows a leaf.
    #[inline]
    fn leaf(&self, number: u32) -> Result<NodePage<'_>> {
        self.node(number, self.height)
    }

    /// Borrows an inner node, which has a child at least.
    #[inline]
    fn inner(&self, number: u32) -> Result<NodePage<'_>> {
        let page = self.nodes.get(number)?;
        let node = Node::new(&page);
        if node.is_of(CHILD) && node.count() > 0 { Ok(page) } else { Err(unfit()) }
    }

    fn add_node(&mut self, size: usize, epoch: &Epoch) -> Result<u32> {
        let number = self.free_nodes.take()?;
        if !self.nodes.is_missing(number)? {
            return Err(unfit());
        }
        node::clear(self.nodes.get_mut(number, epoch)?, size);
        Ok(number)
    }

    fn free_node(&mut self, number: u32, epoch: &Epoch) -> Result<()> {
        self.forget_count(number, epoch)?;
        self.nodes.remove(number);
        self.free_nodes.give(number, epoch)
    }

    /// Stores a long key: returns the part for a node, and the number of the whole key.
    #[inline]
    fn keep<'k>(&mut self, key: &'k [u8], epoch: &Epoch) -> Result<(&'k [u8], Option<u32>)> {
        if key.len() <= LIMIT {
            return Ok((key, None));
        }
        let number = self.free_long.take()?;
        self.long.put(number, key, epoch);
        Ok((&key[..LIMIT], Some(number)))
    }

    fn forget(&mut self, long: Option<u32>, epoch: &Epoch) -> Result<()> {
        let Some(number) = long else { return Ok(()) };
        self.long.remove(number);
        self.free_long.give(number, epoch)
    }
}

/// Returns the error that nodes of an image, each well formed, make no tree.
#[cold]
fn unfit() -> Error {
    Error::ill_written("the nodes of a tree don't fit together")
}
