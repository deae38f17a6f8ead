//! LMDB, through heed: one named database for the rows, one for the index.

use std::ops::Bound::Included;
use std::ops::Range;
use std::path::Path;

use heed::types::{Bytes, Unit};
use heed::{CommitOrAbort, Database, Env, EnvOpenOptions};

use super::encoding::{bounds, changed, entries, id_in, key, row, value_in};
use super::{Peer, Table, fill_by_append};
use crate::engine::Failure;

/// The addresses that the file may grow into; none of them costs anything before it is used.
const MAP: usize = 16 << 30;

type Rows = Database<'static, Bytes, Bytes>;
type Names = Database<'static, Bytes, Unit>;

pub(super) struct Lmdb;

struct Items {
    environment: Env,
    rows: Rows,
    names: Names,
}

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

impl Peer for Lmdb {
    fn name(&self) -> &'static str {
        "LMDB"
    }

    fn fill(&self, folder: &Path, count: u64) -> Result<(), Failure> {
        let environment = Self::environment(folder)?;
        let (rows, names) = environment
            .create_databases_and_commit(environment.write_txn()?, |databases, transaction| {
                let rows = databases.create_database(transaction, Some("rows"))?;
                let names = databases.create_database(transaction, Some("names"))?;
                heed::Result::Ok(CommitOrAbort::<_, ()>::Commit((rows, names)))
            })?
            .unwrap_commit();
        fill_by_append(Box::new(Items { environment, rows, names }), count)
    }

    fn open(&self, folder: &Path) -> Result<Box<dyn Table>, Failure> {
        let environment = Self::environment(folder)?;
        let (rows, names) = environment
            .open_databases_and_commit(environment.read_txn()?, |databases, transaction| {
                let rows = databases.open_database(transaction, Some("rows"))?;
                let names = databases.open_database(transaction, Some("names"))?;
                heed::Result::Ok(CommitOrAbort::<_, ()>::Commit((rows, names)))
            })?
            .unwrap_commit();
        let (rows, names) = rows.zip(names).ok_or("the tables are missing")?;
        Ok(Box::new(Items { environment, rows, names }))
    }
}

impl Table for Items {
    fn by_name(&mut self, name: &str) -> Result<i64, Failure> {
        let transaction = self.environment.read_txn()?;
        let bounds = bounds(name);
        let bounds = (Included(&**bounds.start()), Included(&**bounds.end()));
        let found = self.names.range(&transaction, &bounds)?.next().transpose()?;
        let (entry, ()) = found.ok_or("no row has the name")?;
        value_in(self.rows.get(&transaction, &key(id_in(entry)?))?.ok_or("no such row")?)
    }

    fn by_id(&mut self, id: u64) -> Result<i64, Failure> {
        let transaction = self.environment.read_txn()?;
        value_in(self.rows.get(&transaction, &key(id))?.ok_or("no such row")?)
    }

    fn append(&mut self, ids: Range<u64>) -> Result<(), Failure> {
        let mut transaction = self.environment.write_txn()?;
        for id in ids.clone() {
            self.rows.put(&mut transaction, &key(id), &row(id))?;
        }
        for entry in entries(ids) {
            self.names.put(&mut transaction, &entry, &())?;
        }
        Ok(transaction.commit()?)
    }

    fn update(&mut self, ids: &[u64], version: u32) -> Result<(), Failure> {
        let mut transaction = self.environment.write_txn()?;
        for &id in ids {
            let row = self.rows.get(&transaction, &key(id))?.ok_or("no such row")?;
            let row = changed(row, (id, version))?;
            self.rows.put(&mut transaction, &key(id), &row)?;
        }
        Ok(transaction.commit()?)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        let closed = self.environment.prepare_for_closing();
        closed.wait();
        Ok(())
    }
}
