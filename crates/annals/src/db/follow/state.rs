//! A state that follows its journal: in its file, and into the segment in which the journal continued. A replay applies
//! the frames.

use std::sync::Arc;

use annals_schema::{Blob, RowId, Schema, TableNumber, Txid, ValueRef};
use annals_storage::step;

use crate::db::follow::scan::explain;
use crate::db::follow::segments::{Past, Since, Successor};
use crate::db::follow::source;
use crate::db::follow::source::{FrameFacts, FrameSource, Visitor};
use crate::db::follow::unapplied::{
    Before, Counted, MakeRoom, Stop, Unapplied, is_about_events, replay_before,
};
use crate::db::present::segment::JournalFile;
use crate::db::present::snapshot::{Published, Snapshot};
use crate::db::progress::Watched;
use crate::event::{self, Event};
use crate::journal::format::Header;
use crate::journal::segments::Place;
use crate::journal::{Frame, Head, Point};
use crate::storage::Storage;
use crate::store::{BlobPiece, Store, View};
use crate::{Error, ErrorKind, Result};

/// What was made of a journal up to a point.
#[derive(Debug)]
pub(in crate::db) struct State {
    pub(in crate::db) store: Store,
    /// The end of the last commit in it.
    pub(in crate::db) point: Point,
    /// The segment that has the point, with those before it.
    pub(in crate::db) file: Arc<JournalFile>,
}

impl State {
    /// Continues a replay up to the end of a commit in a file, at position `to`: over the frames after `past`, or over
    /// all that are needed to know the state.
    pub(in crate::db) fn at(
        file: &Arc<JournalFile>,
        past: Option<&Past>,
        mut replay: Replay,
        to: u64,
    ) -> Result<Self> {
        let JournalFile { storage, name: shown, directory, journal, .. } = &**file;
        let head = Head::read(&**storage, shown)?;
        let storage = &Watched::new(&**storage, None);
        let mut advance = |past: &Past| {
            replay.advance(&FrameSource { past: Some(past), storage, shown }, &head, to)
        };
        let point = match past {
            Some(past) => advance(past)?,
            None => advance(&Past::needed(&**directory, journal, &head.header)?)?,
        };
        Ok(Self { store: replay.finish(), point, file: Arc::clone(file) })
    }

    /// Fails unless it ends with the commit whose end is given.
    pub(in crate::db) fn ending_with(self, end: Point) -> Result<Self> {
        if self.point == end {
            return Ok(self);
        }
        Err(Error::corrupt(
            "replaying the journal from the image leads to another commit than expected, so the image is of another \
             history",
        ))
    }

    /// Returns what readers see of it.
    pub(in crate::db) fn published(&self) -> Published {
        let view = Arc::clone(self.store.published());
        Published { view, point: self.point, file: Arc::clone(&self.file) }
    }

    /// Replays the file up to the end of a commit at position `to`, or to the last commit before one that doesn't
    /// apply, which is returned. If it fails, the state is unchanged.
    pub(in crate::db) fn advance(&mut self, to: u64) -> Result<Option<Unapplied>> {
        let Self { store, point, file } = self;
        let (from, shown, head) = (*point, &*file.name, file.head()?);
        let past = Past::known(&head.header, Since { segment: file.segment, point: from });
        let storage = &Watched::new(&*file.storage, None);
        let source = FrameSource { past: Some(&past), storage, shown };
        let (end, stopped) = replay_before(|until| {
            let mut replay = Replay::resume(std::mem::take(store), file.segment).until(until);
            let end = source.read(head, to, None, &mut replay);
            let replayed = end.and_then(|end| {
                if end.position != to {
                    return Err(changed(shown, end.position));
                }
                if replay.stop().is_none() {
                    return Ok((end, None));
                }
                let head = &Head::read(&*file.storage, shown)?;
                let hard = head.hard_point().position;
                let counted = Counted { head, from: Some(from), shown, end, hard };
                Ok((end, replay.before(&counted)?))
            });
            *store = replay.end(replayed.is_ok());
            replayed
        })?;
        *point = stopped.as_ref().map_or(end, |stopped| stopped.point);
        Ok(stopped.map(|stopped| stopped.unapplied))
    }

    /// Continues in a later segment, up to the end of a commit at position `to`. If it fails, the state is unchanged.
    pub(in crate::db) fn enter(&mut self, next: &Successor, to: u64) -> Result<()> {
        let (old, Successor { storage, head }) = (Arc::clone(&self.file), next);
        let (directory, journal, header) = (&*old.directory, &old.journal, &head.header);
        let since = Since { segment: old.segment, point: self.point };
        let is_rebuilt = since.segment == header.segment;
        let past = match is_rebuilt {
            true => {
                let segment = header.segment.saturating_sub(1);
                Some(Past::known(header, Since { segment, ..since }))
            }
            false => Past::since(directory, journal, header, since)?,
        };
        let watched = &Watched::new(&**storage, None);
        let advance = |past: &Past, replay: &mut Replay| {
            let source = FrameSource { past: Some(past), storage: watched, shown: &old.name };
            replay.advance(&source, head, to)
        };
        let advanced = past.map(|past| {
            let mut resumed = Replay::resume(std::mem::take(&mut self.store), since.segment);
            let end = advance(&past, &mut resumed);
            self.store = resumed.end(end.is_ok());
            end
        });
        self.point = match advanced {
            Some(Ok(end)) => end,
            Some(Err(error)) if is_rebuilt || error.kind() != ErrorKind::Corrupt => {
                return Err(unapplied(error, since.point.txid.0));
            }
            // Segments in between were forgotten; or the commit was taken back, in a recovery, before the old
            // segment was sealed.
            failed => {
                let (past, mut whole) =
                    (Past::needed(directory, journal, header), Replay::default());
                let end = past.and_then(|past| advance(&past, &mut whole));
                let end = end.map_err(|error| failed.and_then(Result::err).unwrap_or(error))?;
                self.store = whole.finish();
                end
            }
        };
        let next = old.next(Arc::clone(storage), header.segment, since.point.position);
        self.file = Arc::new(next.knowing(head.clone()));
        Ok(())
    }
}

fn changed(shown: &str, at: u64) -> Error {
    Error::corrupt(format!(
        "{shown}: what verified at position {at} a moment ago doesn't any more: try again, and check the \
         disk"
    ))
}

/// Returns the view of a state, continued to a later end of the journal in a file: its own, or one that follows.
///
/// # Errors
/// `Corrupt`, `Unapplied`, `Io`.
pub fn advance_to(
    snapshot: &Snapshot,
    storage: &Arc<dyn Storage>,
    end: Point,
) -> Result<Arc<View>> {
    let Published { view, point, file } = &*snapshot.published;
    if point.txid == end.txid {
        return Ok(Arc::clone(view));
    }
    let newest =
        Successor { storage: Arc::clone(storage), head: Head::read(&**storage, &file.name)? };
    let (store, file) = (Store::resume(view.share()), Arc::clone(file));
    let mut state = State { store, point: *point, file };
    let unapplied = match state.file.segment == newest.head.header.segment {
        true => state.advance(end.position)?,
        false => state.enter(&newest, end.position).map(|()| None)?,
    };
    let refused = unapplied.map(|unapplied| unapplied.error(&state.file.name));
    refused.map_or(Ok(Arc::clone(state.store.published())), Err)
}

/// Adds advice for a commit that doesn't apply in a segment in which the journal continued.
fn unapplied(error: Error, txid: u64) -> Error {
    if error.transaction().is_none() {
        return error;
    }
    let advice = "open the database again to see which event, and what to do";
    let message = format!("{error}; what is shown stays as of transaction {txid}: {advice}");
    Error::new(ErrorKind::Unapplied, message)
}

/// Builds the store from verified frames.
///
/// A transaction of one frame that is accepted as soon as it is seen needs no undoing. The store is committed before
/// any other transaction, so that it can be rolled back to there: `open` says that this is done.
#[derive(Debug, Default)]
pub struct Replay {
    store: Store,
    schema: Schema,
    open: bool,
    /// The number of the segment of the next frames.
    segment: u64,
    /// The frames read of a transaction that only repeats the state.
    state: StateBlobs,
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

/// So many bytes of pages are made, when entries of indexes are settled, before room is made for more.
const STEP: usize = 4 << 20;

impl Applying<'_> {
    fn applied(&mut self, events: u64) -> Result<()> {
        self.events += events;
        if self.store.owes_much() { self.settle() } else { self.make_room() }
    }

    fn make_room(&mut self) -> Result<()> {
        match self.room {
            Some(room) => room.make_room(self.store, self.place.0, self.place.1),
            None => Ok(()),
        }
    }

    /// Settles what the insertions owe to indexes.
    fn settle(&mut self) -> Result<()> {
        while self.store.owes() {
            self.store.settle_some(STEP)?;
            self.make_room()?;
        }
        Ok(())
    }
}

impl event::Sink for Applying<'_> {
    /// So many that the fixed cost of a run is small, and so few that the values stay in the first-level cache.
    const RUN: usize = 256;

    #[inline]
    fn event(&mut self, _: &Schema, event: &Event<'_>) -> Result<()> {
        if self.store.owes() && !event.is_insertion() {
            self.settle()?;
        }
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

/// Where the blobs are of the state with which a segment begins, from its frames.
#[derive(Debug, Default)]
pub struct StateBlobs {
    schema: Schema,
    pub(in crate::db) pieces: Vec<(Blob, BlobPiece)>,
}

impl StateBlobs {
    /// Takes the next frame of the state.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported`: it has no events that can be.
    pub fn take(&mut self, frame: &Frame<'_>, segment: u64) -> Result<()> {
        let (place, Self { schema, pieces }) = (Place::new(segment, frame.payload_at()), self);
        event::decode(frame.payload, place.0, schema, &mut |_, event| {
            if let Event::Blob { blob, offset, bytes, position } = *event {
                let len = u32::try_from(bytes.len());
                let len = len.map_err(|_| Error::corrupt("a piece of a blob is too long"))?;
                pieces.push((blob, BlobPiece { offset, position, len }));
            }
            Ok(())
        })
    }
}

impl Replay {
    /// Continues from a store whose changes are all published, in a segment.
    pub(in crate::db) fn resume(store: Store, segment: u64) -> Self {
        let schema = Schema::clone(store.unsettled().schema());
        Self { store, schema, segment, ..Self::default() }
    }

    /// Ends before a transaction, if one is given.
    #[must_use]
    pub fn until(self, txid: Option<u64>) -> Self {
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
    pub fn before(&self, counted: &Counted<'_>) -> Result<Option<Before>> {
        self.stop().map_or(Ok(None), |stop| stop.before(counted))
    }

    /// Returns the transaction that the replay ended before, if that transaction is accepted.
    #[must_use]
    pub fn unapplied(&self, counted: &Counted<'_>) -> Option<Unapplied> {
        self.stop()?.unapplied(counted).ok()?
    }

    /// Allows writing changes larger than memory to the image.
    pub(in crate::db) fn spilling(self, room: Arc<dyn MakeRoom>) -> Self {
        room.begin();
        Self { room: Some(room), ..self }
    }

    /// Applies the frames of a source, up to the end of a commit at position `to`, which verified a moment ago; returns
    /// that.
    pub(in crate::db) fn advance(
        &mut self,
        source: &FrameSource<'_>,
        head: &Head,
        to: u64,
    ) -> Result<Point> {
        let end = source.read_to(head, to, self)?;
        match !head.header.begins_with_state() || end.txid >= Txid(head.header.first_txid) {
            true => Ok(end),
            false => Err(source::changed(source.shown, end.position)),
        }
    }

    /// Returns the store as of the last accepted commit; or, if a frame couldn't be applied, as of the commit before.
    pub(in crate::db) fn end(mut self, is_applied: bool) -> Store {
        if is_applied {
            return self.finish();
        }
        self.store.rollback();
        self.store
    }

    /// Applies the events of one frame, unless it only repeats the state; returns how many those are.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported`: one of them doesn't apply, and the error names the transaction; `Io`.
    pub fn take(&mut self, frame: &Frame<'_>, facts: &FrameFacts<'_>) -> Result<u64> {
        let FrameFacts { end, shown, is_repeated } = *facts;
        if is_repeated {
            return self.repeated(frame, shown).map(|()| 0);
        }
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
        sink.store.allow_owing(usize::MAX);
        event::decode_to(frame.payload, place.0, schema, &mut sink)
            .and_then(|()| sink.settle())
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
            store.commit();
            *open = true;
        }
        stop.take(frame, place, store, schema, room.as_deref())
    }

    /// Takes a frame of the transaction with which a segment only repeats the state: the positions of blobs are taken
    /// from it, since earlier segments may be forgotten.
    fn repeated(&mut self, frame: &Frame<'_>, shown: &str) -> Result<()> {
        match &mut self.stop {
            Some(stop) if stop.is_reached(frame) => return Ok(()),
            stop => stop.iter_mut().for_each(|stop| stop.pass(frame)),
        }
        if frame.header.has_events() {
            let taken = self.state.take(frame, self.segment);
            taken.map_err(|error| explain(error, shown, frame))?;
        }
        match frame.header.is_commit() {
            true => self.store.move_blobs(std::mem::take(&mut self.state).pieces.into_iter()),
            false => Ok(()),
        }
    }

    /// Returns the store as of the last accepted commit.
    #[must_use]
    pub fn finish(mut self) -> Store {
        // A frame that stopped in the middle owes entries.
        if self.store.owes() || step!(UncommittedApplied, self.open, else false) {
            self.store.rollback();
            self.room.iter().for_each(|room| room.roll_back());
        }
        self.store.commit();
        self.store
    }
}

impl Visitor for Replay {
    fn begin(&mut self, header: &Header) {
        self.segment = header.segment;
        self.stop.iter_mut().for_each(Stop::begin);
    }

    fn frame(&mut self, frame: &Frame<'_>, facts: &FrameFacts<'_>) -> Result<()> {
        self.take(frame, facts).map(drop)
    }
}

/// Does what [`explain`] does; also names the transaction if it doesn't apply.
fn explain_event(error: Error, shown: &str, frame: &Frame<'_>) -> Error {
    let is_about_events = is_about_events(&error);
    let error = explain(error, shown, frame);
    if is_about_events { error.of_transaction(frame.header.txid) } else { error }
}
