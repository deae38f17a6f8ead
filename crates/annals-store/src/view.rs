//! A view: all tables and indexes as they are at one moment; reading tables.

use std::ops::{Bound, Range as Ids, RangeBounds};
use std::sync::Arc;

use annals_schema::{FieldNumber, IndexNumber, RowId, Schema, TableNumber};

use crate::blobs::Blobs;
use crate::columns::column::Column;
use crate::image::RootPin;
use crate::index::lookup::IndexView;
use crate::index::tree::IndexTree;
use crate::pages::numbered::Numbered;
use crate::pages::paged::Counted;
use crate::pages::refresh::refresh;
use crate::pages::unique::NoWeak;
use crate::row::{Row, Rows};
use crate::successor::Successor;
use crate::table::Table;
use crate::{Error, ErrorKind, Result};
use annals_storage::debug::brief;

/// All tables and indexes as they are at one moment.
pub struct View {
    pub(super) schema: Arc<Schema>,
    pub(super) tables: Numbered<Table>,
    pub(super) indexes: Numbered<IndexTree>,
    pub(super) blobs: NoWeak<Blobs>,
    /// Keeps the space of the root of an image over which the view lies.
    pub(super) pin: Option<Arc<RootPin>>,
    /// Where it continues if a page is lost.
    pub(super) successor: Successor,
}

impl Clone for View {
    fn clone(&self) -> Self {
        self.share()
    }
}

refresh!(View { schema, tables, indexes, blobs, pin, successor; });

brief!(View, "View", "tables": |it| it.schema.tables().len(), "root": |it| it.root());

impl View {
    pub(super) fn new() -> Self {
        Self {
            schema: Arc::default(),
            tables: Numbered::new(),
            indexes: Numbered::new(),
            blobs: NoWeak::new(Blobs::new()),
            pin: None,
            successor: Successor::default(),
        }
    }

    /// Makes another view of the same state: one reference count for each table and index.
    #[doc(hidden)]
    #[inline]
    pub fn share(&self) -> Self {
        Self {
            schema: Arc::clone(&self.schema),
            tables: self.tables.share(),
            indexes: self.indexes.share(),
            blobs: self.blobs.share(),
            pin: self.pin.clone(),
            successor: Successor::default(),
        }
    }

    /// Lets the view keep the space of the root over which it lies.
    #[doc(hidden)]
    #[inline]
    pub fn pinned(self, pin: Arc<RootPin>) -> Self {
        Self { pin: Some(pin), ..self }
    }

    /// Returns what keeps the space of the root over which the view lies.
    #[doc(hidden)]
    #[inline]
    pub const fn pin(&self) -> Option<&Arc<RootPin>> {
        self.pin.as_ref()
    }

    /// Returns the number of the root over which the view lies; 0 if there is none.
    #[doc(hidden)]
    #[inline]
    pub fn root(&self) -> u64 {
        self.pin.as_ref().map_or(0, |pin| pin.number)
    }

    /// Returns the schema.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Returns a table; `NotFound` if there is none with that number.
    #[inline]
    pub fn table(&self, number: TableNumber) -> Result<TableView<'_>> {
        match self.tables.get(number.0 as usize) {
            Some(data) => Ok(TableView { view: self, data, number }),
            None => Err(no_table(number)),
        }
    }

    /// Returns an index; `NotFound` if there is none with that number.
    pub fn index(&self, number: IndexNumber) -> Result<IndexView<'_>> {
        let data = self.indexes.get(number.0 as usize).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("there is no index number {}", number.0))
        })?;
        let table = self.tables.get(data.table).expect("an index is on a table of its schema");
        let number = TableNumber(u32::try_from(data.table).expect("it came from a table's number"));
        Ok(IndexView { table: TableView { view: self, data: table, number }, data })
    }

    /// Returns how much memory the view reaches, in bytes: what it shares with other views counts
    /// too. Walks over all pages.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.count(Counted::All)
    }

    /// Returns how much memory what no image has of the view takes, in bytes. Walks over those pages.
    #[doc(hidden)]
    #[inline]
    pub fn unsaved(&self) -> usize {
        self.count(Counted::Changes)
    }

    fn count(&self, what: Counted) -> usize {
        let tables: usize = self.tables.iter().map(|table| table.memory(what)).sum();
        let indexes: usize = self.indexes.iter().map(|index| index.memory(what)).sum();
        size_of::<Self>() + tables + indexes + self.blobs.memory(what)
    }

    pub(super) fn table_name(&self, number: TableNumber) -> &str {
        self.schema.table(number).map_or("?", |table| &table.name)
    }
}

#[cold]
pub(super) fn no_table(number: TableNumber) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no table number {}", number.0))
}

/// A table in a view.
#[derive(Clone, Copy)]
pub struct TableView<'a> {
    pub(super) view: &'a View,
    pub(super) data: &'a Table,
    pub(super) number: TableNumber,
}

brief!(TableView<'_>, "TableView", "name": |it| it.schema().name, "rows": |it| it.len());

impl<'a> TableView<'a> {
    /// Returns the table's part of the schema.
    #[must_use]
    pub fn schema(&self) -> &'a annals_schema::Table {
        self.view.schema.table(self.number).expect("a view's tables are those of its schema")
    }

    /// Returns the number of rows. Constant time.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.data.rows.len()
    }

    /// True if there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the id that the next `insert` without an id gets: larger than any id ever used.
    #[must_use]
    pub fn next_id(&self) -> u64 {
        self.data.rows.next_id()
    }

    /// Returns true if there is a row with that id.
    ///
    /// # Errors
    /// What tells it can't be loaded.
    pub fn contains(&self, id: RowId) -> Result<bool> {
        self.view.again(|view| Ok(view.table(self.number)?.data.rows.find(id.0)?.is_some()))
    }

    /// Returns the row, if there is one with that id.
    #[inline]
    pub fn find(&self, id: RowId) -> Result<Option<Row<'a>>> {
        match self.data.rows.find(id.0) {
            Ok(Some(slot)) => Row::load(*self, id, slot).map(Some),
            Ok(None) => Ok(None),
            Err(error) => self.instead(error)?.find(id),
        }
    }

    /// Returns the same table in the view to continue in after an error, if that is of a lost page.
    #[cold]
    pub(super) fn instead(&self, error: Error) -> Result<Self> {
        self.view.instead(error)?.table(self.number)
    }

    /// Returns the row; `NotFound` (naming table and id) if there is none with that id.
    #[inline(always)] // see `Row::get`
    pub fn get(&self, id: RowId) -> Result<Row<'a>> {
        Row::get(*self, id)
    }

    /// Returns the row of a table that always has exactly one.
    ///
    /// # Errors
    /// `Invalid` if it isn't such a table.
    pub fn single(&self) -> Result<Row<'a>> {
        let row = self.rows().next().filter(|_| self.data.single);
        row.unwrap_or_else(|| {
            let name = &self.schema().name;
            Err(Error::invalid(format!(
                "table `{name}` isn't one of a single row: `set_single_row {name} true` makes it so"
            )))
        })
    }

    /// Returns all rows in order of their ids.
    #[must_use]
    pub fn rows(&self) -> Rows<'a> {
        Rows { table: *self, rows: self.data.rows.iter() }
    }

    /// Returns the rows whose ids are in the bounds, in order of their ids, from both ends. Beginning
    /// anywhere takes logarithmic time: the row after an id is the first of `range(id..)`, the row
    /// before it the last of `range(..id)`.
    #[must_use]
    pub fn range(&self, ids: impl RangeBounds<RowId>) -> Rows<'a> {
        let low = match ids.start_bound() {
            Bound::Included(id) => id.0,
            Bound::Excluded(id) => id.0.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let high = match ids.end_bound() {
            Bound::Included(id) => id.0.saturating_add(1),
            Bound::Excluded(id) => id.0,
            Bound::Unbounded => u64::MAX,
        };
        self.rows_in(low..high)
    }

    pub(super) fn rows_in(&self, ids: Ids<u64>) -> Rows<'a> {
        Rows { table: *self, rows: self.data.rows.range(ids) }
    }

    /// True if a field that may not be null has, or once had, values that were erased: those are null.
    #[must_use]
    pub fn has_erased(&self, field: FieldNumber) -> bool {
        self.data.column(field).is_some_and(Column::has_erased)
    }

    /// Returns how much memory the table takes, in bytes, without its indexes. Walks over all pages.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.data.memory(Counted::All)
    }
}

#[cold]
pub(super) fn no_row(view: &View, table: TableNumber, id: RowId) -> Error {
    let message = format!("table `{}` has no row {}", view.table_name(table), id.0);
    Error::new(ErrorKind::NotFound, message)
}
