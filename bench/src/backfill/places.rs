//! Where a backfill wrote: what of its image isn't as it was.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use crate::backfill_floor::PAGE;
use crate::engine::Failure;

/// What an image gives space in, in bytes.
const UNIT: usize = 4096;

/// A hash of each unit of a file.
#[derive(Default)]
pub(super) struct Units(Vec<u64>);

impl Units {
    /// Reads a file.
    pub(super) fn of(path: &Path) -> Result<Self, Failure> {
        #[allow(clippy::disallowed_methods, reason = "the file is looked at from outside")]
        let mut file = File::open(path)?;
        let (mut units, mut bytes) = (Vec::new(), [0; UNIT]);
        loop {
            match file.read_exact(&mut bytes) {
                Ok(()) => units.push(hash(&bytes)),
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(Self(units)),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Gives the file's length in bytes.
    pub(super) const fn len(&self) -> u64 {
        (self.0.len() * UNIT) as u64
    }

    /// Gives the stretches that aren't as they were, in pieces of at most a page: places and lengths.
    pub(super) fn unlike<'u>(
        &'u self,
        before: &'u Self,
    ) -> impl Iterator<Item = (u64, usize)> + 'u {
        let is_unlike = |unit: usize| self.0.get(unit) != before.0.get(unit);
        let mut at = 0;
        std::iter::from_fn(move || {
            let first = (at..self.0.len()).find(|unit| is_unlike(*unit))?;
            let most = self.0.len().min(first + PAGE / UNIT);
            at = (first..most).find(|unit| !is_unlike(*unit)).unwrap_or(most);
            Some(((first * UNIT) as u64, (at - first) * UNIT))
        })
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().fold(0, |hash: u64, word| {
        (hash.rotate_left(29) ^ u64::from_le_bytes(*word)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_found() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut bytes = vec![7; 20 * UNIT];
        std::fs::write(file.path(), &bytes).unwrap();
        let before = Units::of(file.path()).unwrap();
        bytes[UNIT] = 1;
        bytes[5 * UNIT..12 * UNIT].fill(2);
        bytes.extend([3; UNIT]);
        std::fs::write(file.path(), &bytes).unwrap();
        let after = Units::of(file.path()).unwrap();
        let expected = [(1, 1), (5, 4), (9, 3), (20, 1)];
        let expected = expected.map(|(at, count)| (at * UNIT as u64, count * UNIT));
        assert_eq!(after.unlike(&before).collect::<Vec<_>>(), expected);
        assert_eq!(after.len(), 21 * UNIT as u64);
    }
}
