//! Rows and index entries as the bytes that an engine without columns keeps.
//!
//! A row is its value and its name, under its id. An entry of the index is a key alone: the name and the
//! id, so that equal names are no conflict.

use std::ops::{Range, RangeInclusive};

use super::{name, value};
use crate::engine::Failure;

const WIDTH: usize = size_of::<u64>();

/// Gives the key of a row, in the order of the ids.
pub(super) const fn key(id: u64) -> [u8; WIDTH] {
    #[allow(clippy::big_endian_bytes, reason = "bytes are to sort as numbers do")]
    id.to_be_bytes()
}

/// Gives the bytes of a row.
pub(super) fn row(id: u64) -> Vec<u8> {
    [&value(id, 0).to_le_bytes(), name(id).as_bytes()].concat()
}

/// Gives the bytes of a row that has the value of another version.
pub(super) fn changed(row: &[u8], (id, version): (u64, u32)) -> Result<Vec<u8>, Failure> {
    let name = row.get(WIDTH..).ok_or("a row is too short")?;
    Ok([&value(id, version).to_le_bytes(), name].concat())
}

/// Gives the value of a row.
pub(super) fn value_in(row: &[u8]) -> Result<i64, Failure> {
    let bytes = row.first_chunk().ok_or("a row is too short")?;
    Ok(i64::from_le_bytes(*bytes))
}

/// Gives the entry of a row in the index.
pub(super) fn entry(name: &str, id: u64) -> Vec<u8> {
    [name.as_bytes(), &key(id)].concat()
}

/// Gives the entries of rows, in the order of the index: inserted so, each page is changed once.
pub(super) fn entries(ids: Range<u64>) -> Vec<Vec<u8>> {
    let mut entries: Vec<_> = ids.map(|id| entry(&name(id), id)).collect();
    entries.sort_unstable();
    entries
}

/// Gives the bounds of all entries of a name.
pub(super) fn bounds(name: &str) -> RangeInclusive<Vec<u8>> {
    entry(name, 0)..=entry(name, u64::MAX)
}

/// Gives the id in an entry.
pub(super) fn id_in(entry: &[u8]) -> Result<u64, Failure> {
    let bytes = entry.last_chunk().ok_or("an entry is too short")?;
    #[allow(clippy::big_endian_bytes, reason = "bytes are to sort as numbers do")]
    Ok(u64::from_be_bytes(*bytes))
}
