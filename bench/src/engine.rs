//! What every engine must be able to do.

use std::path::Path;

/// Any failure of an engine.
pub(crate) type Failure = Box<dyn std::error::Error>;

/// One engine, with a table of a name and a value.
pub(crate) trait Engine {
    /// Its name in the table.
    fn name(&self) -> &'static str;

    /// Creates an empty database in a folder, and opens it.
    fn create(&self, folder: &Path) -> Result<Box<dyn Opened>, Failure>;
}

/// An open database.
pub(crate) trait Opened {
    /// Inserts ("TOTO", i) for all i below `rows`, one by one, in one transaction with one durable
    /// commit.
    fn insert_rows(&mut self, rows: u64) -> Result<(), Failure>;

    /// Inserts the same rows in the same way, but for that they are given as columns; `false` if the
    /// engine has no such call, and did nothing.
    fn insert_columns(&mut self, names: &[&str], values: &[i64]) -> Result<bool, Failure>;

    /// Reads the values of rows by their ids, which begin at 0; gives the sum.
    fn read_rows(&mut self, ids: &[u64]) -> Result<i64, Failure>;

    /// Inserts one row a transaction, each durable.
    fn commit_rows(&mut self, rows: u64) -> Result<(), Failure>;

    /// Inserts one row a transaction, each handed to the operating system; `false` if the engine has
    /// no such level, and did nothing.
    fn commit_rows_soft(&mut self, rows: u64) -> Result<bool, Failure>;

    /// The memory that the data takes in the program, if the engine can tell.
    fn memory(&self) -> Option<u64>;

    /// Closes, so that the files are what remains.
    fn close(self: Box<Self>) -> Result<(), Failure>;
}
