//! Looking a table up by an index.

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

use annals_schema::{IndexNumber, TableNumber, ValueRef};

use super::{Cursor, Id, Query, Record};
use crate::{Error, IndexCursor, IndexView, Result, Row, View};

/// An index in a view.
///
/// Generated code adds lookups with the right types to the untyped ones here.
pub struct Index<'a, R> {
    index: IndexView<'a>,
    kind: PhantomData<fn() -> R>,
}

impl<'a, R: Record> Index<'a, R> {
    /// Returns the index of a view of a database that has the program's schema. A file may have its
    /// indexes in another order than the program: `number` is only where to look first.
    ///
    /// In a custom function of an upgrade an index may be missing that is made after it: reading it is an error. So is
    /// reading one of a past state that can't be made.
    ///
    /// # Panics
    /// If the view has no such table: a database is only opened when it has the program's tables.
    #[must_use]
    pub fn new(view: &'a View, number: IndexNumber, name: &str) -> Self {
        Self { index: named(view, R::TABLE, number, name), kind: PhantomData }
    }

    /// Returns the number of rows. Constant time.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.index.len()
    }

    /// True if there is no row.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Returns all rows in the order of the index, from either end.
    #[must_use]
    pub fn iter(&self) -> IndexRows<'a, R> {
        IndexRows::new(self.index.rows())
    }

    /// Returns the first row whose first fields equal these values.
    ///
    /// # Errors
    /// The index or the row can't be loaded.
    pub fn first(&self, values: &[ValueRef<'_>]) -> Result<Option<R::Row<'a>>> {
        match first(self.index, values) {
            Ok(Some(row)) => R::row(row).map(Some),
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the first row whose first fields equal these values, for each of many, in their order. They are looked
    /// up in batches, in a fraction of the time that [`first`](Self::first) would take.
    ///
    /// ```
    /// annals::schema!("tutorial.schema");
    /// # use tutorial::city;
    ///
    /// # fn main() -> annals::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let db = tutorial::Database::open(folder.path().join("tutorial.annals"))?;
    /// # db.write(|tx| {
    /// #     ["Lille", "Lyon"].map(|name| tx.insert(city::New { name }).unwrap());
    /// #     Ok(())
    /// # })?;
    /// let now = db.read();
    /// let names = ["Lyon", "Ys"].map(|name| [name.into()]);
    /// let mut cities = now.city().by_name().first_of_each(names);
    /// assert_eq!(cities.next().unwrap()?.unwrap().name(), "Lyon");
    /// assert!(cities.next().unwrap()?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Each is one of `first`, in the place of its row.
    pub fn first_of_each<'v, K, I>(
        &self,
        keys: I,
    ) -> impl Iterator<Item = Result<Option<R::Row<'a>>>> + use<'a, 'v, K, I, R>
    where
        K: AsRef<[ValueRef<'v>]>,
        I: IntoIterator<Item = K>,
    {
        self.index.first_of_each(keys).map(|found| found?.map(R::row).transpose())
    }

    /// Returns the first row whose first fields equal these values; an error if there is none.
    ///
    /// # Errors
    /// `NotFound`, with the key; the index or the row can't be loaded.
    pub fn require(&self, values: &[ValueRef<'_>]) -> Result<R::Row<'a>> {
        match required(self.index, values) {
            Ok(row) => R::row(row),
            Err(error) => Err(error),
        }
    }

    /// Returns the rows whose first fields equal these values.
    #[must_use]
    pub fn equal(&self, values: &[ValueRef<'_>]) -> IndexRows<'a, R> {
        IndexRows::new(self.index.equal(values))
    }

    /// Returns the rows whose first fields equal `leading` and whose next field, a string or bytes,
    /// begins with `prefix`.
    #[must_use]
    pub fn prefix(&self, leading: &[ValueRef<'_>], prefix: &[u8]) -> IndexRows<'a, R> {
        IndexRows::new(self.index.prefix(leading, prefix))
    }

    /// Returns the rows whose first fields equal `leading` and whose next field is in the bounds. Null
    /// is in no bounds, unless one that is included is null itself.
    pub fn range<'v, T>(
        &self,
        leading: &[ValueRef<'_>],
        bounds: impl RangeBounds<T>,
    ) -> IndexRows<'a, R>
    where
        T: Copy + Into<ValueRef<'v>>,
    {
        let lower = bounds.start_bound().map(|&value| value.into());
        let upper = bounds.end_bound().map(|&value| value.into());
        IndexRows::new(self.index.range(leading, lower, upper))
    }

    /// Returns a cursor before the first row.
    #[must_use]
    pub fn cursor(&self) -> Cursor<'a, R> {
        Cursor::new(self.index.cursor())
    }

    /// Returns a cursor before the first row whose first fields aren't less than these values.
    ///
    /// # Errors
    /// The values don't fit the index, or the index can't be loaded.
    pub fn cursor_at(&self, values: &[ValueRef<'_>]) -> Result<Cursor<'a, R>> {
        match cursor_at(self.index, values) {
            Ok(cursor) => Ok(Cursor::new(cursor)),
            Err(error) => Err(error),
        }
    }

    /// Returns the row that has `rank` rows before it; `None` if there are no more than these.
    ///
    /// # Errors
    /// The index or the row can't be loaded.
    pub fn nth(&self, rank: u64) -> Result<Option<R::Row<'a>>> {
        self.index.nth(rank)?.map(R::row).transpose()
    }

    /// Returns the first row of each group of rows with the same values in the first `fields` fields of the index,
    /// with the number of its rows. Nulls are one group. A step reads one row and seeks past the others, whatever
    /// their number.
    ///
    /// ```
    /// annals::schema!("tutorial.schema");
    /// # use tutorial::person;
    ///
    /// # fn main() -> annals::Result<()> {
    /// # let db = tutorial::Database::in_memory()?;
    /// # db.write(|tx| {
    /// #     for (first_name, last_name) in [("Anne", "Petit"), ("Max", "Coulom"), ("Zoé", "Petit")] {
    /// #         tx.insert(person::New { first_name, last_name, home: None })?;
    /// #     }
    /// #     Ok(())
    /// # })?;
    /// let now = db.read();
    /// for group in now.person().by_name().groups(1) {
    ///     let (person, namesakes) = group?;
    ///     println!("{}: {namesakes}", person.last_name());
    /// }
    /// # assert_eq!(now.person().by_name().groups(1).count()?, 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn groups(
        &self,
        fields: usize,
    ) -> Query<impl Iterator<Item = Result<(R::Row<'a>, u64)>> + use<'a, R>> {
        let groups = self.index.groups(fields);
        Query::over(groups.map(|group| group.and_then(|(row, rows)| Ok((R::row(row)?, rows)))))
    }

    /// Returns the same index without its type.
    #[must_use]
    pub fn as_dynamic(&self) -> IndexView<'a> {
        self.index
    }
}

// Code that doesn't depend on the type of a row is in separate functions, and results are converted by `match`: the
// methods are compiled once for each table of a schema.

/// Finds an index by its name; `number` is where to look first.
fn named<'a>(view: &'a View, table: TableNumber, number: IndexNumber, name: &str) -> IndexView<'a> {
    let schema = view.schema();
    let number = match schema.index(number) {
        Some(index) if index.name == name => Some(number),
        _ => schema.index_named(name).map(|index| index.number),
    };
    match number.map(|number| view.index(number)) {
        Some(Ok(index)) => index,
        found => no_index(view, table, found.and_then(Result::err)),
    }
}

/// Returns an index to read errors from: a past state can't be made, or a custom function of an upgrade asks for an index
/// that is made after it. Else a database is only opened when it has the program's indexes.
#[cold]
fn no_index(view: &View, table: TableNumber, error: Option<Error>) -> IndexView<'_> {
    let index = view.unreadable_index(table, error);
    index.expect("opening compared the tables with the program's")
}

fn first<'a>(index: IndexView<'a>, values: &[ValueRef<'_>]) -> Result<Option<Row<'a>>> {
    index.first(values)
}

fn required<'a>(index: IndexView<'a>, values: &[ValueRef<'_>]) -> Result<Row<'a>> {
    index.require(values)
}

fn cursor_at<'a>(index: IndexView<'a>, values: &[ValueRef<'_>]) -> Result<IndexCursor<'a>> {
    let mut cursor = index.cursor();
    cursor.seek(values)?;
    Ok(cursor)
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
///
/// `count`, `nth`, `skip` and `last` visit only rows that they return, and take logarithmic time:
///
/// ```
/// annals::schema!("tutorial.schema");
/// # use tutorial::person;
///
/// # fn main() -> annals::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let db = tutorial::Database::open(folder.path().join("tutorial.annals"))?;
/// # db.write(|tx| {
/// #     for first_name in ["Anne", "Max", "Rémi", "Zoé"] {
/// #         tx.insert(person::New { first_name, last_name: "Coulom", home: None })?;
/// #     }
/// #     Ok(())
/// # })?;
/// let now = db.read();
/// let people = now.person().by_name();
/// assert_eq!(people.with_last_name("Coulom").count(), 4);
/// assert_eq!(people.range_with_last_name("Coulom", "B".."S").count(), 2);
/// for person in people.with_last_name("Coulom").skip(2).take(1) {
///     assert_eq!(person?.first_name(), "Rémi"); // the third page, if a page has one row
/// }
/// # Ok(())
/// # }
/// ```
pub struct IndexRows<'a, R> {
    rows: crate::IndexRows<'a>,
    kind: PhantomData<fn() -> R>,
}

impl<'a, R> IndexRows<'a, R> {
    const fn new(rows: crate::IndexRows<'a>) -> Self {
        Self { rows, kind: PhantomData }
    }

    /// Returns the same rows without their type.
    pub(super) fn into_dynamic(self) -> crate::IndexRows<'a> {
        self.rows
    }

    /// Counts the rows that neither end has given, without visiting them.
    ///
    /// # Errors
    /// The index can't be loaded; the values don't fit it, which generated code rules out.
    pub fn left(&mut self) -> Result<u64> {
        self.rows.left()
    }

    /// Returns those of the rows that come after a row in the order of the index: the next page of a list that
    /// ended there. It takes logarithmic time. If the row doesn't exist, that error is the only item.
    ///
    /// ```
    /// annals::schema!("tutorial.schema");
    /// # use tutorial::city;
    ///
    /// # fn main() -> annals::Result<()> {
    /// # let db = tutorial::Database::in_memory()?;
    /// # let lille = db.write(|tx| {
    /// #     let [lille, _] = [tx.insert(city::New { name: "Lille" })?, tx.insert(city::New { name: "Lyon" })?];
    /// #     Ok(lille)
    /// # })?;
    /// let now = db.read();
    /// let mut page = now.city().by_name().iter().after(lille).take(20);
    /// assert_eq!(page.next().unwrap()?.name(), "Lyon");
    /// # Ok(())
    /// # }
    /// ```
    pub fn after(self, id: Id<R>) -> Self
    where
        R: Record,
    {
        Self::new(self.rows.after(id.into()))
    }

    /// Returns those of the rows that come before a row in the order of the index, as [`after`](Self::after).
    pub fn before(self, id: Id<R>) -> Self
    where
        R: Record,
    {
        Self::new(self.rows.before(id.into()))
    }

    /// Returns the ids of the rows instead, from both ends. It reads no row, so that it takes a fraction of the
    /// time.
    pub fn ids(self) -> impl DoubleEndedIterator<Item = Result<Id<R>>> + use<'a, R>
    where
        R: Record,
    {
        self.rows.ids().map(|id| id.map(Into::into))
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
        self.rows.next().map(|row| row.and_then(R::row))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rows.size_hint()
    }

    fn count(self) -> usize {
        self.rows.count()
    }

    fn nth(&mut self, n: usize) -> Option<Self::Item> {
        self.rows.nth(n).map(|row| row.and_then(R::row))
    }

    fn last(mut self) -> Option<Self::Item> {
        self.next_back()
    }
}

impl<R: Record> DoubleEndedIterator for IndexRows<'_, R> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.rows.next_back().map(|row| row.and_then(R::row))
    }

    fn nth_back(&mut self, n: usize) -> Option<Self::Item> {
        self.rows.nth_back(n).map(|row| row.and_then(R::row))
    }
}

impl<'a, R: Record> Index<'a, R> {
    /// Begins a query over all rows, in the order of the index.
    pub fn query(&self) -> Query<IndexRows<'a, R>> {
        Query::over(self.iter())
    }
}

impl<R: Record> IndexRows<'_, R> {
    /// Begins a query over these rows.
    pub fn query(self) -> Query<Self> {
        Query::over(self)
    }
}
