//! The base of [Annals](https://docs.rs/annals): files, devices, locks, the clock, randomness, hashes and fixed
//! layouts. Programs use the crate `annals`, which re-exports the parts that they need.
//!
//! It is the only layer that touches the machine. Everything else is a function of bytes and takes these traits as
//! arguments. So the same code runs on a real disk, in memory, and on a simulated disk that crashes.
#![allow(
    rustdoc::private_intra_doc_links,
    reason = "the text above the code is for those who work there, and names its private parts"
)]

mod batch;
pub mod bytes;
mod capacity;
mod chunk;
mod clock;
mod compressed;
mod continuation;
pub mod debug;
#[cfg(unix)]
mod device;
mod engines;
mod error;
mod file;
mod fork;
pub mod header;
mod holders;
mod holding;
mod identity;
/// What implementations of the traits in other crates share with those here.
#[doc(hidden)]
pub mod implementing {
    pub use super::holders::Holders;
    pub use super::{check_fixed_len, check_lockable, check_name, check_writable};
}
mod interrupted;
mod lock;
mod memory;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod mistakes;
mod names;
mod open_file;
mod overlay;
mod permissions;
mod point;
mod positioned;
mod process;
#[cfg(target_os = "linux")]
mod rest;
pub mod slots;
mod spool;
mod step;
pub mod sync;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod uring;
#[cfg(target_os = "linux")]
mod vectored;

use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

pub use batch::{Batched, Engine, LONGEST_RUN, MOST_PARTS, Run, join};
pub use capacity::memory_for_pages;
pub use chunk::{CHUNK, Chunk};
pub use clock::SystemClock;
#[cfg(feature = "zstd")]
pub use compressed::compress;
pub use compressed::is_compressed;
pub use continuation::{ContinuedDirectory, Division, Later};
pub use error::{Error, ErrorKind, Obstacle, Result, TypedId, Violation};
pub use file::FileDirectory;
pub use fork::{Origin, around_forks};
pub use memory::MemoryDirectory;
pub use overlay::OverlayDirectory;
pub use permissions::Permissions;
pub use point::Point;
pub use process::{
    Interrupts, ignore_file_size_signal, is_alive, lower_priority, most_open_files, process_id,
    raise_most_open_files, return_freed_memory,
};
pub use spool::Spool;

/// One open file, or something that behaves like one.
///
/// Reads see every completed write at once. Only bytes that a completed [`flush`](Storage::flush) covers survive a
/// power cut. Later ones may survive wholly, partly, or not at all, in any order. All methods take `&self` and may be
/// called from several threads.
///
/// Bytes that can only be read need [`len`](Storage::len) and [`read_at`](Storage::read_at). A view of a file has that
/// [`beneath`](Storage::beneath) it, and all that it doesn't change.
pub trait Storage: Send + Sync + Debug {
    /// Returns the file whose changes, locks and names are those of this one. `None`: it implements these itself, or
    /// nobody else has it and it can't be changed, so that every shared lock is free.
    fn beneath(&self) -> Option<&dyn Storage> {
        None
    }

    /// Returns the length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Returns true if the length is 0.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Reads from `offset` into `buffer`; returns how many bytes were read: fewer than requested only at the end of
    /// the file (the implementation continues after a short read in the middle).
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Drops the copies that this handle keeps of a range, because bytes that were read there don't verify: the next
    /// read gets them from the medium. Does nothing unless it is written: only files on other machines have copies.
    fn drop_copies(&self, range: Range<u64>) {
        if let Some(file) = self.beneath() {
            file.drop_copies(range);
        }
    }

    /// Writes all of `data` at `offset`, and makes the file longer if needed. On error any part of it may have been
    /// written. (The implementation continues after a short write of the operating system; one that can't continue is
    /// an error.)
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.beneath().map_or_else(refuse_change, |file| file.write_at(offset, data))
    }

    /// Writes many runs, which [`join`] makes, in any order and several at a time; and makes the file longer if
    /// needed. It has the guarantees of [`write_at`](Storage::write_at), not more: a short or interrupted run is
    /// continued, and nothing is on permanent storage before a flush.
    ///
    /// All writes that were begun have ended when it returns, also with an error. That is the first one
    /// that happened; after it any part of any run may have been written. Other writes and reads may
    /// continue meanwhile, elsewhere in the file.
    ///
    /// Costs a copy of runs with more than one part if the system has nothing better.
    fn write_batch(&self, runs: &[Run<'_>]) -> io::Result<Batched> {
        batch::write_one_by_one(runs, |offset, data| self.write_at(offset, data))
    }

    /// Returns once everything written before the call, and the length, is on permanent storage (`fdatasync`). After
    /// an error the state of the unflushed writes is unknown, and retrying proves nothing. Only a file opened for
    /// writing can be flushed, since not all systems do it for another.
    fn flush(&self) -> io::Result<()> {
        self.beneath().map_or_else(refuse_change, |file| file.flush())
    }

    /// Makes the file shorter, or longer with zeros. `Unsupported` if the length
    /// [can't change](Storage::has_fixed_len), unless it is that already.
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.beneath().map_or_else(refuse_change, |file| file.set_len(len))
    }

    /// True if the length can't change: a raw block device. It may hold anything where it was
    /// never written to, and a write after its end is `StorageFull`.
    fn has_fixed_len(&self) -> bool {
        self.beneath().is_some_and(|file| file.has_fixed_len())
    }

    /// Tries to take a lock of this file; returns whether this handle has it now. It ends with
    /// [`unlock`](Storage::unlock), with the last handle of this `Storage`, or with the process.
    /// Two handles exclude each other also within one process, and a handle that has a lock gets it
    /// again. Only a file opened for writing can be locked exclusively.
    ///
    /// # Errors
    /// `InvalidInput` if this handle holds the lock in the other mode, which it must release first; `Unsupported` for
    /// other locks than [`Lock::Head`] if the system has no locks on parts of a file.
    fn try_lock(&self, lock: Lock, hold: Hold) -> io::Result<bool> {
        match self.beneath() {
            Some(file) => file.try_lock(lock, hold),
            None => check_lockable(Access::Read, hold).map(|()| true),
        }
    }

    /// Releases a lock at once, though handles of this `Storage` continue reading. Nothing if it isn't held.
    fn unlock(&self, lock: Lock) -> io::Result<()> {
        self.beneath().map_or(Ok(()), |file| file.unlock(lock))
    }

    /// Returns the least of these numbers whose [`Lock::Pin`] is held, through this handle or any other. Holds no
    /// lock after the call. An attempt to acquire one of them meanwhile may be refused, and must be retried.
    ///
    /// # Errors
    /// `Unsupported` where the system knows no locks on parts of a file.
    fn oldest_pin(&self, roots: Range<u64>) -> io::Result<Option<u64>> {
        let file = self.beneath().ok_or(io::ErrorKind::Unsupported)?;
        file.oldest_pin(roots)
    }

    /// Returns the process that holds a lock, if the system reports it, for messages. It may scan all processes:
    /// milliseconds.
    fn holder(&self, lock: Lock) -> Option<u32> {
        self.beneath()?.holder(lock)
    }

    /// Returns true if its name still refers to the file.
    fn is_linked(&self) -> io::Result<bool> {
        self.beneath().map_or(Ok(true), |file| file.is_linked())
    }

    /// True if the file may have other names than its own. This detects names that a power cut left after a removal.
    fn may_have_other_names(&self) -> io::Result<bool> {
        self.beneath().map_or(Ok(true), |file| file.may_have_other_names())
    }

    /// True if the file has no name any more: it was removed, or replaced by another one, and goes when it is closed.
    fn is_removed(&self) -> io::Result<bool> {
        self.beneath().map_or(Ok(false), |file| file.is_removed())
    }

    /// Records the new name of the file in its directory: [`is_linked`](Storage::is_linked) checks that name from
    /// now on.
    fn renamed(&self, name: &str) {
        if let Some(file) = self.beneath() {
            file.renamed(name);
        }
    }
}

/// A lock of a file. No lock blocks reading or writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lock {
    /// Held while a database is open: exclusively by a single writer, shared by those that take turns.
    Head,
    /// The right to write frames; in shared mode it is held exclusively for each transaction.
    Tail,
    /// Held while waiting for [`Tail`](Self::Tail), so that a process that has just released that can't acquire it
    /// again before the one that waits.
    Turn,
    /// Held shared on a sealed segment by readers of its history; held exclusively to remove it.
    History,
    /// Held exclusively on the journal to update its image, create one, or rename a damaged one.
    Backfill,
    /// Held shared on an image by readers of its root of this number: space that this root reaches isn't overwritten.
    /// From 2^61 on, pages that a backfill has written without a root yet.
    Pin(u64),
}

/// How a [`Lock`] is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hold {
    /// Together with others that hold it so.
    Shared,
    /// Alone.
    Exclusive,
}

/// The purpose for which a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only reading.
    Read,
    /// Reading and writing.
    Write,
}

/// One directory, by whose names files are opened. Names have no path separators.
///
/// Changes of names survive a power cut only once [`flush`](Directory::flush) has returned.
pub trait Directory: Send + Sync + Debug {
    /// Opens an existing file; `NotFound` if there is none.
    fn open(&self, name: &str, access: Access) -> io::Result<Arc<dyn Storage>>;

    /// Creates a new, empty file for reading and writing; `AlreadyExists` if there is one.
    fn create(&self, name: &str) -> io::Result<Arc<dyn Storage>>;

    /// Returns the file `from` the further name `to`; `AlreadyExists` if that name is taken.
    fn link(&self, from: &str, to: &str) -> io::Result<()>;

    /// Renames, replacing the file at `to`.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a name.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Copies a file to a name that isn't taken, and flushes the copy (but not its name); shares the bytes where the
    /// file system can. An incomplete copy is removed.
    ///
    /// # Errors
    /// `AlreadyExists` if the name is taken; those of reading and writing.
    fn copy(&self, from: &str, to: &str) -> io::Result<()> {
        let (from, copy) = (self.open(from, Access::Read)?, self.create(to)?);
        let copied = copy_bytes(&*from, &*copy).and_then(|()| copy.flush());
        if copied.is_err() {
            // The error of writing it is the relevant one.
            let _ = self.remove(to);
        }
        copied
    }

    /// Lists all names of files, sorted.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes all changes of names so far survive a power cut (`fsync` of the directory).
    fn flush(&self) -> io::Result<()>;

    /// Returns the directory for saved parts of a file; `None` if that is this one. (A device's directory holds no
    /// files: it is the working directory then.)
    fn for_copies(&self, _storage: &dyn Storage) -> Option<Arc<dyn Directory>> {
        None
    }

    /// Returns the permissions of a file; `None` if there is no such file, or they are unknown.
    fn permissions(&self, _name: &str) -> io::Result<Option<Permissions>> {
        Ok(None)
    }

    /// Returns a handle of this directory for the files of one journal; `None` if this handle is for all. Each file
    /// that it creates gets the permissions that the journal has then, before anything can be written to it. Without
    /// such a journal, it gets the permissions of `origin`, the file that it is made of, or the system's default.
    fn for_journal(&self, _name: &str, _origin: Option<Permissions>) -> Option<Arc<dyn Directory>> {
        None
    }

    /// Returns another handle of the same directory, for opening files in it later.
    fn again(&self) -> Arc<dyn Directory>;

    /// True if its files are on another machine: each read may fetch, and a failure there isn't repaired by reading more.
    fn is_remote(&self) -> bool {
        false
    }

    /// Describes a name in this directory as a person would write it (a path).
    fn display(&self, name: &str) -> String;
}

/// Time and randomness.
pub trait Clock: Send + Sync + Debug {
    /// Returns the time in microseconds since 1970-01-01T00:00:00Z.
    fn now(&self) -> i64;

    /// Returns the time since some fixed moment. Unlike [`now`](Clock::now) it never goes back when the machine's
    /// clock is set: use it for waiting.
    fn elapsed(&self) -> Duration;

    /// Waits. A simulated clock only lets that time pass.
    fn pause(&self, time: Duration);

    /// Returns 64 random bits, which can't be predicted.
    fn random(&self) -> u64;

    /// Returns 128 random bits.
    fn secret(&self) -> [u8; 16] {
        let mut secret = [0; 16];
        for chunk in secret.chunks_mut(8) {
            chunk.copy_from_slice(&self.random().to_le_bytes());
        }
        secret
    }
}

/// True if two names refer to the same file.
pub fn is_same_file(directory: &dyn Directory, one: &str, other: &str) -> io::Result<bool> {
    let file = directory.open(one, Access::Read)?;
    file.renamed(other);
    file.is_linked()
}

/// Copies all bytes of one file into another, which is empty.
fn copy_bytes(from: &dyn Storage, to: &dyn Storage) -> io::Result<()> {
    let mut bytes = vec![0; 1 << 20];
    let mut at = 0;
    loop {
        let read = from.read_at(at, &mut bytes)?;
        if read == 0 {
            return Ok(());
        }
        to.write_at(at, &bytes[..read])?;
        at += read as u64;
    }
}

fn refuse_change() -> io::Result<()> {
    check_writable(Access::Read)
}

/// Refuses a text that can't be the name of a file in one directory on any system.
pub fn check_name(name: &str) -> io::Result<()> {
    if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\\', '\0']) {
        let message = format!("`{name}` isn't a name of a file inside one directory");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    Ok(())
}

/// Refuses to change a length that is fixed.
pub fn check_fixed_len(fixed: u64, len: u64) -> io::Result<()> {
    if len == fixed {
        return Ok(());
    }
    let message = format!("a device's length is fixed: {fixed} bytes");
    Err(io::Error::new(io::ErrorKind::Unsupported, message))
}

/// Refuses to lock a file exclusively that was opened for reading only.
pub fn check_lockable(access: Access, hold: Hold) -> io::Result<()> {
    match hold {
        Hold::Shared => Ok(()),
        Hold::Exclusive => check_writable(access),
    }
}

/// Refuses to change a file that was opened for reading only.
pub fn check_writable(access: Access) -> io::Result<()> {
    match access {
        Access::Write => Ok(()),
        Access::Read => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the file was opened for reading only",
        )),
    }
}
