//! The survey of a journal: the verified part, the part known to be durable, and the bytes after it.
//!
//! Words: B is the first position that doesn't verify; C the end of the last commit before it, for a commit is valid
//! when its chain verifies; K the durable end, the farthest position that was known to be flushed. K is the largest
//! of these: all copies of slots that verify, the hard position in the live block, and points known to the caller
//! (the image's roots). The durable positions in frames are used too, if the secret of the file proves their tags. The
//! journal is damaged if C < K, and if no slot can be read.
//!
//! A [`Rule`] may accept fewer commits, but never fewer than K requires.

use super::committed::Committed;
use super::device;
use super::format::{FRAME_ALIGN, FRAMES_AT, Point, Secret};
use super::frame::Trailer;
use super::head::Head;
use super::outcome::Recovery;
use super::reader::{Frame, FrameReader};
use super::refusal::salvage_advice;
use super::seal::Seal;
use crate::{Error, Result};
use annals_schema::Txid;
use annals_storage::{Storage, step};

/// Which commits are accepted, and where to begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    pub(crate) recovery: Recovery,
    /// The end of a commit that is known to be accepted: the survey begins after it.
    from: Option<Point>,
    /// A position that is known to have been flushed, or 0.
    known: u64,
    /// The last position at which a commit is accepted.
    limit: Option<u64>,
}

impl Rule {
    /// Begins with the first frame.
    #[inline]
    pub const fn new(recovery: Recovery) -> Self {
        Self { recovery, from: None, known: 0, limit: None }
    }

    /// Begins after a commit that is known to be accepted, rather than at the first frame.
    #[inline]
    pub const fn after(self, from: Option<Point>) -> Self {
        Self { from, ..self }
    }

    /// Adds a position that something beside the journal knows to have been flushed.
    #[inline]
    pub fn knowing(self, position: u64) -> Self {
        Self { known: self.known.max(position), ..self }
    }
}

/// The contents of a journal.
#[derive(Clone, Debug)]
pub struct Survey {
    rule: Rule,
    /// The contents of the first 16 KiB.
    pub head: Head,
    /// The length of the file; on a device the end of the journal's space.
    pub len: u64,
    /// True if it is on a device.
    pub has_fixed_len: bool,
    /// C: the end of the last accepted commit.
    pub end: Point,
    /// The last accepted commit.
    pub last: Option<Committed>,
    /// The last commit that verifies, if the rule excludes it.
    pub left_out: Option<Committed>,
    /// How many commits verify that the rule excludes.
    pub left_out_count: u64,
    /// The last commit time from a clock.
    pub last_clock_time: i64,
    /// B: the first position that doesn't verify.
    pub verified_to: u64,
    /// How many data frames before B belong to a transaction that has no commit frame.
    pub uncommitted_frames: u64,
    /// K: the position up to which the journal was known to be flushed.
    pub hard: u64,
    /// The ends of frames with a wrong stored chain, and the right one; all else of them is right, and a slot or
    /// later frames confirm the right chain.
    pub wrong_chains: Vec<Point>,
    /// True if a commit was met that is the soft checkpoint of the live block.
    live_is_met: bool,
    /// The bytes after B, if they aren't all zeros.
    pub tail: Option<Tail>,
    /// The seal, if the journal continues in another segment.
    pub sealed: Option<Seal>,
}

/// Bytes after the first position that doesn't verify.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// The first byte that is not zero.
    pub first: u64,
    /// Frames there that verify by themselves.
    pub frames: u64,
    /// The largest txid of those.
    pub(crate) last_txid: u64,
    /// The end of the last of those.
    pub(crate) last_end: u64,
}

impl Survey {
    /// Follows the chain from the start, or from the end of an accepted commit, and examines all bytes after it.
    /// `visit` sees each verified frame in order, also those of a transaction that then isn't committed, and C at
    /// that frame; but none after the last commit that a rule accepts.
    ///
    /// Cost: reads all that it follows once; twice if a rule excludes commits, since only the end of the file
    /// determines which.
    pub fn make(
        storage: &dyn Storage,
        name: &str,
        rule: Rule,
        mut visit: impl FnMut(&Frame<'_>, u64) -> Result<()>,
    ) -> Result<Self> {
        let mut rule = rule;
        if matches!(rule.recovery, Recovery::ToHard | Recovery::ToSoft) {
            let all = Self::look(storage, name, rule, &mut |_, _| Ok(()))?;
            let soft = all.acknowledged().filter(|_| rule.recovery == Recovery::ToSoft);
            rule.limit = Some(all.hard.max(soft.unwrap_or(0)));
            rule = rule.knowing(all.hard);
        }
        Self::look(storage, name, rule, &mut visit)
    }

    fn look(
        storage: &dyn Storage,
        name: &str,
        rule: Rule,
        visit: &mut dyn FnMut(&Frame<'_>, u64) -> Result<()>,
    ) -> Result<Self> {
        let head = Head::read(storage, name)?;
        let start = rule.from.unwrap_or_else(|| head.start());
        let mut survey = Self::begin(storage, name, rule, head, start)?;
        survey.check_slots(survey.end.position, name)?;
        step!(SlotChainIgnored, survey.check_slots_before(storage, name)?);
        survey.follow(storage, name, visit)?;
        Ok(survey)
    }

    /// Begins after an accepted commit, or before the first frame.
    fn begin(storage: &dyn Storage, name: &str, rule: Rule, head: Head, at: Point) -> Result<Self> {
        let len = device::end_of(storage, &head).map_err(|error| unreadable(name, error))?;
        let slots = head.copies().map(|slot| slot.point.position);
        let live = step!(LiveIgnored, head.live.map(|live| live.hard), else None);
        let hard = slots.chain(live).max().unwrap_or(FRAMES_AT).max(rule.known);
        Ok(Self {
            rule,
            hard,
            end: at,
            last: None,
            left_out: None,
            left_out_count: 0,
            last_clock_time: i64::MIN,
            verified_to: at.position,
            uncommitted_frames: 0,
            wrong_chains: Vec::new(),
            live_is_met: false,
            tail: None,
            sealed: None,
            len,
            has_fixed_len: storage.has_fixed_len(),
            head,
        })
    }

    /// Follows the chain from C on, and looks after it.
    fn follow(
        &mut self,
        storage: &dyn Storage,
        name: &str,
        visit: &mut dyn FnMut(&Frame<'_>, u64) -> Result<()>,
    ) -> Result<()> {
        let io = |error| unreadable(name, error);
        let mut reader = FrameReader::new(storage, self.head.hash, self.end, self.len)
            .confirming(&self.head.slots);
        while let Some(frame) = reader.next().map_err(io)? {
            self.take(&frame, name)?;
            if self.rule.limit.is_none_or(|limit| frame.header.position < limit) {
                visit(&frame, self.end.position)?;
            }
        }
        self.verified_to = reader.position();
        let has_lost_slot = self.head.slots.iter().any(|slot| slot.iter().all(Option::is_none));
        if self.has_fixed_len && has_lost_slot {
            self.look_beyond(storage, &mut reader).map_err(io)?;
        }
        step!(TailNotLookedAt, self.look_ahead(&mut reader), else Ok(())).map_err(io)
    }

    /// Returns the secret with which frames prove their claims.
    pub(crate) fn secret(&self) -> Option<Secret> {
        self.head.newest_slot().map(|slot| slot.secret)
    }

    /// True if nothing was committed in the segment; the state at its beginning is older.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.reached().txid < Txid(self.head.header.first_own_txid())
    }

    /// Returns the rule by which commits count.
    pub(super) const fn rule(&self) -> Rule {
        self.rule
    }

    /// Reads all bytes after C, and the head, again; true if they are unchanged. The bytes before C verified, so they
    /// were read correctly.
    pub fn is_still_so(&self, storage: &dyn Storage, name: &str) -> Result<bool> {
        let head = Head::read(storage, name)?;
        let mut again = Self::begin(storage, name, self.rule, head, self.end)?;
        again.follow(storage, name, &mut |_, _| Ok(()))?;
        // The durable positions in frames before C are at most C.
        let found = |survey: &Self| {
            let Self { end, verified_to, uncommitted_frames, tail, len, .. } = *survey;
            let hard = survey.hard.max(end.position);
            (end, verified_to, uncommitted_frames, tail, len, hard, survey.left_out)
        };
        Ok(found(self) == found(&again) && self.head.slots == again.head.slots)
    }

    /// Follows the chain from `from`, the end of an accepted commit, without looking beyond the first position that
    /// doesn't verify. Then no damage is known.
    pub fn since(storage: &dyn Storage, name: &str, head: Head, from: Point) -> Result<Self> {
        let io = |error| unreadable(name, error);
        let mut survey = Self::begin(storage, name, Rule::default(), head, from)?;
        let mut reader = FrameReader::new(storage, survey.head.hash, from, survey.len)
            .confirming(&survey.head.slots);
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

    /// As [`Self::since`], of a file whose head wasn't read yet.
    #[inline]
    pub fn since_now(storage: &dyn Storage, name: &str, from: Point) -> Result<Self> {
        Self::since(storage, name, Head::read(storage, name)?, from)
    }

    /// Takes one verified frame into account.
    fn take(&mut self, frame: &Frame<'_>, name: &str) -> Result<()> {
        let header = &frame.header;
        header.check_known(name)?;
        if frame.is_repaired {
            let (position, txid, chain) = (frame.end, header.txid, frame.chain);
            self.wrong_chains.push(Point { position, txid: Txid(txid), chain });
        }
        if let Some((trailer, secret)) = Trailer::of(frame.bytes).zip(self.secret()) {
            self.hard = self.hard.max(trailer.claim(header, &secret).unwrap_or(0));
        }
        if header.is_seal() || self.sealed.is_some() {
            return self.take_seal(frame, name);
        }
        if !header.is_commit() {
            self.uncommitted_frames += 1;
            return Ok(());
        }
        self.uncommitted_frames = 0;
        let before = self.reached().position;
        let Some(committed) = Committed::of(frame) else { return Ok(()) };
        self.live_is_met |= self.head.live.is_some_and(|live| live.soft == committed.point());
        if self.rule.limit.is_none_or(|limit| frame.end <= limit) {
            (self.end, self.last) = (committed.point(), Some(committed));
        } else {
            self.left_out = Some(committed);
            self.left_out_count += 1;
        }
        if !header.has_explicit_time() {
            self.last_clock_time = self.last_clock_time.max(header.time);
        }
        self.check_slots(before, name)
    }

    /// Records a seal. Its place is directly after the last commit: a seal elsewhere, or a frame after a seal, is
    /// damage.
    fn take_seal(&mut self, frame: &Frame<'_>, name: &str) -> Result<()> {
        let is_at_end = self.end.position == frame.header.position && self.sealed.is_none();
        self.sealed = Seal::of(frame).filter(|_| is_at_end && frame.header.is_seal());
        if self.sealed.is_some() {
            return Ok(());
        }
        Err(Error::corrupt(format!(
            "{name}: damaged at position {}: an invalid or misplaced seal (the frame that \
             ends a segment); {}",
            frame.header.position,
            salvage_advice(name)
        )))
    }

    /// Returns the acknowledged end in the live block, unless it is of another history.
    fn acknowledged(&self) -> Option<u64> {
        let soft = self.head.live.map(|live| live.soft)?;
        (self.live_is_met || soft.position > self.end.position).then_some(soft.position)
    }

    /// Returns the end of the last commit that verifies, whether the rule accepts it or not.
    #[inline]
    pub fn reached(&self) -> Point {
        self.left_out.as_ref().map_or(self.end, Committed::point)
    }

    /// Fails if a slot has another point for the last commit frame than the frames. Also fails if it has one between
    /// the commit `before` and that, where no commit ends.
    fn check_slots(&self, before: u64, name: &str) -> Result<()> {
        let end = self.reached();
        for slot in self.head.copies() {
            let at = slot.point.position;
            if (at == end.position && slot.point != end) || (before < at && at < end.position) {
                return Err(Self::foreign_slot(at, name));
            }
        }
        Ok(())
    }

    /// Fails if a slot has a point before C, but another chain than the frame there.
    fn check_slots_before(&self, storage: &dyn Storage, name: &str) -> Result<()> {
        for slot in self.head.copies() {
            let at = slot.point.position;
            if at >= self.end.position || at <= FRAMES_AT {
                continue;
            }
            let mut chain = [0; 8];
            let read = storage.read_at(at.saturating_sub(8), &mut chain);
            let is_read = read.map_err(|error| unreadable(name, error))? == chain.len();
            if !is_read || u64::from_le_bytes(chain) != slot.point.chain {
                return Err(Self::foreign_slot(at, name));
            }
        }
        Ok(())
    }

    fn foreign_slot(at: u64, name: &str) -> Error {
        Error::corrupt(format!(
            "{name}: damaged: the slot and the frames at position {at} belong to different \
             histories; {}",
            salvage_advice(name)
        ))
    }

    /// On a device one unreadable slot may be the one with the end. Then the chain continues after the end in the
    /// other slot, and that must not be lost silently.
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

    /// Searches after B, to the end, for bytes that are not zero and frames that verify alone. Where a header
    /// verifies, nothing within its length is a frame, also if its payload doesn't verify: so the work is in
    /// proportion to the bytes.
    fn look_ahead(&mut self, reader: &mut FrameReader<'_>) -> std::io::Result<()> {
        let Some(first) = reader.first_nonzero(self.verified_to)? else { return Ok(()) };
        let reached = self.reached().txid;
        let secret = self.secret();
        let mut tail = Tail { first, last_txid: reached.0, ..Tail::default() };
        let mut at = first - first % FRAME_ALIGN;
        while let Some(place) = reader.next_magic(at)? {
            at = place + FRAME_ALIGN;
            let Some(header) = reader.header_at(place, reached.0)? else { continue };
            at = place + header.frame_len();
            // The claim is proven by the tag alone, whatever became of the payload.
            if let Some((trailer, secret)) = reader.trailer_of(&header)?.zip(secret) {
                self.hard = self.hard.max(trailer.claim(&header, &secret).unwrap_or(0));
            }
            if reader.verify_at(&header)?.is_some() {
                tail.frames += 1;
                tail.last_txid = tail.last_txid.max(header.txid);
                tail.last_end = place + header.frame_len();
            }
        }
        self.tail = Some(tail);
        Ok(())
    }
}

fn unreadable(name: &str, error: std::io::Error) -> Error {
    Error::io(format!("{name}: can't read the journal"), error)
}
