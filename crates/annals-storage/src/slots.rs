//! Two slots for a small record of which the newest must survive any crash: where a journal was flushed to, and the
//! root of an image.
//!
//! ```text
//! what the record says ─► flush ─► all copies of the older slot          write_at_once
//! what the record says ─► first copy ─► flush ─► second copy             write_in_turn
//! ```
//!
//! Invariants
//! 1. The slot without the newest record is the next one to be written.
//! 2. It is written only after a flush that began after the other one was written (in turn: its first copy). So at most
//!    one slot is in doubt.
//! 3. Written at once, a copy that verifies is true. Written in turn, two equal copies are. A first copy alone may
//!    say what isn't on permanent storage, and a second copy alone may be an older record's.
//!
//! | crash | what is found |
//! |---|---|
//! | before the older slot is written | the record of the other slot |
//! | before its flush has returned | that record; the new one, or none, in the older slot |
//! | later | the new record |

use std::io;

use crate::{Storage, step};

/// How often slots are read while one isn't whole: another process may be writing it.
const TRIES: usize = 4;

/// A record that a slot holds.
pub trait Record: PartialEq {
    /// Returns its number: each record has a larger one than the record before.
    fn number(&self) -> u64;
}

/// The copies in both slots; `None` for each that doesn't verify.
pub type Copies<T, const COPIES: usize> = [[Option<T>; COPIES]; 2];

/// What was read of both slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<T, const COPIES: usize> {
    /// Each copy by itself.
    pub copies: Copies<T, COPIES>,
    /// True for a slot that was never written: its copies are zeros.
    pub is_blank: [bool; 2],
}

/// Where two slots are in a file.
#[derive(Clone, Copy, Debug)]
pub struct Slots<const COPIES: usize> {
    /// Where each begins.
    pub at: [u64; 2],
    /// Where the copies are in each, in sectors of their own.
    pub copies_at: [u64; COPIES],
}

impl<const COPIES: usize> Slots<COPIES> {
    /// Returns the positions of the copies of a slot, 0 or 1.
    fn copies_of(&self, slot: usize) -> [u64; COPIES] {
        let [first, second] = self.at;
        self.copies_at.map(|copy| copy + if slot == 0 { first } else { second })
    }

    /// Returns the positions of all copies.
    pub fn places(&self) -> impl Iterator<Item = u64> + use<COPIES> {
        [self.copies_of(0), self.copies_of(1)].into_iter().flatten()
    }

    /// Reads both slots; again while one is neither whole nor blank, since another process may be writing it.
    ///
    /// # Errors
    /// Those of the storage.
    pub fn read<T: Record, const LEN: usize>(
        &self,
        storage: &dyn Storage,
        decode: impl Fn(&[u8; LEN]) -> Option<T>,
    ) -> io::Result<Found<T, COPIES>> {
        let mut tries = 0;
        loop {
            let mut copies = [const { [const { None }; COPIES] }; 2];
            let mut is_blank = [true; 2];
            for (slot, (copies, is_blank)) in copies.iter_mut().zip(&mut is_blank).enumerate() {
                for (found, at) in copies.iter_mut().zip(self.copies_of(slot)) {
                    let mut bytes = [0; LEN];
                    let read = storage.read_at(at, &mut bytes)?;
                    *found = decode(&bytes).filter(|_| read == LEN);
                    *is_blank &= bytes.iter().all(|&byte| byte == 0);
                }
            }
            tries += 1;
            let is_torn = |(torn, is_blank): (bool, bool)| torn && !is_blank;
            if tries == TRIES || !torn(&copies).into_iter().zip(is_blank).any(is_torn) {
                return Ok(Found { copies, is_blank });
            }
        }
    }

    /// Writes one copy.
    ///
    /// # Errors
    /// Those of the storage.
    pub fn write_copy(
        &self,
        storage: &dyn Storage,
        slot: usize,
        copy: usize,
        bytes: &[u8],
    ) -> io::Result<()> {
        let place = self.copies_of(slot).into_iter().nth(copy);
        storage.write_at(place.ok_or(io::ErrorKind::InvalidInput)?, bytes)
    }

    /// Writes all copies of a slot in one write. The caller has flushed what the record says, after the other slot was
    /// written.
    ///
    /// # Errors
    /// Those of the storage.
    pub fn write_at_once(
        &self,
        storage: &dyn Storage,
        slot: usize,
        bytes: &[u8],
    ) -> io::Result<()> {
        write_copies(storage, self.copies_of(slot), bytes)
    }

    /// Writes the first copy of a slot, and the second only after a flush of the first and of all that the record says.
    ///
    /// # Errors
    /// Those of the storage.
    pub fn write_in_turn(
        &self,
        storage: &dyn Storage,
        slot: usize,
        bytes: &[u8],
    ) -> io::Result<()> {
        self.write_copy(storage, slot, 0, bytes)?;
        step!(RootSlotsAtOnce, else self.write_at_once(storage, 1 - slot, bytes)?);
        step!(RootCopiesAtOnce, else self.write_copy(storage, slot, 1, bytes)?);
        step!(RootNotFlushed, storage.flush()?);
        self.write_copy(storage, slot, 1, bytes)
    }
}

/// Writes copies of something in one write; the first position is the least.
///
/// # Errors
/// Those of the storage.
pub fn write_copies<const COPIES: usize>(
    storage: &dyn Storage,
    places: [u64; COPIES],
    bytes: &[u8],
) -> io::Result<()> {
    let first = places.first().copied().unwrap_or(0);
    let mut all = Vec::new();
    for place in places {
        all.resize(usize::try_from(place - first).map_err(io::Error::other)?, 0);
        all.extend_from_slice(bytes);
    }
    storage.write_at(first, &all)
}

/// Reads copies of something until one verifies.
///
/// # Errors
/// Those of the storage.
pub fn first_copy<T, const LEN: usize>(
    storage: &dyn Storage,
    places: impl IntoIterator<Item = u64>,
    decode: impl Fn(&[u8; LEN]) -> Option<T>,
) -> io::Result<Option<T>> {
    for place in places {
        let mut bytes = [0; LEN];
        if storage.read_at(place, &mut bytes)? == LEN
            && let Some(found) = decode(&bytes)
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Returns the newest record of which a copy verifies.
pub fn newest<T: Record, const COPIES: usize>(copies: &Copies<T, COPIES>) -> Option<&T> {
    copies.iter().flatten().flatten().max_by_key(|record| record.number())
}

/// Returns the slot that is written next: the one without the newest record.
pub fn older<T: Record, const COPIES: usize>(copies: &Copies<T, COPIES>) -> usize {
    let newest = |slot: &[Option<T>; COPIES]| slot.iter().flatten().map(Record::number).max();
    let [first, second] = copies;
    usize::from(newest(first) > newest(second))
}

/// True for a slot of which a copy doesn't verify, or differs from another: an interrupted write, or damage.
pub fn torn<T: Record, const COPIES: usize>(copies: &Copies<T, COPIES>) -> [bool; 2] {
    copies.each_ref().map(|slot| {
        let first = slot.first().and_then(Option::as_ref);
        first.is_none() || slot.iter().any(|copy| copy.as_ref() != first)
    })
}
