//! Blobs: where in the journal the pieces of each are.
//!
//! Invariants
//! 1. Blobs are numbered from 1 without a gap, in the order in which they were written.
//! 2. The first piece of a blob is at offset 0, each further one where the one before ends. A piece
//!    without bytes is alone.
#![expect(clippy::big_endian_bytes, reason = "big-endian numbers compare as their bytes do")]

use annals_schema::{Blob, ValueRef};

use crate::btree::Tree;
use crate::pages::load::Loader;
use crate::pages::page::Epoch;
use crate::pages::paged::Counted;
use crate::pages::save::{Saved, Saver};
use crate::{Error, Result};

/// A piece of a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where it is in the blob.
    pub offset: u64,
    /// Where its bytes are in the journal, in which segment too; their checksum is in front of them.
    pub position: u64,
    /// How many bytes it has.
    pub len: u32,
}

impl Piece {
    /// True if the byte at `offset` of the blob is in this piece.
    #[inline]
    pub fn holds(&self, offset: u64) -> bool {
        offset.checked_sub(self.offset).is_some_and(|skipped| skipped < u64::from(self.len))
    }

    pub(super) fn end(&self) -> u64 {
        self.offset.saturating_add(u64::from(self.len))
    }
}

/// The table of all pieces: from number and offset to position and length.
#[derive(Clone, Debug)]
pub(super) struct Blobs {
    pieces: Tree,
    /// The number of the last blob; 0 if there is none.
    pub(super) last: u64,
}

const VALUE_LEN: usize = 12;

impl Blobs {
    pub(super) fn new() -> Self {
        Self { pieces: Tree::new(VALUE_LEN), last: 0 }
    }

    /// True if a value may be stored: whether it is a blob that was written, or none.
    #[inline]
    pub(super) const fn allows(&self, value: &ValueRef<'_>) -> bool {
        match value {
            ValueRef::Blob(blob) => self.has(*blob),
            _ => true,
        }
    }

    /// True if a blob was written. One comparison (invariant 1).
    #[inline]
    pub(super) const fn has(&self, blob: Blob) -> bool {
        blob.0.wrapping_sub(1) < self.last
    }

    /// Finds the last piece of a blob that begins at or before `offset`.
    pub(super) fn piece(&self, blob: Blob, offset: u64) -> Result<Option<Piece>> {
        let found = self.pieces.floor(&key(blob, offset), read)?;
        Ok(found.flatten().and_then(|(number, piece)| (number == blob.0).then_some(piece)))
    }

    pub(super) fn len_of(&self, blob: Blob) -> Result<Option<u64>> {
        Ok(self.piece(blob, u64::MAX)?.map(|piece| piece.end()))
    }

    pub(super) fn add(&mut self, blob: Blob, piece: Piece, epoch: &Epoch) -> Result<()> {
        let mut value = [0; VALUE_LEN];
        value[..8].copy_from_slice(&piece.position.to_le_bytes());
        value[8..].copy_from_slice(&piece.len.to_le_bytes());
        self.pieces.insert(&key(blob, piece.offset), &value, epoch)?;
        self.last = blob.0;
        Ok(())
    }

    /// Passes the table on to be saved.
    pub(super) fn save(&self, out: &mut Saver) {
        out.number(self.last);
        self.pieces.save(out);
    }

    /// Loads the output of `save`.
    pub(super) fn load(input: &mut Loader<'_>) -> Result<Self> {
        let last = input.number()?;
        if last > Blob::MAX.0 {
            return Err(Error::corrupt(format!("the image says that there are {last} blobs")));
        }
        Ok(Self { last, pieces: Tree::load(input, VALUE_LEN)? })
    }

    /// Continues from the stored base.
    pub(super) fn rebase(&mut self, saved: &Saved) {
        self.pieces.rebase(saved);
    }

    /// Returns how much memory it takes, in bytes.
    pub(super) fn memory(&self, what: Counted) -> usize {
        self.pieces.memory(what)
    }

    /// Executes the invariants; returns an error for a violation.
    pub(super) fn check(&self) -> Result<()> {
        self.pieces.check()?;
        let (mut last, mut end) = (0, 0);
        let mut pieces = self.pieces.range(&[], None)?;
        while let Some(piece) = pieces.next_with(read)? {
            let no_number = || Error::corrupt("a piece has no number");
            let (number, piece) = piece.ok_or_else(no_number)?;
            let begins = number == last + 1 && piece.offset == 0;
            let goes_on = number == last && end > 0 && piece.offset == end && piece.len > 0;
            if !begins && !goes_on {
                let what = format!("a piece of blob {number} is at {}", piece.offset);
                return Err(Error::corrupt(what));
            }
            (last, end) = (number, piece.end());
        }
        if last == self.last {
            Ok(())
        } else {
            Err(Error::corrupt(format!("{last} blobs, not {}", self.last)))
        }
    }
}

fn key(blob: Blob, offset: u64) -> [u8; 16] {
    (u128::from(blob.0) << 64 | u128::from(offset)).to_be_bytes()
}

fn read(key: &[u8], value: &[u8]) -> Option<(u64, Piece)> {
    let (number, offset) = key.split_first_chunk()?;
    let (position, len) = value.split_first_chunk()?;
    let piece = Piece {
        offset: u64::from_be_bytes(offset.try_into().ok()?),
        position: u64::from_le_bytes(*position),
        len: u32::from_le_bytes(len.try_into().ok()?),
    };
    Some((u64::from_be_bytes(*number), piece))
}

/// Returns the error that a value names a blob that was never written.
#[cold]
pub(super) fn no_blob(value: &ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Blob(blob) => Some(format!("there is no blob number {}; write it first", blob.0)),
        _ => None,
    }
}
