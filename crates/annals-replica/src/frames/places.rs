//! Finding the place of a cursor in the files of a journal.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use annals::internals::JournalPart;
use annals::journal::Erasure;
use annals::{Cursor, Error, Point, Result, Txid};
use annals_journal::FrameReader;
use annals_storage::sync::lock;

/// A known point at least so many bytes after the one before is remembered.
const APART: u64 = 4 << 20;
/// So many points are remembered; then every other is dropped.
const MOST: usize = 1 << 12;
/// So many of the newest points are remembered, however near they are: most questions are about the last transactions.
const NEWEST: usize = 1 << 10;

/// Returns a reader of the frames of a file from a point on.
pub(super) fn reader(part: &JournalPart, from: Point) -> FrameReader<'_> {
    FrameReader::new(&*part.storage, part.head.hash, from, part.end)
}

/// Returns the number of its segment.
pub(super) const fn number(part: &JournalPart) -> u64 {
    part.head.header.segment
}

/// Returns the error that it doesn't verify at a place.
pub(super) fn damaged(part: &JournalPart, at: u64) -> Error {
    Error::corrupt(format!(
        "{}: what was committed at position {at} doesn't verify: `annals check` says what to do",
        part.shown
    ))
}

/// Returns the error that it can't be read.
pub(super) fn unreadable(part: &JournalPart, error: io::Error) -> Error {
    Error::io(format!("{}: can't read the journal", part.shown), error)
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
        let range = (number(part), Txid(0))..=(number(part), txid);
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
        let mut frames = reader(part, from);
        while let Some(frame) = frames.next().map_err(|error| unreadable(part, error))? {
            let is_commit = frame.header.is_commit();
            if frame.header.is_seal() {
                return Ok(None);
            }
            if !is_commit {
                continue;
            }
            let point = frames.point();
            self.note(number(part), point);
            if point.txid == txid {
                return Ok(Some(point));
            }
        }
        match part.is_newest && frames.position() == part.end {
            true => Ok(None),
            false => Err(damaged(part, frames.position())),
        }
    }
}
