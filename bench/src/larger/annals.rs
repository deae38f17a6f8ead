//! Annals, by rows and by vectors. Only the fields that a question needs are selected.

use std::path::Path;

use annals::typed::Enum as _;
use annals::{Options, Timestamp};

use super::Table;
use super::events::{Event, Events as All};
use crate::engines::Failure;

annals::schema!("events.schema");

use events::event::{self, Kind};

struct Items {
    database: events::Database,
    by_vectors: bool,
}

pub(super) fn by_rows(folder: &Path, memory: u64) -> Result<Box<dyn Table>, Failure> {
    open(folder, memory, false)
}

pub(super) fn by_vectors(folder: &Path, memory: u64) -> Result<Box<dyn Table>, Failure> {
    open(folder, memory, true)
}

fn open(folder: &Path, memory: u64, by_vectors: bool) -> Result<Box<dyn Table>, Failure> {
    let options = Options::new().memory(if memory == 0 { u64::MAX } else { memory });
    let database = events::Database::open_with(folder.join("events.annals"), &options)?;
    Ok(Box::new(Items { database, by_vectors }))
}

fn kind(event: &Event) -> Result<Kind, Failure> {
    Ok(Kind::from_number(event.kind.into()).ok_or("no such kind")?)
}

impl Items {
    fn add_rows(&self, batch: &[Event]) -> Result<(), Failure> {
        let mut transaction = self.database.begin()?;
        for event in batch {
            transaction.insert(event::New {
                time: Timestamp(event.time),
                user: event.user,
                kind: kind(event)?,
                payload: &event.payload,
                value: event.value,
            })?;
        }
        transaction.commit()?;
        Ok(())
    }

    fn add_vectors(&self, batch: &[Event]) -> Result<(), Failure> {
        let mut transaction = self.database.begin()?;
        transaction.insert_vector(event::Columns {
            time: &batch.iter().map(|event| Timestamp(event.time)).collect::<Vec<_>>(),
            user: &batch.iter().map(|event| event.user).collect::<Vec<_>>(),
            kind: &batch.iter().map(kind).collect::<Result<Vec<_>, _>>()?,
            payload: &batch.iter().map(|event| &*event.payload).collect::<Vec<_>>(),
            value: &batch.iter().map(|event| event.value).collect::<Vec<_>>(),
        })?;
        transaction.commit()?;
        Ok(())
    }
}

impl Table for Items {
    fn load(&mut self, events: All) -> Result<(), Failure> {
        events.batches(|batch| match self.by_vectors {
            true => self.add_vectors(batch),
            false => self.add_rows(batch),
        })
    }

    fn by_user(&self, visit: &mut dyn FnMut(u32, i64)) -> Result<(), Failure> {
        let now = self.database.read();
        for row in now.event().by_user().select((event::USER, event::TIME)) {
            let (user, time) = row?;
            visit(user, time.0);
        }
        Ok(())
    }

    fn values_by_user(&self, visit: &mut dyn FnMut(u32, i64, f64)) -> Result<(), Failure> {
        let now = self.database.read();
        for row in now.event().by_user().select((event::USER, event::TIME, event::VALUE)) {
            let (user, time, value) = row?;
            visit(user, time.0, value);
        }
        Ok(())
    }

    fn values(&self, visit: &mut dyn FnMut(u8, f64)) -> Result<(), Failure> {
        let now = self.database.read();
        for row in now.event().select((event::KIND, event::VALUE)) {
            let (kind, value) = row?;
            visit(u8::try_from(kind.number())?, value);
        }
        Ok(())
    }

    fn values_within(
        &self,
        (from, to): (i64, i64),
        visit: &mut dyn FnMut(f64),
    ) -> Result<(), Failure> {
        let now = self.database.read();
        for value in
            now.event().by_time().range(Timestamp(from)..Timestamp(to)).select(event::VALUE)
        {
            visit(value?);
        }
        Ok(())
    }

    fn memory(&self) -> Option<u64> {
        Some(self.database.stats().memory.total())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.database.close()?)
    }
}
