//! SQLite, with a write-ahead log.

use std::path::Path;

use rusqlite::Connection;

use super::Table;
use crate::engines::sqlite;
use crate::engines::{Failure, in_order};

pub(super) struct Sqlite(Connection);

impl Sqlite {
    pub(super) fn create(folder: &Path) -> Result<Self, Failure> {
        let connection = sqlite::create(&folder.join("unique.sqlite"))?;
        connection.execute_batch(
            "CREATE TABLE named(id INTEGER PRIMARY KEY, name TEXT NOT NULL, value INTEGER NOT NULL);
             CREATE UNIQUE INDEX named_by_name ON named(name)",
        )?;
        Ok(Self(connection))
    }
}

impl Table for Sqlite {
    fn insert(&mut self, names: &[String]) -> Result<(), Failure> {
        let transaction = self.0.transaction()?;
        {
            let mut insert =
                transaction.prepare_cached("INSERT INTO named(name, value) VALUES (?1, ?2)")?;
            for (name, value) in names.iter().zip(0_i64..) {
                insert.execute((name, value))?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn find(&mut self, names: &[String]) -> Result<i64, Failure> {
        let transaction = self.0.transaction()?;
        let mut find = transaction.prepare_cached("SELECT value FROM named WHERE name = ?1")?;
        names
            .iter()
            .try_fold(0, |sum, name| Ok(sum + find.query_row([name], |row| row.get::<_, i64>(0))?))
    }

    fn scan(&mut self) -> Result<i64, Failure> {
        let mut scan = self
            .0
            .prepare_cached("SELECT value FROM named INDEXED BY named_by_name ORDER BY name")?;
        let (mut rows, mut sum) = (scan.query(())?, 0);
        while let Some(row) = rows.next()? {
            sum = in_order(sum, row.get(0)?);
        }
        Ok(sum)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.0.close().map_err(|(_, error)| error.into())
    }
}
