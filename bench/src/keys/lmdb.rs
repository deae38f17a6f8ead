//! LMDB, through heed: a named database for each space.

use std::path::Path;

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, FlagSetMode, PutFlags};
use heed::{RoTxn, RwTxn};

use super::{Changes, Each, Found, Store, View, missing};
use crate::engines::{Failure, Level};

/// The addresses that the file may grow into; none of them costs anything before it is used.
const MAP: usize = 64 << 30;

type Space = Database<'static, Bytes, Bytes>;

pub(super) struct Lmdb {
    environment: Env,
    spaces: Vec<Space>,
}

struct Changing<'s, 't> {
    spaces: &'s [Space],
    transaction: RwTxn<'t>,
}

struct Reading<'s, 't> {
    spaces: &'s [Space],
    transaction: &'t RoTxn<'t>,
}

impl Lmdb {
    pub(super) fn create(folder: &Path, spaces: &[&str]) -> Result<Self, Failure> {
        let mut options = EnvOpenOptions::new();
        options.map_size(MAP).max_dbs(u32::try_from(spaces.len())?);
        // SAFETY: the folder is this benchmark's own; nothing else changes or cuts the file while it
        // is mapped.
        #[allow(unsafe_code, reason = "LMDB maps its file")]
        let environment = unsafe { options.open(folder) }?;
        let create = |name: &&str| {
            let transaction = environment.write_txn()?;
            let made = environment.create_databases_and_commit(
                transaction,
                |databases, transaction| {
                    let space = databases.create_database(transaction, Some(name))?;
                    heed::Result::Ok(CommitOrAbort::<_, ()>::Commit(space))
                },
            )?;
            heed::Result::Ok(made.unwrap_commit())
        };
        let spaces = spaces.iter().map(create).collect::<Result<_, _>>()?;
        Ok(Self { environment, spaces })
    }
}

impl Store for Lmdb {
    fn has(&self, _: Level) -> bool {
        true
    }

    fn set_level(&mut self, level: Level) -> Result<(), Failure> {
        let mode = match level {
            Level::Soft => FlagSetMode::Enable,
            Level::Durable => FlagSetMode::Disable,
        };
        // SAFETY: there is no transaction; without flushes the file may be lost in a power cut, which a
        // soft commit may be.
        #[allow(unsafe_code, reason = "LMDB has its level here")]
        unsafe { self.environment.set_flags(EnvFlags::NO_SYNC, mode) }?;
        Ok(())
    }

    fn write(
        &mut self,
        change: &mut dyn FnMut(&mut dyn Changes) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let transaction = self.environment.write_txn()?;
        let mut changing = Changing { spaces: &self.spaces, transaction };
        change(&mut changing)?;
        Ok(changing.transaction.commit()?)
    }

    fn read(
        &mut self,
        look: &mut dyn FnMut(&dyn View) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let transaction = self.environment.read_txn()?;
        look(&Reading { spaces: &self.spaces, transaction: &transaction })
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.environment.force_sync()?;
        self.environment.prepare_for_closing().wait();
        Ok(())
    }
}

impl Changes for Changing<'_, '_> {
    fn get(&mut self, space: usize, key: &[u8], found: Found<'_>) -> Result<bool, Failure> {
        match self.spaces[space].get(&self.transaction, key)? {
            Some(value) => found(value).map(|()| true),
            None => Ok(false),
        }
    }

    fn put(&mut self, space: usize, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        Ok(self.spaces[space].put(&mut self.transaction, key, value)?)
    }

    fn append(&mut self, space: usize, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let (space, transaction) = (&self.spaces[space], &mut self.transaction);
        Ok(space.put_with_flags(transaction, PutFlags::APPEND, key, value)?)
    }

    fn put_new(&mut self, space: usize, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let (space, transaction) = (&self.spaces[space], &mut self.transaction);
        Ok(space.put_with_flags(transaction, PutFlags::NO_OVERWRITE, key, value)?)
    }

    fn remove(&mut self, space: usize, key: &[u8]) -> Result<(), Failure> {
        match self.spaces[space].delete(&mut self.transaction, key)? {
            true => Ok(()),
            false => Err(missing()),
        }
    }
}

impl View for Reading<'_, '_> {
    fn get(&self, space: usize, key: &[u8], found: Found<'_>) -> Result<(), Failure> {
        found(self.spaces[space].get(self.transaction, key)?.ok_or_else(missing)?)
    }

    fn with_prefix(&self, space: usize, prefix: &[u8], each: Each<'_>) -> Result<(), Failure> {
        let space = &self.spaces[space];
        if prefix.is_empty() {
            // LMDB takes no empty key.
            for entry in space.iter(self.transaction)? {
                let (key, value) = entry?;
                each(key, value)?;
            }
            return Ok(());
        }
        for entry in space.prefix_iter(self.transaction, prefix)? {
            let (key, value) = entry?;
            each(key, value)?;
        }
        Ok(())
    }
}
