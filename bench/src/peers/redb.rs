//! redb: one table for the rows, one for the index. Commits are as they are unless asked otherwise:
//! durable, checksummed, without what makes repairs quick and commits slower.

use std::ops::Range;
use std::path::Path;

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use super::encoding::{bounds, changed, entries, id_in, key, row, value_in};
use super::{Peer, Table, fill_by_append};
use crate::engine::Failure;

const FILE: &str = "items.redb";
const ROWS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("rows");
const NAMES: TableDefinition<'_, &[u8], ()> = TableDefinition::new("names");

pub(super) struct Redb;

struct Items(Database);

impl Peer for Redb {
    fn name(&self) -> &'static str {
        "redb"
    }

    fn fill(&self, folder: &Path, rows: u64) -> Result<(), Failure> {
        let database = Database::create(folder.join(FILE))?;
        fill_by_append(Box::new(Items(database)), rows)
    }

    fn open(&self, folder: &Path) -> Result<Box<dyn Table>, Failure> {
        Ok(Box::new(Items(Database::open(folder.join(FILE))?)))
    }
}

impl Table for Items {
    fn by_name(&mut self, name: &str) -> Result<i64, Failure> {
        let transaction = self.0.begin_read()?;
        let (bounds, names) = (bounds(name), transaction.open_table(NAMES)?);
        let bounds = bounds.start().as_slice()..=bounds.end().as_slice();
        let (entry, _) = names.range(bounds)?.next().ok_or("no row has the name")??;
        let rows = transaction.open_table(ROWS)?;
        let row = rows.get(key(id_in(entry.value())?).as_slice())?.ok_or("no such row")?;
        value_in(row.value())
    }

    fn by_id(&mut self, id: u64) -> Result<i64, Failure> {
        let rows = self.0.begin_read()?.open_table(ROWS)?;
        let row = rows.get(key(id).as_slice())?.ok_or("no such row")?;
        value_in(row.value())
    }

    fn append(&mut self, ids: Range<u64>) -> Result<(), Failure> {
        let transaction = self.0.begin_write()?;
        {
            let mut rows = transaction.open_table(ROWS)?;
            for id in ids.clone() {
                rows.insert(key(id).as_slice(), row(id).as_slice())?;
            }
            let mut names = transaction.open_table(NAMES)?;
            for entry in entries(ids) {
                names.insert(entry.as_slice(), ())?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn update(&mut self, ids: &[u64], version: u32) -> Result<(), Failure> {
        let transaction = self.0.begin_write()?;
        {
            let mut rows = transaction.open_table(ROWS)?;
            for &id in ids {
                let row = {
                    let row = rows.get(key(id).as_slice())?.ok_or("no such row")?;
                    changed(row.value(), (id, version))?
                };
                rows.insert(key(id).as_slice(), row.as_slice())?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.0.close()?)
    }
}
