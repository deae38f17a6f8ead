//! SQLite, through rusqlite: prepared statements with both values bound, ids given by SQLite (from
//! 1 on), `synchronous` as the commit asks for.

use std::path::Path;

use rusqlite::Connection;

use crate::engine::{Engine, Failure, Opened};

pub(crate) struct Sqlite {
    /// `wal`, or `persist`: a rollback journal that stays, since removing it at each commit is dearer,
    /// and makes the flushes of whoever comes next dearer too.
    pub(crate) journal: &'static str,
    /// `synchronous` of commits that needn't be flushed; none where each must be: only a write-ahead log
    /// has such a level.
    pub(crate) soft: Option<&'static str>,
    pub(crate) name: &'static str,
}

struct Database {
    connection: Connection,
    soft: Option<&'static str>,
}

impl Engine for Sqlite {
    fn name(&self) -> &'static str {
        self.name
    }

    fn create(&self, folder: &Path) -> Result<Box<dyn Opened>, Failure> {
        let connection = Connection::open(folder.join("benchmark.sqlite"))?;
        connection.pragma_update(None, "journal_mode", self.journal)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch(
            "CREATE TABLE benchmark(id INTEGER PRIMARY KEY, name TEXT, value INTEGER)",
        )?;
        Ok(Box::new(Database { connection, soft: self.soft }))
    }
}

const INSERT: &str = "INSERT INTO benchmark(name, value) VALUES (?1, ?2)";

impl Database {
    fn one_by_one(&self, rows: u64) -> Result<(), Failure> {
        let mut statement = self.connection.prepare(INSERT)?;
        for value in 0..i64::try_from(rows)? {
            statement.execute(("TOTO", value))?;
        }
        Ok(())
    }
}

impl Opened for Database {
    fn insert_rows(&mut self, rows: u64) -> Result<(), Failure> {
        let transaction = self.connection.transaction()?;
        {
            let mut statement = transaction.prepare(INSERT)?;
            for value in 0..i64::try_from(rows)? {
                statement.execute(("TOTO", value))?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn insert_columns(&mut self, _: &[&str], _: &[i64]) -> Result<bool, Failure> {
        Ok(false)
    }

    fn read_rows(&mut self, ids: &[u64]) -> Result<i64, Failure> {
        let transaction = self.connection.transaction()?;
        let mut statement = transaction.prepare("SELECT value FROM benchmark WHERE id = ?1")?;
        let mut sum = 0i64;
        for &id in ids {
            let value: i64 = statement.query_row([i64::try_from(id)? + 1], |row| row.get(0))?;
            sum = sum.wrapping_add(value);
        }
        Ok(sum)
    }

    fn commit_rows(&mut self, rows: u64) -> Result<(), Failure> {
        self.connection.pragma_update(None, "synchronous", "FULL")?;
        self.one_by_one(rows)
    }

    fn commit_rows_soft(&mut self, rows: u64) -> Result<bool, Failure> {
        let Some(synchronous) = self.soft else { return Ok(false) };
        self.connection.pragma_update(None, "synchronous", synchronous)?;
        self.one_by_one(rows)?;
        Ok(true)
    }

    fn memory(&self) -> Option<u64> {
        None
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.connection.close().map_err(|(_, error)| error.into())
    }
}
