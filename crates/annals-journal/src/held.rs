//! Frames of a transaction that aren't in the file: another party is asked first whether they become history.
//!
//! ```text
//! hold      frames of the transaction go into a spool, at the positions that they will have in the file
//! commit    its commit frame goes there, too; or frames made elsewhere are added, verified by the caller
//! release   the frames are written to the file, as after any commit; or a rollback forgets them
//! ```
//!
//! Invariant: as long as frames are held, `committed` and `written` speak of the file as it would be with them, and the
//! file itself ends at `before`.

use std::sync::atomic::Ordering;

use super::checkpoints::Checkpoints;
use super::format::Point;
use super::reader::Frame;
use super::writer::{HeldFrames, Writer};
use crate::{Error, Result};
use annals_schema::Txid;
use annals_storage::Spool;

impl Writer {
    /// Holds the frames of the transaction that begins now in a spool, in place of writing them.
    pub fn hold(&mut self, mut spool: Spool) {
        spool.truncate(0);
        spool.move_to(self.written);
        let (before, clock_time) = (self.committed, self.last_clock_time);
        self.held = Some(HeldFrames { before, clock_time, spool });
    }

    /// Returns the end of the last commit in the file: without those that are held.
    #[must_use]
    pub fn end_of_file(&self) -> Point {
        self.held.as_ref().map_or(self.committed, |held| held.before)
    }

    /// Returns the time of the last commit by a clock, in microseconds.
    #[must_use]
    pub const fn last_clock_time(&self) -> i64 {
        self.last_clock_time
    }

    /// Returns the frames that are held: all of those since [`hold`](Self::hold) that are complete.
    #[must_use]
    pub fn held(&self) -> Option<&Spool> {
        self.held.as_ref().map(|held| &held.spool)
    }

    /// Adds a frame that was made elsewhere, and verified, to those that are held; it follows them. `time` is the
    /// time of a commit by a clock.
    ///
    /// # Errors
    /// Those of the spool.
    pub fn hold_frame(&mut self, frame: &Frame<'_>, time: Option<i64>) -> std::io::Result<()> {
        let Some(held) = &mut self.held else { return Ok(()) };
        held.spool.append(frame.bytes)?;
        (self.written, self.chain) = (frame.end, frame.chain);
        if frame.header.is_commit() {
            let txid = Txid(frame.header.txid);
            self.committed = Point { position: frame.end, txid, chain: frame.chain };
            self.last_clock_time = self.last_clock_time.max(time.unwrap_or(i64::MIN));
        }
        Ok(())
    }

    /// Writes the held frames to the file, after their commit: the result is that of [`commit`](Self::commit).
    ///
    /// # Errors
    /// `Io`: all that was written is cut off again, and the transaction isn't in this file. `UnknownOutcome`: cutting it
    /// off failed.
    pub fn release(&mut self) -> Result<Point> {
        let Some(held) = self.held.take() else { return Ok(self.committed) };
        let end = self.committed;
        let written = self.write_held(&held);
        match written {
            Ok(()) => {
                self.dirty_to = end.position;
                self.checkpoints.note_clock_time(self.last_clock_time);
                Ok(end)
            }
            Err(error) => {
                self.held = Some(held);
                // In another file it may be history.
                let outcome = format!("transaction {} isn't in this file", end.txid);
                Err(self.commit_failed(error, end.txid, &outcome))
            }
        }
    }

    fn write_held(&mut self, held: &HeldFrames) -> Result<()> {
        self.checkpoints.check_usable()?;
        self.draw_secret()?;
        let mut dirty_to = self.dirty_to;
        let written = held.spool.pieces(|at, piece| {
            dirty_to = at + piece.len() as u64;
            self.checkpoints.write_frames(at, piece)
        });
        self.dirty_to = dirty_to;
        let (name, end) = (&self.checkpoints.name, held.spool.end());
        written.map_err(|error| {
            let at = held.before.position;
            Error::io(format!("{name}: can't write {} bytes at position {at}", end - at), error)
        })
    }

    /// Forgets the held frames: the file ends where it ended.
    pub(super) fn forget_held(&mut self) {
        if let Some(HeldFrames { before, clock_time, .. }) = self.held.take() {
            self.committed = before;
            self.last_clock_time = clock_time;
        }
    }
}

impl Checkpoints {
    /// Records the time of the last commit by the clock.
    pub(super) fn note_clock_time(&self, micros: i64) {
        self.last_clock_time.store(micros, Ordering::Relaxed);
    }

    /// Returns the last transaction that is known to be flushed: only such ones are passed on.
    pub fn durable_txid(&self) -> Txid {
        self.durable().txid
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Level, Rule, Settled, Survey, create};
    use annals_event::Event;
    use annals_schema::Schema;
    use annals_simulated::SimulatedClock;
    use annals_storage::{Directory, MemoryDirectory, Storage};
    use std::sync::Arc;

    fn writer(storage: &Arc<dyn Storage>) -> Writer {
        let survey = Survey::make(&**storage, "journal", Rule::default(), |_, _| Ok(())).unwrap();
        let settled = Settled::new_journal(survey.end, survey.secret().unwrap());
        let (storage, hash, end) = (Arc::clone(storage), survey.head.hash, survey.end);
        let checkpoints = Checkpoints::new(storage, "journal", hash, 4711, end, &settled);
        Writer::new(Arc::new(checkpoints), Arc::new(SimulatedClock::new(2)), i64::MIN, 8)
    }

    /// Holds a transaction with its commit.
    fn hold(writer: &mut Writer, directory: &MemoryDirectory) -> Point {
        writer.begin(Level::Soft).unwrap();
        writer.hold(Spool::new(directory.again(), "spool".to_owned(), 0));
        writer.event(&Schema::default(), &Event::Comment("held")).unwrap();
        writer.commit(Level::Soft, None).unwrap()
    }

    #[test]
    fn held_frames_are_in_the_file_once_they_are_released_and_never_after_a_rollback() {
        let directory = MemoryDirectory::new();
        let storage = create(&directory, "journal", &SimulatedClock::new(1)).unwrap().unwrap();
        let last =
            || Survey::make(&*storage, "journal", Rule::default(), |_, _| Ok(())).unwrap().end;
        let mut writer = writer(&storage);
        let (start, time) = (writer.committed(), writer.last_clock_time());
        let held = hold(&mut writer, &directory);
        assert_eq!((writer.committed(), writer.end_of_file(), last()), (held, start, start));
        assert!(writer.last_clock_time() > time && writer.held().is_some());
        writer.rollback().unwrap();
        assert_eq!((writer.committed(), writer.end_of_file(), last()), (start, start, start));
        assert!(writer.last_clock_time() == time && writer.held().is_none());

        let held = hold(&mut writer, &directory);
        assert_eq!(writer.release().unwrap(), held);
        assert_eq!((writer.committed(), writer.end_of_file(), last()), (held, held, held));
        assert!(writer.held().is_none());
    }
}
