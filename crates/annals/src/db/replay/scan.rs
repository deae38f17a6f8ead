//! Replay and scan: the two ways to read a journal from its beginning.

use std::sync::Arc;

use annals_schema::{Blob, RowId, Schema, TableNumber, Txid, ValueRef};
use annals_storage::step;

use crate::db::progress::Watched;
use crate::db::replay::segments::Past;
use crate::db::replay::unapplied::{Before, Counted, MakeRoom, Stop, Unapplied, is_about_events};
use crate::event::{self, Event};
use crate::journal::format::{FRAMES_AT, Header};
use crate::journal::segments::Place;
use crate::journal::{
    Committed, Erasure, Frame, FrameReader, Head, Point, Recovery, Rule, Survey, Verdict,
};
use crate::storage::{Access, Directory, Storage};
use crate::store::{BlobPiece, Store, View};
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
    let io = |error| Error::io(format!("{shown}: can't read the journal"), error);
    let mut reader = FrameReader::new(storage, head.hash, from, to).confirming(&head.slots);
    while let Some(frame) = reader.next().map_err(io)? {
        visit(&frame)?;
    }
    match reader.position() == to {
        true => Ok(reader.point()),
        false => Err(changed(shown, reader.position())),
    }
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
fn explain(error: Error, shown: &str, frame: &Frame<'_>) -> Error {
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

/// Does what [`explain`] does; also names the transaction if it doesn't apply.
fn explain_event(error: Error, shown: &str, frame: &Frame<'_>) -> Error {
    let is_about_events = is_about_events(&error);
    let error = explain(error, shown, frame);
    if is_about_events { error.of_transaction(frame.header.txid) } else { error }
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

/// Builds the store from verified frames.
///
/// A transaction of one frame that is accepted as soon as it is seen needs no undoing. The store is committed before
/// any other transaction, so that it can be rolled back to there: `open` says that this is done.
#[derive(Debug, Default)]
pub(in crate::db) struct Replay {
    store: Store,
    schema: Schema,
    open: bool,
    /// The number of the segment of the next frames.
    segment: u64,
    /// The frames read of a transaction that only repeats the state.
    state: Repeated,
    /// The target for changes larger than memory; `None` if they must be in memory.
    room: Option<Arc<dyn MakeRoom>>,
    /// The transaction before which it ends; `None`: it continues to the end.
    stop: Option<Stop>,
}

/// Applies the events of a frame.
struct Applying<'r> {
    store: &'r mut Store,
    room: &'r Option<Arc<dyn MakeRoom>>,
    /// The transaction, and whether it is not known yet whether it commits.
    place: (u64, bool),
    events: u64,
}

impl Applying<'_> {
    fn applied(&mut self, events: u64) -> Result<()> {
        self.events += events;
        match self.room {
            Some(room) => room.make_room(self.store, self.place.0, self.place.1),
            None => Ok(()),
        }
    }
}

impl event::Sink for Applying<'_> {
    /// So many that the fixed cost of a run is small, and so few that the values stay in the first-level cache.
    const RUN: usize = 256;

    #[inline]
    fn event(&mut self, _: &Schema, event: &Event<'_>) -> Result<()> {
        self.store.apply(event)?;
        self.applied(1)
    }

    fn rows(
        &mut self,
        table: TableNumber,
        first: RowId,
        count: u64,
        columns: &[Vec<ValueRef<'_>>],
    ) -> Result<()> {
        self.store.apply_rows(table, first, count, columns)?;
        self.applied(count)
    }
}

/// The schema of the repeated state, and the positions of blobs there.
#[derive(Debug, Default)]
struct Repeated {
    schema: Schema,
    pieces: Vec<(Blob, BlobPiece)>,
}

impl Replay {
    /// Continues from a store whose changes are all published, in a segment.
    pub(in crate::db) fn resume(store: Store, segment: u64) -> Self {
        let schema = Schema::clone(store.view().schema());
        Self { store, schema, segment, ..Self::default() }
    }

    /// Ends before a transaction, if one is given.
    pub(in crate::db) fn until(self, txid: Option<u64>) -> Self {
        Self { stop: txid.map(Stop::new), ..self }
    }

    /// Returns where it ends, if that isn't the end.
    pub(in crate::db) const fn stop(&self) -> Option<&Stop> {
        self.stop.as_ref()
    }

    /// Returns the state that the replay ended before, if it was to end before an accepted transaction.
    ///
    /// # Errors
    /// `Unapplied` if that transaction is in a segment before the newest, or is the state with which that
    /// begins.
    pub(in crate::db) fn before(&self, counted: &Counted<'_>) -> Result<Option<Before>> {
        self.stop().map_or(Ok(None), |stop| stop.before(counted))
    }

    /// Returns the transaction that the replay ended before, if that transaction is accepted.
    pub(in crate::db) fn unapplied(&self, counted: &Counted<'_>) -> Option<Unapplied> {
        self.stop()?.unapplied(counted).ok()?
    }

    /// Allows writing changes larger than memory to the image.
    pub(in crate::db) fn spilling(self, room: Arc<dyn MakeRoom>) -> Self {
        room.begin();
        Self { room: Some(room), ..self }
    }

    /// Begins a segment, whose frames are next.
    pub(in crate::db) fn begin(&mut self, header: &Header) {
        self.segment = header.segment;
        self.stop.iter_mut().for_each(Stop::begin);
    }

    /// Returns the store without the frame that couldn't be applied.
    pub(in crate::db) fn give_up(mut self) -> Store {
        self.store.rollback();
        self.store.end_delay();
        self.store
    }

    /// Applies the events of one frame; returns how many those are. `end` is where the commits end that
    /// count by now.
    pub(in crate::db) fn frame(&mut self, frame: &Frame<'_>, end: u64, shown: &str) -> Result<u64> {
        if self.stop.as_ref().is_some_and(|stop| stop.is_reached(frame)) {
            return self.try_frame(frame, end).map(|()| 0);
        }
        self.stop.iter_mut().for_each(|stop| stop.pass(frame));
        if end >= frame.header.position && self.open {
            self.open = false;
            self.room.iter().for_each(|room| room.commit());
        }
        let counts = end >= frame.end;
        if !counts && !self.open {
            self.store.make_delayed()?;
            self.store.commit();
            self.open = true;
        }
        let place = Place::new(self.segment, frame.payload_at());
        let Self { store, schema, open, room, .. } = self;
        let mut events = 0;
        if !frame.header.has_events() {
            return Ok(events);
        }
        let mut sink = Applying { store, room, place: (frame.header.txid, *open), events: 0 };
        event::decode_to(frame.payload, place.0, schema, &mut sink)
            .map_err(|error| explain_event(error, shown, frame))?;
        events += sink.events;
        if frame.header.is_commit() {
            store.end_blob();
        }
        Ok(events)
    }

    /// Takes a frame of the transaction before which it ends, or of a later one: it is dropped.
    fn try_frame(&mut self, frame: &Frame<'_>, end: u64) -> Result<()> {
        let place = Place::new(self.segment, frame.payload_at());
        let Self { store, schema, open, room, stop, .. } = self;
        let Some(stop) = stop else { return Ok(()) };
        if stop.is_ahead() {
            if *open && end >= frame.header.position {
                room.iter().for_each(|room| room.commit());
            }
            store.make_delayed()?;
            store.commit();
            *open = true;
        }
        stop.take(frame, place, store, schema, room.as_deref())
    }

    /// Takes a frame of the transaction with which a segment only repeats the state: the positions of blobs are taken
    /// from it, since earlier segments may be forgotten.
    pub(in crate::db) fn repeated(&mut self, frame: &Frame<'_>, shown: &str) -> Result<()> {
        match &mut self.stop {
            Some(stop) if stop.is_reached(frame) => return Ok(()),
            stop => stop.iter_mut().for_each(|stop| stop.pass(frame)),
        }
        let place = Place::new(self.segment, frame.payload_at());
        let Repeated { schema, pieces } = &mut self.state;
        if frame.header.has_events() {
            event::decode(frame.payload, place.0, schema, &mut |_, event| {
                if let Event::Blob { blob, offset, bytes, position } = *event {
                    let len = u32::try_from(bytes.len());
                    let len = len.map_err(|_| Error::corrupt("a piece of a blob is too long"))?;
                    pieces.push((blob, BlobPiece { offset, position, len }));
                }
                Ok(())
            })
            .map_err(|error| explain(error, shown, frame))?;
        }
        match frame.header.is_commit() {
            true => self.store.move_blobs(std::mem::take(&mut self.state).pieces.into_iter()),
            false => Ok(()),
        }
    }

    /// Returns the store as of the last accepted commit.
    pub(in crate::db) fn finish(mut self) -> (Store, Arc<View>) {
        if step!(UncommittedApplied, self.open, else false) {
            self.store.rollback();
            self.room.iter().for_each(|room| room.roll_back());
        }
        self.store.end_delay();
        let view = self.store.commit();
        (self.store, view)
    }
}
