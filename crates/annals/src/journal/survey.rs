//! The survey of a journal: what verifies, what was known to be durable, and what lies behind.
//!
//! Words: B is the first position that doesn't verify; K the farthest position that was known to be
//! flushed, as the hard slots and the durable positions in all frames that verify tell; C the end of
//! the last commit before B that counts. A soft or checksummed commit counts, also all before it; a
//! half or two-phase commit behind the last of these counts if it isn't behind K. So C <= B. The
//! journal is damaged if C < K, and if no slot is whole: one always is, since one is left alone while
//! the other is written, so K would only be a guess.

use std::collections::VecDeque;

use super::device;
use super::format::{FRAMES_AT, Point};
use super::head::Head;
use super::level::Level;
use super::mistakes::{Mistake, is_made};
use super::reader::{Frame, FrameReader};
use crate::storage::Storage;
use crate::{Error, ErrorKind, Result};

/// What a journal holds.
#[derive(Clone, Debug)]
pub(crate) struct Survey {
    pub(crate) head: Head,
    /// The length of the file; on a device how far it is the journal's.
    pub(crate) len: u64,
    /// Whether it is on a device.
    pub(crate) has_fixed_len: bool,
    /// C: the end of the last commit that counts.
    pub(crate) end: Point,
    /// Commits behind C whose frames verify, but which don't count (yet).
    pub(crate) doubtful: VecDeque<Point>,
    /// Whether a commit was found to count only after another had been visited that doesn't.
    pub(crate) counted_late: bool,
    /// Whether that commit counts only because it is known to have been flushed.
    pub(crate) counted_flushed: bool,
    /// The last commit time that came from a clock.
    pub(crate) last_clock_time: i64,
    /// B: the first position that doesn't verify.
    pub(crate) verified_to: u64,
    /// How many data frames before B belong to a transaction that has no commit frame.
    pub(crate) uncommitted_frames: u64,
    /// K: how far the journal was known to be flushed.
    pub(crate) hard: u64,
    /// What is behind B, if it isn't all zeros.
    pub(crate) tail: Option<Tail>,
}

/// Bytes behind the first position that doesn't verify.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tail {
    /// The first byte that is not zero.
    pub(crate) first: u64,
    /// Frames there that verify by themselves.
    pub(crate) frames: u64,
    /// The largest txid of those.
    pub(crate) last_txid: u64,
    /// The end of the last of those.
    pub(crate) last_end: u64,
}

/// What a survey amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Only zeros follow the last commit.
    Whole,
    /// Something follows that never was known to be durable.
    Tail,
    /// Something that was durable doesn't verify any more.
    Damaged,
}

impl Survey {
    /// Follows the chain from the start and looks at all that is behind. `visit` sees each verified
    /// frame in order, also those of a transaction that then doesn't count, and C as it is with that
    /// frame. `known` is a position that an earlier survey found to have been flushed, or 0.
    pub(crate) fn make(
        storage: &dyn Storage,
        name: &str,
        known: u64,
        mut visit: impl FnMut(&Frame<'_>, u64) -> Result<()>,
    ) -> Result<Self> {
        let io = |error| Error::io(format!("{name}: can't read the journal"), error);
        let head = Head::read(storage, name)?;
        let len = device::end_of(storage, &head).map_err(io)?;
        let mut reader = FrameReader::new(storage, head.start(), len);
        let slots = head.slots.iter().flatten().map(|slot| slot.point.position);
        let mut survey = Self {
            hard: slots.max().unwrap_or(FRAMES_AT).max(known),
            end: head.start(),
            doubtful: VecDeque::new(),
            counted_late: false,
            counted_flushed: false,
            last_clock_time: i64::MIN,
            verified_to: FRAMES_AT,
            uncommitted_frames: 0,
            tail: None,
            len,
            has_fixed_len: storage.has_fixed_len(),
            head,
        };
        survey.check_slots(survey.end.position, name)?;
        while let Some(frame) = reader.next().map_err(io)? {
            survey.take(&frame, name)?;
            visit(&frame, survey.end.position)?;
        }
        survey.verified_to = reader.position();
        if survey.has_fixed_len && survey.head.slots.contains(&None) {
            survey.look_beyond(storage, &mut reader).map_err(io)?;
        }
        if survey.look_ahead(&mut reader).map_err(io)? {
            let visited = survey.end;
            survey.count_flushed();
            // What the tail says to have been flushed was known to no visit.
            survey.counted_late |= survey.end != visited && !is_made(Mistake::LateCountForgotten);
            return Ok(survey);
        }
        Err(Error::corrupt(format!(
            "{name}: damaged behind position {}: many frames there claim the same bytes, which no \
             accident makes; the file was not changed: restore it from a backup",
            survey.verified_to
        )))
    }

    /// Follows the chain from `from`, the end of a commit that counts, without looking behind the first
    /// position that doesn't verify. Nothing is known of damage then.
    pub(crate) fn since(
        storage: &dyn Storage,
        name: &str,
        head: Head,
        from: Point,
    ) -> Result<Self> {
        let io = |error| Error::io(format!("{name}: can't read the journal"), error);
        let len = device::end_of(storage, &head).map_err(io)?;
        let mut reader = FrameReader::new(storage, from, len);
        let slots = head.slots.iter().flatten().map(|slot| slot.point.position);
        let mut survey = Self {
            hard: slots.max().unwrap_or(FRAMES_AT),
            end: from,
            doubtful: VecDeque::new(),
            counted_late: false,
            counted_flushed: false,
            last_clock_time: i64::MIN,
            verified_to: from.position,
            uncommitted_frames: 0,
            tail: None,
            len,
            has_fixed_len: storage.has_fixed_len(),
            head,
        };
        while let Some(frame) = reader.next().map_err(io)? {
            survey.take(&frame, name)?;
        }
        survey.verified_to = reader.position();
        if reader.starts_with_zeros().map_err(io)? {
            return Ok(survey);
        }
        survey.tail = Some(Tail { first: survey.verified_to, ..Tail::default() });
        Ok(survey)
    }

    /// Takes one verified frame into account.
    fn take(&mut self, frame: &Frame<'_>, name: &str) -> Result<()> {
        let header = &frame.header;
        if let Some(unknown) = header.unknown() {
            let message = format!(
                "{name}: holds {unknown} at position {}, which only a newer version of Annals \
                 understands: use a newer program",
                header.position
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        self.hard = self.hard.max(header.durable);
        self.count_flushed();
        if !header.is_commit() {
            self.uncommitted_frames += 1;
            return Ok(());
        }
        self.uncommitted_frames = 0;
        let before = self.reached().position;
        let point = Point { position: frame.end, txid: header.txid, chain: frame.chain };
        let counts_alone = Level::of_code(header.level).is_none_or(Level::counts_alone);
        if counts_alone || is_made(Mistake::DoubtfulAccepted) {
            self.doubtful.clear();
            self.end = point;
            self.counted_flushed = false;
        } else {
            self.doubtful.push_back(point);
            self.count_flushed();
        }
        if !header.has_explicit_time() {
            self.last_clock_time = self.last_clock_time.max(header.time);
        }
        self.check_slots(before, name)
    }

    /// Lets doubtful commits count that are known to have been flushed.
    fn count_flushed(&mut self) {
        while let Some(point) = self.doubtful.front().filter(|point| point.position <= self.hard) {
            self.end = *point;
            self.counted_flushed = true;
            self.doubtful.pop_front();
            self.counted_late |= !self.doubtful.is_empty();
        }
    }

    /// Gives the end of the last commit frame that the chain reaches, whether it counts or not.
    pub(crate) fn reached(&self) -> Point {
        self.doubtful.back().copied().unwrap_or(self.end)
    }

    /// Fails if a slot tells another point for the last commit frame than the frames do, or one between
    /// the commit `before` and that, where no commit ends.
    fn check_slots(&self, before: u64, name: &str) -> Result<()> {
        let end = self.reached();
        for slot in self.head.slots.iter().flatten() {
            let at = slot.point.position;
            if (at == end.position && slot.point != end) || (before < at && at < end.position) {
                return Err(Error::corrupt(format!(
                    "{name}: damaged: the slot and the frames at position {at} belong to different \
                     histories; restore the file from a backup"
                )));
            }
        }
        Ok(())
    }

    /// On a device of whose slots one can't be read, that may be the one that told the end. Then the
    /// chain goes on behind what the other tells, and that must not be lost silently.
    fn look_beyond(
        &mut self,
        storage: &dyn Storage,
        reader: &mut FrameReader<'_>,
    ) -> std::io::Result<()> {
        reader.set_len(storage.len()?);
        if let Some(frame) = reader.next()? {
            self.hard = self.hard.max(frame.end);
        }
        reader.set_len(self.len);
        Ok(())
    }

    /// Looks behind B, to the end, for bytes that are not zero and frames that verify alone. Gives
    /// `false` if that would cost far more than reading the file: torn frames don't overlap, so in all
    /// they are no longer than the file.
    fn look_ahead(&mut self, reader: &mut FrameReader<'_>) -> std::io::Result<bool> {
        if is_made(Mistake::TailNotLookedAt) {
            return Ok(true);
        }
        let Some(first) = reader.first_nonzero(self.verified_to)? else { return Ok(true) };
        let mut patience = self.len.saturating_mul(8);
        let mut tail = Tail { first, last_txid: self.reached().txid, ..Tail::default() };
        let mut at = self.verified_to;
        while let Some(place) = reader.next_magic(at)? {
            at = place + 1;
            let Some(header) = reader.header_at(place)? else { continue };
            if reader.verify_at(&header)?.is_none() {
                let Some(left) = patience.checked_sub(header.frame_len()) else { return Ok(false) };
                patience = left;
                continue;
            }
            self.hard = self.hard.max(header.durable);
            at = place + header.frame_len();
            tail.frames += 1;
            tail.last_txid = tail.last_txid.max(header.txid);
            tail.last_end = at;
        }
        self.tail = Some(tail);
        Ok(true)
    }

    /// Judges by DESIGN's table: whole, a tail, or damage.
    pub(crate) fn verdict(&self) -> Verdict {
        if self.end.position < self.hard || self.head.newest_slot().is_none() {
            Verdict::Damaged
        } else if self.may_hold_a_commit() || self.uncommitted_frames > 0 {
            Verdict::Tail
        } else {
            Verdict::Whole
        }
    }

    /// Tells whether a commit may lie in what follows the end.
    pub(crate) fn may_hold_a_commit(&self) -> bool {
        self.tail.is_some() || !self.doubtful.is_empty()
    }

    /// Tells whether the journal was closed properly: a slot reaches its end, and nothing follows.
    pub(crate) fn is_closed(&self) -> bool {
        let at_end = |slot: super::format::Slot| slot.point == self.end;
        let nothing_follows = match self.has_fixed_len {
            false => self.len == self.end.position,
            // Zeros that follow may be in the page cache alone, unless whoever wrote them closed.
            true => {
                self.verdict() == Verdict::Whole
                    && self.head.live.is_some_and(|live| live.pid == 0 && !live.suspect)
            }
        };
        self.head.slots.into_iter().flatten().any(at_end)
            && nothing_follows
            && self.head.damaged_headers == [false; 3]
    }

    /// Describes the damage, with what is lost.
    pub(crate) fn damage(&self, name: &str) -> Error {
        if self.head.newest_slot().is_none() {
            return Error::corrupt(format!(
                "{name}: damaged: both slots are, which tell how far the journal had reached \
                 permanent storage; transactions up to {} (position {}) are whole, but whether \
                 others followed can't be told. The file was not changed: restore it from a \
                 backup, or copy it before anything else",
                self.end.txid, self.end.position
            ));
        }
        let slot_txid = self.head.newest_slot().map_or(0, |slot| slot.point.txid);
        let last = self.tail.map_or(0, |tail| tail.last_txid).max(slot_txid);
        let lost = if last > self.end.txid {
            format!("transactions {} to {last} can't be read", self.end.txid + 1)
        } else {
            format!("what followed transaction {} can't be read", self.end.txid)
        };
        Error::corrupt(format!(
            "{name}: damaged at position {}: all up to position {} had reached permanent storage, \
             but from there on it does not verify (the file has {} bytes); {lost}, transactions up \
             to {} are whole. The file was not changed: restore it from a backup, or copy it \
             before anything else",
            self.verified_to, self.hard, self.len, self.end.txid
        ))
    }
}
