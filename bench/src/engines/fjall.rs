//! fjall: one keyspace for the rows, one for the index, and a cache of 1 GiB.
//!
//! Transactions are batches. A durable one is flushed by `PersistMode::SyncData` (`fdatasync`, as the others
//! flush), a soft one handed over by `PersistMode::Buffer`. A commit has the journal's mutex until its flush
//! is over, so threads can't share flushes.

use std::ops::Range;
use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode};

use super::encoding::{bounds, change, encode, entries, entry, key, key_in, value_in};
use super::{Engine, Failure, Level, Names, Shape, Table, Writer, in_order, value};

/// The cache of blocks: its documentation says a fifth to a quarter of the memory, or all data.
const CACHE: u64 = 1 << 30;

pub(super) struct Fjall;

struct Items {
    database: Database,
    rows: Keyspace,
    names: Option<Keyspace>,
}

/// A thread's part in it.
struct Part<'a> {
    items: &'a Items,
    mode: PersistMode,
}

impl Engine for Fjall {
    fn name(&self) -> &'static str {
        "fjall"
    }

    fn create(&self, folder: &Path, shape: Shape) -> Result<Box<dyn Table>, Failure> {
        self.open(folder, shape)
    }

    fn open(&self, folder: &Path, shape: Shape) -> Result<Box<dyn Table>, Failure> {
        let database = Database::builder(folder).cache_size(CACHE).open()?;
        let rows = database.keyspace("rows", KeyspaceCreateOptions::default)?;
        let names = match shape {
            Shape::Small => None,
            Shape::Named => Some(database.keyspace("names", KeyspaceCreateOptions::default)?),
        };
        Ok(Box::new(Items { database, rows, names }))
    }
}

impl Items {
    fn index(&self) -> Result<&Keyspace, Failure> {
        self.names.as_ref().ok_or_else(|| "the table has no index".into())
    }

    fn batch(&self, mode: PersistMode) -> OwnedWriteBatch {
        self.database.batch().durability(Some(mode))
    }

    fn value(&self, key: &[u8]) -> Result<i64, Failure> {
        value_in(&self.rows.get(key)?.ok_or("no such row")?)
    }

    fn set(&self, ids: &[u64], version: u32, mode: PersistMode) -> Result<(), Failure> {
        let (mut batch, mut buffer) = (self.batch(mode), Vec::new());
        for &id in ids {
            let key = key(id);
            let row = self.rows.get(key)?.ok_or("no such row")?;
            change(&mut buffer, &row, value(id, version))?;
            batch.insert(&self.rows, key, &*buffer);
        }
        Ok(batch.commit()?)
    }
}

impl Table for Items {
    fn insert(&mut self, ids: Range<u64>, names: &Names) -> Result<(), Failure> {
        let (mut batch, mut row) = (self.batch(PersistMode::SyncData), Vec::new());
        for (id, name) in names.of(ids.clone()) {
            encode(&mut row, value(id, 0), name);
            batch.insert(&self.rows, key(id), &*row);
        }
        if let Some(index) = &self.names {
            for entry in entries(ids, names) {
                batch.insert(index, entry, []);
            }
        }
        Ok(batch.commit()?)
    }

    fn update(&mut self, ids: &[u64], version: u32) -> Result<(), Failure> {
        self.set(ids, version, PersistMode::SyncData)
    }

    fn read(&mut self, ids: &[u64]) -> Result<i64, Failure> {
        let mut sum = 0i64;
        for &id in ids {
            sum = sum.wrapping_add(self.value(&key(id))?);
        }
        Ok(sum)
    }

    fn find(&mut self, names: &[String]) -> Result<i64, Failure> {
        let index = self.index()?;
        let mut sum = 0i64;
        for name in names {
            let entry = index.range(bounds(name)).next().ok_or("no row has the name")?.key()?;
            sum = sum.wrapping_add(self.value(key_in(&entry)?)?);
        }
        Ok(sum)
    }

    fn scan(&mut self) -> Result<i64, Failure> {
        let mut sum = 0i64;
        for row in self.rows.iter() {
            sum = sum.wrapping_add(value_in(&row.value()?)?);
        }
        Ok(sum)
    }

    fn scan_by_name(&mut self) -> Result<i64, Failure> {
        let mut sum = 0;
        for entry in self.index()?.iter() {
            sum = in_order(sum, self.value(key_in(&entry.key()?)?)?);
        }
        Ok(sum)
    }

    fn writer(&self, level: Level) -> Result<Option<Box<dyn Writer + Send + '_>>, Failure> {
        let mode = match level {
            Level::Soft => PersistMode::Buffer,
            Level::Durable => PersistMode::SyncData,
        };
        Ok(Some(Box::new(Part { items: self, mode })))
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.database.persist(PersistMode::SyncAll)?) // dropping it closes it
    }
}

impl Writer for Part<'_> {
    fn insert(&mut self, ids: Range<u64>, names: &Names) -> Result<(), Failure> {
        let (items, mut row) = (self.items, Vec::new());
        for (id, name) in names.of(ids) {
            encode(&mut row, value(id, 0), name);
            let mut batch = items.batch(self.mode);
            batch.insert(&items.rows, key(id), &*row);
            if let Some(index) = &items.names {
                batch.insert(index, entry(name, id), []);
            }
            batch.commit()?;
        }
        Ok(())
    }

    fn update(&mut self, ids: &[u64], version: u32) -> Result<(), Failure> {
        for &id in ids {
            self.items.set(&[id], version, self.mode)?;
        }
        Ok(())
    }
}
