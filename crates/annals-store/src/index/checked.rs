//! Where a new row's unique keys belong, as the uniqueness check found it. So inserting them neither encodes nor
//! searches them again.
//!
//! Invariant: all entries are of one row. The indexes don't change between the row's check and its insertion.

use crate::btree::Spot;

/// The entries of a new row that have a spot.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    bytes: Vec<u8>,
    /// The number of the index, where the entry ends, and where it belongs.
    all: Vec<(usize, usize, Spot)>,
}

impl Checked {
    /// Forgets the last row.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.all.clear();
    }

    /// Remembers the spot in an index at which an entry is about to be inserted.
    #[inline]
    pub(crate) fn note(&mut self, number: usize, entry: &[u8], spot: Spot) {
        self.bytes.extend_from_slice(entry);
        self.all.push((number, self.bytes.len(), spot));
    }

    /// Returns the entry of an index, and where it belongs.
    #[inline]
    pub(crate) fn of(&self, number: usize) -> Option<(&[u8], &Spot)> {
        let at = self.all.iter().position(|&(index, ..)| index == number)?;
        let begin = at.checked_sub(1).and_then(|before| self.all.get(before)).map_or(0, |e| e.1);
        let (_, end, spot) = self.all.get(at)?;
        Some((self.bytes.get(begin..*end)?, spot))
    }
}
