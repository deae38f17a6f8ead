//! redb: typed tables, one for the events and one for each index, the cache as large as the limit.

use std::path::Path;

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use super::Table;
use super::events::Events;
use crate::engines::Failure;

type Row<'a> = (i64, u32, u8, &'a str, f64);

const EVENT: TableDefinition<'_, u64, Row<'_>> = TableDefinition::new("event");
const BY_USER: TableDefinition<'_, (u32, i64, u64), ()> = TableDefinition::new("by_user");
const BY_TIME: TableDefinition<'_, (i64, u64), ()> = TableDefinition::new("by_time");
const BY_KIND: TableDefinition<'_, (u8, i64, u64), ()> = TableDefinition::new("by_kind");

struct Items(Database);

pub(super) fn open(folder: &Path, memory: u64) -> Result<Box<dyn Table>, Failure> {
    let cache = if memory == 0 { 16 << 30 } else { usize::try_from(memory)? };
    let database = Database::builder().set_cache_size(cache).create(folder.join("events.redb"))?;
    Ok(Box::new(Items(database)))
}

impl Table for Items {
    fn load(&mut self, events: Events) -> Result<(), Failure> {
        let mut id = 0;
        events.batches(|batch| {
            let transaction = self.0.begin_write()?;
            {
                let mut rows = transaction.open_table(EVENT)?;
                let mut by_user = transaction.open_table(BY_USER)?;
                let mut by_time = transaction.open_table(BY_TIME)?;
                let mut by_kind = transaction.open_table(BY_KIND)?;
                for event in batch {
                    let (time, user, kind) = (event.time, event.user, event.kind);
                    rows.insert(id, (time, user, kind, event.payload.as_str(), event.value))?;
                    by_user.insert((user, time, id), ())?;
                    by_time.insert((time, id), ())?;
                    by_kind.insert((kind, time, id), ())?;
                    id += 1;
                }
            }
            Ok(transaction.commit()?)
        })
    }

    fn by_user(&self, visit: &mut dyn FnMut(u32, i64)) -> Result<(), Failure> {
        for entry in self.0.begin_read()?.open_table(BY_USER)?.iter()? {
            let (user, time, _) = entry?.0.value();
            visit(user, time);
        }
        Ok(())
    }

    fn values_by_user(&self, visit: &mut dyn FnMut(u32, i64, f64)) -> Result<(), Failure> {
        let transaction = self.0.begin_read()?;
        let rows = transaction.open_table(EVENT)?;
        for entry in transaction.open_table(BY_USER)?.iter()? {
            let (user, time, id) = entry?.0.value();
            let row = rows.get(id)?.ok_or("no such row")?;
            visit(user, time, row.value().4);
        }
        Ok(())
    }

    fn values(&self, visit: &mut dyn FnMut(u8, f64)) -> Result<(), Failure> {
        for entry in self.0.begin_read()?.open_table(EVENT)?.iter()? {
            let (_, row) = entry?;
            let (_, _, kind, _, value) = row.value();
            visit(kind, value);
        }
        Ok(())
    }

    fn values_within(
        &self,
        (from, to): (i64, i64),
        visit: &mut dyn FnMut(f64),
    ) -> Result<(), Failure> {
        let transaction = self.0.begin_read()?;
        let rows = transaction.open_table(EVENT)?;
        for entry in transaction.open_table(BY_TIME)?.range((from, 0)..(to, 0))? {
            let (_, id) = entry?.0.value();
            visit(rows.get(id)?.ok_or("no such row")?.value().4);
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(()) // dropping it closes it
    }
}
