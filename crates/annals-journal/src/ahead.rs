//! Making space ahead. In a file the space is zeroed, so that commits needn't make the file grow. On a device the
//! space is recorded as the journal's before a frame is written there.
//!
//! ```text
//! 1. zero what follows zeroed_to, at least 1 MiB; flush   (garbage can't be taken for frames any more)
//! 2. write the older slot with the new zeroed_to; flush; then the other; flush
//!                                                         (recovery reads up to there from now on)
//! ```
//!
//! A crash before the end of 2 leaves the old end, and nothing but zeros or garbage after it.

use std::sync::MutexGuard;

use annals_storage::step;

use super::checkpoints::{Checkpoints, lock};
use super::device::SPACE_STEP;
use super::space::zero;
use crate::{Error, Result};

impl Checkpoints {
    /// Fills space ahead with zeros, so that small commits needn't make the file grow. Failures
    /// are of no consequence: the commit that needs the space will meet them.
    pub fn prefill(&self) -> Result<()> {
        self.check_usable()?;
        let look = self.look();
        if self.storage.has_fixed_len() {
            return self.extend_ahead(look.end);
        }
        if self.space.fill(&*self.storage, look).unwrap_or(false) && look.flushing {
            self.flush()?;
        }
        Ok(())
    }

    /// Makes space up to `end`, and some more, on a storage of fixed length.
    pub(super) fn extend(&self, end: u64) -> std::io::Result<()> {
        if end <= self.space.zeroed_to() {
            return Ok(());
        }
        let held = self.space.hold();
        let from = self.space.zeroed_to();
        if end <= from {
            return Ok(());
        }
        let len = self.storage.len()?;
        if end > len {
            return Err(full(len));
        }
        let to = end.saturating_add(SPACE_STEP).next_multiple_of(SPACE_STEP).min(len);
        zero(&*self.storage, from, to)?;
        self.claim(&held, to).map_err(std::io::Error::other)
    }

    /// Writes a new end to both slots, before anything is written after it: if one slot is lost, no frame is beyond
    /// the end in the other.
    fn claim(&self, held: &MutexGuard<'_, ()>, zeroed_to: u64) -> Result<()> {
        self.flush()?;
        let mut slots = lock(&self.slots);
        for _ in 0..step!(SpaceToldOnce, 2, else 1) {
            slots.write(self, self.durable(), zeroed_to, self.secret())?;
            self.flush()?;
        }
        // While the slots are locked: no slot written later may have a smaller end.
        self.space.set_held(held, zeroed_to);
        Ok(())
    }

    /// Makes space before a commit needs it.
    fn extend_ahead(&self, end: u64) -> Result<()> {
        let from = self.space.zeroed_to();
        if from >= end + SPACE_STEP / 2 {
            return Ok(());
        }
        let io = |error| Error::io(format!("{}: can't make space ahead", self.name), error);
        if from == self.storage.len().map_err(io)? {
            return Ok(()); // all of the device is the journal's; the commit will meet its end
        }
        self.check_usable()?;
        self.extend(from + 1).map_err(io)
    }
}

fn full(len: u64) -> std::io::Error {
    let message = format!("the device is full: it has {len} bytes");
    std::io::Error::new(std::io::ErrorKind::StorageFull, message)
}
