//! Looking a table up by an index.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use annals_schema::{IndexNumber, ValueRef};

use super::Record;
use crate::{IndexView, Result, View};

/// An index in a view.
///
/// Generated code puts lookups with the right types in front of the untyped ones here.
pub struct Index<'a, R> {
    index: IndexView<'a>,
    /// Whether the first field may be null.
    nullable: bool,
    kind: PhantomData<fn() -> R>,
}

impl<'a, R: Record> Index<'a, R> {
    /// Gives the index of a view of a database that has the program's schema. A file may have its
    /// indexes in another order than the program: `number` is only where to look first.
    ///
    /// # Panics
    /// If the view has no such index: a database is only opened when it has the program's indexes.
    #[must_use]
    pub fn new(view: &'a View, number: IndexNumber, name: &str) -> Self {
        let schema = view.schema();
        let number = match schema.index(number) {
            Some(index) if index.name == name => number,
            _ => schema.index_named(name).map_or(number, |index| index.number),
        };
        let index = view.index(number).expect("opening compared the indexes with the program's");
        let first = schema
            .index(number)
            .and_then(|index| schema.table(index.table)?.field(*index.fields.first()?));
        let nullable = first.is_some_and(|field| field.nullable);
        Self { index, nullable, kind: PhantomData }
    }

    /// Gives all rows in the order of the index, from either end.
    #[must_use]
    pub fn iter(&self) -> IndexRows<'a, R> {
        IndexRows::new(self.index.rows())
    }

    /// Gives the first row whose first fields equal these values.
    ///
    /// # Errors
    /// The row can't be loaded.
    pub fn first(&self, values: &[ValueRef<'_>]) -> Result<Option<R::Row<'a>>> {
        Ok(self.index.equal(values).next().transpose()?.map(Into::into))
    }

    /// Gives the rows whose first fields equal these values.
    #[must_use]
    pub fn equal(&self, values: &[ValueRef<'_>]) -> IndexRows<'a, R> {
        IndexRows::new(self.index.equal(values))
    }

    /// Gives the rows whose first field, a string or bytes, begins with `prefix`.
    #[must_use]
    pub fn prefix(&self, prefix: &[u8]) -> IndexRows<'a, R> {
        IndexRows::new(self.index.prefix(&[], prefix))
    }

    /// Gives the rows whose first field is in the bounds. Null is in no bounds.
    pub fn range<'v, T>(&self, bounds: impl RangeBounds<T>) -> IndexRows<'a, R>
    where
        T: Copy + Into<ValueRef<'v>>,
    {
        let lower = match bounds.start_bound() {
            Bound::Included(&value) => Bound::Included(value.into()),
            Bound::Excluded(&value) => Bound::Excluded(value.into()),
            // Null comes before all values.
            Bound::Unbounded if self.nullable => Bound::Excluded(ValueRef::Null),
            Bound::Unbounded => Bound::Unbounded,
        };
        let upper = match bounds.end_bound() {
            Bound::Included(&value) => Bound::Included(value.into()),
            Bound::Excluded(&value) => Bound::Excluded(value.into()),
            Bound::Unbounded => Bound::Unbounded,
        };
        IndexRows::new(self.index.range(&[], lower, upper))
    }

    /// Gives the same index without its type.
    #[must_use]
    pub fn as_dynamic(&self) -> IndexView<'a> {
        self.index
    }
}

impl<R> Clone for Index<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Index<'_, R> {}

impl<R: Record> fmt::Debug for Index<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").field("table", &R::NAME).finish_non_exhaustive()
    }
}

impl<'a, R: Record> IntoIterator for Index<'a, R> {
    type Item = Result<R::Row<'a>>;
    type IntoIter = IndexRows<'a, R>;
    fn into_iter(self) -> IndexRows<'a, R> {
        self.iter()
    }
}

impl<'a, R: Record> IntoIterator for &Index<'a, R> {
    type Item = Result<R::Row<'a>>;
    type IntoIter = IndexRows<'a, R>;
    fn into_iter(self) -> IndexRows<'a, R> {
        self.iter()
    }
}

/// Rows in the order of an index, from both ends.
pub struct IndexRows<'a, R> {
    rows: crate::IndexRows<'a>,
    kind: PhantomData<fn() -> R>,
}

impl<'a, R> IndexRows<'a, R> {
    fn new(rows: crate::IndexRows<'a>) -> Self {
        Self { rows, kind: PhantomData }
    }
}

impl<R: Record> fmt::Debug for IndexRows<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexRows").field("table", &R::NAME).finish_non_exhaustive()
    }
}

impl<'a, R: Record> Iterator for IndexRows<'a, R> {
    type Item = Result<R::Row<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.rows.next().map(|row| row.map(Into::into))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rows.size_hint()
    }
}

impl<R: Record> DoubleEndedIterator for IndexRows<'_, R> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.rows.next_back().map(|row| row.map(Into::into))
    }
}
