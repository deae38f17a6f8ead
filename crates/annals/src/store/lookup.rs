//! Reading through indexes.

use std::ops::Bound;

use annals_schema::ValueRef;

use super::btree::Range;
use super::index::IndexTree;
use super::key;
use super::row::Row;
use super::view::TableView;
use crate::{Error, Result};

/// An index in a view.
#[derive(Clone, Copy, Debug)]
pub struct IndexView<'a> {
    pub(super) table: TableView<'a>,
    pub(super) data: &'a IndexTree,
}

impl<'a> IndexView<'a> {
    /// Gives the table that the index is on.
    #[must_use]
    pub const fn table(&self) -> TableView<'a> {
        self.table
    }

    /// Gives all rows in order of the key, then of the id.
    #[must_use]
    pub fn rows(&self) -> IndexRows<'a> {
        self.between(Vec::new(), None)
    }

    /// Gives the rows whose first fields equal these values. Values that don't fit the index give
    /// one error.
    #[must_use]
    pub fn equal(&self, values: &[ValueRef<'_>]) -> IndexRows<'a> {
        match self.encode(values) {
            Ok(low) => self.beginning_with(low),
            Err(error) => self.failed(error),
        }
    }

    /// Gives the rows whose first fields equal `leading` and whose next field, a string or bytes,
    /// begins with `prefix`. Values that don't fit the index give one error.
    #[must_use]
    pub fn prefix(&self, leading: &[ValueRef<'_>], prefix: &[u8]) -> IndexRows<'a> {
        let column = self.data.fields.get(leading.len()).copied();
        let variable = column
            .and_then(|field| self.table.data.columns.get(field))
            .filter(|column| column.ty().is_variable());
        match (self.encode(leading), variable) {
            (Ok(mut low), Some(column)) => {
                key::encode_prefix(&mut low, column.is_nullable(), prefix);
                self.beginning_with(low)
            }
            (Err(error), _) => self.failed(error),
            (Ok(_), None) => self.failed(self.mismatch(leading.len(), "a prefix")),
        }
    }

    /// Gives the rows whose first fields equal `leading` and whose next field is in the bounds.
    /// Null is less than all values: without a lower bound, it is in. Values that don't fit the
    /// index give one error.
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
        let low = match lower {
            Bound::Unbounded => Some(self.encode(leading)?),
            Bound::Included(value) => Some(key(value)?),
            Bound::Excluded(value) => key::successor(key(value)?),
        };
        let high = match upper {
            Bound::Unbounded => key::successor(self.encode(leading)?),
            Bound::Included(value) => key::successor(key(value)?),
            Bound::Excluded(value) => Some(key(value)?),
        };
        Ok(low.map(|low| (low, high)))
    }

    fn encode(&self, values: &[ValueRef<'_>]) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        for (at, &value) in values.iter().enumerate() {
            self.encode_next(at, value, &mut out)?;
        }
        Ok(out)
    }

    fn encode_next(&self, at: usize, value: ValueRef<'_>, out: &mut Vec<u8>) -> Result<()> {
        let field = self.data.fields.get(at).copied();
        let column = field.and_then(|field| self.table.data.columns.get(field));
        match column.filter(|column| column.accepts(&value)) {
            Some(column) => {
                key::encode(out, column.is_nullable(), value);
                Ok(())
            }
            None => Err(self.mismatch(at, &format!("{value:?}"))),
        }
    }

    #[cold]
    fn mismatch(&self, at: usize, asked: &str) -> Error {
        let schema = &self.table.view.schema;
        let name = schema.index(self.data.number).map_or("?", |index| &index.name);
        let field = self.data.fields.get(at).and_then(|&f| self.table.schema().fields.get(f));
        Error::invalid(match field {
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

    #[expect(clippy::needless_pass_by_value, reason = "the keys were made for this")]
    fn between(&self, low: Vec<u8>, high: Option<Vec<u8>>) -> IndexRows<'a> {
        let entries = self.data.tree.range(&low, high.as_deref());
        IndexRows { index: *self, entries, error: None }
    }

    fn failed(&self, error: Error) -> IndexRows<'a> {
        let entries = self.data.tree.range(&[0], Some(&[]));
        IndexRows { index: *self, entries, error: Some(error) }
    }
}

/// Rows in the order of an index, from both ends.
#[derive(Debug)]
pub struct IndexRows<'a> {
    index: IndexView<'a>,
    entries: Range<'a>,
    error: Option<Error>,
}

impl<'a> IndexRows<'a> {
    fn row(&mut self, entry: Option<(&[u8], &[u8])>) -> Option<Result<Row<'a>>> {
        match entry {
            Some((entry, _)) => Some(self.index.table.get(key::id_of(entry))),
            None => self.error.take().map(Err),
        }
    }
}

impl<'a> Iterator for IndexRows<'a> {
    type Item = Result<Row<'a>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.entries.next();
        self.row(entry)
    }
}

impl DoubleEndedIterator for IndexRows<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        let entry = self.entries.next_back();
        self.row(entry)
    }
}
