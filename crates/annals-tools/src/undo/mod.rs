//! Undoing by ordinary changes of a new transaction: one row as it was at a moment, or all rows that an earlier
//! transaction changed.
//!
//! `restore` and `revert` are the two ways. `touched` finds the rows that a transaction changed, and their versions
//! since. `steps` are the changes that undo it; `obstacles` refuses them where later changes stand against them,
//! `dropped` and `erased` where the values to restore have no place or are gone.
//! `revert` puts these together: everything is checked before anything is changed.

mod dropped;
mod erased;
mod obstacles;
mod restore;
mod revert;
mod steps;
mod touched;

use annals::typed::{self, Id, Record, TypedSchema};
use annals::{Moment, Result, RowId, TableNumber, Transaction, Txid};

pub(crate) use obstacles::{conflict, shown};
pub(crate) use steps::{Key, Step, Values};

/// A row, in the form in which a kind of transaction takes it: an [`Id`] with the types of a schema, else the number of
/// the table and the row's id.
pub trait RowOf<T> {
    /// Returns the number of the table, and the row's id.
    fn key(self) -> (TableNumber, RowId);
}

impl RowOf<Transaction<'_>> for (TableNumber, RowId) {
    fn key(self) -> Self {
        self
    }
}

impl<S: TypedSchema, R: Record<Schema = S>> RowOf<typed::Transaction<'_, S>> for Id<R> {
    fn key(self) -> (TableNumber, RowId) {
        (R::TABLE, self.into())
    }
}

/// Undoing what earlier transactions did, for each kind of transaction.
pub trait Undo: Sized {
    /// Restores a row as it was at a moment, by ordinary changes: it is inserted again with its id, or deleted as
    /// [`delete`](Transaction::delete) does, or its fields that differ are updated.
    ///
    /// The row is as [`Database::at`](annals::Database::at) shows it: a field that was added later gets its default.
    /// The moment is before this transaction; at the last commit it undoes this transaction's changes of the row.
    /// Unique keys and references are checked at commit, so that several rows can be restored together.
    ///
    /// ```
    /// # annals::schema!("../annals/tutorial.schema");
    /// # use tutorial::city;
    /// use annals_tools::Undo as _;
    ///
    /// # fn main() -> annals::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// let db = tutorial::Database::open(folder.path().join("tutorial.annals"))?;
    /// let lille = db.write(|tx| Ok(tx.insert(city::New { name: "Lille" })?))?;
    /// let before = db.read().txid();
    /// db.write(|tx| Ok(tx.delete(lille)?))?;
    ///
    /// db.write(|tx| Ok(tx.restore(lille, before)?))?;
    /// assert_eq!(db.read().city().require(lille)?.name(), "Lille");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Cost: that of a row by id at the moment, and of the changes.
    ///
    /// # Errors
    /// `NotFound`: no such table or moment, or its history was forgotten; `Conflict`: the table was created after the
    /// moment, a value was erased since, or its blob was forgotten; the errors of [`delete`](Transaction::delete);
    /// `Corrupt`, `Io`.
    fn restore(&mut self, row: impl RowOf<Self>, moment: impl Into<Moment>) -> Result<()>;

    /// Undoes an earlier transaction: the rows that it inserted are deleted, those that it deleted are inserted again
    /// with their ids, and the fields that it changed get their values from before. The comment `revert of
    /// transaction N` is added.
    ///
    /// It refuses if later changes stand against it, and changes nothing then: if a later transaction changed the
    /// same field of a row, deleted or inserted the row, or took its unique key, or if a row refers to an inserted
    /// row by an enforced reference. A later change stands against it even if the value is the same again. The error
    /// names all of them ([`Violation::Conflict`](annals::Violation::Conflict)). Blobs stay in the journal.
    ///
    /// A reverted transaction is restored by reverting the transaction of the revert.
    ///
    /// ```
    /// # annals::schema!("../annals/tutorial.schema");
    /// # use tutorial::city;
    /// use annals_tools::Undo as _;
    ///
    /// # fn main() -> annals::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// let db = tutorial::Database::open(folder.path().join("tutorial.annals"))?;
    /// let lille = db.write(|tx| Ok(tx.insert(city::New { name: "Lille" })?))?;
    /// db.write(|tx| {
    ///     tx.edit(lille)?.set_name("Lyon")?;
    ///     Ok(())
    /// })?;
    /// let mistake = db.read().txid();
    ///
    /// db.write(|tx| Ok(tx.revert(mistake)?))?;
    /// assert_eq!(db.read().city().require(lille)?.name(), "Lille");
    ///
    /// let refused = db.write(|tx| Ok(tx.revert(mistake)?)).unwrap_err();
    /// assert_eq!(refused.kind(), annals::ErrorKind::Conflict);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Cost: reading the transaction, and the history of each row that it changed. For references to inserted rows as
    /// [`delete`](Transaction::delete).
    ///
    /// # Errors
    /// `Conflict`: later changes stand against it. `NotFound`: there is no such transaction, or it was forgotten.
    /// `Invalid`: it changed the schema, or no rows of the present tables. `Corrupt`, `Io`. The commit returns
    /// `Unique` and `Reference` for other changes of the same transaction.
    fn revert(&mut self, txid: Txid) -> Result<()>;
}

impl Undo for Transaction<'_> {
    fn restore(&mut self, row: impl RowOf<Self>, moment: impl Into<Moment>) -> Result<()> {
        let (key, moment) = (row.key(), moment.into());
        self.savepoint(|tx| restore::restore(tx, key, &moment))
    }

    fn revert(&mut self, txid: Txid) -> Result<()> {
        self.savepoint(|tx| revert::revert(tx, &tx.base(), txid.0))
    }
}

impl<S: TypedSchema> Undo for typed::Transaction<'_, S> {
    fn restore(&mut self, row: impl RowOf<Self>, moment: impl Into<Moment>) -> Result<()> {
        self.as_dynamic().restore(row.key(), moment)
    }

    fn revert(&mut self, txid: Txid) -> Result<()> {
        self.as_dynamic().revert(txid)
    }
}
