//! fjall: a keyspace for each space, a cache of 1 GiB; transactions are batches.

use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode};

use super::{Changes, Each, Found, Store, View, missing};
use crate::engines::{Failure, Level};

const CACHE: u64 = 1 << 30;

pub(super) struct Fjall {
    database: Database,
    spaces: Vec<Keyspace>,
    mode: PersistMode,
}

struct Changing<'s> {
    spaces: &'s [Keyspace],
    batch: OwnedWriteBatch,
}

impl Fjall {
    pub(super) fn create(folder: &Path, spaces: &[&str]) -> Result<Self, Failure> {
        let database = Database::builder(folder).cache_size(CACHE).open()?;
        let open = |name: &&str| database.keyspace(name, KeyspaceCreateOptions::default);
        let spaces = spaces.iter().map(open).collect::<Result<_, _>>()?;
        Ok(Self { database, spaces, mode: PersistMode::SyncData })
    }
}

impl Store for Fjall {
    fn has(&self, _: Level) -> bool {
        true
    }

    fn set_level(&mut self, level: Level) -> Result<(), Failure> {
        self.mode = match level {
            Level::Soft => PersistMode::Buffer,
            Level::Durable => PersistMode::SyncData,
        };
        Ok(())
    }

    fn write(
        &mut self,
        change: &mut dyn FnMut(&mut dyn Changes) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let batch = self.database.batch().durability(Some(self.mode));
        let mut changing = Changing { spaces: &self.spaces, batch };
        change(&mut changing)?;
        Ok(changing.batch.commit()?)
    }

    fn read(
        &mut self,
        look: &mut dyn FnMut(&dyn View) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        look(self)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.database.persist(PersistMode::SyncAll)?) // dropping it closes it
    }
}

impl Changes for Changing<'_> {
    fn get(&mut self, space: usize, key: &[u8], found: Found<'_>) -> Result<bool, Failure> {
        match self.spaces[space].get(key)? {
            Some(value) => found(&value).map(|()| true),
            None => Ok(false),
        }
    }

    fn put(&mut self, space: usize, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.batch.insert(&self.spaces[space], key, value);
        Ok(())
    }

    fn remove(&mut self, space: usize, key: &[u8]) -> Result<(), Failure> {
        self.batch.remove(&self.spaces[space], key);
        Ok(())
    }
}

impl View for Fjall {
    fn get(&self, space: usize, key: &[u8], found: Found<'_>) -> Result<(), Failure> {
        found(&self.spaces[space].get(key)?.ok_or_else(missing)?)
    }

    fn with_prefix(&self, space: usize, prefix: &[u8], each: Each<'_>) -> Result<(), Failure> {
        for entry in self.spaces[space].prefix(prefix) {
            let (key, value) = entry.into_inner()?;
            each(&key, &value)?;
        }
        Ok(())
    }
}
