//! SQLite, through rusqlite: prepared statements with all values bound, ids given by SQLite (from 1 on).
//!
//! Durable commits are made at `synchronous=FULL`, soft ones at `NORMAL`, which only a write-ahead log has. The
//! rollback journal is kept (`persist`), since removing it at each commit is more expensive, and makes the next
//! engine's flushes more expensive too. The cache has room for a GiB, as redb's has, and reads are by `mmap`, which
//! its documentation calls faster for what only reads. There is one writer at a time and no group commit: threads
//! share one connection through a mutex. That is faster than connections that wait for each other's lock by sleeping,
//! and that lose their cache to each other's commits.

use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use rusqlite::{Connection, Transaction};

use super::{Engine, Failure, Level, Names, Shape, Table, Writer, in_order, value};

const FILE: &str = "items.sqlite";
/// The log beside the database.
pub(crate) const LOG: &str = "items.sqlite-wal";

/// In KiB, negative as `cache_size` wants it.
const CACHE: i64 = -(1 << 20);
const MAPPED: i64 = 16 << 30;

const INSERT: &str = "INSERT INTO item(name, value) VALUES (?1, ?2)";
const UPDATE: &str = "UPDATE item SET value = ?2 WHERE id = ?1";

/// How a transaction can be undone, or done again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Journal {
    /// A write-ahead log.
    Ahead,
    /// A rollback journal.
    Rollback,
}

pub(crate) struct Sqlite {
    pub(crate) journal: Journal,
}

/// An open database.
pub(crate) struct Items {
    connection: Mutex<Connection>,
    journal: Journal,
}

/// A thread's part in it.
struct Part<'a>(&'a Mutex<Connection>);

/// Opens the database in a file, or creates it, with all that doesn't depend on its journal.
fn open(path: &Path) -> Result<Connection, Failure> {
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "cache_size", CACHE)?;
    connection.pragma_update(None, "mmap_size", MAPPED)?;
    Ok(connection)
}

/// Creates an empty file with a write-ahead log.
pub(crate) fn create(path: &Path) -> Result<Connection, Failure> {
    let connection = open(path)?;
    connection.pragma_update(None, "journal_mode", "wal")?; // the file keeps it
    Ok(connection)
}

impl Sqlite {
    /// Opens the database in a folder, or creates an empty file.
    pub(crate) fn connect(&self, folder: &Path) -> Result<Items, Failure> {
        let connection = open(&folder.join(FILE))?;
        if self.journal == Journal::Rollback {
            connection.pragma_update(None, "journal_mode", "persist")?;
        }
        Ok(Items { connection: Mutex::new(connection), journal: self.journal })
    }

    /// Creates a database without indexes.
    fn create_table(&self, folder: &Path) -> Result<Items, Failure> {
        let mut items = self.connect(folder)?;
        let connection = items.connection()?;
        if self.journal == Journal::Ahead {
            connection.pragma_update(None, "journal_mode", "wal")?; // the file keeps it
        }
        connection.execute_batch(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT NOT NULL, value INTEGER NOT NULL)",
        )?;
        Ok(items)
    }
}

impl Items {
    /// Returns the connection.
    pub(crate) fn connection(&mut self) -> Result<&mut Connection, Failure> {
        self.connection.get_mut().map_err(|_| "a thread panicked".into())
    }

    /// Begins a transaction with a durable commit.
    fn begin(&mut self) -> Result<Transaction<'_>, Failure> {
        let connection = self.connection()?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        Ok(connection.transaction()?)
    }

    fn create_index(&mut self, shape: Shape) -> Result<(), Failure> {
        let index = match shape {
            Shape::Small => return Ok(()),
            Shape::Named => "CREATE INDEX item_by_name ON item(name)",
        };
        Ok(self.connection()?.execute_batch(index)?)
    }
}

impl Engine for Sqlite {
    fn name(&self) -> &'static str {
        match self.journal {
            Journal::Ahead => "SQLite WAL",
            Journal::Rollback => "SQLite rollback",
        }
    }

    fn create(&self, folder: &Path, shape: Shape) -> Result<Box<dyn Table>, Failure> {
        let mut items = self.create_table(folder)?;
        items.create_index(shape)?;
        Ok(Box::new(items))
    }

    fn open(&self, folder: &Path, _: Shape) -> Result<Box<dyn Table>, Failure> {
        Ok(Box::new(self.connect(folder)?))
    }

    fn fill(&self, folder: &Path, shape: Shape, rows: u64) -> Result<(), Failure> {
        let mut items = self.create_table(folder)?;
        items.insert(0..rows, &shape.names(0..rows))?;
        // Sorting is much faster than inserting in a random order.
        items.create_index(shape)?;
        Box::new(items).close()
    }
}

/// Returns SQLite's number of the row with an id.
fn number(id: u64) -> Result<i64, Failure> {
    Ok(i64::try_from(id)? + 1)
}

impl Table for Items {
    fn insert(&mut self, ids: Range<u64>, names: &Names) -> Result<(), Failure> {
        let transaction = self.begin()?;
        {
            let mut statement = transaction.prepare_cached(INSERT)?;
            for (id, name) in names.of(ids) {
                statement.execute((name, value(id, 0)))?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn update(&mut self, ids: &[u64], version: u32) -> Result<(), Failure> {
        let transaction = self.begin()?;
        {
            let mut statement = transaction.prepare_cached(UPDATE)?;
            for &id in ids {
                statement.execute((number(id)?, value(id, version)))?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn read(&mut self, ids: &[u64]) -> Result<i64, Failure> {
        let transaction = self.connection()?.transaction()?;
        let mut statement = transaction.prepare_cached("SELECT value FROM item WHERE id = ?1")?;
        let mut sum = 0i64;
        for &id in ids {
            let value: i64 = statement.query_row([number(id)?], |row| row.get(0))?;
            sum = sum.wrapping_add(value);
        }
        Ok(sum)
    }

    fn find(&mut self, names: &[String]) -> Result<i64, Failure> {
        let transaction = self.connection()?.transaction()?;
        let mut statement = transaction
            .prepare_cached("SELECT value FROM item INDEXED BY item_by_name WHERE name = ?1")?;
        let mut sum = 0i64;
        for name in names {
            let value: i64 = statement.query_row([name], |row| row.get(0))?;
            sum = sum.wrapping_add(value);
        }
        Ok(sum)
    }

    fn scan(&mut self) -> Result<i64, Failure> {
        let mut statement = self.connection()?.prepare_cached("SELECT sum(value) FROM item")?;
        Ok(statement.query_row((), |row| row.get::<_, Option<i64>>(0))?.unwrap_or(0))
    }

    fn scan_by_name(&mut self) -> Result<i64, Failure> {
        let mut statement = self
            .connection()?
            .prepare_cached("SELECT value FROM item INDEXED BY item_by_name ORDER BY name")?;
        let (mut rows, mut sum) = (statement.query(())?, 0);
        while let Some(row) = rows.next()? {
            sum = in_order(sum, row.get(0)?);
        }
        Ok(sum)
    }

    fn writer(&self, level: Level) -> Result<Option<Box<dyn Writer + Send + '_>>, Failure> {
        let synchronous = match (level, self.journal) {
            (Level::Durable, _) => "FULL",
            (Level::Soft, Journal::Ahead) => "NORMAL",
            (Level::Soft, Journal::Rollback) => return Ok(None),
        };
        lock(&self.connection)?.pragma_update(None, "synchronous", synchronous)?;
        Ok(Some(Box::new(Part(&self.connection))))
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        let connection = self.connection.into_inner().map_err(|_| "a thread panicked")?;
        connection.close().map_err(|(_, error)| error.into())
    }
}

fn lock(connection: &Mutex<Connection>) -> Result<MutexGuard<'_, Connection>, Failure> {
    connection.lock().map_err(|_| "a thread panicked".into())
}

impl Writer for Part<'_> {
    fn insert(&mut self, ids: Range<u64>, names: &Names) -> Result<(), Failure> {
        let connection = lock(self.0)?;
        let mut statement = connection.prepare_cached(INSERT)?;
        for (id, name) in names.of(ids) {
            statement.execute((name, value(id, 0)))?;
        }
        Ok(())
    }

    fn update(&mut self, ids: &[u64], version: u32) -> Result<(), Failure> {
        let connection = lock(self.0)?;
        let mut statement = connection.prepare_cached(UPDATE)?;
        for &id in ids {
            statement.execute((number(id)?, value(id, version)))?;
        }
        Ok(())
    }
}
