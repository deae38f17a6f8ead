//! What users hold: the database, its transactions and snapshots.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use annals_schema::{Command, FieldNumber, RowId, Schema, TableNumber, Timestamp, ValueRef};

use crate::Result;
use crate::event::Event;
use crate::store::View;

/// How a commit is made, and what it promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// Handed to the operating system: survives the end of the process, not a power cut.
    Soft,
    /// On permanent storage when acknowledged, proven by checksums: one write and one flush.
    Checksummed,
}

/// What opening does with a journal that wasn't closed properly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recovery {
    /// Cut what was never known to be durable and doesn't verify, keep a copy, report it.
    Checked,
    /// Refuse to open for writing.
    Refuse,
}

/// What opening found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// A sentence for each thing that was found and done; empty after a clean end.
    pub findings: Vec<String>,
}

/// How to open a database.
#[derive(Clone, Debug)]
pub struct Options {}

impl Options {
    /// The defaults: `Checksummed`, `Checked`, create if missing.
    #[must_use]
    pub fn new() -> Self {
        todo!()
    }
    /// The level of commits that don't say another.
    #[must_use]
    pub fn level(self, _level: Level) -> Self {
        todo!()
    }
    /// What to do after an unclean end.
    #[must_use]
    pub fn recovery(self, _recovery: Recovery) -> Self {
        todo!()
    }
    /// Whether a missing file is created (default) or an error.
    #[must_use]
    pub fn create(self, _create: bool) -> Self {
        todo!()
    }
    /// Opens or creates a database for reading and writing, whatever its schema.
    pub fn open(&self, _path: impl AsRef<Path>) -> Result<Database> {
        todo!()
    }
    /// Opens or creates a database that has just this schema: what generated code calls.
    pub fn open_schema(&self, _path: impl AsRef<Path>, _schema: &Schema) -> Result<Database> {
        todo!()
    }
    /// Opens an existing database for reading only: takes no lock and writes nothing.
    pub fn open_read_only(&self, _path: impl AsRef<Path>) -> Result<Reader> {
        todo!()
    }
}

/// A database opened for reading only, as of its last commit when it was opened.
#[derive(Debug)]
pub struct Reader {}

impl Reader {
    /// Gives the state as of the last commit.
    #[must_use]
    pub fn read(&self) -> Snapshot {
        todo!()
    }
}

/// A database, open for reading and writing. Cheap to clone; one writer at a time, any number of readers.
#[derive(Clone, Debug)]
pub struct Database {}

impl Database {
    /// Opens or creates with the default options.
    pub fn open(_path: impl AsRef<Path>) -> Result<Self> {
        todo!()
    }
    /// Gives a snapshot of the last commit. Never waits.
    #[must_use]
    pub fn read(&self) -> Snapshot {
        todo!()
    }
    /// Begins a transaction; waits for the one before. An error in a thread that has one already.
    pub fn begin(&self) -> Result<Transaction<'_>> {
        todo!()
    }
    /// Runs `change` in a transaction and commits it; an `Err` rolls it back.
    pub fn write<T, E: From<crate::Error>>(
        &self,
        _change: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        todo!()
    }
    /// What opening found and did.
    #[must_use]
    pub fn recovered(&self) -> &Recovered {
        todo!()
    }
    /// Makes a hard checkpoint, gives back prefilled space and closes. Other clones become unusable for writing.
    pub fn close(self) -> Result<()> {
        todo!()
    }
}

/// An immutable, consistent view of the database as of one transaction.
#[derive(Clone, Debug)]
pub struct Snapshot {
    view: Arc<View>,
}

impl Snapshot {
    /// The number of the last transaction that it sees.
    #[must_use]
    pub fn txid(&self) -> u64 {
        todo!()
    }
}

impl Deref for Snapshot {
    type Target = View;
    fn deref(&self) -> &View {
        &self.view
    }
}

/// What a commit gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The transaction's number.
    pub txid: u64,
    /// The journal's end behind it, in bytes.
    pub position: u64,
    /// The level it reached.
    pub level: Level,
}

/// A transaction. Dropped without `commit`, it is rolled back.
#[derive(Debug)]
pub struct Transaction<'db> {
    database: &'db Database,
}

impl Transaction<'_> {
    /// What this transaction sees: the last commit and its own changes.
    #[must_use]
    pub fn view(&self) -> &View {
        todo!()
    }
    /// Applies a command of the schema language.
    pub fn apply_command(&mut self, _command: &Command) -> Result<()> {
        todo!()
    }
    /// Inserts a row with the table's next id. A duplicate key in a unique index is an error at once.
    pub fn insert(&mut self, _table: TableNumber, _values: &[ValueRef<'_>]) -> Result<RowId> {
        todo!()
    }
    /// Inserts a row at a free id.
    pub fn insert_at(
        &mut self,
        _table: TableNumber,
        _id: RowId,
        _values: &[ValueRef<'_>],
    ) -> Result<()> {
        todo!()
    }
    /// Inserts a row of zero values at a free id (joedb's `insert_into`); unique keys are checked at commit.
    pub fn insert_zero(&mut self, _table: TableNumber, _id: RowId) -> Result<()> {
        todo!()
    }
    /// Sets one field. Unique keys are checked at commit, so that two rows can swap values.
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
    /// Notes a comment in the journal.
    pub fn comment(&mut self, _text: &str) -> Result<()> {
        todo!()
    }
    /// Notes a time in the journal, in seconds since 1970 (joedb's `timestamp`).
    pub fn timestamp(&mut self, _seconds: i64) -> Result<()> {
        todo!()
    }
    /// Sets the level of this transaction's commit.
    pub fn set_level(&mut self, _level: Level) {
        todo!()
    }
    /// Sets the commit time, instead of the clock's.
    pub fn set_time(&mut self, _time: Timestamp) {
        todo!()
    }
    /// Tells whether nothing was changed yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        todo!()
    }
    /// Commits. An empty transaction writes no frame; at a durable level it makes all before it durable.
    pub fn commit(self) -> Result<Commit> {
        todo!()
    }
    /// Rolls back.
    pub fn rollback(self) -> Result<()> {
        todo!()
    }
}

/// One committed transaction of the journal, as a `Scan` tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Its number.
    pub txid: u64,
    /// The journal's end behind it.
    pub position: u64,
    /// Its level.
    pub level: Level,
    /// Its time.
    pub time: Timestamp,
    /// Whether the time was given by the program rather than by the clock.
    pub explicit_time: bool,
    /// The chain: one number that stands for the whole history up to here.
    pub chain: u64,
}

/// Takes what happened in a journal, in order. `schema` is the one after the event.
pub trait Sink {
    /// Takes an event.
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()>;
    /// Takes the end of a transaction: the events since the last one are committed.
    fn commit(&mut self, schema: &Schema, committed: &Committed) -> Result<()>;
}

/// Reads the whole history of a journal file into a sink; takes no lock and writes nothing. What
/// did not commit is not shown.
pub fn scan(_path: impl AsRef<Path>, _sink: &mut impl Sink) -> Result<()> {
    todo!()
}
