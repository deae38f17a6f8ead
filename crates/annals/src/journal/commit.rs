//! The steps of each commit level behind the writing of the frames. `docs/crash.md` argues why they do.

use super::checkpoints::{Checkpoints, SLOT_LAG, lock};
use super::format::Point;
use super::level::Level;
use super::mistakes::{Mistake, is_made};
use super::slots::Slots;
use crate::Result;

impl Checkpoints {
    /// Does what a level asks for, for all commits up to `target`, whose frames are written: the recipe
    /// of each level. An error is final: what the disk holds is not known. `unproven` is the end of the
    /// commit before the last one, if nothing but a slot shows that it was flushed.
    ///
    /// | crash                   | `Half`                       | `TwoPhase`         | `Checksummed`     |
    /// |-------------------------|------------------------------|--------------------|-------------------|
    /// | before the first flush  | not there, or known by the durable position of a frame behind it | there if whole, with all before it |
    /// | behind it               | not there, all before it is  | the same           | there             |
    /// | behind the second copy  | there if that got to the disk| the same           |                   |
    /// | behind the second flush |                              | there              |                   |
    pub(crate) fn reach(&self, level: Level, target: Point, unproven: Option<u64>) -> Result<()> {
        let reached = match level {
            Level::Soft => Ok(()),
            Level::Checksummed => self.checksummed(target),
            Level::Half => self.half(target, unproven),
            Level::TwoPhase => self.two_phase(target, unproven),
        };
        reached.inspect_err(|error| {
            if !is_made(Mistake::FailedFlushForgotten) {
                self.poison(&error.to_string());
            }
        })
    }

    fn checksummed(&self, target: Point) -> Result<()> {
        if is_made(Mistake::SlotBeforeFlush) {
            self.note_durable(target);
            self.advance_slot()?;
        }
        if !is_made(Mistake::CommitNotFlushed) {
            self.flush()?;
        }
        self.note_durable(target);
        // A slot that can't be written now is written later: the commit stands without it.
        let _ = self.advance_lagging_slot();
        Ok(())
    }

    fn half(&self, target: Point, unproven: Option<u64>) -> Result<()> {
        let unproven = unproven.filter(|_| !is_made(Mistake::HalvesShareFlush));
        let mut slots = lock(&self.slots);
        self.tell_by_slot(&mut slots, target, unproven)?;
        // Or else the slot isn't whole for a long time, or nothing tells that the commit before counts.
        let kept = slots.kept().position;
        let lag = target.position.saturating_sub(kept);
        if lag >= SLOT_LAG || unproven.is_some_and(|end| end > kept) {
            self.flush()?;
            slots.turn(self.flushes_done());
        }
        self.note_durable(target);
        Ok(())
    }

    fn two_phase(&self, target: Point, unproven: Option<u64>) -> Result<()> {
        self.tell_by_slot(&mut lock(&self.slots), target, unproven)?;
        self.note_durable(target);
        if is_made(Mistake::SecondFlushLeftOut) { Ok(()) } else { self.flush() }
    }

    /// Flushes all up to `target`, with the first copy of a slot that tells it; then writes the second.
    fn tell_by_slot(&self, slots: &mut Slots, target: Point, unproven: Option<u64>) -> Result<()> {
        slots.prepare(self)?;
        // The slot that would be written over may be all that tells that the commit before counts, and
        // it is whole only in the page cache: it is kept then, and the other one written.
        let is_flushed =
            slots.is_written() && unproven.is_some_and(|end| end > slots.kept().position);
        if is_flushed {
            self.flush()?;
            slots.turn(self.flushes_done());
        }
        // A rollback of another thread tells all that was written by then, which may be more.
        if slots.newest().position >= target.position {
            return Ok(());
        }
        let slot = self.slot(target);
        if is_flushed {
            return slots.write_both(self, &slot);
        }
        slots.write_first(self, &slot)?;
        if is_made(Mistake::SecondCopyBeforeFlush) {
            slots.write_second(self, &slot)?;
        }
        if !is_made(Mistake::FirstFlushLeftOut) {
            self.flush()?;
        }
        slots.write_second(self, &slot)
    }
}
