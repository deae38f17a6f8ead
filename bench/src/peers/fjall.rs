//! fjall: one keyspace for the rows, one for the index; batches, each flushed.

use std::ops::Range;
use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::encoding::{bounds, changed, entries, id_in, key, row, value_in};
use super::{Peer, Table, fill_by_append};
use crate::engine::Failure;

/// The cache of blocks: its documentation says a fifth to a quarter of the memory, or all data.
const CACHE: u64 = 1 << 30;

pub(super) struct Fjall;

struct Items {
    database: Database,
    rows: Keyspace,
    names: Keyspace,
}

impl Peer for Fjall {
    fn name(&self) -> &'static str {
        "fjall"
    }

    fn fill(&self, folder: &Path, rows: u64) -> Result<(), Failure> {
        fill_by_append(self.open(folder)?, rows)
    }

    fn open(&self, folder: &Path) -> Result<Box<dyn Table>, Failure> {
        let database = Database::builder(folder).cache_size(CACHE).open()?;
        let rows = database.keyspace("rows", KeyspaceCreateOptions::default)?;
        let names = database.keyspace("names", KeyspaceCreateOptions::default)?;
        Ok(Box::new(Items { database, rows, names }))
    }
}

impl Table for Items {
    fn by_name(&mut self, name: &str) -> Result<i64, Failure> {
        let entry = self.names.range(bounds(name)).next().ok_or("no row has the name")?.key()?;
        self.by_id(id_in(&entry)?)
    }

    fn by_id(&mut self, id: u64) -> Result<i64, Failure> {
        value_in(&self.rows.get(key(id))?.ok_or("no such row")?)
    }

    fn append(&mut self, ids: Range<u64>) -> Result<(), Failure> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncAll));
        for id in ids.clone() {
            batch.insert(&self.rows, key(id), row(id));
        }
        for entry in entries(ids) {
            batch.insert(&self.names, entry, []);
        }
        Ok(batch.commit()?)
    }

    fn update(&mut self, ids: &[u64], version: u32) -> Result<(), Failure> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncAll));
        for &id in ids {
            let row = self.rows.get(key(id))?.ok_or("no such row")?;
            batch.insert(&self.rows, key(id), changed(&row, (id, version))?);
        }
        Ok(batch.commit()?)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.database.persist(PersistMode::SyncAll)?) // dropping it closes it
    }
}
