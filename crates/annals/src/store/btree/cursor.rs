//! A cursor: a gap between two entries that can be put anywhere, and goes both ways.

use super::place::Place;
use super::{NONE, Tree};

/// A gap between two entries of a tree, or at an end.
#[derive(Clone, Debug)]
pub(in super::super) struct Cursor<'a> {
    tree: &'a Tree,
    gap: Place,
}

impl Tree {
    /// Gives a cursor before the first entry.
    pub(in super::super) fn cursor(&self) -> Cursor<'_> {
        Cursor { tree: self, gap: self.select(0) }
    }
}

impl<'a> Cursor<'a> {
    /// Goes before the first entry whose key is at least `key`; without one, behind the last entry.
    pub(in super::super) fn seek(&mut self, key: Option<&[u8]>) {
        self.gap = match key {
            Some(key) if self.tree.root != NONE => self.tree.seek(key),
            _ => self.tree.end(),
        };
    }

    /// Goes behind the first `rank` entries; behind the last one if there are fewer.
    pub(in super::super) fn seek_rank(&mut self, rank: u64) {
        self.gap = self.tree.select(rank);
    }

    /// Counts the entries before the gap.
    pub(in super::super) fn rank(&self) -> u64 {
        self.tree.rank(&self.gap)
    }

    /// Gives the key behind the gap.
    pub(in super::super) fn peek_next(&self) -> Option<&'a [u8]> {
        if self.tree.root == NONE {
            return None;
        }
        self.tree.at(&self.gap).map(|(key, _)| key)
    }

    /// Gives the key before the gap.
    pub(in super::super) fn peek_prev(&self) -> Option<&'a [u8]> {
        self.clone().prev()
    }

    /// Goes behind the next entry, and gives its key.
    pub(in super::super) fn next(&mut self) -> Option<&'a [u8]> {
        let found = self.peek_next()?;
        self.tree.step(&mut self.gap);
        Some(found)
    }

    /// Goes before the previous entry, and gives its key.
    pub(in super::super) fn prev(&mut self) -> Option<&'a [u8]> {
        if self.tree.root == NONE || !self.tree.step_back(&mut self.gap) {
            return None;
        }
        self.peek_next()
    }
}
