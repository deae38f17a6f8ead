//! Writing in a transaction: verbs, typed by what they are given.

use std::fmt;
use std::marker::PhantomData;

use annals_schema::{FieldNumber, RowId, TableNumber, ValueRef};

use super::{Id, Record, Vector};
use crate::db::{is_new_uuid, is_same};
use crate::{Error, Result, Transaction, View};

/// The values of a new row: the struct `New` of each table.
pub trait NewRow {
    /// The table's rows.
    type Kind: Record;
    /// Passes the values on: one for each field, in the schema's order.
    fn with<T>(self, take: impl FnOnce(&[ValueRef<'_>]) -> T) -> T;
}

/// The values of many new rows: the struct `Columns` of each table.
pub trait NewRows {
    /// The table's rows.
    type Kind: Record;
    /// Passes the columns on: one for each field, in the schema's order.
    fn with<T>(self, take: impl FnOnce(&[Vector<'_>]) -> T) -> T;
}

/// A row that can be changed: an [`Id`], or the [`OnlyRow`](super::OnlyRow) of a table.
pub trait RowToEdit {
    /// The table's rows.
    type Kind: Record;
    /// Finds the row.
    ///
    /// # Errors
    /// There is no such row, or it can't be loaded.
    fn find(self, view: &View) -> Result<RowId>;
}

impl<R: Record> RowToEdit for Id<R> {
    type Kind = R;

    #[inline(always)]
    fn find(self, view: &View) -> Result<RowId> {
        let (table, id) = (view.table(R::TABLE)?, self.into());
        // The row itself would be loaded, of which only the existence is asked.
        if table.contains(id)? { Ok(id) } else { table.get(id).map(|row| row.id()) }
    }
}

/// A row that a transaction changes.
///
/// Generated code adds a setter for each field to it.
pub struct Editor<'t, 'db, R> {
    transaction: &'t mut Transaction<'db>,
    id: RowId,
    kind: PhantomData<fn() -> R>,
}

impl<'t, 'db, R: Record> Editor<'t, 'db, R> {
    #[inline(always)] // so that finding the row costs no call
    pub(super) fn new(
        transaction: &'t mut Transaction<'db>,
        row: impl RowToEdit<Kind = R>,
    ) -> Result<Self> {
        let id = row.find(transaction.unsettled())?;
        Ok(Self { transaction, id, kind: PhantomData })
    }

    /// Sets one field of the row. Unique keys are checked at commit, so that two rows can swap values.
    ///
    /// # Errors
    /// There is no such field, the value isn't of its type, or the journal can't be written.
    #[inline]
    pub fn set(&mut self, field: FieldNumber, value: ValueRef<'_>) -> Result<()> {
        self.transaction.update(R::TABLE, self.id, field, value)
    }
}

impl<R: Record> fmt::Debug for Editor<'_, '_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Edit of {} {}", R::NAME, self.id.0)
    }
}

/// Sets the fields of a row whose values differ, as 0.0 and -0.0 do. The row keeps its UUID where a new one would be made.
pub(super) fn update_row(
    transaction: &mut Transaction<'_>,
    table: TableNumber,
    id: RowId,
    values: &[ValueRef<'_>],
) -> Result<()> {
    let differing: Vec<_> = {
        let table = transaction.view().table(table)?;
        let row = table.get(id)?;
        let fields = table.schema().fields.iter().zip(values);
        let differs = fields.filter(|(field, value)| {
            !is_new_uuid(value) && !is_same(row.value(field.number), **value)
        });
        differs.map(|(field, value)| (field.number, *value)).collect()
    };
    differing.into_iter().try_for_each(|(field, value)| transaction.update(table, id, field, value))
}

/// Updates the row that has the same key in a unique index of the table, or else inserts one; returns its id.
pub(super) fn upsert_row(
    transaction: &mut Transaction<'_>,
    table: TableNumber,
    values: &[ValueRef<'_>],
) -> Result<RowId> {
    match row_with_key(transaction.unsettled(), table, values)? {
        Some(id) => update_row(transaction, table, id, values).map(|()| id),
        None => transaction.insert(table, values),
    }
}

/// Finds the row that has the same key in a unique index of the table. A key with null is no other's.
fn row_with_key(view: &View, table: TableNumber, values: &[ValueRef<'_>]) -> Result<Option<RowId>> {
    let schema = view.schema();
    let mut unique = schema.indexes().iter().filter(|it| it.table == table && it.unique).peekable();
    let described = view.table(table)?.schema();
    if unique.peek().is_none() {
        return Err(Error::invalid(format!(
            "table `{0}` has no unique index, by which `upsert` could find the row: create one, or use `insert` or \
             `update`",
            described.name
        )));
    }
    for index in unique {
        let value = |number: &FieldNumber| {
            let place = described.fields.iter().position(|field| field.number == *number);
            place.and_then(|place| values.get(place)).copied().unwrap_or(ValueRef::Null)
        };
        let key: Vec<_> = index.fields.iter().map(value).collect();
        if !key.contains(&ValueRef::Null)
            && let Some(row) = view.index(index.number)?.first(&key)?
        {
            return Ok(Some(row.id()));
        }
    }
    Ok(None)
}

/// Writes the verbs of a transaction; `$of` says of which schema its tables must be.
macro_rules! verbs {
    ($($of:tt)*) => {
        /// Inserts a row with the table's next id, which it returns: `tx.insert(city::New { name: "Lille" })`.
        ///
        /// # Errors
        /// A row has the same key in a unique index, or the journal can't be written.
        #[inline]
        pub fn insert<N: NewRow>(&mut self, row: N) -> Result<Id<N::Kind>>
        where
            N::Kind: Record $($of)*,
        {
            let transaction = self.as_dynamic();
            match row.with(|values| transaction.insert(N::Kind::TABLE, values)) {
                Ok(id) => Ok(id.into()),
                Err(error) => Err(error),
            }
        }

        /// Inserts a row at a free id.
        ///
        /// # Errors
        /// Those of [`insert`](Self::insert), and that the id is in use.
        pub fn insert_at<N: NewRow>(&mut self, id: Id<N::Kind>, row: N) -> Result<()>
        where
            N::Kind: Record $($of)*,
        {
            let transaction = self.as_dynamic();
            row.with(|values| transaction.insert_at(N::Kind::TABLE, id.into(), values))
        }

        /// Returns a new UUID of version 7, by the clock and the randomness of the database, greater than all that were made
        /// since it was opened. Rows get one of their own by [`Uuid::NEW_V7`](crate::Uuid::NEW_V7), which is the value of a
        /// field with `default v7` that `New` leaves out; slices of [`insert_vector`](Self::insert_vector) don't.
        pub fn new_uuid(&mut self) -> crate::Uuid {
            self.as_dynamic().new_uuid()
        }

        /// Inserts many rows with the table's next ids: for each field a slice, all of the same length. Returns the
        /// first row's id. Unique keys are checked at commit.
        ///
        /// # Errors
        /// The slices aren't of the same length, or the journal can't be written. Nothing was inserted then.
        pub fn insert_vector<N: NewRows>(&mut self, rows: N) -> Result<Id<N::Kind>>
        where
            N::Kind: Record $($of)*,
        {
            let transaction = self.as_dynamic();
            rows.with(|columns| transaction.insert_rows(N::Kind::TABLE, columns)).map(Into::into)
        }

        /// Inserts many rows at free ids from `first` on.
        ///
        /// # Errors
        /// As [`insert_vector`](Self::insert_vector), and `InUse` if one of the ids is in use.
        pub fn insert_vector_at<N: NewRows>(&mut self, first: Id<N::Kind>, rows: N) -> Result<()>
        where
            N::Kind: Record $($of)*,
        {
            let transaction = self.as_dynamic();
            rows.with(|columns| transaction.insert_rows_at(N::Kind::TABLE, first.into(), columns))
        }

        /// Finds a row, and returns its setters: `tx.edit(lille)?.set_name("Lille")?`. Unique keys are checked at
        /// commit, so that two rows can swap values.
        ///
        /// # Errors
        /// There is no such row, or it can't be loaded.
        #[inline]
        pub fn edit<E: RowToEdit>(
            &mut self,
            row: E,
        ) -> Result<<E::Kind as Record>::Edit<'_, 'db>>
        where
            E::Kind: Record $($of)*,
        {
            Editor::new(self.as_dynamic(), row).map(Into::into)
        }

        /// Sets all fields of a row. Those that don't change are left out of the journal. A field that is given
        /// [`Uuid::NEW_V7`](crate::Uuid::NEW_V7), as by `..Default::default()` with `default v7`, keeps its value.
        ///
        /// # Errors
        /// There is no such row, or the journal can't be written.
        pub fn update<N: NewRow>(&mut self, id: Id<N::Kind>, row: N) -> Result<()>
        where
            N::Kind: Record $($of)*,
        {
            let transaction = self.as_dynamic();
            row.with(|values| update_row(transaction, N::Kind::TABLE, id.into(), values))
        }

        /// Updates the row that has the same key in a unique index of the table, or else inserts one; returns its id.
        /// If the table has several such indexes, it is the first one that has the key. A key with null is no other's.
        ///
        /// # Errors
        /// `Invalid`: the table has no unique index. Another row has the same key in another one, or the journal
        /// can't be written.
        pub fn upsert<N: NewRow>(&mut self, row: N) -> Result<Id<N::Kind>>
        where
            N::Kind: Record $($of)*,
        {
            let transaction = self.as_dynamic();
            row.with(|values| upsert_row(transaction, N::Kind::TABLE, values)).map(Into::into)
        }

        /// Sets a column of the rows from `first` on: as many rows as there are values. Unique keys are checked at
        /// commit.
        ///
        /// # Errors
        /// `NotFound`: one of the rows doesn't exist; `Io`: the journal can't be written. Nothing was set then.
        pub fn update_vector<'v, R, T>(
            &mut self,
            column: Column<R, T>,
            first: Id<R>,
            values: impl Slice<'v, T>,
        ) -> Result<()>
        where
            R: Record $($of)*,
        {
            let (field, values) = (column.field(), values.vector());
            self.as_dynamic().update_vector(R::TABLE, first.into(), field, values)
        }

        /// Deletes a row.
        ///
        /// # Errors
        /// There is no such row, another row refers to it, or the journal can't be written.
        pub fn delete<R>(&mut self, id: Id<R>) -> Result<()>
        where
            R: Record $($of)*,
        {
            self.as_dynamic().delete(R::TABLE, id.into())
        }

        /// Deletes `count` rows from `first` on.
        ///
        /// # Errors
        /// `NotFound`: one of the rows doesn't exist; `Io`: the journal can't be written. Nothing was deleted then.
        pub fn delete_vector<R>(&mut self, first: Id<R>, count: u64) -> Result<()>
        where
            R: Record $($of)*,
        {
            self.as_dynamic().delete_vector(R::TABLE, first.into(), count)
        }
    };
}

pub(super) use verbs;
