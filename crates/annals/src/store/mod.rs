//! The store: tables and indexes in memory, made of copy-on-write pages.

use std::ops::Bound;
use std::sync::Arc;

use annals_schema::{FieldNumber, IndexNumber, RowId, Schema, TableNumber, ValueRef};

use crate::Result;
use crate::event::Event;

/// When a unique index refuses a key that another row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uniqueness {
    /// The statement is an error.
    AtOnce,
    /// The commit is, if the two rows still have the same key then.
    AtCommit,
}

/// The writer's side of the store: a working view that becomes a snapshot at commit.
#[derive(Debug)]
pub struct Store {}

impl Default for Store {
    fn default() -> Self {
        Self::new()
    }
}

impl Store {
    /// Makes an empty store, with an empty schema.
    pub fn new() -> Self {
        todo!()
    }
    /// Gives the working view: what the current transaction sees.
    pub fn view(&self) -> &View {
        todo!()
    }
    /// Applies an event of the journal, in replay: nothing is checked that the writer checked.
    /// Errors are of kind `Corrupt`: no such table, row or field; an id in use.
    pub fn apply(&mut self, _event: &Event<'_>) -> Result<()> {
        todo!()
    }
    /// Applies a schema command (add_field gives existing rows the default).
    pub fn apply_command(&mut self, _command: &annals_schema::Command) -> Result<()> {
        todo!()
    }
    /// Inserts a row at a free id. On error nothing has changed.
    pub fn insert(
        &mut self,
        _table: TableNumber,
        _id: RowId,
        _values: &[ValueRef<'_>],
        _uniqueness: Uniqueness,
    ) -> Result<()> {
        todo!()
    }
    /// Sets one field of one row. A duplicate in a unique index is found by `check_unique`.
    pub fn update(
        &mut self,
        _table: TableNumber,
        _id: RowId,
        _field: FieldNumber,
        _value: ValueRef<'_>,
    ) -> Result<()> {
        todo!()
    }
    /// Deletes a row.
    pub fn delete(&mut self, _table: TableNumber, _id: RowId) -> Result<()> {
        todo!()
    }
    /// Fails (kind `Unique`) if keys that this transaction wrote are there twice. To call before commit.
    pub fn check_unique(&self) -> Result<()> {
        todo!()
    }
    /// Ends the transaction: the working view becomes the published one.
    pub fn commit(&mut self) -> Arc<View> {
        todo!()
    }
    /// Ends the transaction: the working view becomes what was last published.
    pub fn rollback(&mut self) {
        todo!()
    }
}

/// All tables and indexes as they are at one moment.
#[derive(Debug)]
pub struct View {}

impl View {
    /// Gives the schema.
    pub fn schema(&self) -> &Arc<Schema> {
        todo!()
    }
    /// Gives a table; `NotFound` if there is none with that number.
    pub fn table(&self, _number: TableNumber) -> Result<TableView<'_>> {
        todo!()
    }
    /// Gives an index; `NotFound` if there is none with that number.
    pub fn index(&self, _number: IndexNumber) -> Result<IndexView<'_>> {
        todo!()
    }
}

/// A table in a view.
#[derive(Clone, Copy, Debug)]
pub struct TableView<'a>(&'a View);

impl<'a> TableView<'a> {
    /// Gives the number of rows. Constant time.
    pub fn len(&self) -> u64 {
        todo!()
    }
    /// Tells whether there is no row.
    pub fn is_empty(&self) -> bool {
        todo!()
    }
    /// Gives the id that the next `insert` without an id gets: larger than any id ever used.
    pub fn next_id(&self) -> u64 {
        todo!()
    }
    /// Tells whether there is a row with that id.
    pub fn contains(&self, _id: RowId) -> bool {
        todo!()
    }
    /// Gives the row, if there is one with that id.
    pub fn find(&self, _id: RowId) -> Result<Option<Row<'a>>> {
        todo!()
    }
    /// Gives the row; `NotFound` (naming table and id) if there is none with that id.
    pub fn get(&self, _id: RowId) -> Result<Row<'a>> {
        todo!()
    }
    /// Gives all rows in order of their ids.
    pub fn rows(&self) -> Rows<'a> {
        todo!()
    }
}

/// A row in a view.
#[derive(Clone, Debug)]
pub struct Row<'a>(TableView<'a>);

impl Row<'_> {
    /// Gives the row's id.
    pub fn id(&self) -> RowId {
        todo!()
    }
    /// Gives the value of a field.
    ///
    /// # Panics
    /// If the table has no such field: a bug of the caller, who knows the schema.
    pub fn value(&self, _field: FieldNumber) -> ValueRef<'_> {
        todo!()
    }
    /// Reads a field whose type is known when compiling.
    pub fn read<'r, T: Cell<'r>>(&'r self, field: FieldNumber) -> T {
        T::read(self, field)
    }
}

/// A Rust type that a field can be read as: `bool`, the integers and floats, `&str`, `&[u8]`,
/// `Timestamp`, `RowId`, and `Option` of each for fields that may be null.
pub trait Cell<'r>: Sized {
    /// Reads the field (a null field read as a plain type gives its zero).
    fn read(row: &'r Row<'_>, field: FieldNumber) -> Self;
}

/// Rows in order of their ids, from both ends.
#[derive(Debug)]
pub struct Rows<'a>(TableView<'a>);

impl<'a> Iterator for Rows<'a> {
    type Item = Result<Row<'a>>;
    fn next(&mut self) -> Option<Self::Item> {
        todo!()
    }
}

impl DoubleEndedIterator for Rows<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        todo!()
    }
}

/// An index in a view.
#[derive(Clone, Copy, Debug)]
pub struct IndexView<'a>(&'a View);

impl<'a> IndexView<'a> {
    /// Gives all rows in order of the key, then of the id.
    pub fn rows(&self) -> IndexRows<'a> {
        todo!()
    }
    /// Gives the rows whose first fields equal these values.
    pub fn equal(&self, _values: &[ValueRef<'_>]) -> IndexRows<'a> {
        todo!()
    }
    /// Gives the rows whose first fields equal `leading` and whose next field, a string or bytes,
    /// begins with `prefix`.
    pub fn prefix(&self, _leading: &[ValueRef<'_>], _prefix: &[u8]) -> IndexRows<'a> {
        todo!()
    }
    /// Gives the rows whose first fields equal `leading` and whose next field is in the bounds.
    pub fn range(
        &self,
        _leading: &[ValueRef<'_>],
        _lower: Bound<ValueRef<'_>>,
        _upper: Bound<ValueRef<'_>>,
    ) -> IndexRows<'a> {
        todo!()
    }
}

/// Rows in the order of an index, from both ends.
#[derive(Debug)]
pub struct IndexRows<'a>(IndexView<'a>);

impl<'a> Iterator for IndexRows<'a> {
    type Item = Result<Row<'a>>;
    fn next(&mut self) -> Option<Self::Item> {
        todo!()
    }
}

impl DoubleEndedIterator for IndexRows<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        todo!()
    }
}
