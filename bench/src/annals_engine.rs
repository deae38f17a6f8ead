//! Annals, through its typed API.

use std::ops::DerefMut;
use std::path::Path;

use annals::{Level, Options};

use crate::engine::{Engine, Failure, Opened};

annals::schema!("benchmark.schema");

/// The name in all rows but those of races that say otherwise.
pub(crate) const SHORT: &str = "TOTO";

pub(crate) struct Annals;

/// A database with the benchmark's table.
pub(crate) struct Database(benchmark::Database);

impl Engine for Annals {
    fn name(&self) -> &'static str {
        "Annals"
    }

    fn create(&self, folder: &Path) -> Result<Box<dyn Opened>, Failure> {
        Ok(Box::new(Database::open(&folder.join("benchmark.annals"), Options::new())?))
    }
}

impl Database {
    pub(crate) fn open(path: &Path, options: Options) -> Result<Self, Failure> {
        Ok(Self(benchmark::Database::open_with(path, &options)?))
    }

    /// Gives where the last commit ends in the journal.
    pub(crate) fn position(&self) -> u64 {
        self.0.read().as_dynamic().point().position
    }

    /// Inserts one row a transaction, with this name.
    pub(crate) fn commit_each(&self, rows: u64, text: &str, level: Level) -> Result<(), Failure> {
        Ok(self.commit_rows_at(rows, text, level)?)
    }

    /// Lets each of so many threads insert so many rows, one a transaction, each durable.
    pub(crate) fn commit_by_threads(&self, threads: u64, rows: u64) -> Result<(), Failure> {
        let commit = || self.commit_rows_at(rows, SHORT, Level::Checksummed);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(commit)).collect();
            for thread in threads {
                thread.join().map_err(|_| "a thread panicked")??;
            }
            Ok(())
        })
    }

    fn commit_rows_at(&self, rows: u64, text: &str, level: Level) -> annals::Result<()> {
        for value in 0..rows.cast_signed() {
            self.0.write(|tx| {
                tx.set_level(level);
                tx.benchmark().insert(text, value)
            })?;
        }
        Ok(())
    }
}

impl Opened for Database {
    fn insert_rows(&mut self, rows: u64) -> Result<(), Failure> {
        let rows = i64::try_from(rows)?;
        self.0.write(|tx| -> annals::Result<_> {
            for value in 0..rows {
                tx.benchmark().insert(SHORT, value)?;
            }
            Ok(())
        })?;
        Ok(())
    }

    fn insert_columns(&mut self, names: &[&str], values: &[i64]) -> Result<bool, Failure> {
        let columns = [names.into(), values.into()];
        self.0.write(|tx| tx.benchmark().deref_mut().insert_vector(&columns))?;
        Ok(true)
    }

    fn read_rows(&mut self, ids: &[u64]) -> Result<i64, Failure> {
        let now = self.0.read();
        let table = now.benchmark();
        let mut sum = 0i64;
        for &id in ids {
            sum = sum.wrapping_add(table.get(benchmark::benchmark::Id::new(id))?.value());
        }
        Ok(sum)
    }

    fn commit_rows(&mut self, rows: u64) -> Result<(), Failure> {
        self.commit_each(rows, SHORT, Level::Checksummed)
    }

    fn commit_rows_soft(&mut self, rows: u64) -> Result<bool, Failure> {
        self.commit_each(rows, SHORT, Level::Soft).map(|()| true)
    }

    fn memory(&self) -> Option<u64> {
        u64::try_from(self.0.read().as_dynamic().memory()).ok()
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.0.close()?)
    }
}
