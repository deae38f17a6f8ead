//! Checkpoints: the written, acknowledged and flushed positions of the journal; slots, live block, space.
//!
//! Invariants
//! 1. `durable` only grows, and only after a flush has returned that began when all frames up to it were written.
//! 2. A slot is written only with a point at or before `durable`, and by the invariants of [`HardSlots`].
//! 3. After a flush failed, `poison` is set permanently: no further frame, slot or flush.
//! 4. The first frame of a handle is written only once both slots hold a secret that this handle drew. `has_secret`
//!    is true then, and `secret` is that one.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use super::format::{Live, Point, Secret};
use super::head::{self, Head};
use super::outcome::Settled;
use super::seal::Sealing;
use super::slots::HardSlots;
use super::space::{Look, Space, zero};
use crate::{Error, ErrorKind, Result};
pub(super) use annals_storage::sync::lock;
use annals_storage::{Storage, step};

/// A slot is written when this many flushed bytes follow the point of the newest one.
pub(super) const SLOT_LAG: u64 = 1 << 20;
/// Soft commits are flushed in the background when they have at least this many bytes.
const SOFT_LAG: u64 = 16 << 20;

/// The number of the first flush.
pub(super) const FLUSHES_AT_FIRST: u64 = 1;

/// The state shared by the writer and the checkpointer.
#[derive(Debug)]
pub struct Checkpoints {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) name: String,
    /// The hash of the segment's header.
    pub(super) header: u64,
    pid: u32,
    progress: Mutex<Progress>,
    pub(super) slots: Mutex<HardSlots>,
    pub(super) space: Space,
    /// Held while a flush is under way.
    flushing: Mutex<()>,
    flushes_begun: AtomicU64,
    flushes_done: AtomicU64,
    /// The end of the data frames of an open transaction that will be durable.
    streamed: AtomicU64,
    /// The value of `streamed` at the last flush ahead of a commit.
    flushed_ahead: AtomicU64,
    /// Why nothing is written any more: `Poisoned` by a failure, or another kind with the whole error.
    poison: OnceLock<(ErrorKind, String)>,
    /// The time of the last commit whose time is from the clock.
    pub last_clock_time: AtomicI64,
    /// True if other processes write the file too, in turn.
    is_shared: bool,
    /// True if a cut was begun and not ended.
    is_suspect: AtomicBool,
    has_secret: AtomicBool,
}

#[derive(Clone, Copy, Debug)]
struct Progress {
    acknowledged: Point,
    durable: Point,
    /// The secret in both slots, with which frames prove their claims.
    secret: Secret,
    /// The contents of the live block on disk.
    told: Option<Live>,
    /// True if a commit with a flush was requested since the last prefill.
    flushing: bool,
    commits: u64,
}

impl Checkpoints {
    /// Begins at a durable point that both slots have, or at the kept one.
    pub fn new(
        storage: Arc<dyn Storage>,
        name: &str,
        header: u64,
        pid: u32,
        point: Point,
        settled: &Settled,
    ) -> Self {
        let progress = Progress {
            acknowledged: point,
            durable: point,
            secret: settled.slots.newest().secret,
            told: None,
            flushing: false,
            commits: 0,
        };
        Self {
            storage,
            name: name.to_owned(),
            header,
            pid,
            progress: Mutex::new(progress),
            slots: Mutex::new(settled.slots),
            space: Space::new(settled.zeroed_to),
            flushing: Mutex::default(),
            flushes_begun: AtomicU64::new(FLUSHES_AT_FIRST),
            flushes_done: AtomicU64::new(FLUSHES_AT_FIRST),
            streamed: AtomicU64::new(0),
            flushed_ahead: AtomicU64::new(0),
            poison: OnceLock::new(),
            last_clock_time: AtomicI64::new(i64::MIN),
            is_shared: false,
            is_suspect: AtomicBool::new(false),
            has_secret: AtomicBool::new(settled.has_secret),
        }
    }

    /// Publishes more to other processes: the file is written by several processes in turn. `hard` is the position up
    /// to which it is known to be flushed.
    pub fn share(mut self, hard: Point) -> Self {
        self.is_shared = true;
        lock(&self.progress).durable = hard;
        self
    }

    /// Continues after writes of other processes: `end` is the last commit, and `head` holds their slots and live
    /// block. The caller has the turn, or only wants to be seen up to `end`.
    pub fn adopt(&self, end: Point, head: &Head, len: u64) {
        let told = head.live.filter(|live| live.hard == end.position && !live.suspect);
        let mut durable = told.map(|_| end);
        if let Some(newest) = head.newest_slot() {
            let mut slots = lock(&self.slots);
            *slots = HardSlots::found(head, newest, self.flushes_begun());
            lock(&self.progress).secret = newest.secret;
            durable = durable.or(Some(newest.point));
        }
        let mut progress = lock(&self.progress);
        progress.acknowledged = end;
        progress.told = head.live;
        if head.live.is_some_and(|live| !live.suspect) {
            // Whatever this process left, another one has recovered.
            self.is_suspect.store(false, Ordering::Release);
        }
        if let Some(point) = durable.filter(|at| at.position > progress.durable.position) {
            progress.durable = point;
        }
        drop(progress);
        step!(OthersZeroed, self.space.set(len.max(end.position)));
    }

    /// Does what [`Self::adopt`] does, in its turn, without a recovery: a half-finished cut of this handle is in order
    /// again.
    pub fn take_over(&self, end: Point, head: &Head, len: u64) {
        self.is_suspect.store(false, Ordering::Release);
        self.adopt(end, head, len);
    }

    /// Continues after a recovery that was done meanwhile.
    pub fn adopt_settled(&self, end: Point, settled: &Settled) {
        let slots = settled.slots.after(self.flushes_begun());
        *lock(&self.slots) = slots;
        self.has_secret.store(settled.has_secret, Ordering::Release);
        let mut progress = lock(&self.progress);
        (progress.acknowledged, progress.durable, progress.told) = (end, end, None);
        progress.secret = slots.newest().secret;
        self.is_suspect.store(false, Ordering::Release);
        self.space.set(settled.zeroed_to);
    }

    /// True if the live block and the slots are as this handle wrote them last: otherwise another process may have
    /// ended while writing one.
    pub fn is_unchanged(&self, live: &Live) -> bool {
        if lock(&self.progress).told != Some(*live) || live.suspect {
            return false;
        }
        let newest = *lock(&self.slots).newest();
        head::newest_slot(&*self.storage, self.header) == Some(newest)
    }

    /// Draws a secret of this handle's own and makes both slots hold it, unless that was done: before the
    /// first frame. So no frame that was made before, or for another file, can prove anything.
    ///
    /// Cost: two flushes the first time, and another one if something there isn't durable yet.
    pub fn draw_secret(&self, draw: impl FnOnce() -> Secret) -> Result<()> {
        if step!(SecretKept, self.has_secret.load(Ordering::Acquire), else true) {
            return Ok(());
        }
        self.check_usable()?;
        self.harden()?;
        let secret = draw();
        let mut slots = lock(&self.slots);
        for _ in 0..2 {
            slots.write(self, self.durable(), self.space.zeroed_to(), secret)?;
            self.flush()?;
        }
        lock(&self.progress).secret = secret;
        drop(slots);
        self.has_secret.store(true, Ordering::Release);
        Ok(())
    }

    /// Returns the secret that both slots hold.
    pub fn secret(&self) -> Secret {
        lock(&self.progress).secret
    }

    /// Returns the durable position that a frame may claim, and the secret that proves it.
    pub(crate) fn provable(&self) -> (Point, Secret) {
        let progress = lock(&self.progress);
        (progress.durable, progress.secret)
    }

    /// Returns the hash of the segment's header.
    pub(crate) const fn header(&self) -> u64 {
        self.header
    }

    pub(super) fn flushes_begun(&self) -> u64 {
        self.flushes_begun.load(Ordering::SeqCst)
    }

    pub(super) fn flushes_done(&self) -> u64 {
        self.flushes_done.load(Ordering::SeqCst)
    }

    /// Returns the last acknowledged point.
    pub fn acknowledged(&self) -> Point {
        lock(&self.progress).acknowledged
    }

    /// Returns the position up to which the journal is known to be flushed.
    pub(crate) fn durable(&self) -> Point {
        lock(&self.progress).durable
    }

    /// Fails if an earlier flush failed, or if the file can only be read.
    pub fn check_usable(&self) -> Result<()> {
        match self.poison.get() {
            None => Ok(()),
            Some((kind, why)) if *kind != ErrorKind::Poisoned => {
                Err(Error::new(*kind, why.clone()))
            }
            Some((_, cause)) => Err(Error::new(
                ErrorKind::Poisoned,
                format!(
                    "{}: an earlier failure made this handle read-only ({cause}): reopen the \
                     database, which recovers it",
                    self.name
                ),
            )),
        }
    }

    /// Makes every later write an error.
    pub fn poison(&self, cause: &str) {
        self.poison.get_or_init(|| (ErrorKind::Poisoned, cause.to_owned()));
    }

    /// Makes every later write an error of a kind: the file holds a commit that doesn't apply, or was closed.
    pub fn refuse(&self, kind: ErrorKind, why: String) {
        self.poison.get_or_init(|| (kind, why));
    }

    /// Flushes everything written before the call. A failure is final: the kernel may have
    /// dropped the pages, and a second try would prove nothing. Nor would another thread's flush
    /// that was under way: so there is one at a time.
    pub(crate) fn flush(&self) -> Result<()> {
        let _alone = lock(&self.flushing);
        self.check_usable()?;
        let number = self.flushes_begun.fetch_add(1, Ordering::SeqCst) + 1;
        match self.storage.flush() {
            Ok(()) => {
                self.flushes_done.fetch_max(number, Ordering::SeqCst);
                self.check_in_place()
            }
            Err(error) => {
                step!(FailedFlushForgotten, self.poison(&format!("a flush failed: {error}")));
                Err(Error::io(format!("{}: can't flush the journal", self.name), error))
            }
        }
    }

    /// Fails, and makes every later write an error, if the file has no name any more: nobody would find what is written
    /// to it. Those who write in turn look at the beginning of each turn. A file that was moved goes on under its new
    /// name. (SQLite looks for this before each transaction.)
    ///
    /// Cost: a request that the file system answers from memory. What can't be asked is no reason to end.
    pub fn check_in_place(&self) -> Result<()> {
        if !self.is_shared && matches!(self.storage.is_removed(), Ok(true)) {
            self.poison(
                "the file was removed or replaced while it was open; what was in it can still be read here: \
                 copy it before this program ends",
            );
        }
        self.check_usable()
    }

    /// Writes frames at `position`, having made sure that no zeros can land on them.
    pub fn write_frames(&self, position: u64, bytes: &[u8]) -> std::io::Result<()> {
        let end = position + bytes.len() as u64;
        if self.storage.has_fixed_len() {
            self.extend(end)?;
        }
        self.space.claim(end);
        self.storage.write_at(position, bytes)
    }

    /// Records that all commits up to a point are acknowledged.
    pub fn acknowledge(&self, point: Point, commits: u64, flushed: bool) {
        let mut progress = lock(&self.progress);
        progress.acknowledged = point;
        progress.commits += commits;
        progress.flushing |= flushed;
    }

    /// Makes a hard checkpoint of all that is acknowledged: one flush, and nothing if it is one.
    pub fn harden(&self) -> Result<()> {
        let progress = *lock(&self.progress);
        if progress.durable.position < progress.acknowledged.position {
            self.flush()?;
            self.note_durable(progress.acknowledged);
        }
        Ok(())
    }

    /// Flushes soft commits, and writes a slot, when there are so many that a recovery would take long.
    pub fn harden_lagging(&self) -> Result<()> {
        let Progress { acknowledged, durable, .. } = *lock(&self.progress);
        if acknowledged.position.saturating_sub(durable.position) < SOFT_LAG {
            return Ok(());
        }
        self.harden()?;
        self.advance_slot()
    }

    pub(super) fn note_durable(&self, point: Point) {
        let mut progress = lock(&self.progress);
        if point.position > progress.durable.position {
            progress.durable = point;
        }
    }

    /// Writes the durable point into the older slot, unless the newer slot has it.
    pub fn advance_slot(&self) -> Result<()> {
        let mut slots = lock(&self.slots);
        let point = self.durable();
        let is_told = |slots: &HardSlots| {
            slots.newest().point.position >= point.position && !slots.are_torn()
        };
        while !is_told(&slots) {
            slots.write(self, point, self.space.zeroed_to(), self.secret())?;
        }
        Ok(())
    }

    pub(super) fn advance_lagging_slot(&self) -> Result<()> {
        let newest = lock(&self.slots).newest().point.position;
        match self.durable().position.saturating_sub(newest) >= SLOT_LAG {
            true => self.advance_slot(),
            false => Ok(()),
        }
    }

    /// Returns the state on which zeroing ahead depends.
    pub(super) fn look(&self) -> Look {
        let mut progress = lock(&self.progress);
        let flushing = std::mem::take(&mut progress.flushing);
        Look { end: progress.acknowledged.position, commits: progress.commits, flushing }
    }

    /// Records that a transaction that will be durable has written data frames.
    pub(crate) fn note_streamed(&self, end: u64) {
        self.streamed.store(end, Ordering::Release);
    }

    /// Returns the progress of a long transaction, to detect whether it moves.
    pub fn streamed(&self) -> u64 {
        self.streamed.load(Ordering::Acquire)
    }

    /// Flushes data frames while their transaction continues, so that its commit has less to wait
    /// for. This proves nothing of any commit, and notes no point as durable.
    pub fn flush_ahead(&self) -> Result<()> {
        let streamed = self.streamed();
        if self.flushed_ahead.swap(streamed, Ordering::AcqRel) == streamed {
            return Ok(());
        }
        self.flush()
    }

    /// Publishes the end of the journal to other processes, if it changed.
    pub fn tell(&self) -> Result<Point> {
        let mut progress = lock(&self.progress);
        let live = Live {
            pid: self.pid,
            soft: progress.acknowledged,
            hard: progress.durable.position.min(progress.acknowledged.position),
            suspect: matches!(self.poison.get(), Some((ErrorKind::Poisoned, _)))
                || self.is_suspect.load(Ordering::Acquire),
        };
        self.tell_exactly(&mut progress, live)?;
        Ok(live.soft)
    }

    fn tell_exactly(&self, progress: &mut Progress, live: Live) -> Result<()> {
        if progress.told == Some(live) {
            return Ok(());
        }
        head::write_live(&*self.storage, &live).map_err(|error| {
            Error::io(format!("{}: can't write the live block", self.name), error)
        })?;
        progress.told = Some(live);
        Ok(())
    }

    /// Makes a soft checkpoint of everything acknowledged: the operating system has it already, so only other
    /// processes are notified.
    pub fn soft(&self) -> Result<Point> {
        self.check_usable()?;
        self.tell()
    }

    /// Makes a hard checkpoint of everything acknowledged: flushes it, writes and flushes a slot, then notifies other
    /// processes.
    pub fn hard(&self) -> Result<Point> {
        self.check_usable()?;
        self.harden()?;
        self.advance_slot()?;
        let slots = *lock(&self.slots);
        if !slots.is_flushed(self.flushes_done()) {
            step!(HardSlotNotFlushed, self.flush()?);
        }
        let point = slots.newest().point;
        self.tell()?;
        Ok(point)
    }

    /// Takes back what was written from `from` to `dirty_to`, after the last commit, which is `point`: zeroes and
    /// flushes it. Both slots get that commit before anything else may be written.
    pub(crate) fn cut(&self, point: Point, from: u64, dirty_to: u64) -> Result<()> {
        self.check_usable()?;
        let io = |error| Error::io(format!("{}: can't cut the journal", self.name), error);
        if step!(CutNotMarked, self.is_shared, else false) {
            // If this process ends within it, the next one that writes recovers first.
            self.is_suspect.store(true, Ordering::Release);
            self.tell()?;
        }
        let len = self.storage.len().map_err(io)?;
        let zeroed = || zero(&*self.storage, from, dirty_to.min(len)).map_err(io);
        step!(RollbackNotZeroed, zeroed()?);
        step!(RollbackNotFlushed, self.flush()?);
        self.note_durable(point);
        let mut slots = lock(&self.slots);
        for _ in 0..2 {
            slots.write(self, point, self.space.zeroed_to(), self.secret())?;
            self.flush()?;
        }
        drop(slots);
        if self.is_shared {
            self.is_suspect.store(false, Ordering::Release);
            self.tell()?;
        }
        Ok(())
    }

    /// Seals the segment after its end, which was closed: nothing is written there any more. An error leaves it
    /// unchanged, or makes this handle unusable.
    pub fn seal(&self, sealing: &Sealing) -> Result<()> {
        self.check_usable()?;
        if let Err(error) = self.write_frames(sealing.position, &sealing.bytes) {
            let error = Error::io(format!("{}: can't seal the segment", self.name), error);
            let acknowledged = self.acknowledged();
            return match self.cut(acknowledged, acknowledged.position, sealing.seal.end) {
                Ok(()) => Err(error),
                Err(cut) => {
                    self.poison(&cut.to_string());
                    Err(cut)
                }
            };
        }
        step!(SealNotFlushed, self.flush(), else Ok(()))
    }

    /// Closes properly: a hard checkpoint, unused space truncated, a slot at the end.
    pub fn close(&self) -> Result<()> {
        self.harden()?;
        let point = self.acknowledged();
        let io = |error| Error::io(format!("{}: can't close the journal", self.name), error);
        let trimmed =
            !self.storage.has_fixed_len() && self.storage.len().map_err(io)? != point.position;
        if trimmed {
            self.storage.set_len(point.position).map_err(io)?;
            self.space.set(point.position);
        }
        self.advance_slot()?;
        let mut progress = lock(&self.progress);
        let live = Live { pid: 0, soft: point, hard: point.position, suspect: false };
        self.tell_exactly(&mut progress, live)?;
        drop(progress);
        self.flush()
    }
}
