//! Executing the invariants of a tree.

use super::node::Node;
use super::{NONE, Tree};
use crate::{Error, Result};

/// The findings on the way through a tree.
#[derive(Default)]
struct Met {
    /// How many nodes: no more than there are, so that the way ends.
    nodes: u32,
    /// How many of them have their entries counted.
    counted: usize,
}

impl Tree {
    /// Executes the invariants.
    ///
    /// # Errors
    /// `Corrupt`, with the problem; a node can't be loaded.
    pub(in super::super) fn check(&self) -> Result<()> {
        if self.root == NONE {
            return if self.len == 0 { Ok(()) } else { wrong("entries without a root") };
        }
        let mut met = Met::default();
        let entries = self.check_below(self.root, 0, &[], None, &mut met)?;
        let mut known = 0;
        for number in 0..self.free_nodes.end() {
            known += usize::from(self.counted(number)? > 0);
        }
        if entries != self.len {
            wrong(format!("{entries} entries are counted as {}", self.len))
        } else if known != met.counted {
            wrong(format!("{known} nodes are counted, but there are {} to count", met.counted))
        } else {
            Ok(())
        }
    }

    /// Checks a node and the nodes below it; returns the number of entries there.
    fn check_below(
        &self,
        number: u32,
        level: usize,
        low: &[u8],
        high: Option<&[u8]>,
        met: &mut Met,
    ) -> Result<u64> {
        met.nodes += 1;
        if met.nodes > self.free_nodes.end() {
            return wrong("it has more nodes than it has numbers for them");
        }
        let page = self.node(number, level)?;
        let node = Node::new(&page);
        let count = node.count();
        let first = usize::from(level < self.height);
        if !node.check(first, &self.long)? || (count == 0 && self.len > 0) {
            return wrong(format!("node {number} is out of order"));
        }
        for i in first..count {
            let key = node.key(i, &self.long)?;
            if *key < *low || high.is_some_and(|high| *key >= *high) {
                return wrong(format!("node {number} has keys of another node"));
            }
        }
        if level == self.height {
            return Ok(count as u64);
        }
        let mut entries = 0;
        for i in 0..count {
            let begin = if i == 0 { None } else { Some(node.key(i, &self.long)?) };
            let end = if i + 1 < count { Some(node.key(i + 1, &self.long)?) } else { None };
            let (low, high) = (begin.as_deref().unwrap_or(low), end.as_deref().or(high));
            entries += self.check_below(node.child(i), level + 1, low, high, met)?;
        }
        met.counted += usize::from(level > 0);
        let known = self.below(number, level)?;
        if known == entries {
            Ok(entries)
        } else {
            wrong(format!("{entries} entries below node {number} are counted as {known}"))
        }
    }
}

#[cold]
fn wrong<T>(what: impl Into<String>) -> Result<T> {
    Err(Error::corrupt(what))
}
