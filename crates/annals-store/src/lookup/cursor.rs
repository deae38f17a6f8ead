//! Moving through an index from any place, in both directions.

use std::fmt;

use annals_schema::{RowId, ValueRef};

use crate::Result;
use crate::btree::TreeCursor;
use crate::index::key;
use crate::lookup::{IndexView, id_in};
use crate::row::Row;

/// A gap between two rows in the order of an index, or at an end.
///
/// A `seek` moves the cursor to any gap, and from there it moves in both directions. [`next`](Self::next) returns the
/// row after the gap and moves past it; [`prev`](Self::prev) returns the row before the gap and moves back over it. So
/// a `prev` after a `next` returns the same row again. At an end they return `None`, and the gap doesn't move. Every
/// `seek` and every count takes logarithmic time, a step a few nanoseconds.
#[derive(Clone)]
pub struct IndexCursor<'a> {
    index: IndexView<'a>,
    cursor: TreeCursor<'a>,
}

impl fmt::Debug for IndexCursor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexCursor").field("rank", &self.rank().ok()).finish_non_exhaustive()
    }
}

impl<'a> IndexView<'a> {
    /// Returns a cursor before the first row.
    #[must_use]
    pub fn cursor(&self) -> IndexCursor<'a> {
        IndexCursor { index: *self, cursor: self.data.entries.cursor() }
    }

    /// Counts the rows that are before all those whose first fields equal these values, or would be.
    ///
    /// # Errors
    /// The values don't fit the index, or the index can't be loaded.
    pub fn rank(&self, values: &[ValueRef<'_>]) -> Result<u64> {
        let mut cursor = self.cursor();
        cursor.seek(values)?;
        cursor.rank()
    }

    /// Returns the row that has `rank` rows before it; `None` if there are no more than these.
    ///
    /// # Errors
    /// The index or the row can't be loaded.
    pub fn nth(&self, rank: u64) -> Result<Option<Row<'a>>> {
        let mut cursor = self.cursor();
        cursor.seek_rank(rank)?;
        cursor.next().transpose()
    }
}

impl<'a> IndexCursor<'a> {
    /// Returns the index.
    #[must_use]
    pub const fn index(&self) -> IndexView<'a> {
        self.index
    }

    /// Moves before the first row whose first fields aren't less than these values.
    ///
    /// # Errors
    /// The values don't fit the index, or it can't be loaded; the gap stays where it was.
    pub fn seek(&mut self, values: &[ValueRef<'_>]) -> Result<()> {
        let key = self.index.encode(values)?;
        self.cursor_mut()?.seek(Some(&key))
    }

    /// Moves after the last row whose first fields aren't greater than these values.
    ///
    /// # Errors
    /// The values don't fit the index, or it can't be loaded; the gap stays where it was.
    pub fn seek_behind(&mut self, values: &[ValueRef<'_>]) -> Result<()> {
        let key = self.index.encode(values)?;
        self.cursor_mut()?.seek(key::successor(key).as_deref())
    }

    /// Moves before a row, wherever the index has it: so a walk continues where another ended, among rows with equal
    /// keys too.
    ///
    /// # Errors
    /// There is no such row, or it or the index can't be loaded; the gap stays where it was.
    pub fn seek_row(&mut self, id: RowId) -> Result<()> {
        let key = self.index.key_of(id)?;
        self.cursor_mut()?.seek(Some(&key))
    }

    /// Moves after the first `rank` rows; after the last one if there are fewer.
    ///
    /// # Errors
    /// The index can't be loaded; the gap stays where it was.
    pub fn seek_rank(&mut self, rank: u64) -> Result<()> {
        self.cursor_mut()?.seek_rank(rank)
    }

    /// Moves before the first row.
    pub fn seek_first(&mut self) {
        self.cursor.seek_first();
    }

    /// Moves after the last row.
    pub fn seek_last(&mut self) {
        self.cursor.seek_last();
    }

    /// Counts the rows before the gap, without visiting them.
    ///
    /// # Errors
    /// The index can't be loaded.
    pub fn rank(&self) -> Result<u64> {
        self.cursor().and_then(TreeCursor::rank)
    }

    /// Returns the row after the gap, and moves past it. An error is that the row can't be loaded.
    #[expect(clippy::should_implement_trait, reason = "a cursor goes both ways, and never ends")]
    pub fn next(&mut self) -> Option<Result<Row<'a>>> {
        let id = self.cursor_mut().and_then(|cursor| cursor.next(id_in));
        self.row(id)
    }

    /// Returns the row before the gap, and moves back over it. An error is that the row can't be loaded.
    pub fn prev(&mut self) -> Option<Result<Row<'a>>> {
        let id = self.cursor_mut().and_then(|cursor| cursor.prev(id_in));
        self.row(id)
    }

    /// Returns the row after the gap. An error is that the row can't be loaded.
    #[must_use]
    pub fn peek_next(&self) -> Option<Result<Row<'a>>> {
        self.row(self.cursor().and_then(|cursor| cursor.peek_next(id_in)))
    }

    /// Returns the row before the gap. An error is that the row can't be loaded.
    #[must_use]
    pub fn peek_prev(&self) -> Option<Result<Row<'a>>> {
        self.row(self.cursor().and_then(|cursor| cursor.peek_prev(id_in)))
    }

    /// Returns where it is.
    ///
    /// # Errors
    /// The index is unavailable.
    fn cursor(&self) -> Result<&TreeCursor<'a>> {
        self.index.data.tree().map(|_| &self.cursor)
    }

    fn cursor_mut(&mut self) -> Result<&mut TreeCursor<'a>> {
        self.index.data.tree().map(|_| &mut self.cursor)
    }

    fn row(&self, id: Result<Option<RowId>>) -> Option<Result<Row<'a>>> {
        id.and_then(|id| id.map(|id| self.index.table.get(id)).transpose()).transpose()
    }
}
