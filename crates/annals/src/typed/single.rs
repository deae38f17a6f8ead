//! Tables that always have exactly one row: reading and writing it without an id.

use std::fmt;

use annals_schema::{FieldNumber, ValueRef};

use super::{Id, Record, Table, Writer};
use crate::{Result, Transaction, View};

/// A table of a single row in a view, for reading.
///
/// Generated code returns the row itself: `now.settings()?.volume()`.
pub struct Single<'a, R>(Table<'a, R>);

impl<'a, R: Record> Single<'a, R> {
    /// Returns the table of a view of a database that has the program's schema.
    ///
    /// # Panics
    /// If the view has no such table: a database is only opened when it has the program's tables.
    #[must_use]
    pub fn new(view: &'a View) -> Self {
        Self(Table::new(view))
    }

    /// Returns the row, which is always there.
    ///
    /// # Errors
    /// It can't be loaded.
    pub fn row(&self) -> Result<R::Row<'a>> {
        self.0.as_dynamic().single().map(Into::into)
    }

    /// Returns the same table as one of rows.
    #[must_use]
    pub const fn as_table(&self) -> Table<'a, R> {
        self.0
    }
}

impl<R> Clone for Single<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Single<'_, R> {}

impl<R: Record> fmt::Debug for Single<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Single").field("table", &R::NAME).finish_non_exhaustive()
    }
}

/// A table of a single row in a transaction, for reading and writing.
///
/// Generated code adds getters and setters with the right types to the untyped methods here.
pub struct SingleWriter<'t, 'db, R>(Writer<'t, 'db, R>);

impl<'t, 'db, R: Record> SingleWriter<'t, 'db, R> {
    /// Takes the table of a transaction on a database that has the program's schema.
    #[must_use]
    pub fn new(transaction: &'t mut Transaction<'db>) -> Self {
        Self(Writer::new(transaction))
    }

    /// Sets one field of the row.
    ///
    /// # Errors
    /// The value isn't of the field's type, or the journal can't be written.
    pub fn set(&mut self, field: FieldNumber, value: ValueRef<'_>) -> Result<()> {
        let id: Id<R> = self.0.table().as_dynamic().single()?.id().into();
        self.0.set(id, field, value)
    }

    /// Returns the row as the transaction sees it.
    ///
    /// # Errors
    /// It can't be loaded.
    pub fn get(&self) -> Result<R::Row<'_>> {
        Single(self.0.table()).row()
    }

    /// Turns into the row as the transaction sees it, which lives as long as the borrow of the
    /// transaction.
    ///
    /// # Errors
    /// It can't be loaded.
    pub fn into_row(self) -> Result<R::Row<'t>> {
        Single(self.0.into_table()).row()
    }
}

impl<R: Record> fmt::Debug for SingleWriter<'_, '_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingleWriter").field("table", &R::NAME).finish_non_exhaustive()
    }
}
