//! LMDB, through heed: one named database for the rows, one for the index, keys in order.
//!
//! Rows of one transaction are written with `MDB_APPEND`, which its documentation recommends for bulk in order;
//! entries of the index are sorted first. Soft commits are made with `MDB_NOSYNC`: the operating system has them, and
//! nothing flushes. The map isn't writable (`MDB_WRITEMAP`): its documentation says that a stray pointer may then
//! damage the file, which no other engine here risks. A write transaction has the only writer's mutex until its flush
//! is over, so threads can't share flushes.

use std::ops::Bound::Included;
use std::ops::Range;
use std::path::Path;

use heed::types::{Bytes, Unit};
use heed::{
    CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, FlagSetMode, PutFlags, RoTxn, RwTxn,
};

use super::encoding::{bounds, change, encode, entries, entry, key, key_in, value_in};
use super::{Engine, Failure, Level, Names, Shape, Table, Writer, in_order, value};

/// The addresses that the file may grow into; none of them costs anything before it is used.
const MAP: usize = 64 << 30;

type Rows = Database<'static, Bytes, Bytes>;
type Index = Database<'static, Bytes, Unit>;

pub(super) struct Lmdb;

struct Items {
    environment: Env,
    rows: Rows,
    names: Option<Index>,
}

/// A thread's part in it.
struct Part<'a>(&'a Items);

impl Lmdb {
    fn environment(folder: &Path) -> Result<Env, Failure> {
        let mut options = EnvOpenOptions::new();
        options.map_size(MAP).max_dbs(2);
        // SAFETY: the folder is this benchmark's own; nothing else changes or cuts the file while it
        // is mapped.
        #[allow(unsafe_code, reason = "LMDB maps its file")]
        Ok(unsafe { options.open(folder) }?)
    }
}

impl Engine for Lmdb {
    fn name(&self) -> &'static str {
        "LMDB"
    }

    fn create(&self, folder: &Path, shape: Shape) -> Result<Box<dyn Table>, Failure> {
        let environment = Self::environment(folder)?;
        let (rows, names) = environment
            .create_databases_and_commit(environment.write_txn()?, |databases, transaction| {
                let rows = databases.create_database(transaction, Some("rows"))?;
                let names = match shape {
                    Shape::Small => None,
                    Shape::Named => Some(databases.create_database(transaction, Some("names"))?),
                };
                heed::Result::Ok(CommitOrAbort::<_, ()>::Commit((rows, names)))
            })?
            .unwrap_commit();
        Ok(Box::new(Items { environment, rows, names }))
    }

    fn open(&self, folder: &Path, _: Shape) -> Result<Box<dyn Table>, Failure> {
        let environment = Self::environment(folder)?;
        let (rows, names) = environment
            .open_databases_and_commit(environment.read_txn()?, |databases, transaction| {
                let rows = databases.open_database(transaction, Some("rows"))?;
                let names = databases.open_database(transaction, Some("names"))?;
                heed::Result::Ok(CommitOrAbort::<_, ()>::Commit((rows, names)))
            })?
            .unwrap_commit();
        let rows = rows.ok_or("the table is missing")?;
        Ok(Box::new(Items { environment, rows, names }))
    }
}

impl Items {
    /// Sets what the next commits promise.
    fn level(&self, level: Level) -> Result<(), Failure> {
        let mode = match level {
            Level::Soft => FlagSetMode::Enable,
            Level::Durable => FlagSetMode::Disable,
        };
        // SAFETY: the caller has no transaction; without flushes the file may be lost in a power cut,
        // which a soft commit may be.
        #[allow(unsafe_code, reason = "LMDB has its level here")]
        unsafe { self.environment.set_flags(EnvFlags::NO_SYNC, mode) }?;
        Ok(())
    }

    fn index(&self) -> Result<&Index, Failure> {
        self.names.as_ref().ok_or_else(|| "the table has no index".into())
    }

    fn value(&self, transaction: &RoTxn<'_>, key: &[u8]) -> Result<i64, Failure> {
        value_in(self.rows.get(transaction, key)?.ok_or("no such row")?)
    }

    fn set(
        &self,
        transaction: &mut RwTxn<'_>,
        buffer: &mut Vec<u8>,
        (id, version): (u64, u32),
    ) -> Result<(), Failure> {
        let key = key(id);
        let row = self.rows.get(transaction, &key)?.ok_or("no such row")?;
        change(buffer, row, value(id, version))?;
        Ok(self.rows.put(transaction, &key, buffer)?)
    }
}

impl Table for Items {
    fn insert(&mut self, ids: Range<u64>, names: &Names) -> Result<(), Failure> {
        self.level(Level::Durable)?;
        let mut transaction = self.environment.write_txn()?;
        let mut row = Vec::new();
        for (id, name) in names.of(ids.clone()) {
            encode(&mut row, value(id, 0), name);
            self.rows.put_with_flags(&mut transaction, PutFlags::APPEND, &key(id), &row)?;
        }
        if let Some(index) = &self.names {
            for entry in entries(ids, names) {
                index.put(&mut transaction, &entry, &())?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn update(&mut self, ids: &[u64], version: u32) -> Result<(), Failure> {
        self.level(Level::Durable)?;
        let mut transaction = self.environment.write_txn()?;
        let mut buffer = Vec::new();
        for &id in ids {
            self.set(&mut transaction, &mut buffer, (id, version))?;
        }
        Ok(transaction.commit()?)
    }

    fn read(&mut self, ids: &[u64]) -> Result<i64, Failure> {
        let transaction = self.environment.read_txn()?;
        let mut sum = 0i64;
        for &id in ids {
            sum = sum.wrapping_add(self.value(&transaction, &key(id))?);
        }
        Ok(sum)
    }

    fn find(&mut self, names: &[String]) -> Result<i64, Failure> {
        let transaction = self.environment.read_txn()?;
        let index = self.index()?;
        let mut sum = 0i64;
        for name in names {
            let bounds = bounds(name);
            let bounds = (Included(&**bounds.start()), Included(&**bounds.end()));
            let found = index.range(&transaction, &bounds)?.next().transpose()?;
            let (entry, ()) = found.ok_or("no row has the name")?;
            sum = sum.wrapping_add(self.value(&transaction, key_in(entry)?)?);
        }
        Ok(sum)
    }

    fn scan(&mut self) -> Result<i64, Failure> {
        let transaction = self.environment.read_txn()?;
        let mut sum = 0i64;
        for row in self.rows.iter(&transaction)? {
            sum = sum.wrapping_add(value_in(row?.1)?);
        }
        Ok(sum)
    }

    fn scan_by_name(&mut self) -> Result<i64, Failure> {
        let transaction = self.environment.read_txn()?;
        let mut sum = 0;
        for entry in self.index()?.iter(&transaction)? {
            sum = in_order(sum, self.value(&transaction, key_in(entry?.0)?)?);
        }
        Ok(sum)
    }

    fn writer(&self, level: Level) -> Result<Option<Box<dyn Writer + Send + '_>>, Failure> {
        self.level(level)?;
        Ok(Some(Box::new(Part(self))))
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.environment.force_sync()?;
        let closed = self.environment.prepare_for_closing();
        closed.wait();
        Ok(())
    }
}

impl Writer for Part<'_> {
    fn insert(&mut self, ids: Range<u64>, names: &Names) -> Result<(), Failure> {
        let items = self.0;
        let mut row = Vec::new();
        for (id, name) in names.of(ids) {
            encode(&mut row, value(id, 0), name);
            let mut transaction = items.environment.write_txn()?;
            items.rows.put(&mut transaction, &key(id), &row)?;
            if let Some(index) = &items.names {
                index.put(&mut transaction, &entry(name, id), &())?;
            }
            transaction.commit()?;
        }
        Ok(())
    }

    fn update(&mut self, ids: &[u64], version: u32) -> Result<(), Failure> {
        let mut buffer = Vec::new();
        for &id in ids {
            let mut transaction = self.0.environment.write_txn()?;
            self.0.set(&mut transaction, &mut buffer, (id, version))?;
            transaction.commit()?;
        }
        Ok(())
    }
}
