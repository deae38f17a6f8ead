//! Reading ranges over a connection that may break: again after a pause, until a deadline, and counted.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use annals::{Error, ErrorKind, Result};
use annals_storage::sync::lock;
use annals_storage::{Clock as _, SystemClock};

use super::ranges::{Object, Piece, Ranges};
use crate::Patience;

/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// How long no other read is tried after one has failed: what would read elsewhere instead fails too, at once.
const REST: Duration = Duration::from_secs(1);

/// What a lazy replica has fetched so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// How many requests were sent, those for the list of files included.
    pub requests: u64,
    /// How many bytes of files came.
    pub bytes: u64,
}

/// A source of ranges, with patience.
#[derive(Debug)]
pub(super) struct Fetch {
    pub(super) ranges: Arc<dyn Ranges>,
    patience: Patience,
    requests: AtomicU64,
    bytes: AtomicU64,
    /// Until when nothing is tried, and why.
    rest: Mutex<Option<(Duration, String)>>,
}

impl Fetch {
    pub(super) fn new(ranges: Arc<dyn Ranges>, patience: Patience) -> Self {
        let (requests, bytes, rest) = (AtomicU64::new(0), AtomicU64::new(0), Mutex::default());
        Self { ranges, patience, requests, bytes, rest }
    }

    pub(super) fn fetched(&self) -> Fetched {
        Fetched {
            requests: self.requests.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }

    /// Asks until there is an answer, or the deadline is over.
    ///
    /// # Errors
    /// `Unreachable`; others of `ask`, which aren't tried again.
    pub(super) fn ask<T>(&self, ask: impl Fn(&dyn Ranges) -> Result<T>) -> Result<T> {
        let unreachable = |message| Error::new(ErrorKind::Unreachable, message);
        let begun = SystemClock.elapsed();
        if let Some((until, why)) = &*lock(&self.rest)
            && begun < *until
        {
            return Err(unreachable(why.clone()));
        }
        let mut pause = self.patience.pause;
        loop {
            self.requests.fetch_add(1, Ordering::Relaxed);
            let error = match ask(&*self.ranges) {
                Err(error) if error.kind() == ErrorKind::Unreachable => error,
                answer => {
                    *lock(&self.rest) = None;
                    return answer;
                }
            };
            let now = SystemClock.elapsed();
            if now.saturating_sub(begun) + pause >= self.patience.deadline {
                let why = error.to_string();
                *lock(&self.rest) = Some((now + REST, why.clone()));
                return Err(unreachable(why));
            }
            SystemClock.pause(pause);
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }

    /// Reads a range of a file.
    ///
    /// # Errors
    /// `HostUnreachable`; `StaleNetworkFileHandle`: the file was replaced.
    pub(super) fn read(&self, object: &Object, range: Range<u64>) -> io::Result<Vec<u8>> {
        let len = range.end - range.start;
        let piece = self.ask(|ranges| match ranges.read(object, range.clone())? {
            Piece::Bytes(bytes) if bytes.len() as u64 != len => Err(Error::new(
                ErrorKind::Unreachable,
                format!("{}: sent {} bytes of {len}", ranges.place(), bytes.len()),
            )),
            piece => Ok(piece),
        });
        match piece {
            Ok(Piece::Bytes(bytes)) => {
                self.bytes.fetch_add(len, Ordering::Relaxed);
                Ok(bytes)
            }
            Ok(Piece::Replaced) => Err(replaced(&self.ranges.place())),
            Err(error) => Err(io::Error::new(io::ErrorKind::HostUnreachable, error.to_string())),
        }
    }

    /// Reads ranges of a file, all at the same time.
    pub(super) fn read_all(
        &self,
        object: &Object,
        ranges: &[Range<u64>],
    ) -> Vec<io::Result<Vec<u8>>> {
        let read = |range: &Range<u64>| self.read(object, range.clone());
        let Some((first, others)) = ranges.split_first() else { return Vec::new() };
        thread::scope(|scope| {
            let begin = |range| thread::Builder::new().spawn_scoped(scope, move || read(range));
            let others: Vec<_> = others.iter().map(begin).collect();
            let join = |begun: io::Result<thread::ScopedJoinHandle<'_, _>>| {
                begun?.join().unwrap_or_else(|_| Err(io::Error::other("a reader panicked")))
            };
            std::iter::once(read(first)).chain(others.into_iter().map(join)).collect()
        })
    }
}

/// Returns the error that a file was replaced.
pub(super) fn replaced(name: &str) -> io::Error {
    let message = format!("{name} has another state by now: pull, and read that");
    io::Error::new(io::ErrorKind::StaleNetworkFileHandle, message)
}
