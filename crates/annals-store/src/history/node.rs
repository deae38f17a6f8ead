//! Inner nodes: children, by the first key of each.

use std::sync::Arc;

use super::{Key, NODE};
use annals_storage::bytes::Fields;

/// The bytes of a child.
const CHILD: usize = 40;
/// The most children of a node.
pub(super) const CHILDREN: usize = NODE / CHILD;

/// A node below another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Child {
    /// Its first key.
    pub(super) first: Key,
    /// The key after the rows in it and below it.
    pub(super) end: Key,
    /// Its number.
    pub(super) node: u64,
}

impl Child {
    /// True if it may have something of a row.
    pub(super) fn may_have(&self, key: Key) -> bool {
        self.first <= key && key < self.end
    }
}

/// Returns the bytes of a node.
pub(super) fn encode(children: &[Child]) -> Arc<[u8]> {
    let numbers = children.iter().flat_map(|child| {
        let Child { first, end, node } = child;
        [first.table, first.row, end.table, end.row, *node]
    });
    numbers.flat_map(u64::to_le_bytes).collect()
}

/// Returns the children of a node.
pub(super) fn children(bytes: &[u8]) -> impl DoubleEndedIterator<Item = Child> {
    let (children, _) = bytes.as_chunks::<CHILD>();
    children.iter().map(|child| {
        let from = Fields(child);
        Child {
            first: Key { table: from.u64(0), row: from.u64(8) },
            end: Key { table: from.u64(16), row: from.u64(24) },
            node: from.u64(32),
        }
    })
}
