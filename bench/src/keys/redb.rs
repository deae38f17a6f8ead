//! redb: a table for each space; a transaction opens those that it uses.

use std::path::Path;

use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTable, Table, TableDefinition};

use super::{Changes, Each, Found, Store, View, missing};
use crate::engines::{Failure, Level};

const FILE: &str = "keys.redb";

type Spaces = &'static [&'static str];
type Open<'t> = Table<'t, &'static [u8], &'static [u8]>;

const fn definition(name: &'static str) -> TableDefinition<'static, &'static [u8], &'static [u8]> {
    TableDefinition::new(name)
}

pub(super) struct Redb {
    database: Database,
    spaces: Spaces,
}

struct Changing<'t> {
    spaces: Spaces,
    transaction: &'t redb::WriteTransaction,
    tables: Vec<Option<Open<'t>>>,
}

struct Reading {
    tables: Vec<redb::ReadOnlyTable<&'static [u8], &'static [u8]>>,
}

impl Redb {
    pub(super) fn create(folder: &Path, spaces: Spaces) -> Result<Self, Failure> {
        let database = Database::create(folder.join(FILE))?;
        let transaction = database.begin_write()?;
        for space in spaces {
            transaction.open_table(definition(space))?;
        }
        transaction.commit()?;
        Ok(Self { database, spaces })
    }
}

impl Reading {
    fn new(transaction: &ReadTransaction, spaces: Spaces) -> Result<Self, Failure> {
        let open = spaces.iter().map(|space| transaction.open_table(definition(space)));
        Ok(Self { tables: open.collect::<Result<_, _>>()? })
    }
}

impl<'t> Changing<'t> {
    fn table(&mut self, space: usize) -> Result<&mut Open<'t>, Failure> {
        let table = &mut self.tables[space];
        if table.is_none() {
            *table = Some(self.transaction.open_table(definition(self.spaces[space]))?);
        }
        table.as_mut().ok_or_else(missing)
    }
}

impl Store for Redb {
    fn has(&self, level: Level) -> bool {
        level == Level::Durable
    }

    fn set_level(&mut self, level: Level) -> Result<(), Failure> {
        if self.has(level) { Ok(()) } else { Err("redb has durable commits only".into()) }
    }

    fn write(
        &mut self,
        change: &mut dyn FnMut(&mut dyn Changes) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let transaction = self.database.begin_write()?;
        let tables = self.spaces.iter().map(|_| None).collect();
        change(&mut Changing { spaces: self.spaces, transaction: &transaction, tables })?;
        Ok(transaction.commit()?)
    }

    fn read(
        &mut self,
        look: &mut dyn FnMut(&dyn View) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        look(&Reading::new(&self.database.begin_read()?, self.spaces)?)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.database.close()?)
    }
}

impl Changes for Changing<'_> {
    fn get(&mut self, space: usize, key: &[u8], found: Found<'_>) -> Result<bool, Failure> {
        match self.table(space)?.get(key)? {
            Some(value) => found(value.value()).map(|()| true),
            None => Ok(false),
        }
    }

    fn put(&mut self, space: usize, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.table(space)?.insert(key, value)?;
        Ok(())
    }

    fn put_new(&mut self, space: usize, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        // The previous value is returned: no lookup before is needed, and the transaction is
        // dropped.
        match self.table(space)?.insert(key, value)? {
            Some(_) => Err("there is that key".into()),
            None => Ok(()),
        }
    }

    fn remove(&mut self, space: usize, key: &[u8]) -> Result<(), Failure> {
        self.table(space)?.remove(key)?.map(|_| ()).ok_or_else(missing)
    }
}

impl View for Reading {
    fn get(&self, space: usize, key: &[u8], found: Found<'_>) -> Result<(), Failure> {
        found(self.tables[space].get(key)?.ok_or_else(missing)?.value())
    }

    fn with_prefix(&self, space: usize, prefix: &[u8], each: Each<'_>) -> Result<(), Failure> {
        for entry in self.tables[space].range(prefix..)? {
            let (key, value) = entry?;
            if !key.value().starts_with(prefix) {
                break;
            }
            each(key.value(), value.value())?;
        }
        Ok(())
    }
}
