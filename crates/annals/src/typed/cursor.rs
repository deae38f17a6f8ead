//! Moving through an index from any place, in both directions.

use std::fmt;
use std::marker::PhantomData;

use annals_schema::ValueRef;

use super::{Id, Record};
use crate::{IndexCursor, Result};

/// A gap between two rows in the order of an index, or at an end.
///
/// [`next`](Self::next) returns the row after the gap and moves past it; [`prev`](Self::prev) returns the row before
/// the gap and moves back over it. So a `prev` after a `next` returns the same row again. At an end they return
/// `None`, and the gap doesn't move.
///
/// ```
/// annals::schema!("tutorial.schema");
/// use tutorial::city;
///
/// # fn main() -> annals::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let db = tutorial::Database::open(folder.path().join("tutorial.annals"))?;
/// db.write(|tx| {
///     for name in ["Lille", "Lyon", "Nantes", "Paris"] {
///         tx.insert(city::New { name })?;
///     }
///     Ok(())
/// })?;
///
/// let now = db.read();
/// let mut cities = now.city().by_name().cursor_at("M")?; // between Lyon and Nantes
/// assert_eq!(cities.rank()?, 2);
/// assert_eq!(cities.next().unwrap()?.name(), "Nantes");
/// assert_eq!(cities.prev().unwrap()?.name(), "Nantes");
/// assert_eq!(cities.prev().unwrap()?.name(), "Lyon");
/// cities.seek_last();
/// assert!(cities.next().is_none());
/// assert_eq!(cities.prev().unwrap()?.name(), "Paris");
/// # Ok(())
/// # }
/// ```
pub struct Cursor<'a, R> {
    cursor: IndexCursor<'a>,
    kind: PhantomData<fn() -> R>,
}

impl<'a, R: Record> Cursor<'a, R> {
    pub(super) const fn new(cursor: IndexCursor<'a>) -> Self {
        Self { cursor, kind: PhantomData }
    }

    /// Moves before the first row whose first fields aren't less than these values. The index's `cursor_at` does the
    /// same with the right types.
    ///
    /// # Errors
    /// The values don't fit the index, or it can't be loaded; the gap stays where it was.
    pub fn seek(&mut self, values: &[ValueRef<'_>]) -> Result<()> {
        self.cursor.seek(values)
    }

    /// Moves after the last row whose first fields aren't greater than these values.
    ///
    /// # Errors
    /// The values don't fit the index, or it can't be loaded; the gap stays where it was.
    pub fn seek_behind(&mut self, values: &[ValueRef<'_>]) -> Result<()> {
        self.cursor.seek_behind(values)
    }

    /// Moves before a row, wherever the index has it: so a walk continues where another ended.
    ///
    /// # Errors
    /// Fails if there is no such row, or if the row or the index can't be loaded. The cursor then keeps its position.
    pub fn seek_row(&mut self, id: Id<R>) -> Result<()> {
        self.cursor.seek_row(id.into())
    }

    /// Moves after the first `rank` rows; after the last one if there are fewer.
    ///
    /// # Errors
    /// Fails if the index can't be loaded. The cursor then keeps its position.
    pub fn seek_rank(&mut self, rank: u64) -> Result<()> {
        self.cursor.seek_rank(rank)
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
        self.cursor.rank()
    }

    /// Returns the row after the gap, and moves past it. An error means that the row can't be loaded.
    #[expect(clippy::should_implement_trait, reason = "a cursor goes both ways, and never ends")]
    pub fn next(&mut self) -> Option<Result<R::Row<'a>>> {
        self.cursor.next().map(|row| row.and_then(R::row))
    }

    /// Returns the row before the gap, and moves back over it. An error is that the row can't be loaded.
    pub fn prev(&mut self) -> Option<Result<R::Row<'a>>> {
        self.cursor.prev().map(|row| row.and_then(R::row))
    }

    /// Returns the row after the gap. An error is that the row can't be loaded.
    #[must_use]
    pub fn peek_next(&self) -> Option<Result<R::Row<'a>>> {
        self.cursor.peek_next().map(|row| row.and_then(R::row))
    }

    /// Returns the row before the gap. An error is that the row can't be loaded.
    #[must_use]
    pub fn peek_prev(&self) -> Option<Result<R::Row<'a>>> {
        self.cursor.peek_prev().map(|row| row.and_then(R::row))
    }

    /// Returns the same cursor without its type.
    #[must_use]
    pub const fn as_dynamic(&mut self) -> &mut IndexCursor<'a> {
        &mut self.cursor
    }
}

impl<R> Clone for Cursor<'_, R> {
    fn clone(&self) -> Self {
        Self { cursor: self.cursor.clone(), kind: PhantomData }
    }
}

impl<R: Record> fmt::Debug for Cursor<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = &R::NAME;
        f.debug_struct("Cursor")
            .field("table", table)
            .field("rank", &self.cursor.rank().ok())
            .finish()
    }
}
