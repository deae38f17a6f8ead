//! Engines, as implementations of one trait: the form of the table, and how rows are written, read and committed.
//!
//! Ids begin at 0 and have no gaps: rows are inserted in their order, after all others. Each operation is a whole
//! loop inside the engine, so that the call through the trait never shows. The settings of an engine for speed, and
//! the reasons, are in its own file.

pub(crate) mod annals;
mod encoding;
mod fjall;
mod lmdb;
mod redb;
mod rows;
#[cfg(feature = "slow-peers")]
mod sled;
pub(crate) mod sqlite;
#[cfg(test)]
mod tests;
#[cfg(feature = "slow-peers")]
mod turso;

use std::ops::Range;
use std::path::Path;

use clap::builder::RangedU64ValueParser;

pub(crate) use rows::{Names, Shape, in_order, is_value_of, name, value};

/// Any failure of an engine.
pub(crate) type Failure = Box<dyn std::error::Error>;

/// All engines, by what they are called on the command line.
pub(crate) const ENGINES: &[(&str, &dyn Engine)] = &[
    ("annals", &annals::Annals { replays_all: false }),
    ("replay", &annals::Annals { replays_all: true }),
    ("sqlite", &sqlite::Sqlite { journal: sqlite::Journal::Ahead }),
    ("sqlite-rollback", &sqlite::Sqlite { journal: sqlite::Journal::Rollback }),
    ("lmdb", &lmdb::Lmdb),
    ("redb", &redb::Redb { phases: redb::Phases::One }),
    ("redb-2pc", &redb::Redb { phases: redb::Phases::Two }),
    ("fjall", &fjall::Fjall),
    #[cfg(feature = "slow-peers")]
    ("sled", &sled::Sled),
    #[cfg(feature = "slow-peers")]
    ("turso", &turso::Turso),
];

/// Rows of a transaction while a table is filled.
const FILLED_AT_ONCE: u64 = 1_000_000;

/// The guarantee of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// The operating system has it: it outlives the process.
    Soft,
    /// It is flushed: it outlives a power cut.
    Durable,
}

/// One engine.
pub(crate) trait Engine: Sync {
    /// Its name in the table.
    fn name(&self) -> &'static str;

    /// Creates a database with an empty table of a shape in an empty folder.
    fn create(&self, folder: &Path, shape: Shape) -> Result<Box<dyn Table>, Failure>;

    /// Opens the database in a folder, whose table has this shape.
    fn open(&self, folder: &Path, shape: Shape) -> Result<Box<dyn Table>, Failure>;

    /// Creates a database with rows in an empty folder, and closes it.
    fn fill(&self, folder: &Path, shape: Shape, rows: u64) -> Result<(), Failure> {
        let mut table = self.create(folder, shape)?;
        for first in (0..rows).step_by(usize::try_from(FILLED_AT_ONCE)?) {
            let ids = first..rows.min(first + FILLED_AT_ONCE);
            table.insert(ids.clone(), &shape.names(ids))?;
        }
        table.close()
    }

    /// Removes the files that the next opening mustn't use.
    fn forget(&self, _: &Path) -> Result<(), Failure> {
        Ok(())
    }

    /// Returns how much an opening of the closed database in a folder replays; `None` if the engine doesn't report
    /// it.
    fn tail(&self, _: &Path) -> Result<Option<Tail>, Failure> {
        Ok(None)
    }
}

/// The end of a journal, which the next opening replays.
pub(crate) struct Tail {
    /// How many bytes it has.
    pub(crate) bytes: u64,
    /// Where the last commit ends.
    pub(crate) end: u64,
}

/// An open database with one table.
pub(crate) trait Table {
    /// Inserts rows after all others one by one, with these names and the values of version 0, in one
    /// transaction with one durable commit.
    fn insert(&mut self, ids: Range<u64>, names: &Names) -> Result<(), Failure>;

    /// Inserts rows after all others in the same way, but as columns; `false` if the engine has no such call, and did
    /// nothing.
    fn insert_columns(&mut self, _: &[&str], _: &[i64]) -> Result<bool, Failure> {
        Ok(false)
    }

    /// Returns rows, of which all exist, the values of a version one by one, in one durable transaction.
    fn update(&mut self, ids: &[u64], version: u32) -> Result<(), Failure>;

    /// Returns the sum of the values of rows.
    fn read(&mut self, ids: &[u64]) -> Result<i64, Failure>;

    /// Returns the sum of the values of the rows that the index finds; an error where the shape has none.
    fn find(&mut self, names: &[String]) -> Result<i64, Failure>;

    /// Returns the sum of all values.
    fn scan(&mut self) -> Result<i64, Failure>;

    /// Returns what [`in_order`] makes of all values in the order of the index; an error where the shape has
    /// none.
    fn scan_by_name(&mut self) -> Result<i64, Failure>;

    /// Returns what one thread commits with, one of any number, all at the same level; none if the engine has no
    /// such level.
    fn writer(&self, level: Level) -> Result<Option<Box<dyn Writer + Send + '_>>, Failure>;

    /// Returns the memory of the data in the program, if the engine reports it.
    fn memory(&self) -> Option<u64> {
        None
    }

    /// Closes, so that the next opening has nothing to recover.
    fn close(self: Box<Self>) -> Result<(), Failure>;
}

/// Commits of one row, by one thread. Others may wait until a call is over.
pub(crate) trait Writer {
    /// Inserts one row a transaction. Threads have separate ids, and only one of them the next ones.
    fn insert(&mut self, ids: Range<u64>, names: &Names) -> Result<(), Failure>;

    /// Returns one row a transaction the value of a version.
    fn update(&mut self, ids: &[u64], version: u32) -> Result<(), Failure>;
}

/// Returns the names of all engines on the command line.
pub(crate) fn keys() -> Vec<&'static str> {
    ENGINES.iter().map(|(key, _)| *key).collect()
}

/// Returns what a number of rows or changes on the command line may be: values have room for no more.
pub(crate) fn count() -> RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=1_000_000_000)
}

/// Returns the engine of a name on the command line.
pub(crate) fn find(key: &str) -> Result<&'static dyn Engine, Failure> {
    let found = ENGINES.iter().find(|(own, _)| *own == key);
    found.map(|(_, engine)| *engine).ok_or_else(|| format!("no engine is called {key}").into())
}
