//! A view: all tables and indexes as they are at one moment; reading tables.

use std::sync::Arc;

use annals_schema::{Field, FieldNumber, IndexNumber, RowId, Schema, TableNumber};

use crate::blobs::Blobs;
use crate::columns::column::Column;
use crate::history::HistoryIndex;
use crate::image::RootPin;
use crate::index::tree::IndexTree;
use crate::pages::numbered::Numbered;
use crate::pages::paged::Counted;
use crate::pages::refresh::refresh;
use crate::pages::unique::NoWeak;
use crate::past::Lazy;
use crate::table::Table;
use crate::{Error, ErrorKind, Result};
use annals_storage::debug::brief;

/// All tables and indexes as they are at one moment.
pub struct View {
    pub(super) schema: Arc<Schema>,
    pub(super) tables: Numbered<Table>,
    pub(super) indexes: Numbered<IndexTree>,
    /// How many of them are unavailable. Their tables don't have them.
    pub(super) unavailable: usize,
    pub(super) blobs: NoWeak<Blobs>,
    /// The history index as of the root under the view.
    pub(super) history: Arc<HistoryIndex>,
    /// Keeps the space of the root of an image under the view.
    pub(super) pin: Option<Arc<RootPin>>,
    /// The past state that it shows, if that is made when it is read.
    pub(super) lazy: Option<Arc<Lazy>>,
}

impl Clone for View {
    fn clone(&self) -> Self {
        self.share()
    }
}

refresh!(View { schema, tables, indexes, blobs, history, pin, lazy; unavailable });

brief!(View, "View", "tables": |it| it.schema.tables().len(), "root": |it| it.root());

impl View {
    pub(super) fn new() -> Self {
        Self {
            schema: Arc::default(),
            tables: Numbered::new(),
            indexes: Numbered::new(),
            unavailable: 0,
            blobs: NoWeak::new(Blobs::new()),
            history: Arc::default(),
            pin: None,
            lazy: None,
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
            unavailable: self.unavailable,
            blobs: self.blobs.share(),
            history: Arc::clone(&self.history),
            pin: self.pin.clone(),
            lazy: self.lazy.clone(),
        }
    }

    /// Makes the view keep the space of the root under it.
    #[doc(hidden)]
    #[inline]
    pub fn pinned(self, pin: Arc<RootPin>) -> Self {
        Self { pin: Some(pin), ..self }
    }

    /// Returns the pin of the root under the view.
    #[doc(hidden)]
    #[inline]
    pub const fn pin(&self) -> Option<&Arc<RootPin>> {
        self.pin.as_ref()
    }

    /// Returns the number of the root under the view; 0 if there is none.
    #[doc(hidden)]
    #[inline]
    pub fn root(&self) -> u64 {
        self.pin.as_ref().map_or(0, |pin| pin.number)
    }

    /// Returns the history index as of the root under the view.
    #[doc(hidden)]
    #[inline]
    pub const fn history_index(&self) -> &Arc<HistoryIndex> {
        &self.history
    }

    /// Returns the indexes that can't be read, each with the reason: the library doesn't have the version of their
    /// collations.
    pub fn unavailable_indexes(&self) -> impl Iterator<Item = (IndexNumber, &str)> {
        let indexes = self.schema.indexes().iter().filter(|_| self.unavailable > 0);
        indexes.filter_map(|index| {
            let tree = self.indexes.get(index.number.0 as usize)?;
            Some((index.number, tree.unavailable()?))
        })
    }

    /// Returns the schema.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Returns the view of the whole state, if this one is lazy.
    ///
    /// # Errors
    /// The whole state can't be made.
    #[inline]
    pub(super) fn whole(&self) -> Result<Option<&Self>> {
        self.lazy.as_ref().map(|lazy| lazy.whole()).transpose()
    }

    /// Returns a table; `NotFound` if there is none with that number.
    #[inline]
    pub fn table(&self, number: TableNumber) -> Result<TableView<'_>> {
        if let Some(whole) = self.lazy.as_ref().and_then(|lazy| lazy.whole.get()) {
            return whole.table(number);
        }
        match self.tables.get(number.0 as usize) {
            Some(data) => Ok(TableView { view: self, data, number }),
            None => Err(no_table(number)),
        }
    }

    /// Returns how much memory the view reaches, in bytes, including shared parts. Walks over all pages.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.count(Counted::All)
    }

    /// Returns how much memory the parts of the view take that no image has, in bytes. Walks over those pages.
    #[doc(hidden)]
    #[inline]
    pub fn unsaved(&self) -> usize {
        self.count(Counted::Changes)
    }

    fn count(&self, what: Counted) -> usize {
        let tables: usize = self.tables.iter().map(|table| table.memory(what)).sum();
        let indexes: usize = self.indexes.iter().map(|index| index.memory(what)).sum();
        size_of::<Self>() + tables + indexes + self.blobs.memory(what) + self.history.memory(what)
    }

    pub(super) fn table_name(&self, number: TableNumber) -> &str {
        self.schema.table(number).map_or("?", |table| &table.name)
    }

    /// Returns a field of a table, if both exist.
    pub(super) fn field(&self, table: TableNumber, field: FieldNumber) -> Option<&Field> {
        self.schema.table(table)?.field(field)
    }

    pub(super) fn field_name(&self, table: TableNumber, field: FieldNumber) -> &str {
        self.field(table, field).map_or("?", |field| &field.name)
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

brief!(TableView<'_>, "TableView", "name": |it| it.schema().name);

impl<'a> TableView<'a> {
    /// Returns the table's part of the schema.
    #[must_use]
    pub fn schema(&self) -> &'a annals_schema::Table {
        self.view.schema.table(self.number).expect("a view's tables are those of its schema")
    }

    /// Returns the number of rows. Constant time, but for a past state: that is made whole first. It is 0 if that can't be
    /// done; reading a row then says why.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.whole().data.rows.len()
    }

    /// True if there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the id that the next `insert` without an id gets: larger than any id ever used.
    #[must_use]
    pub fn next_id(&self) -> u64 {
        self.whole().data.rows.next_id()
    }

    /// Returns true if there is a row with that id.
    ///
    /// # Errors
    /// The needed pages can't be loaded.
    #[inline]
    pub fn contains(&self, id: RowId) -> Result<bool> {
        match self.data.rows.at_hand(id.0) {
            Some(_) => Ok(true),
            None => self.look_for(id),
        }
    }

    fn look_for(&self, id: RowId) -> Result<bool> {
        match self.view.lazy {
            Some(_) => Ok(self.find(id)?.is_some()),
            None => Ok(self.data.rows.find(id.0)?.is_some()),
        }
    }

    /// True if a field that may not be null has, or once had, values that were erased: those are null.
    #[must_use]
    pub fn has_erased(&self, field: FieldNumber) -> bool {
        self.whole().data.column(field).is_some_and(Column::has_erased)
    }

    /// Returns how much memory the table takes, in bytes, without its indexes. Walks over all pages.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.whole().data.memory(Counted::All)
    }
}

#[cold]
pub(super) fn no_row(view: &View, table: TableNumber, id: RowId) -> Error {
    let message = format!("table `{}` has no row {}", view.table_name(table), id.0);
    Error::new(ErrorKind::NotFound, message)
}
