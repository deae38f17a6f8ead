//! The two hard slots, of which one is written after the other.
//!
//! Invariants
//! 1. A slot is written, both copies at once, only after the flush has returned that covers its point: so
//!    each copy that verifies is true.
//! 2. A slot is written only when a flush has returned that began after the other one was written: so at
//!    most one block is ever in doubt.
//! 3. `newest` is the content of the slot that was written last, and `written_at` the number of flushes begun by
//!    then.
//! 4. `torn` says which slots have copies that differ, from a write that was interrupted.

use annals_storage::step;

use super::checkpoints::Checkpoints;
use super::format::{Point, Secret, Slot};
use super::head::{self, Head};
use crate::{Error, Result};

/// The slot to write next, and the content of the other one.
#[derive(Clone, Copy, Debug)]
pub(super) struct HardSlots {
    working: usize,
    newest: Slot,
    written_at: u64,
    torn: [bool; 2],
}

impl HardSlots {
    /// Begins with the contents of a file: the newest slot counts as flushed after the return of a flush that begins
    /// after `flushes_begun` others.
    pub(super) fn found(head: &Head, newest: Slot, flushes_begun: u64) -> Self {
        let torn = head.torn_slots();
        Self { working: head.older_slot(), newest, written_at: flushes_begun, torn }
    }

    /// Begins with both slots known to be on permanent storage.
    pub(super) const fn flushed(working: usize, newest: Slot) -> Self {
        Self { working, newest, written_at: 0, torn: [false; 2] }
    }

    /// Continues in a handle that has begun some flushes.
    pub(super) fn after(self, flushes_begun: u64) -> Self {
        let written_at = if self.written_at == 0 { 0 } else { flushes_begun };
        Self { written_at, ..self }
    }

    /// Returns the content of the slot that was written last.
    pub(super) const fn newest(&self) -> &Slot {
        &self.newest
    }

    /// True if the slot that was written last is on permanent storage.
    pub(super) const fn is_flushed(&self, flushes_done: u64) -> bool {
        flushes_done > self.written_at
    }

    /// Writes the older slot: `point` was flushed. Flushes first if the other slot may not be.
    pub(super) fn write(
        &mut self,
        checkpoints: &Checkpoints,
        point: Point,
        zeroed_to: u64,
        secret: Secret,
    ) -> Result<()> {
        if !self.is_flushed(checkpoints.flushes_done()) {
            step!(SlotsAtOnce, checkpoints.flush()?);
        }
        checkpoints.check_usable()?;
        let slot = Slot { point, zeroed_to, sequence: self.newest.sequence + 1, secret };
        head::write_slot(&*checkpoints.storage, self.working, &slot, checkpoints.header).map_err(
            |error| Error::io(format!("{}: can't write a slot", checkpoints.name), error),
        )?;
        let written_at = checkpoints.flushes_begun();
        let mut torn = self.torn;
        if let Some(torn) = torn.get_mut(self.working) {
            *torn = false;
        }
        *self = Self { working: 1 - self.working, newest: slot, written_at, torn };
        Ok(())
    }

    /// True if the copies of a slot differ.
    pub(super) fn are_torn(&self) -> bool {
        self.torn.contains(&true)
    }
}
