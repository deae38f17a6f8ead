//! Rows and index entries as the bytes that an engine without columns keeps.
//!
//! A row is its value and its name, under its id. An entry of the index is a key alone: the name and the
//! id, so that equal names are no conflict.

use std::ops::{Range, RangeInclusive};

use super::{Failure, Names};

const WIDTH: usize = size_of::<u64>();

/// Returns the key of a row, in the order of the ids.
pub(super) const fn key(id: u64) -> [u8; WIDTH] {
    #[allow(clippy::big_endian_bytes, reason = "bytes are to sort as numbers do")]
    id.to_be_bytes()
}

/// Makes bytes those of a row.
pub(super) fn encode(row: &mut Vec<u8>, value: i64, name: &str) {
    row.clear();
    row.extend_from_slice(&value.to_le_bytes());
    row.extend_from_slice(name.as_bytes());
}

/// Encodes a row, except the value.
pub(super) fn change(changed: &mut Vec<u8>, row: &[u8], value: i64) -> Result<(), Failure> {
    let name = row.get(WIDTH..).ok_or("a row is too short")?;
    changed.clear();
    changed.extend_from_slice(&value.to_le_bytes());
    changed.extend_from_slice(name);
    Ok(())
}

/// Returns the value of a row.
pub(super) fn value_in(row: &[u8]) -> Result<i64, Failure> {
    let bytes = row.first_chunk().ok_or("a row is too short")?;
    Ok(i64::from_le_bytes(*bytes))
}

/// Returns the entry of a row in the index.
pub(super) fn entry(name: &str, id: u64) -> Vec<u8> {
    [name.as_bytes(), &key(id)].concat()
}

/// Returns the entries of rows, in the order of the index: inserted so, each page is changed once.
pub(super) fn entries(ids: Range<u64>, names: &Names) -> Vec<Vec<u8>> {
    let mut entries: Vec<_> = names.of(ids).map(|(id, name)| entry(name, id)).collect();
    entries.sort_unstable();
    entries
}

/// Returns the bounds of all entries of a name.
pub(super) fn bounds(name: &str) -> RangeInclusive<Vec<u8>> {
    entry(name, 0)..=entry(name, u64::MAX)
}

/// Returns the key of the row of an entry.
pub(super) fn key_in(entry: &[u8]) -> Result<&[u8; WIDTH], Failure> {
    entry.last_chunk().ok_or_else(|| "an entry is too short".into())
}
