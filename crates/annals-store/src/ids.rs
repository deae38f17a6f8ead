//! Ids of rows in the keys of trees.
#![expect(clippy::big_endian_bytes, reason = "big-endian numbers compare as their bytes do")]

use annals_schema::RowId;

/// Returns the id at the end of an entry.
#[inline]
pub(crate) fn id_of(entry: &[u8]) -> RowId {
    RowId(entry.last_chunk().map_or(0, |id| u64::from_be_bytes(*id)))
}
