//! A cursor: a gap between two entries that can be placed anywhere, and moves in both directions.

use super::place::Place;
use super::{NONE, Tree};
use crate::Result;

/// A gap between two entries of a tree, or at an end.
#[derive(Clone, Debug)]
pub(in super::super) struct TreeCursor<'a> {
    tree: &'a Tree,
    gap: Gap,
}

/// Where the gap is. Nothing is loaded to place it at an end.
#[derive(Clone, Debug)]
#[cfg_attr(
    target_pointer_width = "64",
    expect(clippy::large_enum_variant, reason = "a cursor is moved about seldom, and steps often")
)]
enum Gap {
    First,
    Last,
    At(Place),
}

impl Tree {
    /// Returns a cursor before the first entry.
    pub(in super::super) const fn cursor(&self) -> TreeCursor<'_> {
        TreeCursor { tree: self, gap: Gap::First }
    }
}

impl TreeCursor<'_> {
    /// Moves before the first entry.
    pub(in super::super) const fn seek_first(&mut self) {
        self.gap = Gap::First;
    }

    /// Moves after the last entry.
    pub(in super::super) const fn seek_last(&mut self) {
        self.gap = Gap::Last;
    }

    /// Moves before the first entry whose key is at least `key`; without one, after the last entry.
    pub(in super::super) fn seek(&mut self, key: Option<&[u8]>) -> Result<()> {
        self.gap = match key {
            Some(key) if self.tree.root != NONE => Gap::At(self.tree.seek(key)?),
            _ => Gap::Last,
        };
        Ok(())
    }

    /// Moves after the first `rank` entries; after the last one if there are fewer.
    pub(in super::super) fn seek_rank(&mut self, rank: u64) -> Result<()> {
        self.gap = match rank {
            0 => Gap::First,
            _ if rank >= self.tree.len => Gap::Last,
            _ => Gap::At(self.tree.select(rank)?),
        };
        Ok(())
    }

    /// Counts the entries before the gap.
    pub(in super::super) fn rank(&self) -> Result<u64> {
        match &self.gap {
            Gap::First => Ok(0),
            Gap::Last => Ok(self.tree.len),
            Gap::At(place) => self.tree.rank(place),
        }
    }

    /// Finds the place of the gap in a tree that isn't empty.
    fn place(&self) -> Result<Place> {
        match &self.gap {
            Gap::First => self.tree.select(0),
            Gap::Last => self.tree.end(),
            Gap::At(place) => Ok(*place),
        }
    }

    /// Finds the place of the gap, to move it.
    #[inline]
    fn place_mut(&mut self) -> Result<&mut Place> {
        if !matches!(self.gap, Gap::At(_)) {
            self.gap = Gap::At(self.place()?);
        }
        match &mut self.gap {
            Gap::At(place) => Ok(place),
            Gap::First | Gap::Last => unreachable!("it was just put at a place"),
        }
    }

    /// Returns the entry after the gap to `read`.
    pub(in super::super) fn peek_next<R>(
        &self,
        read: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Result<Option<R>> {
        match &self.gap {
            _ if self.tree.root == NONE => Ok(None),
            Gap::At(place) => self.tree.peek(place, read),
            Gap::First | Gap::Last => self.tree.peek(&self.place()?, read),
        }
    }

    /// Returns the entry before the gap to `read`.
    pub(in super::super) fn peek_prev<R>(
        &self,
        read: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Result<Option<R>> {
        if self.tree.root == NONE {
            return Ok(None);
        }
        self.tree.step_back(&mut self.place()?, read)
    }

    /// Moves after the next entry, and passes it to `read`. After an error the gap is where it was.
    #[inline]
    pub(in super::super) fn next<R>(
        &mut self,
        read: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Result<Option<R>> {
        if self.tree.root == NONE {
            return Ok(None);
        }
        let tree = self.tree;
        tree.step(self.place_mut()?, read)
    }

    /// Moves before the previous entry, and passes it to `read`. After an error the gap is where it was.
    #[inline]
    pub(in super::super) fn prev<R>(
        &mut self,
        read: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Result<Option<R>> {
        if self.tree.root == NONE {
            return Ok(None);
        }
        let tree = self.tree;
        tree.step_back(self.place_mut()?, read)
    }
}
