//! Engines with one table of a name and a value, and an index on the name, which can be opened after
//! whatever happened to them.
//!
//! Ids begin at 0 and have no gaps. The name of a row is made from its id, and so scattered that the index
//! has another order than the table. A value tells its row, and the version that an update gave it.

pub(crate) mod annals;
mod encoding;
mod fjall;
mod lmdb;
mod redb;
pub(crate) mod sqlite;

use std::ops::Range;
use std::path::Path;

use clap::builder::RangedU64ValueParser;

use crate::engine::Failure;

/// All engines, by what they are called on the command line.
pub(crate) const PEERS: [(&str, &dyn Peer); 6] = [
    ("annals", &annals::Annals { replays_all: false }),
    ("replay", &annals::Annals { replays_all: true }),
    ("sqlite", &sqlite::Sqlite),
    ("lmdb", &lmdb::Lmdb),
    ("redb", &redb::Redb),
    ("fjall", &fjall::Fjall),
];

/// Rows of a transaction while a table is filled.
const FILLED_AT_ONCE: u64 = 1_000_000;

/// One engine.
pub(crate) trait Peer {
    /// Its name in the table.
    fn name(&self) -> &'static str;

    /// Creates a database of so many rows in an empty folder, and closes it.
    fn fill(&self, folder: &Path, rows: u64) -> Result<(), Failure>;

    /// Opens the database in a folder.
    fn open(&self, folder: &Path) -> Result<Box<dyn Table>, Failure>;

    /// Takes away what the next opening mustn't use.
    fn forget(&self, _: &Path) -> Result<(), Failure> {
        Ok(())
    }

    /// Tells what opening the database in a folder, which nobody has open, applies once more; none if the
    /// engine can't tell.
    fn tail(&self, _: &Path) -> Result<Option<Tail>, Failure> {
        Ok(None)
    }
}

/// The end of a journal, which the next opening replays.
pub(crate) struct Tail {
    /// How many bytes it has.
    pub(crate) bytes: u64,
    /// Where the last commit ends.
    pub(crate) end: u64,
}

/// An open database.
pub(crate) trait Table {
    /// Gives the value of the row that the index finds.
    fn by_name(&mut self, name: &str) -> Result<i64, Failure>;

    /// Gives the value of a row.
    fn by_id(&mut self, id: u64) -> Result<i64, Failure>;

    /// Inserts rows after all others, in one durable transaction.
    fn append(&mut self, ids: Range<u64>) -> Result<(), Failure>;

    /// Gives rows, of which all exist, the values of a version in one durable transaction.
    fn update(&mut self, ids: &[u64], version: u32) -> Result<(), Failure>;

    /// Closes, so that the next opening has nothing to recover.
    fn close(self: Box<Self>) -> Result<(), Failure>;
}

/// Gives the names of all engines on the command line.
pub(crate) fn keys() -> [&'static str; PEERS.len()] {
    PEERS.map(|(key, _)| key)
}

/// Gives what a number of rows or changes on the command line may be: values have room for no more.
pub(crate) fn count() -> RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=1_000_000_000)
}

/// Gives the engine of a name on the command line.
pub(crate) fn find(key: &str) -> Result<&'static dyn Peer, Failure> {
    let found = PEERS.into_iter().find(|(own, _)| *own == key);
    found.map(|(_, peer)| peer).ok_or_else(|| format!("no engine is called {key}").into())
}

/// Fills an empty table, and closes it.
fn fill_by_append(mut table: Box<dyn Table>, rows: u64) -> Result<(), Failure> {
    for first in (0..rows).step_by(usize::try_from(FILLED_AT_ONCE)?) {
        table.append(first..rows.min(first + FILLED_AT_ONCE))?;
    }
    table.close()
}

/// Gives the name of a row: ten letters, which no other row has.
pub(crate) fn name(id: u64) -> String {
    // An odd factor maps the numbers of 40 bits one to one.
    format!("{:010x}", id.wrapping_mul(0x9E_3779_B97F) & ((1 << 40) - 1))
}

/// Gives the value that a row has in a version; in version 0 its id.
pub(crate) const fn value(id: u64, version: u32) -> i64 {
    (id | (version as u64) << 32).cast_signed()
}

/// Tells whether a row could have this value.
pub(crate) const fn is_value_of(id: u64, value: i64) -> bool {
    value.cast_unsigned() & 0xFFFF_FFFF == id
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: u64 = 300;

    #[test]
    fn names_are_scattered_and_all_different() {
        let mut names: Vec<_> = (0..10_000).map(name).collect();
        assert!(!names.is_sorted());
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 10_000);
    }

    #[test]
    fn every_engine_keeps_what_it_was_told() {
        for (key, peer) in PEERS {
            let folder = tempfile::tempdir().unwrap();
            peer.fill(folder.path(), ROWS).unwrap();
            let mut table = peer.open(folder.path()).unwrap();
            table.append(ROWS..ROWS + 2).unwrap();
            table.update(&[3, ROWS, 3], 7).unwrap();
            table.close().unwrap();
            peer.forget(folder.path()).unwrap();

            let mut table = peer.open(folder.path()).unwrap();
            for id in 0..ROWS + 2 {
                let expected = value(id, if id == 3 || id == ROWS { 7 } else { 0 });
                assert_eq!(table.by_id(id).unwrap(), expected, "{key}: row {id}");
                assert_eq!(table.by_name(&name(id)).unwrap(), expected, "{key}: row {id} by name");
                assert!(is_value_of(id, expected) && !is_value_of(id + 1, expected));
            }
            assert!(table.by_id(ROWS + 2).is_err(), "{key}");
            assert!(table.by_name(&name(ROWS + 2)).is_err(), "{key}");
            table.close().unwrap();
        }
    }
}
