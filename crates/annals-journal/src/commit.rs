//! The steps of each commit level after its frames are written. `docs/crash.md` argues why they suffice.

use annals_storage::step;

use super::checkpoints::Checkpoints;
use super::format::Point;
use super::level::Level;
use crate::Result;

impl Checkpoints {
    /// Does the steps of a level, for all commits up to `target`, whose frames are written: the recipe of each level.
    /// An error is final: the contents of the disk are unknown.
    ///
    /// | crash                  | `Checksummed`, `Half`, `TwoPhase`                     |
    /// |------------------------|-------------------------------------------------------|
    /// | before the flush       | there if its chain verifies, with all before it       |
    /// | after it               | there                                                 |
    /// | after the slot         | there, and known to be durable if the slot can be read |
    /// | after the second flush | there, and known to be durable                        |
    pub fn reach(&self, level: Level, target: Point) -> Result<()> {
        let reached = match level {
            Level::Soft => Ok(()),
            Level::Checksummed => self.checksummed(target),
            Level::Half => self.half(target),
            Level::TwoPhase => self.two_phase(target),
        };
        reached.inspect_err(|error| step!(FailedFlushForgotten, self.poison(&error.to_string())))
    }

    fn checksummed(&self, target: Point) -> Result<()> {
        step!(CommitNotFlushed, self.flush()?);
        self.note_durable(target);
        // A slot that can't be written now is written later: the commit is valid without it.
        let _ = self.advance_lagging_slot();
        Ok(())
    }

    fn half(&self, target: Point) -> Result<()> {
        step!(SlotBeforeFlush, self.flush()?);
        self.note_durable(target);
        self.advance_slot()
    }

    fn two_phase(&self, target: Point) -> Result<()> {
        self.half(target)?;
        step!(SecondFlushLeftOut, self.flush(), else Ok(()))
    }

    /// Makes frames durable that other code wrote up to a point, and records the point in a slot and the live block.
    pub fn end_batch(&self, point: Point) -> Result<()> {
        self.flush()?;
        self.acknowledge(point, 1, true);
        self.note_durable(point);
        self.advance_slot()?;
        self.tell().map(drop)
    }
}
