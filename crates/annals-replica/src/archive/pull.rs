//! An archive as a connection: whatever pulls from a server pulls from it, too.

use std::collections::VecDeque;
use std::ops::Range as Places;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use annals::storage::{Clock as _, SystemClock};
use annals::{Cursor, Error, ErrorKind, Result, Txid};
use annals_storage::Spool;
use bytes::Bytes;

use super::bucket::Bucket;
use super::image::Index;
use super::manifest::{Manifest, Range, damaged};
use crate::frames::frames_up_to;
use crate::{Connection, Description, Granted, Pulled, Pushed};

/// How many ranges are fetched ahead.
const AHEAD: usize = 4;
/// Ranges are fetched ahead up to so many bytes.
const MOST_AHEAD: u64 = 128 << 20;
/// How often a waiting pull looks for news.
const INTERVAL: Duration = Duration::from_millis(500);

/// The archive of a journal, to be read.
#[derive(Debug)]
pub struct Archive {
    bucket: Arc<Bucket>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    manifest: Option<Manifest>,
    /// Ranges that are fetched ahead: those that follow the one which was passed on last.
    ahead: VecDeque<Ahead>,
    /// Which chunks an image has.
    index: Option<(String, Arc<Index>)>,
}

impl Archive {
    /// Opens the archive in a bucket.
    #[must_use]
    pub fn new(bucket: Bucket) -> Self {
        Self { bucket: Arc::new(bucket), state: Mutex::default() }
    }

    /// Returns the bucket.
    #[must_use]
    pub fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    /// Returns the manifest that was read last.
    pub(super) fn known(&self) -> Option<Manifest> {
        self.state().manifest.clone()
    }

    /// Reads a part of an image; `None` if it isn't there any more.
    pub(super) fn read_image(&self, name: &str, bytes: &Places<u64>) -> Result<Option<Vec<u8>>> {
        let known = self.state().index.clone().filter(|(of, _)| of == name);
        let index = match known {
            Some((_, index)) => index,
            None => {
                let Some(index) = Index::get(&self.bucket, name)? else { return Ok(None) };
                let index = Arc::new(index);
                self.state().index = Some((name.to_owned(), Arc::clone(&index)));
                index
            }
        };
        index.read(&self.bucket, bytes)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the newest manifest.
    ///
    /// # Errors
    /// `NotFound`: there is no archive; those of the bucket.
    pub fn manifest(&self) -> Result<Manifest> {
        let known = self.state().manifest.as_ref().map_or(0, |manifest| manifest.number);
        let newest = Manifest::newest(&self.bucket, known)?.ok_or_else(|| {
            let message = format!("{}: there is no archive here", self.bucket.name());
            Error::new(ErrorKind::NotFound, message)
        })?;
        self.state().manifest = Some(newest.clone());
        Ok(newest)
    }

    /// Returns the range that has what follows a cursor, with its bytes.
    fn range_after(&self, after: Option<Cursor>, wait: Duration) -> Result<Option<(Range, Bytes)>> {
        let begun = SystemClock.elapsed();
        let mut is_new = false;
        loop {
            let known = self.state().manifest.clone();
            let manifest = match known {
                Some(manifest) if !is_new => manifest,
                _ => self.manifest()?,
            };
            if let Some(place) = place_after(&manifest, after) {
                if let Some(found) = self.fetch(manifest.ranges.get(place..).unwrap_or_default())? {
                    return Ok(Some(found));
                }
                if is_new {
                    let range = manifest.ranges.get(place);
                    return Err(
                        range.map_or_else(|| self.missing(after), |it| damaged(&self.bucket, it))
                    );
                }
                // It may have been joined with its neighbours since.
            } else if is_new {
                if manifest.end() != after && after.is_some() {
                    return Err(self.missing(after));
                }
                if SystemClock.elapsed().saturating_sub(begun) >= wait {
                    return Ok(None);
                }
                SystemClock.pause(INTERVAL.min(wait));
            }
            is_new = true;
        }
    }

    /// Returns the bytes of the first of some ranges, and begins to fetch the next ones; `None` if it isn't there.
    fn fetch(&self, ranges: &[Range]) -> Result<Option<(Range, Bytes)>> {
        let Some(first) = ranges.first() else { return Ok(None) };
        let mut state = self.state();
        let place = state.ahead.iter().position(|ahead| ahead.range == *first);
        let fetched = place.and_then(|place| state.ahead.drain(..=place).next_back());
        let mut bytes = 0;
        let fits = |range: &&Range| {
            bytes += range.bytes;
            bytes <= MOST_AHEAD || bytes == range.bytes
        };
        for range in ranges.iter().skip(1).take(AHEAD).take_while(fits) {
            if !state.ahead.iter().any(|ahead| ahead.range == *range) {
                state.ahead.push_back(Ahead::begin(&self.bucket, range));
            }
        }
        drop(state);
        let bytes = match fetched {
            Some(ahead) => ahead.end()?,
            None => get(&self.bucket, first)?,
        };
        Ok(bytes.map(|bytes| (first.clone(), bytes)))
    }

    fn read_only(&self) -> Error {
        let message = format!(
            "{}: an archive takes no transactions: write the database, which `annals archive` uploads",
            self.bucket.name()
        );
        Error::new(ErrorKind::Unsupported, message)
    }

    fn missing(&self, after: Option<Cursor>) -> Error {
        let after =
            after.map(|after| format!(" after transaction {}", after.txid)).unwrap_or_default();
        let message = format!(
            "{}: the histories differ: the archive has nothing that continues{after}, or only an older part",
            self.bucket.name()
        );
        Error::new(ErrorKind::Diverged, message)
    }
}

/// A range that a thread fetches and verifies.
#[derive(Debug)]
struct Ahead {
    range: Range,
    thread: JoinHandle<Result<Option<Bytes>>>,
}

impl Ahead {
    fn begin(bucket: &Arc<Bucket>, range: &Range) -> Self {
        let (bucket, wanted) = (Arc::clone(bucket), range.clone());
        Self { range: range.clone(), thread: spawn(move || get(&bucket, &wanted)) }
    }

    fn end(self) -> Result<Option<Bytes>> {
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Fetches a range; `None` if it isn't there.
///
/// # Errors
/// `Corrupt`: it isn't what was uploaded; those of the bucket.
fn get(bucket: &Bucket, range: &Range) -> Result<Option<Bytes>> {
    match bucket.get_large(&range.name, range.bytes)? {
        Some(bytes) if !range.is(&bytes) => Err(damaged(bucket, range)),
        got => Ok(got),
    }
}

/// Returns the chain after a transaction; `None` if the archive hasn't got it.
pub(super) fn chain_of(bucket: &Bucket, manifest: &Manifest, txid: Txid) -> Result<Option<u64>> {
    let known = manifest.ranges.iter().find(|range| range.next.0.txid == txid);
    if let Some(range) = known {
        return Ok(Some(range.next.0.chain));
    }
    let around = manifest.ranges.iter().find(|range| {
        range.after.map_or(Txid(0), |it| it.0.txid) < txid && txid < range.next.0.txid
    });
    let Some(range) = around else { return Ok(None) };
    let bytes = get(bucket, range)?.ok_or_else(|| damaged(bucket, range))?;
    Ok(frames_up_to(&&*bytes, range.after.is_none(), txid)?.map(|part| part.chain))
}

/// Returns which range of a manifest has what follows a cursor.
fn place_after(manifest: &Manifest, after: Option<Cursor>) -> Option<usize> {
    let Some(after) = after else { return (!manifest.ranges.is_empty()).then_some(0) };
    let exact = manifest.ranges.iter().position(|range| range.after.map(|it| it.0) == Some(after));
    exact.or_else(|| {
        manifest.ranges.iter().position(|range| {
            let begin = range.after.map_or(Txid(0), |it| it.0.txid);
            !range.is_seal && begin < after.txid && after.txid < range.next.0.txid
        })
    })
}

impl Connection for Archive {
    fn name(&self) -> String {
        self.bucket.name().to_owned()
    }

    fn describe(&self) -> Result<Description> {
        let manifest = self.manifest()?;
        let end = manifest.end().ok_or_else(|| self.missing(None))?;
        let first = manifest.ranges.first().and_then(Range::start);
        let first = Txid(first.map_or(1, |start| start.first_own_txid));
        Ok(Description { id: manifest.journal, end, first })
    }

    fn pull(&self, after: Option<Cursor>, wait: Duration, into: &mut Spool) -> Result<Pulled> {
        let Some((range, bytes)) = self.range_after(after, wait)? else {
            return Ok(Pulled {
                next: after.unwrap_or(Cursor { txid: Txid(0), chain: 0 }),
                is_seal: false,
            });
        };
        let io = |error| Error::io("can't spool what was fetched", error);
        let begin = range.after.map(|it| it.0);
        if begin == after {
            into.append(&bytes).map_err(io)?;
        } else if let Some(after) = after {
            // The cursor is in the middle of the range.
            let part = frames_up_to(&&*bytes, begin.is_none(), after.txid)?;
            let part = part.filter(|part| part.chain == after.chain);
            let part = part.ok_or_else(|| self.missing(Some(after)))?;
            let from = usize::try_from(part.bytes).unwrap_or(usize::MAX);
            into.append(bytes.get(from..).unwrap_or_default()).map_err(io)?;
        }
        Ok(Pulled { next: range.next.0, is_seal: range.is_seal })
    }

    fn push(&self, _from: Cursor, _frames: &Spool, _lease: Option<u64>) -> Result<Pushed> {
        Err(self.read_only())
    }

    fn lock(&self, _lasting: Duration, _ticket: Option<u64>) -> Result<Granted> {
        Err(self.read_only())
    }

    fn unlock(&self, _ticket: u64) -> Result<()> {
        Err(self.read_only())
    }

    fn chains(&self, txids: &[Txid]) -> Result<Vec<Option<u64>>> {
        let manifest = self.manifest()?;
        let chain = |txid: &Txid| chain_of(&self.bucket, &manifest, *txid);
        txids.iter().map(chain).collect()
    }
}
