//! Annals, through its typed API.

use std::ops::DerefMut;
use std::path::Path;

use annals::Level;

use crate::engine::{Engine, Failure, Opened};

annals::schema!("benchmark.schema");

pub(crate) struct Annals;

struct Database(benchmark::Database);

impl Engine for Annals {
    fn name(&self) -> &'static str {
        "Annals"
    }

    fn create(&self, folder: &Path) -> Result<Box<dyn Opened>, Failure> {
        let database = benchmark::Database::open(folder.join("benchmark.annals"))?;
        Ok(Box::new(Database(database)))
    }
}

impl Database {
    fn one_by_one(&self, rows: u64, level: Level) -> Result<(), Failure> {
        for value in 0..i64::try_from(rows)? {
            self.0.write(|tx| -> annals::Result<_> {
                tx.set_level(level);
                tx.benchmark().insert("TOTO", value)
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
                tx.benchmark().insert("TOTO", value)?;
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
        self.one_by_one(rows, Level::Checksummed)
    }

    fn commit_rows_soft(&mut self, rows: u64) -> Result<bool, Failure> {
        self.one_by_one(rows, Level::Soft).map(|()| true)
    }

    fn memory(&self) -> Option<u64> {
        u64::try_from(self.0.read().as_dynamic().memory()).ok()
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.0.close()?)
    }
}
