//! A database of a schema that is known when compiling, and one that is open for reading only.

use annals_schema::Txid;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, RangeBounds};
use std::path::Path;

use super::{
    Abort, Change, Changes, CustomSchema, History, Id, PlainSchema, Proposed, Record, Snapshot,
    Subscription, Transaction, TypedSchema, Versioned, WithCustoms,
};
use crate::{Blame, Checked, Moment, Options, Result};

/// A database of the schema `S`, open for reading and writing: one writer at a time, any number of
/// readers. It is a handle, `Send` and `Sync`, and cheap to clone: a clone is a handle of the same open database.
///
/// It dereferences to the same database without the types of its schema, which has the methods that need none. A method
/// that both have is that of this type; `(*db).read()` is the other one.
///
/// Generated code names it `Database`. A function for the databases of any schema is generic:
///
/// ```
/// annals::schema!("tutorial.schema");
/// use tutorial::city;
/// use annals::typed::{Database, TypedSchema};
///
/// fn commits<S: TypedSchema>(db: &Database<S>) -> u64 {
///     db.read().txid().0
/// }
///
/// # fn main() -> annals::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("tutorial.annals");
/// let db = tutorial::Database::open(path)?;
/// let before = commits(&db);
/// db.write(|tx| Ok(tx.insert(city::New { name: "Lille" })?))?;
/// assert_eq!(commits(&db), before + 1);
/// # Ok(())
/// # }
/// ```
#[must_use = "a database that isn't kept is closed at once"]
pub struct Database<S> {
    database: crate::Database,
    schema: PhantomData<fn() -> S>,
}

impl<S: PlainSchema> Database<S> {
    /// Opens or creates a database with the default options. A file with an older schema is
    /// upgraded.
    ///
    /// # Errors
    /// Those of [`open_with`](Self::open_with).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, &Options::new())
    }

    /// Makes a database in memory, for tests: see [`Database::in_memory`](crate::Database::in_memory).
    ///
    /// ```
    /// annals::schema!("tutorial.schema");
    /// use tutorial::city;
    ///
    /// # fn main() -> annals::Result<()> {
    /// let db = tutorial::Database::in_memory()?;
    /// let lille = db.write(|tx| Ok(tx.insert(city::New { name: "Lille" })?))?;
    /// assert_eq!(db.read().city().require(lille)?.name(), "Lille");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// None that is known.
    pub fn in_memory() -> Result<Self> {
        Options::in_memory(S::schema()?, None).map(Self::new)
    }

    /// Opens or creates a database. A file with an older schema is upgraded.
    ///
    /// # Errors
    /// The file is no database, is damaged, is in use, or has another schema, or a newer one; I/O
    /// error.
    pub fn open_with(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        options.open_schema(path, S::schema()?).map(Self::new)
    }
}

impl<S: CustomSchema> Database<WithCustoms<S>> {
    /// Opens or creates a database with the default options. A file with an older schema is
    /// upgraded, with the help of `customs`.
    ///
    /// # Errors
    /// Those of [`open_with`](Self::open_with).
    pub fn open(path: impl AsRef<Path>, customs: S::Customs<'_>) -> Result<Self> {
        Self::open_with(path, &Options::new(), customs)
    }

    /// Makes a database in memory, for tests: see [`Database::in_memory`](crate::Database::in_memory).
    ///
    /// # Errors
    /// Those of `customs`.
    pub fn in_memory(mut customs: S::Customs<'_>) -> Result<Self> {
        let run: &mut crate::Customs<'_> = &mut |custom, tx| S::run(&mut customs, custom, tx);
        Options::in_memory(S::schema()?, Some(run)).map(Self::new)
    }

    /// Opens or creates a database. A file with an older schema is upgraded, with the help of
    /// `customs`, in one transaction.
    ///
    /// # Errors
    /// The file is no database, is damaged, is in use, or has another schema, or a newer one; a function failed, and
    /// the file is unchanged; I/O error.
    pub fn open_with(
        path: impl AsRef<Path>,
        options: &Options,
        mut customs: S::Customs<'_>,
    ) -> Result<Self> {
        let run: &mut crate::Customs<'_> = &mut |custom, tx| S::run(&mut customs, custom, tx);
        options.open_schema_with(path, S::schema()?, run).map(Self::new)
    }
}

impl<S: TypedSchema> Database<S> {
    const fn new(database: crate::Database) -> Self {
        Self { database, schema: PhantomData }
    }

    /// Returns a snapshot of the last commit. Never waits for a writer. After the database was closed it is the last
    /// commit before that.
    #[must_use]
    pub fn read(&self) -> Snapshot<S> {
        Snapshot::new(self.database.read())
    }

    /// Returns the state at an earlier moment: `Txid(17)` is the end of that transaction.
    ///
    /// # Errors
    /// There is no such moment, or its history was forgotten; the file is damaged; I/O error.
    pub fn at(&self, moment: impl Into<Moment>) -> Result<Snapshot<S>> {
        self.database.at(moment).map(Snapshot::new)
    }

    /// Returns the history of a row of any table: each version that a transaction made of it, the
    /// oldest first.
    ///
    /// # Errors
    /// The file is damaged; I/O error.
    pub fn history_of<R: Versioned<Schema = S>>(&self, id: Id<R>) -> Result<History<R>>
    where
        S::Change: From<Change<R>>,
    {
        self.database.history_of(R::TABLE, id.into()).map(History::new)
    }

    /// Returns for each field of a row since when it has its present value, in the order of the schema: the
    /// transaction that set it, with its time and its comments.
    ///
    /// # Errors
    /// There is no such row; the file is damaged; I/O error.
    pub fn blame<R: Record<Schema = S>>(&self, id: Id<R>) -> Result<Vec<Blame>> {
        self.database.blame(R::TABLE, id.into())
    }

    /// Returns the changes by the transactions in a range of numbers, in order, up to the last commit as of now.
    ///
    /// # Errors
    /// The history there was forgotten, or the file is damaged; I/O error.
    pub fn changes(&self, txids: impl RangeBounds<Txid>) -> Result<Changes<S::Change>> {
        self.database.changes(txids).map(Changes::new)
    }

    /// Follows the commits from now on, each transaction once and in order: an iterator that waits, or its
    /// `try_next`.
    #[must_use]
    pub fn subscribe(&self) -> Subscription<S::Change> {
        Subscription::new(self.database.subscribe())
    }

    /// Follows past and new commits, beginning with the transaction `first`.
    ///
    /// # Errors
    /// The history there was forgotten, or `first` is later than the next transaction; I/O error.
    pub fn subscribe_from(&self, first: Txid) -> Result<Subscription<S::Change>> {
        self.database.subscribe_from(first).map(Subscription::new)
    }

    /// Begins a transaction; waits for the one before.
    ///
    /// # Errors
    /// This thread has a transaction already, or an earlier failure made the handle unusable.
    pub fn begin(&self) -> Result<Transaction<'_, S>> {
        self.database.begin().map(Transaction::new)
    }

    /// Runs `change` in a transaction and commits it; an `Err` rolls everything back. `?` in `change` takes any error:
    /// see [`Abort`].
    ///
    /// # Errors
    /// That of `change`, or of beginning or committing. [`Error::into_program`](crate::Error::into_program) returns the
    /// program's own.
    pub fn write<T>(
        &self,
        change: impl FnOnce(&mut Transaction<'_, S>) -> Result<T, Abort>,
    ) -> Result<T> {
        let mut transaction = self.begin()?;
        let value = change(&mut transaction).map_err(Abort::into_error)?;
        transaction.commit().map(|_| value)
    }

    /// Registers a check that every later commit of this handle must pass. An error refuses the commit: it names the
    /// check, and the transaction is rolled back.
    ///
    /// See [`crate::Database::check_commits`] for costs, and for what isn't checked.
    ///
    /// ```
    /// annals::schema!("tutorial.schema");
    /// use annals::ErrorKind;
    /// use tutorial::{Change, city};
    ///
    /// # fn main() -> annals::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// let db = tutorial::Database::open(folder.path().join("tutorial.annals"))?;
    /// db.check_commits("cities have names", |proposed| {
    ///     for change in proposed.changes() {
    ///         if let Change::City(city) = change?
    ///             && city.after.is_some_and(|city| city.name.is_empty())
    ///         {
    ///             return Err(format!("{:?} has none", city.id).into());
    ///         }
    ///     }
    ///     Ok(())
    /// })?;
    /// db.write(|tx| Ok(tx.insert(city::New { name: "Lille" })?))?;
    /// let refused = db.write(|tx| Ok(tx.insert(city::New { name: "" })?)).unwrap_err();
    /// assert_eq!(refused.kind(), ErrorKind::Refused);
    /// assert!(refused.to_string().contains("cities have names"));
    /// assert_eq!(db.read().city().len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// There is a check of this name already, or this thread has a transaction open.
    pub fn check_commits(
        &self,
        name: &str,
        check: impl Fn(&Proposed<'_, S>) -> Checked + Send + Sync + 'static,
    ) -> Result<()> {
        self.database.check_commits(name, move |proposed| check(&Proposed::new(proposed)))
    }

    /// Loads the commits of other processes since, in shared mode, and returns a snapshot of them.
    ///
    /// # Errors
    /// The file was removed, replaced or damaged, or another program upgraded its schema; I/O
    /// error.
    pub fn pull(&self) -> Result<Snapshot<S>> {
        self.database.pull().map(Snapshot::new)
    }

    /// Makes everything durable and closes the database, for all its handles. Waits for the open transaction of another
    /// thread. Other handles then get errors of kind [`Closed`](crate::ErrorKind::Closed); existing snapshots stay
    /// valid. Dropping the last handle closes it too, and ignores errors.
    ///
    /// See [`crate::Database::close`].
    ///
    /// # Errors
    /// There are other handles, and this thread has a transaction open; I/O error.
    pub fn close(self) -> Result<()> {
        self.database.close()
    }
}

impl<S> Deref for Database<S> {
    type Target = crate::Database;

    fn deref(&self) -> &crate::Database {
        &self.database
    }
}

impl<S> Clone for Database<S> {
    fn clone(&self) -> Self {
        Self { database: self.database.clone(), schema: PhantomData }
    }
}

impl<S> fmt::Debug for Database<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.database.fmt(f)
    }
}

/// A database open for reading only: as of its last commit when it was opened, or at the last
/// [`pull`](Reader::pull). It dereferences to the same reader without the types of its schema.
pub struct Reader<S> {
    reader: crate::Reader,
    schema: PhantomData<fn() -> S>,
}

impl<S: TypedSchema> Reader<S> {
    pub(super) const fn new(reader: crate::Reader) -> Self {
        Self { reader, schema: PhantomData }
    }

    /// Returns the state as of that commit. Never waits for a writer.
    #[must_use]
    pub fn read(&self) -> Snapshot<S> {
        Snapshot::new(self.reader.read())
    }

    /// Returns the state at an earlier moment: `Txid(17)` is the end of that transaction.
    ///
    /// # Errors
    /// There is no such moment, or its history was forgotten; the file is damaged; I/O error.
    pub fn at(&self, moment: impl Into<Moment>) -> Result<Snapshot<S>> {
        self.reader.at(moment).map(Snapshot::new)
    }

    /// Returns the history of a row of any table: each version that a transaction made of it, the
    /// oldest first.
    ///
    /// # Errors
    /// A newer program dropped the table, or the file is damaged; I/O error.
    pub fn history_of<R: Versioned<Schema = S>>(&self, id: Id<R>) -> Result<History<R>>
    where
        S::Change: From<Change<R>>,
    {
        self.reader.history_of(R::TABLE, id.into()).map(History::new)
    }

    /// Returns for each field of a row since when it has its present value, in the order of the schema: the
    /// transaction that set it, with its time and its comments.
    ///
    /// # Errors
    /// There is no such row; the file is damaged; I/O error.
    pub fn blame<R: Record<Schema = S>>(&self, id: Id<R>) -> Result<Vec<Blame>> {
        self.reader.blame(R::TABLE, id.into())
    }

    /// Returns the changes by the transactions in a range of numbers, in order, up to the last commit as of now.
    ///
    /// # Errors
    /// The history there was forgotten, or the file is damaged; I/O error.
    pub fn changes(&self, txids: impl RangeBounds<Txid>) -> Result<Changes<S::Change>> {
        self.reader.changes(txids).map(Changes::new)
    }

    /// Follows the commits from now on, each transaction once and in order: an iterator that waits, or its
    /// `try_next`.
    #[must_use]
    pub fn subscribe(&self) -> Subscription<S::Change> {
        Subscription::new(self.reader.subscribe())
    }

    /// Follows past and new commits, beginning with the transaction `first`.
    ///
    /// # Errors
    /// The history there was forgotten, or `first` is later than the next transaction; I/O error.
    pub fn subscribe_from(&self, first: Txid) -> Result<Subscription<S::Change>> {
        self.reader.subscribe_from(first).map(Subscription::new)
    }

    /// Loads newer commits, and returns the state after them. Waits for no writer.
    ///
    /// # Errors
    /// The file was removed or replaced, or is damaged; another program upgraded its schema, and something of this one's was
    /// dropped or renamed; I/O error.
    pub fn pull(&self) -> Result<Snapshot<S>> {
        self.reader.pull().map(Snapshot::new)
    }
}

impl<S> Deref for Reader<S> {
    type Target = crate::Reader;

    fn deref(&self) -> &crate::Reader {
        &self.reader
    }
}

impl<S> fmt::Debug for Reader<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reader.fmt(f)
    }
}
