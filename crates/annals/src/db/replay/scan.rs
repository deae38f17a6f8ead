//! Replay and scan: the two ways to read a journal from its beginning.

use std::sync::Arc;

use annals_schema::{Schema, Txid};
use annals_storage::step;

use crate::db::progress::Watched;
use crate::db::replay::segments::Past;
use crate::event::{self, Event};
use crate::journal::format::FRAMES_AT;
use crate::journal::{
    Committed, Erasure, Frame, FrameReader, Head, Point, Recovery, Rule, Survey, Verdict,
};
use crate::storage::{Access, Directory, Storage};
use crate::{Error, ErrorKind, Result};

/// Takes the events of a journal, in order.
pub trait Sink {
    /// Takes the beginning of a transaction: its events follow. Does nothing unless it is written.
    ///
    /// # Errors
    /// Any error ends the scan.
    fn begin(&mut self, txid: Txid) -> Result<()> {
        let _ = txid;
        Ok(())
    }

    /// Takes an event. `schema` is the one before it.
    ///
    /// # Errors
    /// Any error ends the scan.
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()>;

    /// Takes how many bytes of the journal the last event has. Does nothing unless it is written.
    fn bytes(&mut self, count: usize) {
        let _ = count;
    }

    /// Takes the end of a transaction: the events since the last one are committed.
    ///
    /// # Errors
    /// Any error ends the scan.
    fn commit(&mut self, schema: &Schema, committed: &Committed) -> Result<()>;

    /// Takes the mark of an erasure, which is in the transaction that ends next.
    ///
    /// # Errors
    /// Any error ends the scan.
    fn erasure(&mut self, _schema: &Schema, _erasure: &Erasure) -> Result<()> {
        Ok(())
    }
}

/// Scans a file that is open for reading, with the segments before it. `is_whole` may refuse where it ends.
pub(in crate::db) fn scan_storage(
    storage: &Watched<'_>,
    shown: &str,
    past: &Past,
    is_whole: impl Fn(&Survey) -> Result<()>,
    sink: &mut impl Sink,
) -> Result<()> {
    let watch = storage.watch();
    past.read(watch, &mut (), |(), _| {}, |(), _, _| Ok(()))?;
    let (survey, ()) = survey_moving(storage, shown, || Ok(()), |(), _, _| Ok(()))?;
    is_whole(&survey)?;
    storage.read_again();
    let end = survey.sealed.map_or(survey.end.position, |seal| seal.end);
    scan_verified(storage, shown, past, &survey.head, end, sink)
}

/// Scans a file that was verified a moment ago up to an end, with the segments before it.
pub(in crate::db) fn scan_verified(
    storage: &Watched<'_>,
    shown: &str,
    past: &Past,
    head: &Head,
    end: u64,
    sink: &mut impl Sink,
) -> Result<()> {
    let mut scan = Scan { schema: Schema::default(), sink, is_open: false };
    past.read(
        storage.watch(),
        &mut scan,
        |_, _| {},
        |scan, frame, (shown, is_repeated)| match is_repeated {
            true => Ok(()),
            false => scan.frame(frame, shown),
        },
    )?;
    let visit = &mut |frame: &Frame<'_>| match past.is_repeated(frame) {
        true => Ok(()),
        false => scan.frame(frame, shown),
    };
    read_to(storage, head, head.start(), end, shown, visit).map(drop)
}

/// Reads frames that verified a moment ago, from a point to the end of a commit; returns that.
pub(in crate::db) fn read_to(
    storage: &dyn Storage,
    head: &Head,
    from: Point,
    to: u64,
    shown: &str,
    visit: &mut dyn FnMut(&Frame<'_>) -> Result<()>,
) -> Result<Point> {
    let reader = FrameReader::new(storage, head.hash, from, to).confirming(&head.slots);
    let end = read_frames(reader, None, shown, visit)?;
    if end.position == to { Ok(end) } else { Err(changed(shown, end.position)) }
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

/// The progress of a scan.
struct Scan<'s, S> {
    schema: Schema,
    sink: &'s mut S,
    /// True if the last frame was of a transaction that continues.
    is_open: bool,
}

impl<S: Sink> Scan<'_, S> {
    fn frame(&mut self, frame: &Frame<'_>, shown: &str) -> Result<()> {
        if frame.header.has_events() {
            if !self.is_open {
                self.sink.begin(Txid(frame.header.txid))?;
            }
            self.is_open = !frame.header.is_commit();
        }
        take_frame(frame, frame.payload_at(), &mut self.schema, shown, self.sink)
    }
}

/// Passes on the events of a frame, or the mark of an erasure, and the commit, if the frame is one. `position` is the position of the payload.
pub(in crate::db) fn take_frame(
    frame: &Frame<'_>,
    position: u64,
    schema: &mut Schema,
    shown: &str,
    sink: &mut impl Sink,
) -> Result<()> {
    if let Some(erasure) = Erasure::of(frame) {
        return sink.erasure(schema, &erasure);
    }
    if !frame.header.has_events() {
        return Ok(());
    }
    let left = frame.payload.len();
    let mut passing = Passing { sink, left, is_event: false, refused: false };
    let decoded = event::decode_to(frame.payload, position, schema, &mut passing);
    decoded.map_err(|error| if passing.refused { error } else { explain(error, shown, frame) })?;
    match Committed::of(frame) {
        Some(committed) => sink.commit(schema, &committed),
        None => Ok(()),
    }
}

/// Passes events on, each with its bytes.
struct Passing<'s, S> {
    sink: &'s mut S,
    /// How many bytes of the frame there were after the event before.
    left: usize,
    /// True after an event; false after what only says for which table or row the next one is.
    is_event: bool,
    /// True if the error is one of the sink, which says nothing about the file.
    refused: bool,
}

impl<S: Sink> event::Sink for Passing<'_, S> {
    #[inline]
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        self.is_event = true;
        self.sink.event(schema, event).inspect_err(|_| self.refused = true)
    }

    #[inline]
    fn end(&mut self, left: usize, _: event::Context) {
        if std::mem::take(&mut self.is_event) {
            self.sink.bytes(self.left.saturating_sub(left));
            self.left = left;
        }
    }
}

/// Adds the position of a failed event to the error, and advice if it is no event.
pub(super) fn explain(error: Error, shown: &str, frame: &Frame<'_>) -> Error {
    let (position, txid) = (frame.header.position, frame.header.txid);
    let error = error.within(format!("{shown}: transaction {txid}, frame at position {position}"));
    match error.kind() {
        ErrorKind::Corrupt => error.advising(
            "the frame's checksum is right, so it was written like this: `annals check` says what to do",
        ),
        ErrorKind::Unsupported => error.advising("use a newer program"),
        _ => error,
    }
}

/// Opens a file for reading.
pub(in crate::db) fn open_to_read(
    directory: &dyn Directory,
    name: &str,
) -> Result<(Arc<dyn Storage>, String)> {
    let shown = directory.display(name);
    let storage = directory
        .open(name, Access::Read)
        .map_err(|error| crate::journal::cannot_open(&shown, Access::Read, error))?;
    Ok((storage, shown))
}

/// The number of times that a seemingly damaged file is read again.
const LOOKS: usize = 3;

/// Surveys a file, passing each verified frame to the visitor of `begin`; returns the result with C. Damage is reported
/// only if it is unchanged at the next read: another process may have been writing, or the disk may have read wrongly
/// once.
pub(in crate::db) fn survey<V>(
    storage: &Watched<'_>,
    shown: &str,
    rule: Rule,
    begin: impl Fn() -> Result<V>,
    looks_wrong: impl Fn(&Survey) -> bool,
    mut visit: impl FnMut(&mut V, &Frame<'_>, u64) -> Result<()>,
) -> Result<(Survey, V)> {
    let mut looks = 0;
    loop {
        let mut visitor = begin()?;
        let seen = |frame: &Frame<'_>, end| visit(&mut visitor, frame, end);
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

/// Surveys a file that another process may be writing.
pub(in crate::db) fn survey_moving<V>(
    storage: &Watched<'_>,
    shown: &str,
    begin: impl Fn() -> Result<V>,
    visit: impl FnMut(&mut V, &Frame<'_>, u64) -> Result<()>,
) -> Result<(Survey, V)> {
    let rule = Rule::new(Recovery::Checked);
    let (survey, visitor) = self::survey(storage, shown, rule, begin, is_damaged, visit)?;
    if is_damaged(&survey) {
        return Err(survey.damage(shown));
    }
    Ok((survey, visitor))
}

/// True if something is missing that was durable.
pub(in crate::db) fn is_damaged(survey: &Survey) -> bool {
    survey.verdict() == Verdict::Damaged
}

/// True if bytes would be cut, or called damaged, because of one possibly wrong read.
pub(in crate::db) fn looks_wrong(survey: &Survey) -> bool {
    let has_tail = step!(TailCutAtOnce, survey.may_hold_a_commit(), else false);
    has_tail || is_damaged(survey)
}
