//! Writing frames that were written before, elsewhere: a copy of a journal that is brought forward.
//!
//! Such frames tell how far *the other file* was flushed when they were made. If a power cut left a later one
//! of them and not an earlier one, they would make that look like damage. So a slot says first that what
//! follows it is a copy, and then what its frames tell of flushes isn't believed (`Survey`).
//!
//! ```text
//! begin:   a slot that is `copied`, at the end; flush                       (before the first frame)
//! a batch: frames; flush; a slot that is `copied`, at their end             (the next flush covers the slot)
//! end:     flush; a slot that isn't `copied`; flush; the other slot; flush  (only now frames are believed again)
//! ```

use std::sync::atomic::Ordering;

use super::checkpoints::{Checkpoints, lock};
use super::format::Point;
use super::mistakes::{Mistake, is_made};
use crate::Result;

impl Checkpoints {
    /// Makes ready for copied frames behind the end. Nothing if it is ready.
    pub(crate) fn begin_copy(&self) -> Result<()> {
        if self.is_copied.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.write_slots_again(1)
    }

    /// Makes copied frames that were written up to a point durable, and lets a slot and the live block
    /// tell it.
    pub(crate) fn end_batch(&self, point: Point) -> Result<()> {
        self.flush()?;
        self.acknowledge(point, 1, true);
        self.note_durable(point);
        self.advance_slot()?;
        self.tell().map(drop)
    }

    /// Ends what [`begin_copy`](Self::begin_copy) began: behind this the file is like any other. Nothing
    /// if nothing was copied.
    pub(crate) fn end_copy(&self) -> Result<()> {
        if !self.is_copied.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        self.harden()?;
        self.write_slots_again(2)
    }

    /// Writes so many of the slots, each behind a flush of the one before, and flushes the last.
    fn write_slots_again(&self, count: usize) -> Result<()> {
        let mut slots = lock(&self.slots);
        for _ in 0..count {
            slots.prepare_both(self)?;
            slots.write_both(self, &self.slot(self.durable()))?;
            if !is_made(Mistake::CopyMarkNotFlushed) {
                self.flush()?;
            }
        }
        slots.turn(self.flushes_done());
        Ok(())
    }
}
