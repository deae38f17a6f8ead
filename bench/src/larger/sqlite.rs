//! SQLite: a log of its own (`journal_mode=WAL`), full flushes, the cache as large as the limit.

use std::path::Path;

use rusqlite::{Connection, params};

use super::Table;
use super::events::Events;
use crate::engines::Failure;

struct Items(Connection);

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS event(id INTEGER PRIMARY KEY, time INTEGER NOT NULL, user INTEGER NOT NULL, \
        kind INTEGER NOT NULL, payload TEXT NOT NULL CHECK(json_valid(payload)), value REAL NOT NULL);
    CREATE INDEX IF NOT EXISTS event_by_user ON event(user, time);
    CREATE INDEX IF NOT EXISTS event_by_time ON event(time);
    CREATE INDEX IF NOT EXISTS event_by_kind ON event(kind, time);";

pub(super) fn open(folder: &Path, memory: u64) -> Result<Box<dyn Table>, Failure> {
    let connection = Connection::open(folder.join("events.sqlite"))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    let kib = if memory == 0 { 16 << 20 } else { i64::try_from(memory / 1024)? };
    connection.pragma_update(None, "cache_size", -kib)?;
    connection.execute_batch(SCHEMA)?;
    Ok(Box::new(Items(connection)))
}

impl Table for Items {
    fn load(&mut self, events: Events) -> Result<(), Failure> {
        let mut insert = self.0.prepare(
            "INSERT INTO event(time, user, kind, payload, value) VALUES (?, ?, ?, ?, ?)",
        )?;
        events.batches(|batch| {
            self.0.execute_batch("BEGIN")?;
            for event in batch {
                insert.execute(params![
                    event.time,
                    event.user,
                    event.kind,
                    event.payload,
                    event.value
                ])?;
            }
            Ok(self.0.execute_batch("COMMIT")?)
        })
    }

    fn by_user(&self, visit: &mut dyn FnMut(u32, i64)) -> Result<(), Failure> {
        let mut asked = self.0.prepare("SELECT user, time FROM event ORDER BY user, time")?;
        let mut rows = asked.query([])?;
        while let Some(row) = rows.next()? {
            visit(row.get(0)?, row.get(1)?);
        }
        Ok(())
    }

    fn values_by_user(&self, visit: &mut dyn FnMut(u32, i64, f64)) -> Result<(), Failure> {
        let mut asked =
            self.0.prepare("SELECT user, time, value FROM event ORDER BY user, time")?;
        let mut rows = asked.query([])?;
        while let Some(row) = rows.next()? {
            visit(row.get(0)?, row.get(1)?, row.get(2)?);
        }
        Ok(())
    }

    fn values(&self, visit: &mut dyn FnMut(u8, f64)) -> Result<(), Failure> {
        let mut asked = self.0.prepare("SELECT kind, value FROM event")?;
        let mut rows = asked.query([])?;
        while let Some(row) = rows.next()? {
            visit(row.get(0)?, row.get(1)?);
        }
        Ok(())
    }

    fn values_within(
        &self,
        (from, to): (i64, i64),
        visit: &mut dyn FnMut(f64),
    ) -> Result<(), Failure> {
        let mut asked =
            self.0.prepare("SELECT value FROM event WHERE time >= ? AND time < ? ORDER BY time")?;
        let mut rows = asked.query([from, to])?;
        while let Some(row) = rows.next()? {
            visit(row.get(0)?);
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.0.close().map_err(|(_, error)| error.into())
    }
}
