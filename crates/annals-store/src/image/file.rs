//! An open image.
//!
//! Invariants
//! 1. Reads are verified: bytes other than those written are an error, never a value.
//! 2. One backfill at a time holds `working`; readers take no lock.
//! 3. Once a write of a root or its flush failed, the image is stopped for this handle: nothing is written
//!    to it any more.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, TryLockError};

use xxhash_rust::xxh3::Xxh3;

use super::batch::{self, Written};
use super::damage::Damage;
use super::format::{OBJECTS_AT, Root, UNIT};
use super::roots::Chosen;
use super::space::Space;
use super::stored::{Source, Stored};
use super::walk::{WalkStep, walk};
use crate::{Error, ErrorKind, Result};
use annals_storage::sync::lock;
use annals_storage::{Access, Directory, Origin, Storage, step};

/// An image file, for as many readers as there are and one backfill.
#[derive(Debug)]
pub struct Image {
    pub(super) directory: Arc<dyn Directory>,
    pub(super) storage: Arc<dyn Storage>,
    pub(super) name: String,
    pub(super) access: Access,
    /// The hash of the header, which roots repeat.
    pub(super) header: u64,
    pub(super) held: Mutex<HeldRoots>,
    /// The space, once a backfill has needed it.
    pub(super) working: Mutex<Option<Space>>,
    /// How many bytes this handle has written as objects.
    written: AtomicU64,
    stopped: OnceLock<String>,
    /// The known damage of it.
    pub(super) damage: Arc<Damage>,
    origin: Origin,
}

/// The state of the roots in a handle.
#[derive(Clone, Debug, Default)]
pub(super) struct HeldRoots {
    /// The root in use; `None` before the first backfill.
    pub(super) newest: Option<Chosen>,
    /// The root in the other slot, if that is on permanent storage.
    pub(super) other: Option<Root>,
    /// True if the root in use is a key frame, because the roots in both slots are damaged.
    pub(super) is_frame: bool,
    /// How many bytes it reaches, in whole units, if that is known.
    pub(super) live: Option<u64>,
    /// The greatest number in a slot.
    pub(super) last_number: u64,
    /// The file, as long as it has no root yet.
    pub(super) temporary: Option<Temporary>,
    /// True if the file's own name is known to be on permanent storage.
    pub(super) is_named: bool,
    /// The key frames that the newest root lists, once a backfill has needed them.
    pub(super) frames: Option<Arc<[Root]>>,
}

/// A file that isn't known by the image's name yet.
#[derive(Clone, Debug)]
pub(super) struct Temporary {
    pub(super) name: String,
    /// True if it replaces the existing image.
    pub(super) replaces: bool,
}

impl Image {
    pub(super) fn new(
        directory: &Arc<dyn Directory>,
        storage: Arc<dyn Storage>,
        name: &str,
        access: Access,
        header: u64,
    ) -> Self {
        Self {
            directory: Arc::clone(directory),
            storage,
            name: name.to_owned(),
            access,
            header,
            held: Mutex::default(),
            working: Mutex::default(),
            written: AtomicU64::new(0),
            stopped: OnceLock::new(),
            damage: Arc::default(),
            origin: Origin::here(),
        }
    }

    /// Returns a time, in microseconds since 1970, by which a root had been replaced, if one is known.
    #[inline]
    pub fn replaced_before(&self, number: u64) -> Option<i64> {
        let held = lock(&self.held);
        let newest = held.newest.map(|newest| newest.root);
        let later = held.other.into_iter().chain(newest).filter(|root| root.number > number);
        later.map(|root| root.time).min()
    }

    /// Returns the image's path, for messages.
    #[inline]
    pub fn path(&self) -> String {
        self.directory.display(&self.name)
    }

    /// Returns the file's length in bytes.
    ///
    /// # Errors
    /// `Io`.
    #[inline]
    #[allow(clippy::len_without_is_empty, reason = "an image is never empty")]
    pub fn len(&self) -> Result<u64> {
        self.storage.len().map_err(|error| self.io("can't tell its length", error))
    }

    /// Returns how many bytes the newest root reaches, in whole units; `root` is that one. Walks its directory
    /// if no backfill has needed to yet.
    ///
    /// # Errors
    /// `Io`; `Corrupt`.
    #[inline]
    pub fn reached(&self, root: &Root) -> Result<u64> {
        match self.working.try_lock() {
            Ok(space) if space.is_some() => {
                return Ok(space.as_ref().map_or(0, Space::live_bytes));
            }
            Ok(_) | Err(TryLockError::Poisoned(_)) => {}
            // A backfill is under way, and isn't waited for.
            Err(TryLockError::WouldBlock) => {
                let held = lock(&self.held);
                if let Some(live) =
                    held.live.filter(|_| held.newest.map(|it| it.root) == Some(*root))
                {
                    return Ok(live);
                }
            }
        }
        Ok(OBJECTS_AT + walk(self, root, |_, _| Ok(WalkStep::Enter))?.used() * UNIT)
    }

    /// Returns how many bytes the newest root and its key frames reach, in whole units, and these; `None` unless a
    /// backfill of this handle has found the space, or while one is under way.
    #[inline]
    pub fn kept(&self) -> Option<(u64, Arc<[Root]>)> {
        let frames = lock(&self.held).frames.clone()?;
        let numbers: Vec<_> = frames.iter().map(|frame| frame.number).collect();
        let working = self.working.try_lock().ok()?;
        Some((working.as_ref()?.kept_bytes(&numbers), frames))
    }

    /// Writes objects to the space of a draft, each as consecutive parts, in the order of their positions, with
    /// adjacent ones joined. They are on permanent storage once a root that reaches them is published.
    ///
    /// # Errors
    /// `Io`; the draft is still valid, and so is the previous root. `Poisoned` if the image is stopped.
    #[inline]
    pub fn write(&self, objects: &[(u64, &[&[u8]])]) -> Result<Written> {
        self.check_usable()?;
        let written = batch::write(&*self.storage, objects)
            .map_err(|error| self.io("can't write to it", error))?;
        self.written.fetch_add(written.bytes, Ordering::Relaxed);
        Ok(written)
    }

    /// Returns how many bytes of objects this handle has written.
    #[inline]
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Verifies stored bytes without keeping them, in pieces of 1 MiB.
    ///
    /// # Errors
    /// `Io`; `Corrupt` if the bytes differ from those written.
    pub(crate) fn verify(&self, stored: &Stored) -> Result<()> {
        self.verify_once(stored).or_else(|error| {
            self.before_retry(stored, error)?;
            self.verify_once(stored)
        })
    }

    /// Prepares another read of an object: a disk may read wrongly once, and so may a network.
    ///
    /// # Errors
    /// `error`, if another read is of no use.
    fn before_retry(&self, stored: &Stored, error: Error) -> Result<()> {
        if error.is_remote() {
            return Err(error);
        }
        self.storage.drop_copies(stored.place..stored.place + u64::from(stored.len));
        Ok(())
    }

    fn verify_once(&self, stored: &Stored) -> Result<()> {
        let mut hash = Xxh3::with_seed(stored.place);
        let mut left = usize::try_from(stored.len).unwrap_or(usize::MAX);
        let mut buffer = vec![0; left.min(1 << 20)];
        let mut at = stored.place;
        while left > 0 {
            let count = buffer.len().min(left);
            let Some(piece) = buffer.get_mut(..count) else { break };
            self.read_exactly(stored, at, piece)?;
            hash.update(piece);
            at += count as u64;
            left -= count;
        }
        self.compare(stored, hash.digest())
    }

    fn read_exactly(&self, stored: &Stored, at: u64, out: &mut [u8]) -> Result<()> {
        let read = self
            .storage
            .read_at(at, out)
            .map_err(|error| self.io(&format!("can't read at {at}"), error))?;
        if read == out.len() {
            return Ok(());
        }
        Err(self.cut(stored, at.saturating_add(read as u64)))
    }

    fn cut(&self, stored: &Stored, end: u64) -> Error {
        Error::corrupt(format!(
            "{}: damaged: the file ends at {end}, within the {} bytes at {}",
            self.path(),
            stored.len,
            stored.place
        ))
    }

    fn compare(&self, stored: &Stored, found: u64) -> Result<()> {
        if step!(DamagedPageUsed, found == stored.sum, else true) {
            return Ok(());
        }
        Err(Error::corrupt(format!(
            "{}: damaged: the {} bytes at {} have the checksum {found:016x}, and should have {:016x}",
            self.path(),
            stored.len,
            stored.place,
            stored.sum
        )))
    }

    /// Stops the image for this handle.
    pub(super) fn stop(&self, error: Error) -> Error {
        step!(FailedImageFlushForgotten, {
            let _ = self.stopped.set(error.to_string());
        });
        error
    }

    /// True if it has no root and no name yet, and nothing went wrong that a later attempt must know: then another one
    /// can be made in its place.
    pub fn is_replaceable(&self) -> bool {
        self.stopped.get().is_none() && lock(&self.held).temporary.is_some()
    }

    /// Refuses to write where an earlier failure makes that unsafe.
    pub(super) fn check_usable(&self) -> Result<()> {
        if self.access == Access::Read {
            return Err(Error::invalid(format!("{}: opened for reading only", self.path())));
        }
        match self.stopped.get() {
            None => Ok(()),
            Some(reason) => Err(Error::new(
                ErrorKind::Poisoned,
                format!("{}: stopped by an earlier failure ({reason}); reopen it", self.path()),
            )),
        }
    }

    pub(super) fn io(&self, what: &str, error: std::io::Error) -> Error {
        Error::io(format!("{}: {what}", self.path()), error)
    }
}

impl Source for Image {
    fn holds(&self, stored: &Stored) -> Result<()> {
        let end = stored.place.saturating_add(u64::from(stored.len));
        match self.len()? {
            len if len >= end => Ok(()),
            len => Err(self.cut(stored, len)),
        }
    }

    fn read(&self, stored: &Stored, out: &mut [u8]) -> Result<()> {
        debug_assert_eq!(out.len() as u64, u64::from(stored.len));
        let mut read = || {
            self.read_exactly(stored, stored.place, out)?;
            self.compare(stored, Stored::sum_of(stored.place, out))
        };
        read().or_else(|error| {
            self.before_retry(stored, error)?;
            read()
        })
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // A forked child's copy is the parent's to remove, and its lock may be held for ever.
        if self.origin.is_elsewhere() {
            return;
        }
        // A new image that never got a root is nothing.
        if let Some(temporary) = &lock(&self.held).temporary {
            let _ = self.directory.remove(&temporary.name);
        }
    }
}
