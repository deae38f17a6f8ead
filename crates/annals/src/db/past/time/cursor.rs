//! Reading a journal on from the end of a commit, transaction by transaction, segment after segment.
//!
//! Nothing is kept open in between: a slow or stopped reader doesn't prevent forgetting, and gets an error when it
//! continues.

use std::sync::Arc;

use annals_schema::{Schema, Txid};

use crate::db::follow::scan;
use crate::db::follow::scan::Sink;
use crate::db::follow::segments::{Past, Since};
use crate::db::past::at::Present;
use crate::db::present::segment::JournalFile;
use crate::db::present::snapshot::Published;
use crate::db::progress::{check_wanted, watch_of_reader};
use crate::journal::format::{FRAMES_AT, Header};
use crate::journal::segments::{Kept, Place, Seal, journal_of};
use crate::journal::{Frame, FrameReader, Head, Point};
use crate::storage::{self, Storage, SystemClock};
use crate::store::{Store, View};
use crate::{Error, ErrorKind, Result};

/// The end up to which the journal may be read: the current segment, and the end of its last valid transaction.
pub(in crate::db) struct End<'f> {
    pub(in crate::db) file: &'f Arc<JournalFile>,
    pub(in crate::db) position: u64,
}

/// How far a segment is read.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// The position where what counts ends.
    end: u64,
    /// The last transaction.
    last: u64,
    /// So many bytes at most; a transaction is read whole.
    most: u64,
}

/// A position in the journal, after a commit.
#[derive(Clone, Debug)]
pub(in crate::db) struct JournalCursor {
    since: Since,
    /// The schema there.
    pub(in crate::db) schema: Schema,
    /// True if the state there is known. Then the state at the beginning of a segment only repeats it.
    knows_state: bool,
}

/// Why reading a segment ended.
enum Stop {
    /// There is nothing more, or nothing more was requested.
    Reached,
    /// So much was read.
    Enough,
    /// The journal continues in another segment.
    Sealed(Box<Seal>),
}

impl JournalCursor {
    /// Begins after the commit whose state this is.
    pub(in crate::db) fn behind(view: &View, since: Since) -> Self {
        Self { since, schema: Schema::clone(view.schema()), knows_state: true }
    }

    /// Begins at a place, with the schema there.
    pub(in crate::db) const fn at(since: Since, schema: Schema) -> Self {
        Self { since, schema, knows_state: true }
    }

    /// Begins before the whole kept history.
    pub(in crate::db) fn first(file: &JournalFile) -> Result<Self> {
        let first = first_head(file)?;
        let since = Since { segment: first.header.segment, point: first.start() };
        Ok(Self { since, schema: Schema::default(), knows_state: false })
    }

    /// Returns the number of the last transaction that was read.
    pub(in crate::db) const fn txid(&self) -> u64 {
        self.since.point.txid.0
    }

    /// Returns where that ends, in its segment.
    pub(in crate::db) const fn since(&self) -> Since {
        self.since
    }

    /// Reads the commits after this into a sink, up to the transaction `last`, and stops after `most` bytes; returns
    /// true if there is more. It can't be used after an error.
    pub(in crate::db) fn read(
        &mut self,
        end: &End<'_>,
        last: u64,
        most: u64,
        sink: &mut impl Sink,
    ) -> Result<bool> {
        loop {
            let stop = if self.since.segment == end.file.segment {
                self.keep_up(end)?;
                let bounds = Bounds { end: end.position, last, most };
                let hash = end.file.segment_hash()?;
                self.read_segment(&*end.file.storage, hash, &end.file.name, bounds, sink)?
            } else {
                let Some(kept) = self.kept(end.file, self.since.segment)? else {
                    self.skip_forgotten(end.file)?;
                    continue;
                };
                let bounds = Bounds { end: kept.len, last, most };
                self.read_segment(&*kept.storage, kept.head.hash, &kept.shown, bounds, sink)?
            };
            match stop {
                Stop::Reached => return Ok(false),
                Stop::Enough => return Ok(true),
                Stop::Sealed(seal) => self.enter(*seal, end.file)?,
            }
        }
    }

    fn read_segment(
        &mut self,
        storage: &dyn Storage,
        segment: u64,
        shown: &str,
        bounds: Bounds,
        sink: &mut impl Sink,
    ) -> Result<Stop> {
        let Bounds { end, last, most } = bounds;
        let begun = self.since.point.position;
        let mut reader = FrameReader::new(storage, segment, self.since.point, end);
        let (mut repeats, mut is_open, mut is_begun) = (false, false, false);
        loop {
            let Point { position, txid, .. } = self.since.point;
            match () {
                () if is_open => {}
                () if txid >= Txid(last) || position >= end => return Ok(Stop::Reached),
                () if position - begun >= most => return Ok(Stop::Enough),
                () => repeats = position == FRAMES_AT && self.repeats(storage, shown)?,
            }
            check_wanted()?;
            let io = |error| Error::io(format!("{shown}: can't read the journal"), error);
            let at = reader.position();
            let Some(frame) = reader.next().map_err(io)? else { return Err(lost(shown, at)) };
            frame.header.check_known(shown)?;
            if frame.header.is_seal() {
                return Seal::of(&frame)
                    .map(|seal| Stop::Sealed(Box::new(seal)))
                    .ok_or_else(|| lost(shown, at));
            }
            if !repeats {
                if !is_begun && frame.header.has_events() {
                    sink.begin(Txid(frame.header.txid))?;
                    is_begun = true;
                }
                self.take(&frame, shown, sink)?;
            }
            is_open = !frame.header.is_commit();
            if !is_open {
                is_begun = false;
                self.knows_state = true;
                let Frame { header, end, chain, .. } = frame;
                self.since.point = Point { position: end, txid: Txid(header.txid), chain };
            }
        }
    }

    fn take(&mut self, frame: &Frame<'_>, shown: &str, sink: &mut impl Sink) -> Result<()> {
        let place = Place::new(self.since.segment, frame.payload_at());
        scan::take_frame(frame, place.0, &mut self.schema, shown, sink)
    }

    /// Returns true if the first transaction of a segment only repeats the state.
    fn repeats(&self, storage: &dyn Storage, shown: &str) -> Result<bool> {
        Ok(self.knows_state && Head::read(storage, shown)?.header.begins_with_state())
    }

    /// Opens an older segment; `None` if it was forgotten.
    fn kept(&self, file: &JournalFile, segment: u64) -> Result<Option<Kept>> {
        let own = Head::read(&*file.storage, &file.name)?.header;
        let journal = journal_of(&file.journal, file.segment);
        // The caller wants the segment before that one.
        let successor = Header { segment: segment + 1, ..own };
        Kept::before(&*file.directory, journal, &successor)
    }

    /// Continues in the oldest segment that exists, if that begins with the known state: then the forgotten history
    /// had been read.
    fn skip_forgotten(&mut self, file: &JournalFile) -> Result<()> {
        let first = first_head(file)?;
        let known = first.header.first_own_txid() - 1;
        let is_known = self.knows_state && first.header.begins_with_state() && known == self.txid();
        if !is_known || first.header.segment <= self.since.segment {
            return Err(self.forgotten(file));
        }
        self.since = Since { segment: first.header.segment, point: first.start() };
        Ok(())
    }

    /// Returns the error that the next transaction is forgotten.
    fn forgotten(&self, file: &JournalFile) -> Error {
        forgotten(file, &format!("the history of transaction {}", self.txid() + 1))
    }

    /// Continues in the segment that a seal names.
    fn enter(&mut self, seal: Seal, file: &JournalFile) -> Result<()> {
        let head = match seal.next.segment == file.segment {
            true => Head::read(&*file.storage, &file.name)?,
            false => {
                let kept = self.kept(file, seal.next.segment)?;
                kept.ok_or_else(|| self.forgotten(file))?.head
            }
        };
        if !seal.is_followed_by(&head.header) {
            return Err(Error::corrupt(format!(
                "{}: segment {} doesn't follow the one before: the files belong to different \
                 histories; put the right ones beside each other",
                file.name, seal.next.segment
            )));
        }
        self.since = Since { segment: seal.next.segment, point: head.start() };
        Ok(())
    }

    /// Checks whether the current segment was rebuilt, which is possible as long as nothing was committed there.
    fn keep_up(&mut self, end: &End<'_>) -> Result<()> {
        let file = end.file;
        if self.since.point.position != FRAMES_AT {
            return Ok(());
        }
        let head = Head::read(&*file.storage, &file.name)?;
        if head.start().txid == self.since.point.txid {
            self.since.point = head.start();
        }
        Ok(())
    }
}

/// Returns the state as of the end of an existing transaction, and its position in the journal.
pub(in crate::db) fn state_at(end: &End<'_>, txid: u64) -> Result<(Arc<View>, Since)> {
    let file = end.file;
    if txid < earliest(file)? {
        return Err(forgotten(file, &format!("the state after transaction {txid}")));
    }
    // Only the end of the history is asked of it, not the state there.
    let (view, file) = (Arc::clone(Store::new().published()), Arc::clone(file));
    let point = Point { position: end.position, txid: Txid(txid), chain: 0 };
    let published = Arc::new(Published { view, point, file });
    Present {
        published,
        clock: &SystemClock,
        budget: storage::memory_for_pages(),
        watch: watch_of_reader(),
    }
    .then(txid)
}

/// Returns the number of the transaction that the state is still known after, first of all.
fn earliest(file: &JournalFile) -> Result<u64> {
    Ok(first_head(file)?.header.first_own_txid() - 1)
}

/// Returns the head of the first segment of the kept history.
fn first_head(file: &JournalFile) -> Result<Head> {
    let head = Head::read(&*file.storage, &file.name)?;
    let past = Past::whole(&*file.directory, &file.journal, &head.header)?;
    Ok(past.segments().first().map_or(head, |kept| kept.head.clone()))
}

/// Returns the error that something is forgotten, with the beginning of the rest.
fn forgotten(file: &JournalFile, what: &str) -> Error {
    match earliest(file) {
        Ok(earliest) => Error::new(
            ErrorKind::NotFound,
            format!(
                "{}: {what} was forgotten: the oldest state that is known is the one after transaction \
                 {earliest}; begin again with that or a newer one, and read on from transaction {}",
                file.name,
                earliest + 1
            ),
        ),
        Err(error) => error,
    }
}

fn lost(shown: &str, at: u64) -> Error {
    Error::corrupt(format!(
        "{shown}: what was committed at position {at} doesn't verify: try again, and check the disk"
    ))
}
