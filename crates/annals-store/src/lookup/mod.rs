//! Reading through indexes.

pub(crate) mod cursor;
pub(crate) mod each;
pub(crate) mod groups;
mod place;
mod unreadable;
mod walk;

pub use self::walk::IndexRows;

use std::ops::Bound;

use annals_schema::{IndexNumber, RowId, TableNumber, ValueRef};

use crate::change::shown;
use crate::columns::column::Column;
use crate::index::key::{self, Out, Sought};
use crate::index::tree::IndexTree;
use crate::row::Row;
use crate::view::{TableView, View};
use crate::{Error, ErrorKind, Result};
use annals_storage::debug::brief;

/// An index in a view.
#[derive(Clone, Copy)]
pub struct IndexView<'a> {
    pub(crate) table: TableView<'a>,
    pub(crate) data: &'a IndexTree,
}

brief!(IndexView<'_>, "IndexView", "table": |it| it.table.schema().name, "rows": |it| it.len());

impl<'a> IndexView<'a> {
    /// Returns the table that the index is on.
    #[must_use]
    pub const fn table(&self) -> TableView<'a> {
        self.table
    }

    /// Returns the number of rows. Constant time.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.table.data.rows.len() // each row has one entry
    }

    /// True if there is no row.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns all rows in order of the key, then of the id.
    #[must_use]
    pub fn rows(&self) -> IndexRows<'a> {
        self.between(Vec::new(), None)
    }

    /// Returns the first of the rows whose first fields equal these values. Allocates nothing, if the values are
    /// short.
    ///
    /// # Errors
    /// The values don't fit the index, or the index or the row can't be loaded.
    #[inline]
    pub fn first(&self, values: &[ValueRef<'_>]) -> Result<Option<Row<'a>>> {
        let mut key = Sought::new();
        self.encode_to(values, &mut key)?;
        self.first_with(key.bytes())
    }

    /// Returns the first of the rows whose first fields equal these values; an error if there is none.
    ///
    /// # Errors
    /// `NotFound`, with the values; and as [`first`](Self::first).
    pub fn require(&self, values: &[ValueRef<'_>]) -> Result<Row<'a>> {
        self.first(values)?.ok_or_else(|| {
            let schema = &self.table.view.schema;
            let name = schema.index(self.data.number).map_or("?", |index| &index.name);
            let texts: Vec<_> = values.iter().map(shown).collect();
            let table = self.table.view.table_name(self.table.number);
            let message =
                format!("table `{table}` has no row with {} in index `{name}`", texts.join(", "));
            Error::new(ErrorKind::NotFound, message)
        })
    }

    /// Returns the first row whose key begins with these bytes.
    #[inline]
    pub(super) fn first_with(&self, key: &[u8]) -> Result<Option<Row<'a>>> {
        match self.data.holder(key) {
            Ok(Some(id)) => self.table.get(id).map(Some),
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the rows whose first fields equal these values. Values that don't fit the index return one error.
    #[must_use]
    pub fn equal(&self, values: &[ValueRef<'_>]) -> IndexRows<'a> {
        match self.encode(values) {
            Ok(low) => self.beginning_with(low),
            Err(error) => self.failed(error),
        }
    }

    /// Returns the rows whose first fields equal `leading` and whose next field, a string or bytes, begins with
    /// `prefix`. Values that don't fit the index return one error. So does a field with a collation: strings that begin
    /// alike needn't follow one another in the order of a language.
    #[must_use]
    pub fn prefix(&self, leading: &[ValueRef<'_>], prefix: &[u8]) -> IndexRows<'a> {
        let variable = self.column(leading.len()).filter(|column| column.ty().is_variable());
        match (self.encode(leading), variable) {
            (Ok(_), _) if self.data.is_collated(leading.len()) => {
                self.failed(self.mismatch(leading.len(), "a prefix"))
            }
            (Ok(mut low), Some(column)) => {
                let nullable = column.is_nullable();
                match self.data.is_descending(leading.len()) {
                    false => key::encode_prefix(&mut low, nullable, prefix),
                    true => key::put_flipped(&mut low, |flipped| {
                        key::encode_prefix(flipped, nullable, prefix);
                    }),
                }
                self.beginning_with(low)
            }
            (Err(error), _) => self.failed(error),
            (Ok(_), None) => self.failed(self.mismatch(leading.len(), "a prefix")),
        }
    }

    /// Returns the rows whose first fields equal `leading` and whose next field is in the bounds. Null is in no
    /// bounds, unless one that is included is null itself: [`equal`](Self::equal) finds nulls. NaN is greater than
    /// all other numbers. Values that don't fit the index return one error.
    #[must_use]
    pub fn range(
        &self,
        leading: &[ValueRef<'_>],
        lower: Bound<ValueRef<'_>>,
        upper: Bound<ValueRef<'_>>,
    ) -> IndexRows<'a> {
        match self.bounds(leading, lower, upper) {
            Ok(Some((low, high))) => self.between(low, high),
            Ok(None) => self.between(vec![0], Some(Vec::new())),
            Err(error) => self.failed(error),
        }
    }

    /// Turns bounds of values into bounds of keys; `None` if nothing is in them.
    #[expect(clippy::type_complexity, reason = "two bounds")]
    fn bounds(
        &self,
        leading: &[ValueRef<'_>],
        lower: Bound<ValueRef<'_>>,
        upper: Bound<ValueRef<'_>>,
    ) -> Result<Option<(Vec<u8>, Option<Vec<u8>>)>> {
        let key = |value: ValueRef<'_>| {
            let mut out = self.encode(leading)?;
            self.encode_next(leading.len(), value, &mut out)?;
            Ok::<_, Error>(out)
        };
        let nullable = self.column(leading.len()).is_some_and(Column::is_nullable);
        let descending = self.data.is_descending(leading.len());
        // Null sorts before all values.
        let without_null = nullable
            && matches!(lower, Bound::Unbounded)
            && !matches!(upper, Bound::Included(ValueRef::Null));
        let (first, last) = if descending { (upper, lower) } else { (lower, upper) };
        let low = match first {
            Bound::Unbounded if without_null && !descending => key::successor(key(ValueRef::Null)?),
            Bound::Unbounded => Some(self.encode(leading)?),
            Bound::Included(value) => Some(key(value)?),
            Bound::Excluded(value) => key::successor(key(value)?),
        };
        let high = match last {
            Bound::Unbounded if without_null && descending => Some(key(ValueRef::Null)?),
            Bound::Unbounded => key::successor(self.encode(leading)?),
            Bound::Included(value) => key::successor(key(value)?),
            Bound::Excluded(value) => Some(key(value)?),
        };
        Ok(low.map(|low| (low, high)))
    }

    /// Returns the column of one of the key's fields.
    fn column(&self, at: usize) -> Option<&'a Column> {
        self.table.data.columns.get(*self.data.fields.get(at)?)
    }

    pub(crate) fn encode(&self, values: &[ValueRef<'_>]) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        self.encode_to(values, &mut out)?;
        Ok(out)
    }

    #[inline]
    pub(super) fn encode_to(&self, values: &[ValueRef<'_>], out: &mut impl Out) -> Result<()> {
        for (at, &value) in values.iter().enumerate() {
            self.encode_next(at, value, out)?;
        }
        Ok(())
    }

    #[inline]
    fn encode_next(&self, at: usize, value: ValueRef<'_>, out: &mut impl Out) -> Result<()> {
        // Null is a key of erased values too, where a program may store none.
        let is_key = |column: &&Column| match value {
            ValueRef::Null => column.is_nullable(),
            value => column.accepts(&value),
        };
        match self.column(at).filter(is_key) {
            Some(column) => {
                self.data.encode(at, column.is_nullable(), value, out);
                Ok(())
            }
            None => Err(self.mismatch(at, &format!("{value:?}"))),
        }
    }

    #[cold]
    fn mismatch(&self, at: usize, asked: &str) -> Error {
        if let Some(reason) = self.data.unavailable() {
            return Error::new(ErrorKind::Unsupported, reason);
        }
        let schema = &self.table.view.schema;
        let name = schema.index(self.data.number).map_or("?", |index| &index.name);
        let field = self.data.fields.get(at).and_then(|&f| self.table.schema().fields.get(f));
        Error::invalid(match field {
            Some(field) if self.data.is_collated(at) => format!(
                "index `{name}`: {asked} can't be looked for in field `{}`, which has a collation; look for a \
                 string, or a range of strings",
                field.name
            ),
            Some(field) => format!(
                "index `{name}`: {asked} can't be looked for in field `{}`, which is {:?}",
                field.name, field.ty
            ),
            None => format!("index `{name}` has only {} fields", self.data.fields.len()),
        })
    }

    fn beginning_with(&self, low: Vec<u8>) -> IndexRows<'a> {
        let high = key::successor(low.clone());
        self.between(low, high)
    }

    fn between(&self, low: Vec<u8>, high: Option<Vec<u8>>) -> IndexRows<'a> {
        match self.data.tree().and_then(|tree| tree.range(&low, high.as_deref())) {
            Ok(entries) => IndexRows::new(*self, entries, (low, high)),
            Err(error) => self.failed(error),
        }
    }

    fn failed(&self, error: Error) -> IndexRows<'a> {
        IndexRows::failed(*self, error)
    }
}

/// Returns the row of an entry.
#[inline]
pub(crate) fn id_in(entry: &[u8], _: &[u8]) -> RowId {
    key::id_of(entry)
}

impl View {
    /// Returns an index; `NotFound` if there is none with that number. Reading one of the
    /// [unavailable](Self::unavailable_indexes) ones is an error.
    pub fn index(&self, number: IndexNumber) -> Result<IndexView<'_>> {
        if let Some(whole) = self.whole()? {
            return whole.index(number);
        }
        let data = self.indexes.get(number.0 as usize).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("there is no index number {}", number.0))
        })?;
        let table = self.tables.get(data.table).expect("an index is on a table of its schema");
        let number = TableNumber(u32::try_from(data.table).expect("it came from a table's number"));
        Ok(IndexView { table: TableView { view: self, data: table, number }, data })
    }
}
