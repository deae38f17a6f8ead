//! Writing a table in a transaction.

use std::fmt;
use std::marker::PhantomData;

use annals_schema::{FieldNumber, ValueRef};

use super::{Id, Record, Table};
use crate::{Result, Transaction};

/// A table in a transaction, for reading and writing.
///
/// Generated code adds `insert` and the setters, with the right types, to the untyped methods here.
pub struct Writer<'t, 'db, R> {
    transaction: &'t mut Transaction<'db>,
    kind: PhantomData<fn() -> R>,
}

impl<'t, 'db, R: Record> Writer<'t, 'db, R> {
    /// Takes the table of a transaction on a database that has the program's schema.
    #[must_use]
    pub fn new(transaction: &'t mut Transaction<'db>) -> Self {
        Self { transaction, kind: PhantomData }
    }

    /// Inserts a row with the table's next id: one value for each field, in the schema's order.
    ///
    /// # Errors
    /// The values aren't those of the table, a row has the same key in a unique index, or the
    /// journal can't be written.
    pub fn insert(&mut self, values: &[ValueRef<'_>]) -> Result<Id<R>> {
        match self.transaction.insert(R::TABLE, values) {
            Ok(id) => Ok(id.into()),
            Err(error) => Err(error),
        }
    }

    /// Inserts a row at a free id.
    ///
    /// # Errors
    /// Those of [`insert`](Self::insert), and that the id is in use.
    pub fn insert_at(&mut self, id: Id<R>, values: &[ValueRef<'_>]) -> Result<()> {
        self.transaction.insert_at(R::TABLE, id.into(), values)
    }

    /// Sets one field of a row. Unique keys are checked at commit, so that two rows can swap values.
    ///
    /// # Errors
    /// There is no such row or field, the value isn't of its type, or the journal can't be written.
    pub fn set(&mut self, id: Id<R>, field: FieldNumber, value: ValueRef<'_>) -> Result<()> {
        self.transaction.update(R::TABLE, id.into(), field, value)
    }

    /// Deletes a row.
    ///
    /// # Errors
    /// There is no row with that id, or the journal can't be written.
    pub fn delete(&mut self, id: Id<R>) -> Result<()> {
        self.transaction.delete(R::TABLE, id.into())
    }

    /// Returns the transaction.
    pub(super) const fn transaction(&mut self) -> &mut Transaction<'db> {
        self.transaction
    }

    /// Returns the table as the transaction sees it.
    #[must_use]
    pub fn table(&self) -> Table<'_, R> {
        Table::new(self.transaction.view())
    }

    /// Turns into the table as the transaction sees it, which lives as long as the borrow of the
    /// transaction.
    #[must_use]
    pub fn into_table(self) -> Table<'t, R> {
        let transaction: &'t Transaction<'db> = self.transaction;
        Table::new(transaction.view())
    }

    /// Returns true if there is a row with that id.
    ///
    /// # Errors
    /// The map of rows can't be loaded.
    pub fn contains(&self, id: Id<R>) -> Result<bool> {
        self.table().contains(id)
    }

    /// Returns the number of rows. Constant time.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.table().len()
    }

    /// Returns the ids of all rows, so that they can be changed in a loop. Takes 8 bytes a row.
    ///
    /// ```
    /// annals::schema!("tutorial.schema");
    ///
    /// # fn main() -> annals::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let db = tutorial::Database::open(folder.path().join("tutorial.annals"))?;
    /// db.write(|tx| {
    ///     for name in ["lille", "lyon"] {
    ///         tx.city().insert(name)?;
    ///     }
    ///     for id in tx.city().ids()? {
    ///         let name = tx.city().get(id)?.name().to_uppercase();
    ///         tx.city().set_name(id, &name)?;
    ///     }
    ///     Ok(())
    /// })?;
    /// assert!(db.read().city_by_name().get("LYON")?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A row can't be loaded.
    pub fn ids(&self) -> Result<Vec<Id<R>>> {
        self.table().as_dynamic().rows().map(|row| Ok(row?.id().into())).collect()
    }

    /// True if there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table().is_empty()
    }
}

impl<R: Record> fmt::Debug for Writer<'_, '_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("table", &R::NAME).finish_non_exhaustive()
    }
}
