//! The writer: turns the events of one transaction into frames, and commits or takes them back.
//!
//! Invariants
//! 1. `committed` is the end of the last commit frame that was written. That commit may not be acknowledged yet.
//!    `written >= committed.position`; between transactions they are equal, and only zeros follow, unless `dirty_to`
//!    says so.
//! 2. A transaction whose frames could not be written, or not be taken back, leaves `dirty_to`
//!    after `committed`; the next transaction begins with the cut.
//! 3. A frame's nonce is drawn when its payload is final.
//! 4. `frame` has at most [`FRAME_TARGET`] bytes before an event is added. An event that is longer than a frame is
//!    written as parts, each in a separate frame.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use annals_schema::{Blob, RowId, Schema, Table, Txid, ValueRef};

use super::checkpoints::Checkpoints;
use super::format::{
    FLAG_FIRST, FLAG_MORE, FRAME_HEADER_LEN, KIND_COMMIT, KIND_DATA, MAX_PAYLOAD, Point,
};
use super::frame::{self, FrameHeader, Making};
use super::level::Level;
use crate::{Error, ErrorKind, Result};
use annals_event::{self, Encoder, Event, MAX_PIECE};
use annals_storage::{Clock, Spool, Storage as _, step};

/// A data frame is written when the events of a transaction take this much.
const FRAME_TARGET: usize = MAX_PAYLOAD - 2 * MAX_PIECE;

/// A moment within a transaction.
#[derive(Clone, Debug)]
pub(super) struct WriterSavepoint {
    /// Where the frame that was being filled begins, and the chain before it.
    pub(super) position: u64,
    pub(super) chain: u64,
    /// How long that frame was.
    pub(super) len: usize,
    pub(super) encoder: Encoder,
    /// The frame's events, at least those before the savepoint, once it is written.
    pub(super) bytes: Option<Arc<[u8]>>,
}

/// The frames that a writer holds.
#[derive(Debug)]
pub(super) struct HeldFrames {
    /// The end of the file's last commit.
    pub(super) before: Point,
    /// The time of the last commit before, by the clock.
    pub(super) clock_time: i64,
    pub(super) spool: Spool,
}

impl HeldFrames {
    /// Reads bytes that are held.
    pub(super) fn begin(&self) -> u64 {
        self.spool.begin()
    }
}

/// Writes transactions in sequence.
#[derive(Debug)]
pub struct Writer {
    pub(super) checkpoints: Arc<Checkpoints>,
    clock: Arc<dyn Clock>,
    pub(super) encoder: Encoder,
    /// The frame being filled: room for its header, then events.
    pub(super) frame: Vec<u8>,
    /// The last transaction.
    pub(super) committed: Point,
    /// The position of the next frame, and the chain before it.
    pub(super) written: u64,
    pub(super) chain: u64,
    /// The end of possibly nonzero bytes after the last commit.
    pub(super) dirty_to: u64,
    /// The savepoints of the transaction.
    pub(super) savepoints: Vec<WriterSavepoint>,
    pub(super) last_clock_time: i64,
    /// The frames of the transaction, if they must not be written yet.
    pub(super) held: Option<HeldFrames>,
    /// True if the transaction's commit will be flushed.
    flushes: bool,
    /// Each commit ends at a multiple of this.
    sector: u64,
}

/// When a transaction was committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommitTime {
    pub(crate) micros: i64,
    pub(crate) explicit: bool,
}

impl Writer {
    /// Returns a writer after the last acknowledged commit; `sector` is the unit in which the file is written.
    pub fn new(
        checkpoints: Arc<Checkpoints>,
        clock: Arc<dyn Clock>,
        last_clock_time: i64,
        sector: u64,
    ) -> Self {
        let committed = checkpoints.acknowledged();
        let Point { position, chain, .. } = committed;
        checkpoints.last_clock_time.fetch_max(last_clock_time, Ordering::Relaxed);
        Self {
            checkpoints,
            clock,
            encoder: Encoder::default(),
            frame: vec![0; FRAME_HEADER_LEN],
            committed,
            written: position,
            chain,
            dirty_to: position,
            savepoints: Vec::new(),
            last_clock_time,
            held: None,
            flushes: false,
            sector,
        }
    }

    /// Makes the writer of another segment, for the next transaction.
    #[inline]
    pub fn in_segment(&self, checkpoints: Arc<Checkpoints>) -> Self {
        Self::new(checkpoints, Arc::clone(&self.clock), self.last_clock_time, self.sector)
    }

    /// Prepares for a transaction; first removes the remains of an earlier one.
    #[inline]
    pub fn begin(&mut self, level: Level) -> Result<()> {
        self.flushes = level.flushes();
        self.checkpoints.check_usable()?;
        self.savepoints.clear();
        self.take_back()?;
        self.start_frame();
        Ok(())
    }

    /// Sets another level for the next commit.
    #[inline]
    pub const fn set_level(&mut self, level: Level) {
        self.flushes = level.flushes();
    }

    /// True if the transaction has no events.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.frame.len() == FRAME_HEADER_LEN && self.written == self.committed.position
    }

    /// Adds an event. `schema` is the one before it. If this fails, the transaction can only be
    /// rolled back.
    #[inline]
    pub fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        let before = self.frame.len();
        self.encoder.encode(schema, event, &mut self.frame);
        if self.frame.len() - FRAME_HEADER_LEN > MAX_PAYLOAD {
            return self.start_over(before, |encoder, to| encoder.encode(schema, event, to));
        }
        self.stream()
    }

    /// Adds an insert: as [`Self::event`], without looking the table up.
    #[inline]
    pub fn insert(&mut self, table: &Table, id: RowId, values: &[ValueRef<'_>]) -> Result<()> {
        let before = self.frame.len();
        self.encoder.insert(table, id, values, &mut self.frame);
        if self.frame.len() - FRAME_HEADER_LEN > MAX_PAYLOAD {
            return self
                .start_over(before, |encoder, to| encoder.insert_again(table, id, values, to));
        }
        self.stream()
    }

    /// Adds a piece of a blob; returns where its bytes are in the journal.
    #[inline]
    pub fn piece(&mut self, blob: Blob, offset: u64, bytes: &[u8]) -> Result<u64> {
        self.encoder.piece(blob, offset, bytes, &mut self.frame);
        let position = self.written + (self.frame.len() - bytes.len()) as u64;
        self.stream()?;
        Ok(position)
    }

    /// Reads from the journal, and from the frame that is being filled, which will follow it.
    pub fn read_at(&self, position: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
        let Some(start) = position.checked_sub(self.written) else {
            return match self.held.as_ref().filter(|held| position >= held.begin()) {
                Some(held) => held.spool.read_at(position, buffer),
                None => self.checkpoints.storage.read_at(position, buffer),
            };
        };
        let start = usize::try_from(start).map_err(std::io::Error::other)?;
        let found = self.frame.get(start..).unwrap_or_default();
        let count = found.len().min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(found) {
            *to = *from;
        }
        Ok(count)
    }

    /// Writes a data frame once there is enough for one.
    #[inline]
    fn stream(&mut self) -> Result<()> {
        if self.frame.len() < FRAME_TARGET {
            return Ok(());
        }
        self.write_data()
    }

    fn write_data(&mut self) -> Result<()> {
        self.keep_for_savepoints();
        self.write_frame(KIND_DATA, Level::Soft, CommitTime::default())?;
        if self.flushes && self.held.is_none() {
            self.checkpoints.note_streamed(self.written);
        }
        Ok(())
    }

    /// Ends the frame before an event that made it too long, and adds that once more: it begins a frame, so
    /// that no event is in two of them.
    #[cold]
    fn start_over(
        &mut self,
        before: usize,
        encode: impl FnOnce(&mut Encoder, &mut Vec<u8>),
    ) -> Result<()> {
        self.frame.truncate(before);
        if before > FRAME_HEADER_LEN {
            self.write_data()?;
        }
        self.start_frame();
        encode(&mut self.encoder, &mut self.frame);
        self.write_data()
    }

    /// Continues after writes of other processes.
    #[inline]
    pub fn adopt(&mut self, end: Point, last_clock_time: i64) {
        (self.committed, self.dirty_to) = (end, end.position);
        (self.written, self.chain) = (end.position, end.chain);
        self.last_clock_time = self.last_clock_time.max(last_clock_time);
        self.checkpoints.last_clock_time.fetch_max(last_clock_time, Ordering::Relaxed);
    }

    /// Returns the end of the last commit frame that was written.
    #[inline]
    pub const fn committed(&self) -> Point {
        self.committed
    }

    /// Writes the commit frame. Returns the point after it, to be acknowledged once the level's other steps are done:
    /// [`Checkpoints::reach`].
    pub fn commit(&mut self, level: Level, time: Option<i64>) -> Result<Point> {
        self.checkpoints.check_usable()?;
        self.savepoints.clear();
        let time = self.commit_time(time);
        let txid = self.committed.txid + 1;
        let chain = match self.write_frame(KIND_COMMIT, level, time) {
            Ok(chain) => chain,
            Err(error) => {
                let outcome = format!("transaction {txid} is rolled back");
                return Err(self.commit_failed(error, txid, &outcome));
            }
        };
        self.committed = Point { position: self.written, txid, chain };
        if !time.explicit {
            self.last_clock_time = time.micros;
        }
        if self.held.is_none() {
            self.dirty_to = self.written;
            self.checkpoints.note_clock_time(self.last_clock_time);
        }
        Ok(self.committed)
    }

    /// Drops the transaction: its written frames are cut off, durably.
    #[inline]
    pub fn rollback(&mut self) -> Result<()> {
        self.savepoints.clear();
        self.start_frame();
        self.take_back()
    }

    /// A commit frame that could not be written must not be found by a later recovery. `outcome` says what that means.
    pub(super) fn commit_failed(&mut self, error: Error, txid: Txid, outcome: &str) -> Error {
        match self.rollback() {
            Ok(()) => error.within(outcome),
            Err(cut) => {
                self.checkpoints.poison(&cut.to_string());
                Error::new(
                    ErrorKind::UnknownOutcome,
                    format!(
                        "transaction {txid} failed ({error}), and taking it back failed too \
                         ({cut}): reopen the database to see whether it is there"
                    ),
                )
            }
        }
    }

    /// Cuts off the bytes after the last commit.
    fn take_back(&mut self) -> Result<()> {
        self.forget_held();
        let point = self.committed;
        if self.dirty_to > point.position {
            self.checkpoints.cut(point, point.position, self.dirty_to)?;
        }
        self.dirty_to = point.position;
        self.written = point.position;
        self.chain = point.chain;
        Ok(())
    }

    /// Writes the frame that was filled, and starts the next. Returns its chain.
    fn write_frame(&mut self, kind: u8, level: Level, time: CommitTime) -> Result<u64> {
        if kind == KIND_COMMIT {
            self.pad();
        }
        if self.frame.len() - FRAME_HEADER_LEN > MAX_PAYLOAD {
            self.write_parts(level)?;
        }
        let chain = self.write_one(kind, level, 0, time)?;
        self.start_frame();
        Ok(chain)
    }

    /// Writes the parts of a long event in separate frames, except the last part.
    #[cold]
    fn write_parts(&mut self, level: Level) -> Result<()> {
        let long = self.frame.split_off(FRAME_HEADER_LEN);
        let mut parts = long.chunks(MAX_PAYLOAD).peekable();
        while let Some(part) = parts.next() {
            self.frame.truncate(FRAME_HEADER_LEN);
            self.frame.extend_from_slice(part);
            if parts.peek().is_some() {
                self.write_one(KIND_DATA, level, FLAG_MORE, CommitTime::default())?;
            }
        }
        Ok(())
    }

    /// Writes one frame. Returns its chain.
    fn write_one(&mut self, kind: u8, level: Level, flags: u8, time: CommitTime) -> Result<u64> {
        self.draw_secret()?;
        let is_first = self.written == self.committed.position;
        let (durable, secret) = self.checkpoints.provable();
        let header = FrameHeader {
            kind,
            level: level.code(),
            flags: if is_first { flags | FLAG_FIRST } else { flags },
            length: 0,
            txid: self.committed.txid.0 + 1,
            position: self.written,
            durable: Some(step!(UnflushedClaimed, durable.position, else self.committed.position)),
            nonce: self.clock.random(),
            time: 0,
        };
        let (mut header, is_far) = header.with_time(time.micros, time.explicit);
        if is_far {
            self.frame.extend_from_slice(&time.micros.to_le_bytes());
        }
        header.length = u32::try_from(self.frame.len() - FRAME_HEADER_LEN).unwrap_or(u32::MAX);
        let (previous, segment) = (self.chain, self.checkpoints.header());
        let making = Making { segment, previous, secret: &secret };
        let chain = frame::finish(&mut self.frame, &header, making);
        let end = self.written + self.frame.len() as u64;
        let written = match &mut self.held {
            Some(held) => held.spool.append(&self.frame),
            None => {
                self.dirty_to = end;
                self.checkpoints.write_frames(self.written, &self.frame)
            }
        };
        written.map_err(|error| self.cannot_write(error))?;
        self.written = end;
        self.chain = chain;
        Ok(chain)
    }

    /// Makes sure that this handle's frames prove only what this opening knows.
    pub(super) fn draw_secret(&self) -> Result<()> {
        self.checkpoints.draw_secret(|| self.clock.secret())
    }

    /// Fills the frame of a commit to the end of a sector, with an event without effect.
    fn pad(&mut self) {
        if self.sector <= 1 {
            return;
        }
        let end = self.written + frame::frame_len((self.frame.len() - FRAME_HEADER_LEN) as u64);
        let missing = end.next_multiple_of(self.sector) - end;
        annals_event::pad(usize::try_from(missing).unwrap_or_default(), &mut self.frame);
    }

    #[cold]
    fn cannot_write(&self, error: std::io::Error) -> Error {
        let (name, len, at) = (&self.checkpoints.name, self.frame.len(), self.written);
        let advice = match error.kind() {
            std::io::ErrorKind::StorageFull => " (free some space, then try again)",
            std::io::ErrorKind::FileTooLarge => {
                " (it is as large as this process or the file system allows: raise `ulimit -f`, or restart the journal)"
            }
            _ => "",
        };
        Error::io(format!("{name}: can't write {len} bytes at position {at}{advice}"), error)
    }

    pub(super) fn start_frame(&mut self) {
        self.frame.truncate(FRAME_HEADER_LEN);
        self.frame.shrink_to(4 * FRAME_TARGET);
        self.encoder.start_frame();
    }

    fn commit_time(&self, explicit: Option<i64>) -> CommitTime {
        match explicit {
            Some(micros) => CommitTime { micros, explicit: true },
            None => {
                CommitTime { micros: self.clock.now().max(self.last_clock_time), explicit: false }
            }
        }
    }
}
