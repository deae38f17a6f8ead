//! SQLite, through rusqlite: with a write-ahead log, every commit flushed, prepared statements.

use std::ops::Range;
use std::path::Path;

use rusqlite::Connection;

use super::{Peer, Table, name, value};
use crate::engine::Failure;

pub(super) const FILE: &str = "items.sqlite";
/// The log beside the database.
pub(crate) const LOG: &str = "items.sqlite-wal";

pub(crate) struct Sqlite;

/// An open database.
pub(crate) struct Items(pub(crate) Connection);

impl Sqlite {
    /// Opens the database in a folder, or creates an empty file.
    pub(crate) fn connect(folder: &Path) -> Result<Items, Failure> {
        let connection = Connection::open(folder.join(FILE))?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        Ok(Items(connection))
    }
}

impl Peer for Sqlite {
    fn name(&self) -> &'static str {
        "SQLite WAL"
    }

    fn fill(&self, folder: &Path, rows: u64) -> Result<(), Failure> {
        let mut items = Self::connect(folder)?;
        items.0.pragma_update(None, "journal_mode", "wal")?;
        items.0.execute_batch(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT NOT NULL, value INTEGER NOT NULL)",
        )?;
        items.append(0..rows)?;
        // Sorting is much faster than inserting in a random order.
        items.0.execute_batch("CREATE INDEX item_by_name ON item(name)")?;
        Box::new(items).close()
    }

    fn open(&self, folder: &Path) -> Result<Box<dyn Table>, Failure> {
        Ok(Box::new(Self::connect(folder)?))
    }
}

impl Table for Items {
    fn by_name(&mut self, name: &str) -> Result<i64, Failure> {
        let mut statement = self.0.prepare_cached("SELECT value FROM item WHERE name = ?1")?;
        Ok(statement.query_row([name], |row| row.get(0))?)
    }

    fn by_id(&mut self, id: u64) -> Result<i64, Failure> {
        let mut statement = self.0.prepare_cached("SELECT value FROM item WHERE id = ?1")?;
        Ok(statement.query_row([id.cast_signed()], |row| row.get(0))?)
    }

    fn append(&mut self, ids: Range<u64>) -> Result<(), Failure> {
        let transaction = self.0.transaction()?;
        {
            let mut statement = transaction
                .prepare_cached("INSERT INTO item(id, name, value) VALUES (?1, ?2, ?3)")?;
            for id in ids {
                statement.execute((id.cast_signed(), name(id), value(id, 0)))?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn update(&mut self, ids: &[u64], version: u32) -> Result<(), Failure> {
        let transaction = self.0.transaction()?;
        {
            let mut statement =
                transaction.prepare_cached("UPDATE item SET value = ?2 WHERE id = ?1")?;
            for &id in ids {
                statement.execute((id.cast_signed(), value(id, version)))?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.0.close().map_err(|(_, error)| error.into())
    }
}
