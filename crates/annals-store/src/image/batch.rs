//! Writing many objects: in the order of their places, joined where they touch.

use std::io;

use super::format::UNIT;
use annals_storage::{Storage, join};

/// Zeros for the space after an object up to a whole unit.
static ZEROS: [u8; 4096] = [0; 4096];

const _: () = assert!(ZEROS.len() as u64 == UNIT);

/// The written objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// How many writes there were.
    pub runs: u64,
    /// How many bytes they had, with the zeros up to whole units.
    pub(crate) bytes: u64,
}

/// Writes objects, each with zeros after it up to a whole unit.
pub(super) fn write(storage: &dyn Storage, objects: &[(u64, &[&[u8]])]) -> io::Result<Written> {
    let mut pieces = Vec::with_capacity(objects.len());
    for (place, parts) in objects {
        let mut at = *place;
        for part in *parts {
            pieces.push((at, *part));
            at += part.len() as u64;
        }
        let rest = usize::try_from(at.next_multiple_of(UNIT) - at).unwrap_or_default();
        pieces.push((at, ZEROS.get(..rest).unwrap_or_default()));
    }
    let batched = storage.write_batch(&join(pieces))?;
    Ok(Written { runs: batched.writes, bytes: batched.bytes })
}
