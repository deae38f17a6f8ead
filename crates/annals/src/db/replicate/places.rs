//! Finding the place of a cursor in the files of a journal.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use annals_schema::Txid;

use crate::db::follow::segments::Past;
use crate::db::present::snapshot::Published;
use crate::journal::segments::Seal;
use crate::journal::{Cursor, Erasure, FrameReader, Head, Point, lock};
use crate::storage::Storage;
use crate::{Error, Result};

/// A known point at least so many bytes after the one before is remembered.
const APART: u64 = 4 << 20;
/// So many points are remembered; then every other is dropped.
const MOST: usize = 1 << 12;
/// So many of the newest points are remembered, however near they are: most questions are about the last transactions.
const NEWEST: usize = 1 << 10;

/// One file of the journal, to be read up to an end.
#[derive(Clone, Debug)]
pub(super) struct JournalPart {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) shown: String,
    pub(super) head: Head,
    /// Where its last commit ends, if it is the newest; else its length, with the seal.
    pub(super) end: u64,
    pub(super) is_newest: bool,
}

impl JournalPart {
    /// Returns a reader of its frames from a point on.
    pub(super) fn reader(&self, from: Point) -> FrameReader<'_> {
        FrameReader::new(&*self.storage, self.head.hash, from, self.end)
    }

    /// Returns the seal at a point, if that is next.
    pub(super) fn seal_at(&self, at: Point) -> Result<Option<Seal>> {
        let mut reader = self.reader(at);
        let frame = reader.next().map_err(|error| self.io(error))?;
        Ok(frame.as_ref().and_then(Seal::of))
    }

    pub(super) fn number(&self) -> u64 {
        self.head.header.segment
    }

    /// Returns the error that it can't be read at a place.
    pub(super) fn damaged(&self, at: u64) -> Error {
        Error::corrupt(format!(
            "{}: what was committed at position {at} doesn't verify: `annals check` says what to do",
            self.shown
        ))
    }

    pub(super) fn io(&self, error: std::io::Error) -> Error {
        Error::io(format!("{}: can't read the journal", self.shown), error)
    }
}

/// Returns the files of the kept history, the oldest first: only the newest, if `since` is in it.
pub(super) fn parts(published: &Published, since: Option<Cursor>) -> Result<Vec<JournalPart>> {
    let file = &published.file;
    let head = file.head()?.clone();
    let newest = JournalPart {
        storage: Arc::clone(&file.storage),
        shown: file.name.clone(),
        head,
        end: published.point.position,
        is_newest: true,
    };
    let begins_after = newest.head.start().txid;
    if since.is_some_and(|since| since.txid > begins_after) {
        // The state at its beginning has the number of a transaction that is also in the segment before.
        let is_state = newest.head.header.begins_with_state();
        if !is_state || since.is_some_and(|since| since.txid > begins_after + 1) {
            return Ok(vec![newest]);
        }
    }
    let past = Past::whole(&*file.directory, &file.journal, &newest.head.header)?;
    let kept = past.segments().iter().map(|kept| JournalPart {
        storage: Arc::clone(&kept.storage),
        shown: kept.shown.clone(),
        head: kept.head.clone(),
        end: kept.len,
        is_newest: false,
    });
    Ok(kept.chain([newest]).collect())
}

/// Points that were found before, so that finding one nearby reads little.
#[derive(Debug, Default)]
pub struct Known {
    points: Mutex<Points>,
    /// The marks of erasures, and the hash of the newest segment's header: an erasure begins a segment.
    marks: Mutex<Option<(u64, Arc<Vec<Erasure>>)>>,
}

/// The ends of transactions, by their segments.
#[derive(Debug, Default)]
struct Points {
    /// Some of all, [`APART`].
    sparse: BTreeMap<(u64, Txid), Point>,
    newest: BTreeMap<(u64, Txid), Point>,
}

impl Points {
    fn note(&mut self, key: (u64, Txid), point: Point) {
        if self.newest.len() < NEWEST || self.newest.first_key_value().is_none_or(|it| *it.0 < key)
        {
            self.newest.insert(key, point);
            if self.newest.len() > NEWEST {
                self.newest.pop_first();
            }
        }
        let before = self.sparse.range(..key).next_back();
        let is_near = before.is_some_and(|(&(of, _), before)| {
            of == key.0 && point.position.saturating_sub(before.position) < APART
        });
        if is_near {
            return;
        }
        self.sparse.insert(key, point);
        if self.sparse.len() > MOST {
            let mut is_kept = false;
            self.sparse.retain(|_, _| {
                is_kept = !is_kept;
                is_kept
            });
        }
    }
}

impl Known {
    /// Remembers the end of a transaction in a segment.
    pub(super) fn note(&self, segment: u64, point: Point) {
        lock(&self.points).note((segment, point.txid), point);
    }

    /// Returns the last known point of a segment that isn't after a transaction.
    fn before(&self, part: &JournalPart, txid: Txid) -> Point {
        let points = lock(&self.points);
        let range = (part.number(), Txid(0))..=(part.number(), txid);
        let last = |of: &BTreeMap<_, Point>| of.range(range.clone()).next_back().map(|it| *it.1);
        let known = [last(&points.newest), last(&points.sparse)];
        let known = known.into_iter().flatten().max_by_key(|point| point.txid);
        known.unwrap_or_else(|| part.head.start())
    }

    /// Returns the marks of erasures of a history, which are read once.
    pub(super) fn marks(
        &self,
        newest: u64,
        read: impl FnOnce() -> Result<Vec<Erasure>>,
    ) -> Result<Arc<Vec<Erasure>>> {
        let mut marks = lock(&self.marks);
        if let Some((of, marks)) = &*marks
            && *of == newest
        {
            return Ok(Arc::clone(marks));
        }
        let found = Arc::new(read()?);
        *marks = Some((newest, Arc::clone(&found)));
        Ok(found)
    }

    /// Forgets all: files were replaced.
    pub(super) fn forget(&self) {
        *lock(&self.points) = Points::default();
    }

    /// Returns which of some files has a cursor, and where; `None` if none has. Of two places that have it, at the
    /// end of a file and at the beginning of the next, it returns the latter.
    ///
    /// Cost: reads frames from the last known point before it.
    pub(super) fn find(
        &self,
        parts: &[JournalPart],
        cursor: Cursor,
    ) -> Result<Option<(usize, Point)>> {
        for (place, part) in parts.iter().enumerate().rev() {
            let start = part.head.start();
            if Cursor::from(start) == cursor {
                return Ok(Some((place, start)));
            }
            if start.txid >= cursor.txid {
                continue;
            }
            if let Some(point) = self.find_in(part, cursor)? {
                return Ok(Some((place, point)));
            }
        }
        Ok(None)
    }

    /// Returns the chain after a transaction, the one before any end of a segment.
    pub(super) fn chain(&self, parts: &[JournalPart], txid: Txid) -> Result<Option<u64>> {
        let part = parts.iter().rev().find(|part| part.head.header.first_own_txid() <= txid.0);
        let Some(part) = part else { return Ok(None) };
        Ok(self.end_of(part, txid)?.map(|point| point.chain))
    }

    fn find_in(&self, part: &JournalPart, cursor: Cursor) -> Result<Option<Point>> {
        let point = self.end_of(part, cursor.txid)?;
        Ok(point.filter(|point| point.chain == cursor.chain))
    }

    /// Returns the end of a transaction in a file, if it is there.
    pub(super) fn end_of(&self, part: &JournalPart, txid: Txid) -> Result<Option<Point>> {
        let from = self.before(part, txid);
        if from.txid == txid && from.position > part.head.start().position {
            return Ok(Some(from));
        }
        let mut reader = part.reader(from);
        while let Some(frame) = reader.next().map_err(|error| part.io(error))? {
            let is_commit = frame.header.is_commit();
            if frame.header.is_seal() {
                return Ok(None);
            }
            if !is_commit {
                continue;
            }
            let point = reader.point();
            self.note(part.number(), point);
            if point.txid == txid {
                return Ok(Some(point));
            }
        }
        match part.is_newest && reader.position() == part.end {
            true => Ok(None),
            false => Err(part.damaged(reader.position())),
        }
    }
}
