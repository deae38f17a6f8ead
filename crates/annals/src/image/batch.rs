//! Writing many objects: in the order of their places, joined where they touch.

use std::io;

use super::format::UNIT;
use crate::storage::Storage;

/// How many bytes are written at a time at most, unless one object is longer.
const LONGEST_RUN: usize = 1 << 20;

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// How many writes there were.
    pub(crate) runs: u64,
    /// How many bytes they had, with the zeros up to whole units.
    pub(crate) bytes: u64,
}

/// Writes objects, each with zeros behind it up to a whole unit.
pub(super) fn write(storage: &dyn Storage, objects: &[(u64, &[&[u8]])]) -> io::Result<Written> {
    let mut order: Vec<_> = objects.iter().collect();
    order.sort_unstable_by_key(|(place, _)| *place);
    let mut written = Written::default();
    let (mut start, mut run) = (0, Vec::new());
    let mut put = |start, run: &[u8]| {
        if run.is_empty() {
            return Ok(());
        }
        written.runs += 1;
        written.bytes += run.len() as u64;
        storage.write_at(start, run)
    };
    for (place, parts) in order {
        if start + run.len() as u64 != *place || run.len() >= LONGEST_RUN {
            put(start, &run)?;
            run.clear();
            start = *place;
        }
        parts.iter().for_each(|part| run.extend_from_slice(part));
        let unit = usize::try_from(UNIT).unwrap_or(1);
        run.resize(run.len().next_multiple_of(unit), 0);
    }
    put(start, &run)?;
    Ok(written)
}
