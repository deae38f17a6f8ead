//! Reading a table.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use annals_schema::RowId;

use super::{Id, OrNull, Record};
use crate::{Error, ErrorKind, Result, TableView, View};

/// A table in a view, for reading.
pub struct Table<'a, R> {
    view: &'a View,
    table: TableView<'a>,
    kind: PhantomData<fn() -> R>,
}

impl<'a, R: Record> Table<'a, R> {
    /// Returns the table of a view of a database that has the program's schema.
    ///
    /// # Panics
    /// If the view has no such table: a database is only opened when it has the program's tables.
    #[must_use]
    pub fn new(view: &'a View) -> Self {
        let table = view.table(R::TABLE);
        let table = table.expect("opening compared the tables with the program's");
        Self { view, table, kind: PhantomData }
    }

    /// Returns the view that it is in.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub const fn view(&self) -> &'a View {
        self.view
    }

    /// Returns the row with that id; an error if there is none. It also follows a reference.
    ///
    /// # Errors
    /// There is no such row, or the reference is null (`NotFound`); the row can't be loaded.
    #[inline(always)]
    pub fn require(&self, id: impl OrNull<Id<R>>) -> Result<R::Row<'a>> {
        let Some(id) = id.or_null() else { return Err(no_reference(R::NAME)) };
        match self.table.get(id.into()) {
            Ok(row) => R::row(row),
            Err(error) => Err(error),
        }
    }

    /// Returns the row with that id, if there is one; [`require`](Self::require) returns an error if there is none.
    ///
    /// It also follows a reference, which is an `Option` of an id: `now.city().get(person.home())?`. A reference that
    /// isn't enforced may lead to a row that was deleted.
    ///
    /// # Errors
    /// The row can't be loaded.
    #[inline]
    pub fn get(&self, id: impl OrNull<Id<R>>) -> Result<Option<R::Row<'a>>> {
        let Some(id) = id.or_null() else { return Ok(None) };
        match self.table.find(id.into()) {
            Ok(Some(row)) => R::row(row).map(Some),
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns true if there is a row with that id.
    ///
    /// # Errors
    /// Where it would be can't be loaded.
    pub fn contains(&self, id: Id<R>) -> Result<bool> {
        self.table.contains(id.into())
    }

    /// Returns the number of rows. Constant time.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.table.len()
    }

    /// True if there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Returns all rows in order of their ids, from either end.
    pub fn iter(&self) -> Rows<'a, R> {
        Rows { rows: self.table.rows(), kind: PhantomData }
    }

    /// Returns the ids of all rows, so that a transaction can change them in a loop. Takes 8 bytes a row.
    ///
    /// ```
    /// annals::schema!("tutorial.schema");
    /// use tutorial::city;
    ///
    /// # fn main() -> annals::Result<()> {
    /// let db = tutorial::Database::in_memory()?;
    /// db.write(|tx| {
    ///     for name in ["lille", "lyon"] {
    ///         tx.insert(city::New { name })?;
    ///     }
    ///     for id in tx.city().ids()? {
    ///         let name = tx.city().require(id)?.name().to_uppercase();
    ///         tx.edit(id)?.set_name(&name)?;
    ///     }
    ///     Ok(())
    /// })?;
    /// assert!(db.read().city().by_name().get("LYON")?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A row can't be loaded.
    pub fn ids(&self) -> Result<Vec<Id<R>>> {
        self.table.rows().map(|row| Ok(row?.id().into())).collect()
    }

    /// Returns the rows whose ids are in the bounds, in order of their ids, from either end. Beginning
    /// anywhere takes logarithmic time: the row after an id is the first of `range(id..)`, the row
    /// before it the last of `range(..id)`.
    ///
    /// ```
    /// annals::schema!("tutorial.schema");
    /// use tutorial::city;
    ///
    /// # fn main() -> annals::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let db = tutorial::Database::open(folder.path().join("tutorial.annals"))?;
    /// let [_, lyon, paris] = db.write(|tx| {
    ///     Ok([
    ///         tx.insert(city::New { name: "Lille" })?,
    ///         tx.insert(city::New { name: "Lyon" })?,
    ///         tx.insert(city::New { name: "Paris" })?,
    ///     ])
    /// })?;
    /// let now = db.read();
    /// assert_eq!(now.city().range(lyon..).count(), 2);
    /// assert_eq!(now.city().range(..paris).next_back().unwrap()?.name(), "Lyon");
    /// # Ok(())
    /// # }
    /// ```
    pub fn range(&self, ids: impl RangeBounds<Id<R>>) -> Rows<'a, R> {
        let bounds: (Bound<RowId>, Bound<RowId>) =
            (ids.start_bound().map(|&id| id.into()), ids.end_bound().map(|&id| id.into()));
        Rows { rows: self.table.range(bounds), kind: PhantomData }
    }

    /// Returns the same table without its type.
    #[must_use]
    pub fn as_dynamic(&self) -> TableView<'a> {
        self.table
    }
}

#[cold]
fn no_reference(table: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("the reference to a row of `{table}` is null"))
}

impl<R> Clone for Table<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Table<'_, R> {}

impl<R: Record> fmt::Debug for Table<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("name", &R::NAME).finish_non_exhaustive()
    }
}

impl<'a, R: Record> IntoIterator for Table<'a, R> {
    type Item = Result<R::Row<'a>>;
    type IntoIter = Rows<'a, R>;
    fn into_iter(self) -> Rows<'a, R> {
        self.iter()
    }
}

impl<'a, R: Record> IntoIterator for &Table<'a, R> {
    type Item = Result<R::Row<'a>>;
    type IntoIter = Rows<'a, R>;
    fn into_iter(self) -> Rows<'a, R> {
        self.iter()
    }
}

/// The rows of a table in order of their ids, from both ends.
#[must_use = "it gives rows only when it is stepped"]
pub struct Rows<'a, R> {
    rows: crate::Rows<'a>,
    kind: PhantomData<fn() -> R>,
}

impl<'a, R> Rows<'a, R> {
    /// Returns the same rows without their type.
    pub(super) fn into_dynamic(self) -> crate::Rows<'a> {
        self.rows
    }
}

impl<R: Record> fmt::Debug for Rows<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("table", &R::NAME).finish_non_exhaustive()
    }
}

impl<'a, R: Record> Iterator for Rows<'a, R> {
    type Item = Result<R::Row<'a>>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        self.rows.next().map(|row| row.and_then(R::row))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rows.size_hint()
    }

    fn count(self) -> usize {
        self.rows.count()
    }

    fn last(mut self) -> Option<Self::Item> {
        self.next_back()
    }
}

impl<R: Record> DoubleEndedIterator for Rows<'_, R> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        self.rows.next_back().map(|row| row.and_then(R::row))
    }
}
