//! redb: one table for the rows, one for the index, the cache as it is (1 GiB).
//!
//! Commits are durable, in one phase with checksums as by default, or in two phases; without quick repair,
//! which makes commits slower. There is no soft level: what `Durability::None` commits, the process's end
//! loses. A write transaction waits for the one before, flush included, so threads can't share flushes.

use std::ops::Range;
use std::path::Path;

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};

use super::encoding::{bounds, change, encode, entries, entry, key, key_in, value_in};
use super::{Engine, Failure, Level, Names, Shape, Table, Writer, in_order, value};

const FILE: &str = "items.redb";
const ROWS: TableDefinition<'_, &[u8; 8], &[u8]> = TableDefinition::new("rows");
const NAMES: TableDefinition<'_, &[u8], ()> = TableDefinition::new("names");

/// How a commit is made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phases {
    One,
    Two,
}

pub(super) struct Redb {
    pub(super) phases: Phases,
}

struct Items {
    database: Database,
    phases: Phases,
    shape: Shape,
}

/// A thread's part in it.
struct Part<'a>(&'a Items);

impl Engine for Redb {
    fn name(&self) -> &'static str {
        match self.phases {
            Phases::One => "redb",
            Phases::Two => "redb 2PC",
        }
    }

    fn create(&self, folder: &Path, shape: Shape) -> Result<Box<dyn Table>, Failure> {
        let database = Database::create(folder.join(FILE))?;
        let items = Items { database, phases: self.phases, shape };
        items.insert_by(|_| Ok(()))?; // the tables are there from the first reader on
        Ok(Box::new(items))
    }

    fn open(&self, folder: &Path, shape: Shape) -> Result<Box<dyn Table>, Failure> {
        let database = Database::open(folder.join(FILE))?;
        Ok(Box::new(Items { database, phases: self.phases, shape }))
    }
}

type Rows<'t> = redb::Table<'t, &'static [u8; 8], &'static [u8]>;
type Index<'t> = redb::Table<'t, &'static [u8], ()>;

impl Items {
    fn begin(&self) -> Result<WriteTransaction, Failure> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_two_phase_commit(self.phases == Phases::Two);
        Ok(transaction)
    }

    /// Runs a change of both tables in a transaction; of the index where there is one.
    fn insert_by(
        &self,
        change: impl FnOnce((Rows<'_>, Option<Index<'_>>)) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let transaction = self.begin()?;
        let names = match self.shape {
            Shape::Small => None,
            Shape::Named => Some(transaction.open_table(NAMES)?),
        };
        change((transaction.open_table(ROWS)?, names))?;
        Ok(transaction.commit()?)
    }

    fn set(&self, ids: &[u64], version: u32) -> Result<(), Failure> {
        let transaction = self.begin()?;
        {
            let (mut rows, mut buffer) = (transaction.open_table(ROWS)?, Vec::new());
            for &id in ids {
                let key = key(id);
                {
                    let row = rows.get(&key)?.ok_or("no such row")?;
                    change(&mut buffer, row.value(), value(id, version))?;
                }
                rows.insert(&key, &*buffer)?;
            }
        }
        Ok(transaction.commit()?)
    }
}

/// Returns the value of a row.
fn value_of(
    rows: &impl ReadableTable<&'static [u8; 8], &'static [u8]>,
    key: &[u8; 8],
) -> Result<i64, Failure> {
    value_in(rows.get(key)?.ok_or("no such row")?.value())
}

impl Table for Items {
    fn insert(&mut self, ids: Range<u64>, names: &Names) -> Result<(), Failure> {
        self.insert_by(|(mut rows, index)| {
            let mut row = Vec::new();
            for (id, name) in names.of(ids.clone()) {
                encode(&mut row, value(id, 0), name);
                rows.insert(&key(id), &*row)?;
            }
            let Some(mut index) = index else { return Ok(()) };
            for entry in entries(ids, names) {
                index.insert(&*entry, ())?;
            }
            Ok(())
        })
    }

    fn update(&mut self, ids: &[u64], version: u32) -> Result<(), Failure> {
        self.set(ids, version)
    }

    fn read(&mut self, ids: &[u64]) -> Result<i64, Failure> {
        let rows = self.database.begin_read()?.open_table(ROWS)?;
        let mut sum = 0i64;
        for &id in ids {
            sum = sum.wrapping_add(value_of(&rows, &key(id))?);
        }
        Ok(sum)
    }

    fn find(&mut self, names: &[String]) -> Result<i64, Failure> {
        let transaction = self.database.begin_read()?;
        let (rows, index) = (transaction.open_table(ROWS)?, transaction.open_table(NAMES)?);
        let mut sum = 0i64;
        for name in names {
            let bounds = bounds(name);
            let bounds = bounds.start().as_slice()..=bounds.end().as_slice();
            let (entry, _) = index.range(bounds)?.next().ok_or("no row has the name")??;
            sum = sum.wrapping_add(value_of(&rows, key_in(entry.value())?)?);
        }
        Ok(sum)
    }

    fn scan(&mut self) -> Result<i64, Failure> {
        let rows = self.database.begin_read()?.open_table(ROWS)?;
        let mut sum = 0i64;
        for row in rows.iter()? {
            sum = sum.wrapping_add(value_in(row?.1.value())?);
        }
        Ok(sum)
    }

    fn scan_by_name(&mut self) -> Result<i64, Failure> {
        let transaction = self.database.begin_read()?;
        let (rows, index) = (transaction.open_table(ROWS)?, transaction.open_table(NAMES)?);
        let mut sum = 0;
        for entry in index.iter()? {
            sum = in_order(sum, value_of(&rows, key_in(entry?.0.value())?)?);
        }
        Ok(sum)
    }

    fn writer(&self, level: Level) -> Result<Option<Box<dyn Writer + Send + '_>>, Failure> {
        match level {
            Level::Soft => Ok(None),
            Level::Durable => Ok(Some(Box::new(Part(self)))),
        }
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.database.close()?)
    }
}

impl Writer for Part<'_> {
    fn insert(&mut self, ids: Range<u64>, names: &Names) -> Result<(), Failure> {
        let mut row = Vec::new();
        for (id, name) in names.of(ids) {
            encode(&mut row, value(id, 0), name);
            self.0.insert_by(|(mut rows, index)| {
                rows.insert(&key(id), &*row)?;
                if let Some(mut index) = index {
                    index.insert(&*entry(name, id), ())?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn update(&mut self, ids: &[u64], version: u32) -> Result<(), Failure> {
        for &id in ids {
            self.0.set(&[id], version)?;
        }
        Ok(())
    }
}
