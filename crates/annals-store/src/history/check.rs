//! Verifying the tree: order, ranges and counts.

use super::leaf::LeafReader;
use super::node::{Child, children};
use super::{Entry, HistoryIndex, Key, damaged};
use crate::Result;

impl HistoryIndex {
    /// Verifies all nodes: they are in order, each child is as its parent has it, and the number of entries is right.
    ///
    /// # Errors
    /// `Corrupt` if not; a node can't be loaded.
    pub fn check(&self) -> Result<()> {
        let mut entries = 0;
        if let Some(root) = self.root {
            self.check_below(root, self.height, &mut entries)?;
        }
        if entries == self.entries { Ok(()) } else { Err(damaged()) }
    }

    /// Returns the first key, and the end, of what is in a node and below it.
    fn check_below(&self, node: u64, height: u8, count: &mut u64) -> Result<Child> {
        let bytes = self.node(node)?;
        let (mut first, mut last, mut end) = (None, Key::default(), Key::default());
        if height == 0 {
            let mut before: Option<Entry> = None;
            for entry in LeafReader::new(&bytes) {
                let is_later = before
                    .is_none_or(|before| (before.key, before.count) <= (entry.key, entry.count));
                is_later.then_some(()).ok_or_else(damaged)?;
                first.get_or_insert(entry.key);
                (before, end) = (Some(entry), end.max(entry.end()));
                *count += 1;
            }
        } else {
            for child in children(&bytes) {
                let found = self.check_below(child.node, height - 1, count)?;
                let is_right = found == child && last <= child.first;
                is_right.then_some(()).ok_or_else(damaged)?;
                first.get_or_insert(child.first);
                (last, end) = (child.first, end.max(child.end));
            }
        }
        let first = first.ok_or_else(damaged)?;
        Ok(Child { first, end, node })
    }
}
