//! The survey of a journal: what verifies, what was known to be durable, and what lies behind.
//!
//! Words: B is the first position that doesn't verify; K the farthest position that was known to be
//! flushed, as the hard slots and the durable positions in all frames that verify tell; C the end of
//! the last commit before B that counts. A soft or checksummed commit counts, also all before it; a
//! half or two-phase commit behind the last of these counts if it isn't behind K. So C <= B. The
//! journal is damaged if C < K, and if no slot is whole: one always is, since one is left alone while
//! the other is written, so K would only be a guess. A [`Rule`] may let fewer commits count, or more;
//! never fewer than K tells.

use std::collections::VecDeque;

use super::committed::Committed;
use super::device;
use super::format::{FRAME_ALIGN, FRAMES_AT, Point};
use super::frame::FrameHeader;
use super::head::Head;
use super::level::Level;
use super::mistakes::{Mistake, is_made};
use super::reader::{Frame, FrameReader};
use super::recover::Recovery;
use super::segments::Seal;
use super::verdict::salvage_advice;
use crate::storage::Storage;
use crate::{Error, ErrorKind, Result};

/// Which commits count, and what an earlier look has shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) recovery: Recovery,
    /// The end of a commit that is known to count, from which on the file is looked at.
    from: Option<Point>,
    /// A position that an earlier look found to have been flushed, or 0.
    known: u64,
    /// Whether an earlier look found that the live block speaks of another history.
    live_is_wrong: bool,
}

impl Rule {
    /// Begins without having looked.
    pub(crate) const fn new(recovery: Recovery) -> Self {
        Self { recovery, from: None, known: 0, live_is_wrong: false }
    }

    /// Begins behind a commit that is known to count, rather than at the first frame.
    pub(crate) const fn behind(self, from: Option<Point>) -> Self {
        Self { from, ..self }
    }
}

/// What a journal holds.
#[derive(Clone, Debug)]
pub(crate) struct Survey {
    rule: Rule,
    pub(crate) head: Head,
    /// The length of the file; on a device how far it is the journal's.
    pub(crate) len: u64,
    /// Whether it is on a device.
    pub(crate) has_fixed_len: bool,
    /// C: the end of the last commit that counts.
    pub(crate) end: Point,
    /// The last commit that counts.
    pub(crate) last: Option<Committed>,
    /// Commits behind C whose frames verify, but which don't count (yet).
    pub(crate) doubtful: VecDeque<Committed>,
    /// Whether a commit was found to count too late for the visitor.
    counted_late: bool,
    /// Whether the last commit that counts does so only because it is known to have been flushed, or
    /// acknowledged.
    pub(crate) counted_flushed: bool,
    /// Whether the live block speaks of another history than the frames.
    live_is_wrong: bool,
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
    /// The seal, if the journal goes on in another segment.
    pub(crate) sealed: Option<Seal>,
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

impl Survey {
    /// Follows the chain from the start, or from the end of a commit that counts, and looks at all that is
    /// behind. `visit` sees each verified frame in order, also those of a transaction that then doesn't
    /// count, and C as it is with that frame. If [`Self::next_rule`] gives one, the visitor may have gone
    /// past the end.
    pub(crate) fn make(
        storage: &dyn Storage,
        name: &str,
        rule: Rule,
        mut visit: impl FnMut(&Frame<'_>, u64) -> Result<()>,
    ) -> Result<Self> {
        let head = Head::read(storage, name)?;
        let start = rule.from.unwrap_or_else(|| head.start());
        let mut survey = Self::begin(storage, name, rule, (head, start))?;
        survey.check_slots(survey.end.position, name)?;
        survey.follow(storage, name, &mut visit)?;
        Ok(survey)
    }

    /// Stands behind a commit that counts, or before the first frame.
    fn begin(
        storage: &dyn Storage,
        name: &str,
        rule: Rule,
        (head, at): (Head, Point),
    ) -> Result<Self> {
        let len = device::end_of(storage, &head).map_err(|error| unreadable(name, error))?;
        let slots = head.slots.iter().flatten().map(|slot| slot.point.position);
        Ok(Self {
            rule,
            hard: slots.max().unwrap_or(FRAMES_AT).max(rule.known),
            end: at,
            last: None,
            doubtful: VecDeque::new(),
            counted_late: false,
            counted_flushed: false,
            live_is_wrong: false,
            last_clock_time: i64::MIN,
            verified_to: at.position,
            uncommitted_frames: 0,
            tail: None,
            sealed: None,
            len,
            has_fixed_len: storage.has_fixed_len(),
            head,
        })
    }

    /// Follows the chain from C on, and looks behind it.
    fn follow(
        &mut self,
        storage: &dyn Storage,
        name: &str,
        visit: &mut dyn FnMut(&Frame<'_>, u64) -> Result<()>,
    ) -> Result<()> {
        let io = |error| unreadable(name, error);
        let mut reader = FrameReader::new(storage, self.end, self.len);
        while let Some(frame) = reader.next().map_err(io)? {
            self.take(&frame, name)?;
            visit(&frame, self.end.position)?;
        }
        self.verified_to = reader.position();
        if self.has_fixed_len && self.head.slots.contains(&None) {
            self.look_beyond(storage, &mut reader).map_err(io)?;
        }
        if !self.look_ahead(&mut reader).map_err(io)? {
            return Err(Error::corrupt(format!(
                "{name}: damaged behind position {}: many frames there claim the same bytes, which \
                 no accident makes; the file was not changed: {}",
                self.verified_to,
                salvage_advice(name)
            )));
        }
        let visited = self.end;
        self.count_flushed();
        // What the tail says to have been flushed was known to no visit.
        self.counted_late |= self.end != visited && !is_made(Mistake::LateCountForgotten);
        Ok(())
    }

    /// Tells whether nothing was committed in the segment; the state that it may begin with was before.
    pub(crate) fn is_empty(&self) -> bool {
        self.reached().txid < self.head.header.first_own_txid()
    }

    /// Gives the rule by which commits count.
    pub(super) const fn rule(&self) -> Rule {
        self.rule
    }

    /// Gives the rule for another look, if this one has shown something that its visitor should have
    /// known from the start.
    pub(crate) fn next_rule(&self) -> Option<Rule> {
        let rule = Rule {
            known: if self.counted_late { self.hard } else { self.rule.known },
            live_is_wrong: self.rule.live_is_wrong || self.live_is_wrong,
            ..self.rule
        };
        (rule != self.rule).then_some(rule)
    }

    /// Looks again at all that is behind C, and at the head; tells whether that is as it was. What is
    /// before C verified, so nothing was read wrongly there.
    pub(crate) fn is_still_so(&self, storage: &dyn Storage, name: &str) -> Result<bool> {
        let head = Head::read(storage, name)?;
        let mut again = Self::begin(storage, name, self.rule, (head, self.end))?;
        again.follow(storage, name, &mut |_, _| Ok(()))?;
        // What frames before C tell of K is at most C.
        let found = |survey: &Self| {
            let Self { end, verified_to, uncommitted_frames, tail, len, .. } = *survey;
            let hard = survey.hard.max(end.position);
            (end, verified_to, uncommitted_frames, tail, len, hard)
        };
        Ok(found(self) == found(&again)
            && self.doubtful == again.doubtful
            && self.head.slots == again.head.slots)
    }

    /// Does what [`since`](Self::since) does where another process may be writing or recovering: a slot may
    /// tell of a doubtful commit by now, and the frame be gone that told of it when the slots were read.
    pub(crate) fn since_moving(storage: &dyn Storage, name: &str, from: Point) -> Result<Self> {
        const TRIES: usize = 16;
        let mut survey = Self::since(storage, name, Head::read(storage, name)?, from)?;
        for _ in 1..TRIES {
            if survey.doubtful.is_empty() {
                break;
            }
            let head = Head::read(storage, name)?;
            if head.slots == survey.head.slots {
                break;
            }
            survey = Self::since(storage, name, head, from)?;
        }
        Ok(survey)
    }

    /// Follows the chain from `from`, the end of a commit that counts, without looking behind the first
    /// position that doesn't verify. Nothing is known of damage then.
    pub(crate) fn since(
        storage: &dyn Storage,
        name: &str,
        head: Head,
        from: Point,
    ) -> Result<Self> {
        let io = |error| unreadable(name, error);
        let mut survey = Self::begin(storage, name, Rule::default(), (head, from))?;
        let mut reader = FrameReader::new(storage, from, survey.len);
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
        self.hard = self.hard.max(self.told_by(header));
        self.count_flushed();
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
        if self.counts_alone(committed.level) {
            self.doubtful.clear();
            (self.end, self.last) = (committed.point(), Some(committed));
            self.counted_flushed = false;
        } else {
            self.doubtful.push_back(committed);
            self.count_flushed();
        }
        self.check_live(before);
        if !header.has_explicit_time() {
            self.last_clock_time = self.last_clock_time.max(header.time);
        }
        self.check_slots(before, name)
    }

    /// Takes a seal into account, which is the last frame, right behind the last commit.
    fn take_seal(&mut self, frame: &Frame<'_>, name: &str) -> Result<()> {
        let is_at_end = self.end.position == frame.header.position && self.sealed.is_none();
        self.sealed = Seal::of(frame).filter(|_| is_at_end && frame.header.is_seal());
        if self.sealed.is_some() {
            return Ok(());
        }
        Err(Error::corrupt(format!(
            "{name}: damaged at position {}: a seal is where none can be; {}",
            frame.header.position,
            salvage_advice(name)
        )))
    }

    /// Gives how far a frame tells the journal to have been flushed: nothing if it may be a copy, which
    /// tells that of another file.
    fn told_by(&self, header: &FrameHeader) -> u64 {
        match self.head.is_copied() && !is_made(Mistake::CopiedClaimTrusted) {
            true => 0,
            false => header.durable,
        }
    }

    /// Tells whether a commit counts because its frame verifies.
    fn counts_alone(&self, level: Level) -> bool {
        match self.rule.recovery {
            Recovery::Checked | Recovery::Refuse => {
                level.counts_alone() || is_made(Mistake::DoubtfulAccepted)
            }
            Recovery::ToHard | Recovery::ToSoft => false,
            Recovery::ToEnd => true,
        }
    }

    /// Lets doubtful commits count that are known to have been flushed; by [`Recovery::ToSoft`] also
    /// those that were acknowledged.
    fn count_flushed(&mut self) {
        let known = self.hard.max(self.acknowledged());
        while let Some(&first) = self.doubtful.front().filter(|first| first.position <= known) {
            (self.end, self.last) = (first.point(), Some(first));
            self.counted_flushed = true;
            self.doubtful.pop_front();
            self.counted_late |= !self.doubtful.is_empty();
        }
    }

    /// Gives how far the live block tells commits to be acknowledged, where that matters.
    fn acknowledged(&self) -> u64 {
        let live = self
            .head
            .live
            .filter(|_| self.rule.recovery == Recovery::ToSoft && !self.rule.live_is_wrong);
        live.map_or(0, |live| live.soft.position)
    }

    /// Notes if the live block tells another point for the last commit frame than the frames do, or one
    /// between the commit `before` and that.
    fn check_live(&mut self, before: u64) {
        let (at, reached) = (self.acknowledged(), self.reached());
        let passed = before < at && at < reached.position;
        let differs =
            at == reached.position && self.head.live.is_some_and(|live| live.soft != reached);
        self.live_is_wrong |= passed || differs;
    }

    /// Gives the end of the last commit frame that the chain reaches, whether it counts or not.
    pub(crate) fn reached(&self) -> Point {
        self.doubtful.back().map_or(self.end, Committed::point)
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
                     histories; {}",
                    salvage_advice(name)
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
        let mut at = first - first % FRAME_ALIGN;
        while let Some(place) = reader.next_magic(at)? {
            at = place + 1;
            let Some(header) = reader.header_at(place)? else { continue };
            if reader.verify_at(&header)?.is_none() {
                let Some(left) = patience.checked_sub(header.frame_len()) else { return Ok(false) };
                patience = left;
                continue;
            }
            self.hard = self.hard.max(self.told_by(&header));
            at = place + header.frame_len();
            tail.frames += 1;
            tail.last_txid = tail.last_txid.max(header.txid);
            tail.last_end = at;
        }
        self.tail = Some(tail);
        Ok(true)
    }
}

fn unreadable(name: &str, error: std::io::Error) -> Error {
    Error::io(format!("{name}: can't read the journal"), error)
}
