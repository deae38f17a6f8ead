//! Adding entries: a merge with those that are there, leaf by leaf.
//!
//! A changed node keeps its number; the backfill stores it in another place. Only nodes with new entries are read,
//! and written.

use std::sync::Arc;

use super::leaf::{Builder, LeafReader, Made, split};
use super::node::{CHILDREN, Child, children, encode};
use super::{Entry, HistoryIndex, Key, MOST_HEIGHT, damaged};
use crate::Result;

impl HistoryIndex {
    /// Adds entries, whose places are after all that are there, and notes `about`. Each is in the order of the
    /// journal; they are sorted here.
    ///
    /// Cost: reads and makes anew the leaves that get entries, and the nodes above.
    ///
    /// # Errors
    /// A node can't be loaded, or makes no sense. Then it is unchanged.
    pub fn add(&mut self, mut entries: Vec<Entry>, about: Vec<u8>) -> Result<()> {
        // Stable: what has the same key stays in the order of the journal.
        entries.sort_by_key(|entry| (entry.key, entry.count));
        let mut next = self.clone();
        next.entries += entries.len() as u64;
        next.about = about;
        if !entries.is_empty() {
            next.grow(&entries)?;
        }
        *self = next;
        Ok(())
    }

    /// Makes an index of the entries that are to stay.
    ///
    /// # Errors
    /// A node can't be loaded.
    pub fn filtered(&self, stays: &dyn Fn(&Entry) -> bool, about: Vec<u8>) -> Result<Self> {
        let mut left = Vec::new();
        self.each(&mut |entry| {
            left.extend(stays(&entry).then_some(entry));
            Ok(())
        })?;
        let mut made = Self::default();
        made.add(left, about)?;
        Ok(made)
    }

    fn grow(&mut self, entries: &[Entry]) -> Result<()> {
        let mut tops = match self.root {
            Some(root) => self.merge(root, self.height, entries)?,
            None => self.leaves(None, entries),
        };
        while tops.len() > 1 {
            if self.height == MOST_HEIGHT {
                return Err(damaged());
            }
            self.height += 1;
            tops = self.inner(None, &tops);
        }
        self.root = tops.first().map(|top| top.node);
        Ok(())
    }

    /// Merges entries into a node, and returns the nodes in its place.
    fn merge(&mut self, node: u64, height: u8, entries: &[Entry]) -> Result<Vec<Child>> {
        let bytes = self.node(node)?;
        if height == 0 {
            let old: Vec<Entry> = LeafReader::new(&bytes).collect();
            if !old.is_sorted_by_key(|entry| (entry.key, entry.count)) {
                return Err(damaged());
            }
            return Ok(self.leaves(Some(node), &merged(&old, entries)));
        }
        let old: Vec<Child> = children(&bytes).collect();
        let mut new = Vec::with_capacity(old.len() + 1);
        let mut rest = entries;
        for (place, child) in old.iter().enumerate() {
            let until = old.get(place + 1).map(|next| next.first);
            let count = until.map_or(rest.len(), |until| {
                // A group that two leaves share goes on in the later one.
                rest.partition_point(|entry| entry.key < until)
            });
            let (own, left) = rest.split_at_checked(count).ok_or_else(damaged)?;
            rest = left;
            match own.is_empty() {
                true => new.push(*child),
                false => new.extend(self.merge(child.node, height - 1, own)?),
            }
        }
        Ok(self.inner(Some(node), &new))
    }

    /// Makes leaves of entries; the first gets the number `node`, if there is one.
    fn leaves(&mut self, mut node: Option<u64>, entries: &[Entry]) -> Vec<Child> {
        let most = split(entries);
        let (mut builder, mut made) = (Builder::default(), Vec::new());
        for entry in entries {
            made.extend(builder.push(entry, most));
        }
        made.extend(builder.finish());
        let put = |Made { bytes, first, end }| self.put(&mut node, bytes, first, end);
        made.into_iter().map(put).collect()
    }

    /// Makes nodes of children; the first gets the number `node`, if there is one.
    fn inner(&mut self, mut node: Option<u64>, all: &[Child]) -> Vec<Child> {
        let parts = all.len().div_ceil(CHILDREN).max(1);
        let each = all.len().div_ceil(parts).max(1);
        let make = |part: &[Child]| {
            let first = part.first().map_or(Key::default(), |child| child.first);
            let end = part.iter().map(|child| child.end).max().unwrap_or_default();
            self.put(&mut node, encode(part), first, end)
        };
        all.chunks(each).map(make).collect()
    }

    fn put(&mut self, number: &mut Option<u64>, bytes: Arc<[u8]>, first: Key, end: Key) -> Child {
        let node = number.take().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        self.nodes.put(usize::try_from(node).unwrap_or(usize::MAX), bytes);
        Child { first, end, node }
    }
}

/// Merges two sorted sequences; of equal keys the old entries are first.
fn merged(old: &[Entry], new: &[Entry]) -> Vec<Entry> {
    let mut all = Vec::with_capacity(old.len() + new.len());
    let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
    let key = |entry: &&Entry| (entry.key, entry.count);
    while let (Some(a), Some(b)) = (old.peek(), new.peek()) {
        let next = if key(a) <= key(b) { old.next() } else { new.next() };
        all.extend(next.copied());
    }
    all.extend(old.copied());
    all.extend(new.copied());
    all
}
