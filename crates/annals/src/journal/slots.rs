//! The two hard slots, and which of them may be written.
//!
//! Invariants
//! 1. The *kept* slot is whole on permanent storage, or will be when the next flush has returned:
//!    `kept_at` tells how many flushes had begun when it was written. It tells `kept`.
//! 2. Only the *working* slot is written, and only once the kept one is whole on permanent storage.
//! 3. A copy that claims a point is written after the frames up to it were handed to the operating
//!    system; both copies, or the second, only after a flush that covers them.
//! 4. The two change places once a flush that began behind the writing of both copies has returned.
//! 5. Only the first copy of a half or two-phase commit goes over a slot that was written and not flushed:
//!    no other commit waits for a flush then.

use super::checkpoints::Checkpoints;
use super::format::{Point, Slot};
use super::head::{self, Head};
use crate::storage::Storage;
use crate::{Error, Result};

/// Where the slots are, which of them is written next, and what they tell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slots {
    /// The number of the slot that may be torn.
    working: usize,
    kept: Point,
    kept_at: u64,
    /// What both copies of the working slot tell, and how many flushes had begun when the second of
    /// them was written.
    written: Option<(Point, u64)>,
}

impl Slots {
    /// Begins with the slot other than `working` kept, which was written before any flush.
    pub(super) const fn new(working: usize, kept: Point) -> Self {
        Self { working, kept, kept_at: super::checkpoints::FLUSHES_AT_FIRST, written: None }
    }

    /// Begins with what another process left: its newest slot is taken for kept once a flush has
    /// returned that begins after `flushes_begun` others.
    pub(super) fn found(head: &Head, flushes_begun: u64) -> Self {
        let kept = head.newest_slot().map_or(head.start(), |slot| slot.point);
        Self { working: head.older_slot(), kept, kept_at: flushes_begun, written: None }
    }

    /// Begins with both slots known to be whole on permanent storage.
    pub(super) const fn whole(working: usize, kept: Point) -> Self {
        Self { working, kept, kept_at: 0, written: None }
    }

    /// Goes on in a handle that has begun some flushes: what was only written yet needs one that begins
    /// behind them.
    pub(super) fn behind(self, flushes_begun: u64) -> Self {
        let kept_at =
            if self.kept_at < super::checkpoints::FLUSHES_AT_FIRST { 0 } else { flushes_begun };
        Self { kept_at, ..self }
    }

    /// Gives the point that is told by the slot that was written last.
    pub(super) fn newest(&self) -> Point {
        self.written.map_or(self.kept, |(point, _)| point)
    }

    /// Gives the point that a slot tells whatever happens next.
    pub(super) const fn kept(&self) -> Point {
        self.kept
    }

    /// Tells whether the working slot is whole, though perhaps not on permanent storage yet.
    pub(super) const fn is_written(&self) -> bool {
        self.written.is_some()
    }

    /// Tells whether the slot that was written last is whole on permanent storage.
    pub(super) fn is_kept(&self, flushes_done: u64) -> bool {
        self.written.is_none() && flushes_done > self.kept_at
    }

    /// Lets the two slots change places if the working one has become whole since.
    pub(super) fn turn(&mut self, flushes_done: u64) {
        if let Some((point, at)) = self.written.filter(|&(_, at)| flushes_done > at) {
            *self = Self { working: 1 - self.working, kept: point, kept_at: at, written: None };
        }
    }

    /// Makes the working slot ready to be written: flushes if the kept one may not be whole yet.
    pub(super) fn prepare(&mut self, checkpoints: &Checkpoints) -> Result<()> {
        self.turn(checkpoints.flushes_done());
        if checkpoints.flushes_done() <= self.kept_at {
            checkpoints.flush()?;
        }
        checkpoints.check_usable()
    }

    /// As [`Self::prepare`], for whoever writes both copies at once: flushes also if the working slot was
    /// written and not flushed. A flush may be under way that a two-phase commit waits for, which that
    /// slot proves; writing over it now could tear it behind that flush.
    pub(super) fn prepare_both(&mut self, checkpoints: &Checkpoints) -> Result<()> {
        self.prepare(checkpoints)?;
        if self.written.is_some() {
            checkpoints.flush()?;
            self.turn(checkpoints.flushes_done());
        }
        checkpoints.check_usable()
    }

    /// Writes the first copy into the working slot, which was prepared.
    pub(super) fn write_first(&mut self, checkpoints: &Checkpoints, slot: &Slot) -> Result<()> {
        self.written = None;
        self.write(checkpoints, |storage, which, header| {
            head::write_slot_copy(storage, which, 0, slot, header)
        })
    }

    /// Writes the second copy, of the same slot: the flush that covers the first, and the frames, has
    /// returned.
    pub(super) fn write_second(&mut self, checkpoints: &Checkpoints, slot: &Slot) -> Result<()> {
        self.write(checkpoints, |storage, which, header| {
            head::write_slot_copy(storage, which, 1, slot, header)
        })?;
        self.written = Some((slot.point, checkpoints.flushes_begun()));
        Ok(())
    }

    /// Writes both copies into the working slot, which was prepared for that.
    pub(super) fn write_both(&mut self, checkpoints: &Checkpoints, slot: &Slot) -> Result<()> {
        self.written = None;
        self.write(checkpoints, |storage, which, header| {
            head::write_slot(storage, which, slot, header)
        })?;
        self.written = Some((slot.point, checkpoints.flushes_begun()));
        Ok(())
    }

    fn write(
        &self,
        checkpoints: &Checkpoints,
        write: impl FnOnce(&dyn Storage, usize, u64) -> std::io::Result<()>,
    ) -> Result<()> {
        write(&*checkpoints.storage, self.working, checkpoints.header)
            .map_err(|error| Error::io(format!("{}: can't write a slot", checkpoints.name), error))
    }
}
