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
use super::format::{FRAME_ALIGN, FRAMES_AT, Point};
use super::head::Head;
use super::level::Level;
use super::mistakes::{Mistake, is_made};
use super::reader::{Frame, FrameReader};
use super::recover::Recovery;
use crate::storage::Storage;
use crate::{Error, ErrorKind, Result};

/// Which commits count, and what an earlier look has shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) recovery: Recovery,
    /// A position that an earlier look found to have been flushed, or 0.
    known: u64,
    /// Whether an earlier look found that the live block speaks of another history.
    live_is_wrong: bool,
}

impl Rule {
    /// Begins without having looked.
    pub(crate) const fn new(recovery: Recovery) -> Self {
        Self { recovery, known: 0, live_is_wrong: false }
    }
}

/// What a journal holds.
#[derive(Clone, Debug)]
pub(crate) struct Survey {
    rule: Rule,
    pub(crate) head: Head,
    /// The length of the file.
    pub(crate) len: u64,
    /// C: the end of the last commit that counts.
    pub(crate) end: Point,
    /// The last commit that counts.
    pub(crate) last: Option<Committed>,
    /// Commits behind C whose frames verify, but which don't count (yet).
    pub(crate) doubtful: VecDeque<Committed>,
    /// Whether a commit was found to count too late for the visitor.
    counted_late: bool,
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
    /// frame. If [`Self::next_rule`] gives one, the visitor may have gone past the end.
    pub(crate) fn make(
        storage: &dyn Storage,
        name: &str,
        rule: Rule,
        mut visit: impl FnMut(&Frame<'_>, u64) -> Result<()>,
    ) -> Result<Self> {
        let mut survey = Self::begin(storage, name, rule)?;
        survey.check_slots(survey.end.position, name)?;
        survey.follow(storage, name, &mut visit)?;
        Ok(survey)
    }

    /// Reads the head, and stands before the first frame.
    fn begin(storage: &dyn Storage, name: &str, rule: Rule) -> Result<Self> {
        let head = Head::read(storage, name)?;
        let len = storage.len().map_err(|error| unreadable(name, error))?;
        let slots = head.slots.iter().flatten().map(|slot| slot.point.position);
        Ok(Self {
            rule,
            hard: slots.max().unwrap_or(FRAMES_AT).max(rule.known),
            end: head.start(),
            last: None,
            doubtful: VecDeque::new(),
            counted_late: false,
            live_is_wrong: false,
            last_clock_time: i64::MIN,
            verified_to: FRAMES_AT,
            uncommitted_frames: 0,
            tail: None,
            len,
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
        if !self.look_ahead(&mut reader).map_err(io)? {
            return Err(Error::corrupt(format!(
                "{name}: damaged behind position {}: many frames there claim the same bytes, which \
                 no accident makes; the file was not changed: restore it from a backup",
                self.verified_to
            )));
        }
        let seen = self.end;
        self.count_flushed();
        self.counted_late |= self.end != seen;
        Ok(())
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
        let mut again = Self::begin(storage, name, self.rule)?;
        (again.end, again.last) = (self.end, self.last);
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
        let Some(committed) = Committed::of(frame) else { return Ok(()) };
        if self.counts_alone(committed.level) {
            self.doubtful.clear();
            (self.end, self.last) = (committed.point(), Some(committed));
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
            self.doubtful.pop_front();
            self.counted_late |= !self.doubtful.is_empty();
        }
    }

    /// Gives how far the live block tells commits to be acknowledged, where that matters.
    fn acknowledged(&self) -> u64 {
        let live = self.head.live.filter(|_| {
            self.rule.recovery == Recovery::ToSoft && !self.rule.live_is_wrong
        });
        live.map_or(0, |live| live.soft.position)
    }

    /// Notes if the live block tells another point for the last commit frame than the frames do, or one
    /// between the commit `before` and that.
    fn check_live(&mut self, before: u64) {
        let (at, reached) = (self.acknowledged(), self.reached());
        let passed = before < at && at < reached.position;
        let differs = at == reached.position
            && self.head.live.is_some_and(|live| live.soft != reached);
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
                     histories; restore the file from a backup"
                )));
            }
        }
        Ok(())
    }

    /// Looks behind B, to the end, for bytes that are not zero and frames that verify alone. Gives
    /// `false` if that would cost far more than reading the file: torn frames don't overlap, so in all
    /// they are no longer than the file.
    fn look_ahead(&mut self, reader: &mut FrameReader<'_>) -> std::io::Result<bool> {
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

    /// Tells whether what follows the end may be all that tells that the last commit counts, so that
    /// another recovery would cut that too.
    pub(super) fn rests_on_what_is_cut(&self) -> bool {
        let is_told = self.head.newest_slot().is_some_and(|slot| slot.point == self.end);
        self.may_hold_a_commit()
            && !is_told
            && self.last.is_some_and(|last| !self.counts_alone(last.level))
    }

    /// Says what commits lack that don't count.
    pub(super) fn missing_proof(&self) -> &'static str {
        match self.rule.recovery {
            Recovery::ToHard => "they were flushed, and all that isn't known to be was to be cut",
            Recovery::ToSoft => {
                "they were acknowledged or flushed, and all that isn't known to be was to be cut"
            }
            _ => "they were flushed, as their commit level asks for",
        }
    }

    /// Tells whether the journal was closed properly: a slot reaches its end, and nothing follows.
    pub(crate) fn is_closed(&self) -> bool {
        let at_end = |slot: super::format::Slot| slot.point == self.end;
        self.head.slots.into_iter().flatten().any(at_end)
            && self.len == self.end.position
            && self.head.damaged_headers == [false; 3]
    }

    /// Describes the damage, with what is lost and what can be done.
    pub(crate) fn damage(&self, name: &str) -> Error {
        let advice = format!(
            "The file was not changed: restore it from a backup, or write all that verifies into a \
             new file with `annals recover {} --salvage NEW`",
            shown_path(name)
        );
        if self.head.newest_slot().is_none() {
            return Error::corrupt(format!(
                "{name}: damaged: both slots are, which tell how far the journal had reached \
                 permanent storage; transactions up to {} (position {}) are whole, but whether \
                 others followed can't be told. {advice}",
                self.end.txid, self.end.position
            ));
        }
        let reached = self.reached().txid;
        let slot_txid = self.head.newest_slot().map_or(0, |slot| slot.point.txid);
        let last = self.tail.map_or(0, |tail| tail.last_txid).max(slot_txid);
        let lost = if last > reached {
            format!("transactions {} to {last} can't be read", reached + 1)
        } else {
            format!("what followed transaction {reached} can't be read")
        };
        Error::corrupt(format!(
            "{name}: damaged at position {}: all up to position {} had reached permanent storage, \
             but from there on it does not verify (the file has {} bytes); {lost}, transactions up \
             to {reached} are whole. {advice}",
            self.verified_to, self.hard, self.len
        ))
    }
}

fn unreadable(name: &str, error: std::io::Error) -> Error {
    Error::io(format!("{name}: can't read the journal"), error)
}

/// Writes a path as it is typed in a shell.
pub(super) fn shown_path(path: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "._-/:@+,=\\".contains(c);
    match path.chars().all(is_plain) && !path.is_empty() {
        true => path.to_owned(),
        false => format!("'{}'", path.replace('\'', "'\\''")),
    }
}
