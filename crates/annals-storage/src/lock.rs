//! The locks of a file, among all handles of all processes.
//!
//! Each is on one byte far beyond any data, so that it blocks no reads or writes:
//!
//! | byte | for |
//! |---|---|
//! | 2^62 - 5 | [`Lock::Backfill`] |
//! | 2^62 - 4 | [`Lock::History`] |
//! | 2^62 - 3 | [`Lock::Turn`] |
//! | 2^62 - 2 | [`Lock::Head`] |
//! | 2^62 - 1 | [`Lock::Tail`] |
//! | 2^62 + n | [`Lock::Pin`] of root number n, on the image; all others are on the journal |
//!
//! A database that is alone holds the head exclusively as long as it is open. Those that take turns hold the head
//! shared as long as they are open, so that the two kinds exclude each other. They hold the tail exclusively for each
//! transaction. A process that waits for the tail holds the turn meanwhile. So a process that has just released the
//! tail can't acquire it again before: it would need the turn first.
//!
//! On Linux they are *open file description* locks, on Windows those of `LockFileEx`. Both belong to
//! the open file, not to the process: two handles in one process exclude each other, closing some
//! other handle of the file doesn't drop them, and they vanish with their process. Programs of 32 and
//! of 64 bits exclude each other too, since both lock the same bytes.
//!
//! Elsewhere the standard library's lock on the whole file is taken (`flock`). It has the same guarantees, but there
//! is only one: it is used for the head.

#![allow(
    unsafe_code,
    reason = "the standard library has no byte-range locks: the system is called"
)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::fork::Origin;
use super::{Hold, Lock};

/// The byte of the pin on root number 0, which there is none of.
#[cfg(any(
    windows,
    all(
        target_os = "linux",
        any(target_pointer_width = "64", target_env = "gnu", target_env = "musl")
    )
))]
const PINS: i64 = 1 << 62;

/// Returns the byte that a lock covers. No file grows to 4 EiB, so it never holds data.
#[cfg(any(
    windows,
    all(
        target_os = "linux",
        any(target_pointer_width = "64", target_env = "gnu", target_env = "musl")
    )
))]
pub(super) const fn byte_of(lock: Lock) -> i64 {
    match lock {
        Lock::Tail => PINS - 1,
        Lock::Head => PINS - 2,
        Lock::Turn => PINS - 3,
        Lock::History => PINS - 4,
        Lock::Backfill => PINS - 5,
        // No image has so many roots; if one claims to, they share the last byte.
        Lock::Pin(root) if root < PINS.cast_unsigned() => PINS + root.cast_signed(),
        Lock::Pin(_) => i64::MAX,
    }
}

/// The locks that one open file holds. Not all systems let the holder of a lock acquire it again, or release one that
/// it doesn't have; and a forked child must not release its parent's.
#[derive(Debug, Default)]
pub(super) struct Locks {
    head: AtomicU64,
    tail: AtomicU64,
    turn: AtomicU64,
    history: AtomicU64,
    backfill: AtomicU64,
    /// The pins, of which there may be any number. A forked child never gets here.
    pins: Mutex<BTreeMap<u64, Hold>>,
}

impl Locks {
    /// Marks a lock that no process holds.
    const FREE: u64 = 0;

    /// Tries to take a lock for this open file; returns whether it is held now.
    pub(super) fn try_lock(&self, file: &File, lock: Lock, hold: Hold) -> io::Result<bool> {
        let Some(held) = self.held(lock) else { return self.try_pin(file, lock, hold) };
        let own = held.load(Ordering::Acquire);
        for other in [Hold::Shared, Hold::Exclusive] {
            if own == Self::by_this_process(other) {
                return check_same(other, hold).map(|()| true);
            }
        }
        let taken = system::try_lock(file, lock, hold)?;
        if taken {
            held.store(Self::by_this_process(hold), Ordering::Release);
        }
        Ok(taken)
    }

    /// Releases a lock, if this process holds it through this open file.
    pub(super) fn unlock(&self, file: &File, lock: Lock) -> io::Result<()> {
        let Some(held) = self.held(lock) else { return self.unpin(file, lock) };
        let own = held.swap(Self::FREE, Ordering::AcqRel);
        let holds = [Hold::Shared, Hold::Exclusive].map(Self::by_this_process);
        if holds.contains(&own) { system::unlock(file, lock) } else { Ok(()) }
    }

    /// Releases all locks. An error can't be handled, and closing the file releases them anyway.
    pub(super) fn end(&self, file: &File) {
        let pins: Vec<_> = self.pins().keys().map(|&root| Lock::Pin(root)).collect();
        let others = [Lock::Backfill, Lock::History, Lock::Tail, Lock::Turn, Lock::Head];
        for lock in pins.into_iter().chain(others) {
            let _ = self.unlock(file, lock);
        }
    }

    /// Returns the least of these numbers whose pin this open file holds, or any other.
    pub(super) fn oldest_pin(&self, file: &File, roots: Range<u64>) -> io::Result<Option<u64>> {
        if roots.is_empty() {
            return Ok(None);
        }
        let pins = self.pins();
        let own = pins.keys().copied().find(|root| roots.contains(root));
        let others = system::oldest_pin(file, roots.start..own.unwrap_or(roots.end))?;
        Ok(others.or(own))
    }

    fn try_pin(&self, file: &File, pin: Lock, hold: Hold) -> io::Result<bool> {
        let Lock::Pin(root) = pin else { return Ok(false) };
        let mut pins = self.pins();
        if let Some(own) = pins.get(&root) {
            return check_same(*own, hold).map(|()| true);
        }
        let taken = system::try_lock(file, pin, hold)?;
        if taken {
            pins.insert(root, hold);
        }
        Ok(taken)
    }

    fn unpin(&self, file: &File, pin: Lock) -> io::Result<()> {
        let Lock::Pin(root) = pin else { return Ok(()) };
        match self.pins().remove(&root) {
            Some(_) => system::unlock(file, pin),
            None => Ok(()),
        }
    }

    fn pins(&self) -> MutexGuard<'_, BTreeMap<u64, Hold>> {
        self.pins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the process that holds a lock through this open file; `None` for a pin.
    const fn held(&self, lock: Lock) -> Option<&AtomicU64> {
        Some(match lock {
            Lock::Head => &self.head,
            Lock::Tail => &self.tail,
            Lock::Turn => &self.turn,
            Lock::History => &self.history,
            Lock::Backfill => &self.backfill,
            Lock::Pin(_) => return None,
        })
    }

    fn by_this_process(hold: Hold) -> u64 {
        let how = match hold {
            Hold::Shared => 1,
            Hold::Exclusive => 2,
        };
        u64::from(Origin::here().process()) << 2 | how
    }
}

/// Refuses to change how a lock is held, which not all systems can do in one step.
pub(super) fn check_same(held: Hold, wanted: Hold) -> io::Result<()> {
    if held == wanted {
        return Ok(());
    }
    let message = "this handle holds the lock in the other way: let go of it first";
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

#[cfg(all(
    target_os = "linux",
    any(target_pointer_width = "64", target_env = "gnu", target_env = "musl")
))]
mod system {
    //! `fcntl(F_OFD_SETLK)`.
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;

    use self::call::{Range, get_range, set_range};
    use super::{Hold, Lock, PINS, byte_of};
    use crate::interrupted::retry;

    pub(super) fn try_lock(file: &File, lock: Lock, hold: Hold) -> io::Result<bool> {
        let kind = match hold {
            Hold::Shared => libc::F_RDLCK,
            Hold::Exclusive => libc::F_WRLCK,
        };
        match set(file, lock, kind) {
            Ok(()) => Ok(true),
            // POSIX allows both numbers for a held lock.
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EACCES) => Ok(false),
                _ => Err(error),
            },
        }
    }

    pub(super) fn unlock(file: &File, lock: Lock) -> io::Result<()> {
        set(file, lock, libc::F_UNLCK)
    }

    /// Queries which of these pins another open file holds. The system reports any lock in the range, with its
    /// beginning, so the query is repeated for the range before that.
    pub(super) fn oldest_pin(file: &File, roots: std::ops::Range<u64>) -> io::Result<Option<u64>> {
        let first = byte_of(Lock::Pin(roots.start));
        let (mut end, mut found) = (byte_of(Lock::Pin(roots.end)), None);
        while first < end {
            // As one would ask before locking all of it exclusively.
            let mut range = range(libc::F_WRLCK, first, end - first)?;
            retry(|| match get_range(file.as_raw_fd(), &mut range) {
                true => Ok(()),
                false => Err(io::Error::last_os_error()),
            })?;
            if i32::from(range.l_type) == libc::F_UNLCK {
                break;
            }
            end = range.l_start.max(first);
            found = Some((end - PINS).cast_unsigned());
        }
        Ok(found)
    }

    fn set(file: &File, lock: Lock, kind: libc::c_int) -> io::Result<()> {
        let range = range(kind, byte_of(lock), 1)?;
        retry(|| match set_range(file.as_raw_fd(), &range) {
            true => Ok(()),
            false => Err(io::Error::last_os_error()),
        })
    }

    fn range(kind: libc::c_int, start: i64, len: i64) -> io::Result<Range> {
        let short = |number: libc::c_int| {
            libc::c_short::try_from(number)
                .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
        };
        let (kind, whence) = (short(kind)?, short(libc::SEEK_SET)?);
        // The process id must be 0 for this sort of lock.
        Ok(Range { l_type: kind, l_whence: whence, l_start: start, l_len: len, l_pid: 0 })
    }

    #[cfg(not(all(target_pointer_width = "32", target_env = "gnu", not(target_arch = "x86_64"))))]
    mod call {
        //! Through the C library, whose positions have 64 bits.
        pub(super) use libc::flock as Range;

        pub(super) fn set_range(file: libc::c_int, range: &Range) -> bool {
            // SAFETY: `range` is a whole, initialised `flock` that outlives the call, which only
            // reads it; a descriptor that isn't open is an error, not a fault.
            let result = unsafe { libc::fcntl(file, libc::F_OFD_SETLK, &raw const *range) };
            result != -1
        }

        pub(super) fn get_range(file: libc::c_int, range: &mut Range) -> bool {
            // SAFETY: as above, but that the call also writes to `range`, which is borrowed for that.
            let result = unsafe { libc::fcntl(file, libc::F_OFD_GETLK, &raw mut *range) };
            result != -1
        }
    }

    #[cfg(all(target_pointer_width = "32", target_env = "gnu", not(target_arch = "x86_64")))]
    mod call {
        //! The system call itself: the C library's `fcntl` may have positions of 32 bits here.
        pub(super) use libc::flock64 as Range;

        pub(super) fn set_range(file: libc::c_int, range: &Range) -> bool {
            let range = &raw const *range;
            // SAFETY: `fcntl64` takes these three arguments; `range` is a whole, initialised
            // `flock64` that outlives the call, which only reads it.
            let result =
                unsafe { libc::syscall(libc::SYS_fcntl64, file, libc::F_OFD_SETLK, range) };
            result != -1
        }

        pub(super) fn get_range(file: libc::c_int, range: &mut Range) -> bool {
            let range = &raw mut *range;
            // SAFETY: as above, but that the call also writes to `range`, which is borrowed for that.
            let result =
                unsafe { libc::syscall(libc::SYS_fcntl64, file, libc::F_OFD_GETLK, range) };
            result != -1
        }
    }
}

#[cfg(windows)]
mod system {
    //! `LockFileEx`.
    use std::fs::File;
    use std::io;
    use std::os::windows::io::AsRawHandle;

    use windows_sys::Win32::Foundation::{ERROR_IO_PENDING, ERROR_LOCK_VIOLATION};
    use windows_sys::Win32::Storage::FileSystem::{
        LOCKFILE_EXCLUSIVE_LOCK, LOCKFILE_FAIL_IMMEDIATELY, LockFileEx, UnlockFileEx,
    };
    use windows_sys::Win32::System::IO::{OVERLAPPED, OVERLAPPED_0, OVERLAPPED_0_0};

    use super::{Hold, Lock, PINS, byte_of};

    pub(super) fn try_lock(file: &File, lock: Lock, hold: Hold) -> io::Result<bool> {
        lock_bytes(file, byte_of(lock), 1, hold)
    }

    /// Finds which of these pins another handle holds, without a query for that: tries to acquire all of them
    /// exclusively, then the lower half of those that it can't. This handle holds none of them.
    pub(super) fn oldest_pin(file: &File, roots: std::ops::Range<u64>) -> io::Result<Option<u64>> {
        let (mut first, mut end) = (byte_of(Lock::Pin(roots.start)), byte_of(Lock::Pin(roots.end)));
        if first >= end || is_free(file, first, end)? {
            return Ok(None);
        }
        while end - first > 1 {
            let middle = first + (end - first) / 2;
            match is_free(file, first, middle)? {
                true => first = middle,
                false => end = middle,
            }
        }
        Ok(Some((first - PINS).cast_unsigned()))
    }

    fn is_free(file: &File, first: i64, end: i64) -> io::Result<bool> {
        let count = (end - first).cast_unsigned();
        let taken = lock_bytes(file, first, count, Hold::Exclusive)?;
        if taken {
            unlock_bytes(file, first, count)?;
        }
        Ok(taken)
    }

    fn lock_bytes(file: &File, first: i64, count: u64, hold: Hold) -> io::Result<bool> {
        let flags = LOCKFILE_FAIL_IMMEDIATELY
            | match hold {
                Hold::Shared => 0,
                Hold::Exclusive => LOCKFILE_EXCLUSIVE_LOCK,
            };
        let mut place = place(first);
        let [low, high] = halves(count);
        // SAFETY: the handle is open, since `file` is borrowed, and wasn't opened for overlapped
        // work, so that the system has done with `place` when the call returns.
        let result =
            unsafe { LockFileEx(file.as_raw_handle(), flags, 0, low, high, &raw mut place) };
        if result != 0 {
            return Ok(true);
        }
        let error = io::Error::last_os_error();
        let is_held = |code: i32| {
            [ERROR_LOCK_VIOLATION, ERROR_IO_PENDING].map(i64::from).contains(&i64::from(code))
        };
        if error.raw_os_error().is_some_and(is_held) { Ok(false) } else { Err(error) }
    }

    pub(super) fn unlock(file: &File, lock: Lock) -> io::Result<()> {
        unlock_bytes(file, byte_of(lock), 1)
    }

    fn unlock_bytes(file: &File, first: i64, count: u64) -> io::Result<()> {
        let mut place = place(first);
        let [low, high] = halves(count);
        // SAFETY: as in `lock_bytes`.
        let result = unsafe { UnlockFileEx(file.as_raw_handle(), 0, low, high, &raw mut place) };
        if result != 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Returns a number as this system wants it: in two halves, the lower one first.
    const fn halves(number: u64) -> [u32; 2] {
        let [a, b, c, d, e, f, g, h] = number.to_le_bytes();
        [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])]
    }

    fn place(first: i64) -> OVERLAPPED {
        let [low, high] = halves(first.cast_unsigned());
        let position = OVERLAPPED_0_0 { Offset: low, OffsetHigh: high };
        OVERLAPPED { Anonymous: OVERLAPPED_0 { Anonymous: position }, ..OVERLAPPED::default() }
    }
}

#[cfg(not(any(
    windows,
    all(
        target_os = "linux",
        any(target_pointer_width = "64", target_env = "gnu", target_env = "musl")
    )
)))]
mod system {
    //! The standard library's lock on the whole file.
    use std::fs::{File, TryLockError};
    use std::io;

    use super::{Hold, Lock};
    use crate::interrupted::retry;

    pub(super) fn try_lock(file: &File, lock: Lock, hold: Hold) -> io::Result<bool> {
        check_supported(lock)?;
        let taken = || match hold {
            Hold::Shared => file.try_lock_shared(),
            Hold::Exclusive => file.try_lock(),
        };
        retry(|| match taken() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        })
    }

    pub(super) fn unlock(file: &File, lock: Lock) -> io::Result<()> {
        check_supported(lock)?;
        retry(|| file.unlock())
    }

    fn check_supported(lock: Lock) -> io::Result<()> {
        match lock {
            Lock::Head => Ok(()),
            _ => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this system has no locks on parts of a file, which taking turns needs: open the \
                 database in one process at a time",
            )),
        }
    }

    pub(super) fn oldest_pin(_file: &File, roots: std::ops::Range<u64>) -> io::Result<Option<u64>> {
        check_supported(Lock::Pin(roots.start)).map(|()| None)
    }
}
