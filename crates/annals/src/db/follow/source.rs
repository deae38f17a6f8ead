//! The frames of a journal: those of older segments, and then those of its file, up to a known end, or as far as a
//! survey accepts them.

use annals_schema::Txid;
use annals_storage::step;

use crate::db::follow::segments::Past;
use crate::db::progress::Watched;
use crate::journal::format::{FRAMES_AT, Header};
use crate::journal::{Frame, FrameReader, Head, Point, Recovery, Rule, Survey, Verdict};
use crate::storage::Storage;
use crate::{Error, Result};

/// Takes the verified frames of a journal, in order.
pub trait Visitor {
    /// Begins a segment, whose frames are next.
    fn begin(&mut self, _header: &Header) {}

    /// Takes a frame.
    ///
    /// # Errors
    /// Any error ends the reading.
    fn frame(&mut self, frame: &Frame<'_>, facts: &FrameFacts<'_>) -> Result<()>;

    /// Takes the error that ended reading the older segments. Returns it, unless the file is read nevertheless.
    ///
    /// # Errors
    /// The error, if it ends the reading.
    fn fail(&mut self, error: Error) -> Result<()> {
        Err(error)
    }
}

impl Visitor for () {
    fn frame(&mut self, _: &Frame<'_>, _: &FrameFacts<'_>) -> Result<()> {
        Ok(())
    }
}

impl<F: FnMut(&Frame<'_>) -> Result<()>> Visitor for F {
    fn frame(&mut self, frame: &Frame<'_>, _: &FrameFacts<'_>) -> Result<()> {
        self(frame)
    }
}

/// The facts of a frame that its file doesn't have.
#[derive(Debug)]
pub struct FrameFacts<'s> {
    /// The end of the commits that are accepted by now: whatever is before a seal, or before a known end, is.
    pub end: u64,
    /// The name of the file in messages.
    pub shown: &'s str,
    /// True if it is of the transaction with which a segment only repeats the state.
    pub is_repeated: bool,
}

/// A file of a journal, with the segments that are read before it.
#[derive(Clone, Copy, Debug)]
pub struct FrameSource<'s> {
    /// Those segments, and where the file is read from; `None`: only the file is read.
    pub past: Option<&'s Past>,
    /// The file.
    pub storage: &'s Watched<'s>,
    /// The name of the file in messages.
    pub shown: &'s str,
}

/// The number of times that a seemingly damaged file is read again.
const LOOKS: usize = 3;

impl FrameSource<'_> {
    /// Reads all segments before the file, verifying each and the borders between them.
    fn read_segments(&self, visitor: &mut dyn Visitor) -> Result<()> {
        let Some(past) = self.past else { return Ok(()) };
        let headers = past.segments().iter().skip(1).map(|kept| &kept.head.header);
        let successors = headers.chain([past.header()]);
        for ((place, kept), successor) in past.segments().iter().enumerate().zip(successors) {
            let (own, shown) = (&kept.head.header, &*kept.shown);
            let since = past.since.filter(|since| since.segment == own.segment);
            let is_first = place == 0 && past.since.is_none();
            let repeated = (own.begins_with_state() && !is_first).then_some(own.first_txid);
            let watched = Watched::new(&*kept.storage, self.storage.watch());
            visitor.begin(own);
            let from = since.map_or(kept.head.start(), |since| since.point);
            let read = kept.follow(&watched, from, successor, &mut |frame| {
                let is_repeated = Some(frame.header.txid) == repeated;
                visitor.frame(frame, &FrameFacts { end: u64::MAX, shown, is_repeated })
            });
            if let Err(error) = read {
                visitor.fail(watched.explain(error, shown))?;
                break;
            }
        }
        visitor.begin(past.header());
        Ok(())
    }

    fn facts(&self, frame: &Frame<'_>, end: u64) -> FrameFacts<'_> {
        let is_repeated = self.past.is_some_and(|past| past.is_repeated(frame));
        FrameFacts { end, shown: self.shown, is_repeated }
    }

    /// Reads the segments, and then the file up to an end that is known, or to the end of a transaction before it.
    /// Returns the end of the last frame that verifies.
    pub(in crate::db) fn read(
        &self,
        head: &Head,
        end: u64,
        last: Option<Txid>,
        visitor: &mut dyn Visitor,
    ) -> Result<Point> {
        self.read_segments(visitor)?;
        let from = self.past.and_then(Past::point).unwrap_or_else(|| head.start());
        let reader = FrameReader::new(self.storage, head.hash, from, end).confirming(&head.slots);
        let visit = &mut |frame: &Frame<'_>| visitor.frame(frame, &self.facts(frame, u64::MAX));
        read_frames(reader, last, self.shown, visit)
            .map_err(|error| self.storage.explain(error, self.shown))
    }

    /// Does so for frames that verified a moment ago, up to the end of a commit at position `to`.
    ///
    /// # Errors
    /// `Corrupt`: they don't verify any more; `Io`; those of the visitor.
    pub fn read_to(&self, head: &Head, to: u64, visitor: &mut dyn Visitor) -> Result<Point> {
        let end = self.read(head, to, None, visitor)?;
        if end.position == to { Ok(end) } else { Err(changed(self.shown, end.position)) }
    }

    /// Reads the segments, and surveys the file; returns the result, with C, and the visitor that `begin` returned.
    /// Damage is reported only if it is unchanged at the next read: another process may have been writing, or the disk
    /// may have read wrongly once.
    ///
    /// # Errors
    /// `Corrupt`: a segment before the file is damaged; `Io`; `Cancelled`; those of the visitor.
    pub fn survey<V: Visitor>(
        &self,
        rule: Rule,
        looks_wrong: impl Fn(&Survey) -> bool,
        begin: impl Fn() -> V,
    ) -> Result<(Survey, V)> {
        let &Self { storage, shown, .. } = self;
        let rule = self.past.map_or(rule, |past| rule.after(past.point()));
        let mut looks = 0;
        loop {
            let mut visitor = begin();
            self.read_segments(&mut visitor)?;
            let seen = |frame: &Frame<'_>, end| visitor.frame(frame, &self.facts(frame, end));
            let explain = |error| storage.explain(error, shown);
            let survey = Survey::make(storage, shown, rule, seen).map_err(explain)?;
            looks += 1;
            if !looks_wrong(&survey) || looks > LOOKS {
                return Ok((survey, visitor));
            }
            storage.read_again();
            storage.drop_copies(0..FRAMES_AT);
            storage.drop_copies(survey.end.position..u64::MAX);
            if survey.is_still_so(storage, shown).map_err(explain)? {
                return Ok((survey, visitor));
            }
        }
    }

    /// Verifies the segments, and the file, which another process may be writing.
    ///
    /// # Errors
    /// `Corrupt`: something is missing that was durable; `Io`; `Cancelled`.
    pub fn verify(&self) -> Result<Survey> {
        let (survey, ()) = self.survey(Rule::new(Recovery::Checked), is_damaged, || ())?;
        if is_damaged(&survey) { Err(survey.damage(self.shown)) } else { Ok(survey) }
    }
}

/// Reads frames as far as they verify, or up to the end of a transaction; returns the end of the last one.
pub(in crate::db) fn read_frames(
    mut reader: FrameReader<'_>,
    last: Option<Txid>,
    shown: &str,
    visit: &mut dyn FnMut(&Frame<'_>) -> Result<()>,
) -> Result<Point> {
    let io = |error| Error::io(format!("{shown}: can't read the journal"), error);
    while last.is_none_or(|last| reader.point().txid < last)
        && let Some(frame) = reader.next().map_err(io)?
    {
        visit(&frame)?;
    }
    Ok(reader.point())
}

/// Returns the error that frames don't verify any more, which did a moment ago.
pub(in crate::db) fn changed(shown: &str, at: u64) -> Error {
    Error::corrupt(format!(
        "{shown}: what verified at position {at} a moment ago doesn't any more: the rest was not read; \
         try again, and check the disk"
    ))
}

/// True if something is missing that was durable.
#[must_use]
pub fn is_damaged(survey: &Survey) -> bool {
    survey.verdict() == Verdict::Damaged
}

/// True if bytes would be cut, or called damaged, because of one possibly wrong read.
pub(in crate::db) fn looks_wrong(survey: &Survey) -> bool {
    let has_tail = step!(TailCutAtOnce, survey.may_hold_a_commit(), else false);
    has_tail || is_damaged(survey)
}
