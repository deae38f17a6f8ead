//! A transaction on a database whose schema is known when compiling, and the transaction of an upgrade.

use std::fmt;
use std::io::Read;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::writer::{update_row, upsert_row, verbs};
use super::{Abort, Column, Editor, Id, NewRow, NewRows, Record, RowToEdit, Slice, TypedSchema};
use crate::{Blob, BlobReader, Commit, Level, Pending, Result, Timestamp};

/// A transaction: a set of changes that applies wholly or not at all. Dropped without
/// [`commit`](Self::commit), it is rolled back.
///
/// It writes by verbs, which are typed by what they are given: `tx.insert(city::New { name: "Lille" })`. It reads
/// through the methods of the generated [`Tables`](TypedSchema::Writing), to which it dereferences: `tx.city()`.
#[must_use = "a transaction that isn't committed is rolled back"]
pub struct Transaction<'db, S: TypedSchema> {
    tables: S::Writing<'db>,
}

impl<'db, S: TypedSchema> Transaction<'db, S> {
    /// Adds the methods of the schema to a transaction that has it.
    #[doc(hidden)]
    pub fn new(transaction: crate::Transaction<'db>) -> Self {
        Self { tables: S::writing(transaction) }
    }

    /// Takes them away again.
    #[doc(hidden)]
    pub fn into_untyped(self) -> crate::Transaction<'db> {
        S::into_transaction(self.tables)
    }

    fn dynamic(&self) -> &crate::Transaction<'db> {
        S::transaction(&self.tables)
    }

    verbs!(<Schema = S>);

    /// Writes a comment to the journal.
    ///
    /// # Errors
    /// The journal can't be written.
    pub fn comment(&mut self, text: &str) -> Result<()> {
        self.as_dynamic().comment(text)
    }

    /// Writes a blob, all bytes of `content`, into the journal. The result is the value of a field of
    /// type `blob`.
    ///
    /// # Errors
    /// `content` can't be read, or the journal can't be written.
    pub fn write_blob(&mut self, content: impl Read) -> Result<Blob> {
        self.as_dynamic().write_blob(content)
    }

    /// Appends bytes to the blob that this transaction wrote last.
    ///
    /// # Errors
    /// There is no such blob or no byte, or the journal can't be written.
    pub fn append_blob(&mut self, bytes: &[u8]) -> Result<Blob> {
        self.as_dynamic().append_blob(bytes)
    }

    /// Opens a blob that was committed, or that this transaction wrote.
    ///
    /// # Errors
    /// There is no such blob.
    pub fn read_blob(&self, blob: Blob) -> Result<BlobReader<'_>> {
        self.dynamic().blob(blob)
    }

    /// Runs a part of the transaction: if `work` fails, only that part is rolled back, and the transaction can
    /// continue. Parts may be nested. See [`crate::Transaction::savepoint`] for details and costs.
    ///
    /// ```
    /// annals::schema!("tutorial.schema");
    /// use tutorial::city;
    ///
    /// # fn main() -> annals::Result<()> {
    /// let db = tutorial::Database::in_memory()?;
    /// db.write(|tx| {
    ///     tx.insert(city::New { name: "Lille" })?;
    ///     let failed = tx.savepoint(|tx| {
    ///         tx.insert(city::New { name: "Arras" })?;
    ///         Err::<(), _>(annals::Abort::new("not this one"))
    ///     });
    ///     assert!(failed.is_err());
    ///     Ok(())
    /// })?;
    /// assert_eq!(db.read().city().len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// That of `work`; or the part can't be rolled back, and then the whole transaction must be.
    pub fn savepoint<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, Abort>) -> Result<T> {
        let savepoint = self.as_dynamic().set_savepoint()?;
        let done = catch_unwind(AssertUnwindSafe(|| work(self).map_err(Abort::into_error)));
        self.as_dynamic().end_savepoint(savepoint, done)
    }

    /// Sets the commit time, instead of the clock's.
    pub fn set_time(&mut self, time: Timestamp) {
        self.as_dynamic().set_time(time);
    }

    /// Sets the level of this transaction's commit.
    pub fn set_level(&mut self, level: Level) {
        self.as_dynamic().set_level(level);
    }

    /// Commits.
    ///
    /// # Errors
    /// Two rows have the same key in a unique index, or the journal can't be written.
    pub fn commit(self) -> Result<Commit> {
        S::into_transaction(self.tables).commit()
    }

    /// Commits without waiting for a flush: see [`submit`](crate::Transaction::submit).
    ///
    /// # Errors
    /// Those of [`commit`](Self::commit).
    pub fn submit(self) -> Result<Pending<'db>> {
        S::into_transaction(self.tables).submit()
    }

    /// Rolls back.
    ///
    /// # Errors
    /// The journal can't be truncated to its length before.
    pub fn rollback(self) -> Result<()> {
        S::into_transaction(self.tables).rollback()
    }

    /// Returns the same transaction without the types of its schema.
    #[must_use]
    pub fn as_dynamic(&mut self) -> &mut crate::Transaction<'db> {
        S::transaction_mut(&mut self.tables)
    }
}

impl<'db, S: TypedSchema> Deref for Transaction<'db, S> {
    type Target = S::Writing<'db>;

    #[inline]
    fn deref(&self) -> &S::Writing<'db> {
        &self.tables
    }
}

impl<S: TypedSchema> fmt::Debug for Transaction<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.dynamic().fmt(f)
    }
}

/// The transaction of an upgrade in a `custom` function. The upgrade commits it as a whole.
///
/// Generated code adds the tables as they are at that place of the schema.
#[derive(Debug)]
pub struct CustomTransaction<'t, 'db>(&'t mut crate::Transaction<'db>);

impl<'t, 'db> CustomTransaction<'t, 'db> {
    /// Takes the transaction of an upgrade.
    #[must_use]
    pub const fn new(transaction: &'t mut crate::Transaction<'db>) -> Self {
        Self(transaction)
    }

    verbs!();

    /// Writes a comment to the journal.
    ///
    /// # Errors
    /// The journal can't be written.
    pub fn comment(&mut self, text: &str) -> Result<()> {
        self.0.comment(text)
    }

    /// Writes a blob, all bytes of `content`, into the journal. The result is the value of a field of
    /// type `blob`.
    ///
    /// # Errors
    /// `content` can't be read, or the journal can't be written.
    pub fn write_blob(&mut self, content: impl Read) -> Result<Blob> {
        self.0.write_blob(content)
    }

    /// Appends bytes to the blob that this transaction wrote last.
    ///
    /// # Errors
    /// There is no such blob or no byte, or the journal can't be written.
    pub fn append_blob(&mut self, bytes: &[u8]) -> Result<Blob> {
        self.0.append_blob(bytes)
    }

    /// Opens a blob that was committed, or that this transaction wrote.
    ///
    /// # Errors
    /// There is no such blob.
    pub fn read_blob(&self, blob: Blob) -> Result<BlobReader<'_>> {
        self.0.blob(blob)
    }

    /// Returns the state that the transaction sees, without the types of the schema.
    #[must_use]
    pub fn dynamic_view(&self) -> &crate::View {
        self.0.view()
    }

    /// Returns the same transaction without the types of its schema.
    #[must_use]
    pub const fn as_dynamic(&mut self) -> &mut crate::Transaction<'db> {
        self.0
    }
}
