//! LMDB: one named database for the events, one for each index. It maps its file, so it has no limit of memory: what it
//! has mapped counts as the memory of its process.

use std::ops::Bound;
use std::path::Path;

use heed::types::{Bytes, Unit};
use heed::{CommitOrAbort, Database, Env, EnvOpenOptions, PutFlags};

use super::Table;
use super::events::{Event, Events};
use crate::engines::Failure;

/// The addresses that the file may grow into; none of them costs anything before it is used.
const MAP: usize = 64 << 30;

type Rows = Database<'static, Bytes, Bytes>;
type Index = Database<'static, Bytes, Unit>;

struct Items {
    environment: Env,
    rows: Rows,
    by_user: Index,
    by_time: Index,
    by_kind: Index,
}

pub(super) fn open(folder: &Path, _: u64) -> Result<Box<dyn Table>, Failure> {
    let mut options = EnvOpenOptions::new();
    options.map_size(MAP).max_dbs(4);
    // SAFETY: the folder is this benchmark's own; nothing else changes or cuts the file while it is mapped.
    #[allow(unsafe_code, reason = "LMDB maps its file")]
    let environment = unsafe { options.open(folder) }?;
    let (rows, [by_user, by_time, by_kind]) = environment
        .create_databases_and_commit(environment.write_txn()?, |databases, transaction| {
            let rows = databases.create_database(transaction, Some("event"))?;
            let mut index = |name| databases.create_database(transaction, Some(name));
            let indexes = [index("by_user")?, index("by_time")?, index("by_kind")?];
            heed::Result::Ok(CommitOrAbort::<_, ()>::Commit((rows, indexes)))
        })?
        .unwrap_commit();
    Ok(Box::new(Items { environment, rows, by_user, by_time, by_kind }))
}

/// Writes a number so that bytes sort as numbers do. No time of the events is negative.
#[allow(clippy::big_endian_bytes, reason = "bytes are to sort as numbers do")]
const fn long(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

#[allow(clippy::big_endian_bytes, reason = "bytes are to sort as numbers do")]
const fn short(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

#[allow(clippy::big_endian_bytes, reason = "as they are written")]
fn long_at(bytes: &[u8], at: usize) -> Result<u64, Failure> {
    let part = bytes.get(at..).and_then(<[u8]>::first_chunk).ok_or("it is too short")?;
    Ok(u64::from_be_bytes(*part))
}

#[allow(clippy::big_endian_bytes, reason = "as they are written")]
fn short_at(bytes: &[u8], at: usize) -> Result<u32, Failure> {
    let part = bytes.get(at..).and_then(<[u8]>::first_chunk).ok_or("it is too short")?;
    Ok(u32::from_be_bytes(*part))
}

/// The value, the time, the user, the kind, the payload.
fn encode(row: &mut Vec<u8>, event: &Event, time: [u8; 8]) {
    row.clear();
    row.extend_from_slice(&long(event.value.to_bits()));
    row.extend_from_slice(&time);
    row.extend_from_slice(&short(event.user));
    row.push(event.kind);
    row.extend_from_slice(event.payload.as_bytes());
}

fn value_of(row: &[u8]) -> Result<f64, Failure> {
    Ok(f64::from_bits(long_at(row, 0)?))
}

impl Table for Items {
    fn load(&mut self, events: Events) -> Result<(), Failure> {
        let (mut next, mut row) = (0, Vec::new());
        events.batches(|batch| {
            let mut transaction = self.environment.write_txn()?;
            for event in batch {
                let (id, time) = (long(next), long(u64::try_from(event.time)?));
                encode(&mut row, event, time);
                self.rows.put_with_flags(&mut transaction, PutFlags::APPEND, &id, &row)?;
                let entry = [&short(event.user)[..], &time, &id].concat();
                self.by_user.put(&mut transaction, &entry, &())?;
                self.by_time.put(&mut transaction, &[time, id].concat(), &())?;
                let entry = [&[event.kind][..], &time, &id].concat();
                self.by_kind.put(&mut transaction, &entry, &())?;
                next += 1;
            }
            Ok(transaction.commit()?)
        })
    }

    fn by_user(&self, visit: &mut dyn FnMut(u32, i64)) -> Result<(), Failure> {
        let transaction = self.environment.read_txn()?;
        for entry in self.by_user.iter(&transaction)? {
            let (entry, ()) = entry?;
            visit(short_at(entry, 0)?, i64::try_from(long_at(entry, 4)?)?);
        }
        Ok(())
    }

    fn values_by_user(&self, visit: &mut dyn FnMut(u32, i64, f64)) -> Result<(), Failure> {
        let transaction = self.environment.read_txn()?;
        for entry in self.by_user.iter(&transaction)? {
            let (entry, ()) = entry?;
            let id = entry.get(12..).ok_or("an entry is too short")?;
            let row = self.rows.get(&transaction, id)?.ok_or("no such row")?;
            visit(short_at(entry, 0)?, i64::try_from(long_at(entry, 4)?)?, value_of(row)?);
        }
        Ok(())
    }

    fn values(&self, visit: &mut dyn FnMut(u8, f64)) -> Result<(), Failure> {
        let transaction = self.environment.read_txn()?;
        for row in self.rows.iter(&transaction)? {
            let (_, row) = row?;
            visit(*row.get(20).ok_or("a row is too short")?, value_of(row)?);
        }
        Ok(())
    }

    fn values_within(
        &self,
        (from, to): (i64, i64),
        visit: &mut dyn FnMut(f64),
    ) -> Result<(), Failure> {
        let transaction = self.environment.read_txn()?;
        let (from, to) = (long(u64::try_from(from)?), long(u64::try_from(to)?));
        let within = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
        for entry in self.by_time.range(&transaction, &within)? {
            let (entry, ()) = entry?;
            let id = entry.get(8..).ok_or("an entry is too short")?;
            visit(value_of(self.rows.get(&transaction, id)?.ok_or("no such row")?)?);
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(()) // dropping it closes it
    }
}
