//! The tail lock: at most one writer of a file, among all handles of all processes.
//!
//! It lies on one byte far behind any data, so that it keeps nobody from reading or writing:
//!
//! | byte | for |
//! |---|---|
//! | 2^62 - 1 | the tail lock |
//! | 2^62 + n | the pins on root number n of an image |
//!
//! On Linux it is an *open file description* lock, on Windows one by `LockFileEx`. Both belong to
//! the open file, not to the process: two handles in one process exclude each other, closing some
//! other handle of the file doesn't drop it, and it vanishes with its process. Programs of 32 and of
//! 64 bits exclude each other too, since both lock the same byte.
//!
//! Elsewhere the standard library's lock on the whole file is taken (`flock`), which keeps the same
//! promises but has no room for pins.

#![allow(
    unsafe_code,
    reason = "the standard library has no byte-range locks: the system is called"
)]

use std::fs::File;
use std::io;

/// The byte that the tail lock covers. No file grows to 4 EiB, so it never holds data.
#[cfg(any(
    windows,
    all(
        target_os = "linux",
        any(target_pointer_width = "64", target_env = "gnu", target_env = "musl")
    )
))]
const TAIL: i64 = (1 << 62) - 1;

/// Tries to take the tail lock for this open file, which must be open for writing and not hold it
/// yet; gives whether it is held now.
pub(super) fn try_lock(file: &File) -> io::Result<bool> {
    system::try_lock(file)
}

/// Lets go of the tail lock.
pub(super) fn unlock(file: &File) -> io::Result<()> {
    system::unlock(file)
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

    use self::call::{Range, set_range};
    use super::TAIL;

    pub(super) fn try_lock(file: &File) -> io::Result<bool> {
        match set(file, libc::F_WRLCK) {
            Ok(()) => Ok(true),
            // POSIX lets a held lock be told by either number.
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EACCES) => Ok(false),
                _ => Err(error),
            },
        }
    }

    pub(super) fn unlock(file: &File) -> io::Result<()> {
        set(file, libc::F_UNLCK)
    }

    fn set(file: &File, kind: libc::c_int) -> io::Result<()> {
        let kind = libc::c_short::try_from(kind)
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let whence = libc::c_short::try_from(libc::SEEK_SET)
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        // The process id must be 0 for this sort of lock.
        let range = Range { l_type: kind, l_whence: whence, l_start: TAIL, l_len: 1, l_pid: 0 };
        loop {
            if set_range(file.as_raw_fd(), &range) {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
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

    use super::TAIL;

    pub(super) fn try_lock(file: &File) -> io::Result<bool> {
        let flags = LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY;
        let mut place = place();
        // SAFETY: the handle is open, since `file` is borrowed, and wasn't opened for overlapped
        // work, so that the system has done with `place` when the call returns.
        let result = unsafe { LockFileEx(file.as_raw_handle(), flags, 0, 1, 0, &raw mut place) };
        if result != 0 {
            return Ok(true);
        }
        let error = io::Error::last_os_error();
        let is_held = |code: i32| {
            [ERROR_LOCK_VIOLATION, ERROR_IO_PENDING].map(i64::from).contains(&i64::from(code))
        };
        if error.raw_os_error().is_some_and(is_held) { Ok(false) } else { Err(error) }
    }

    pub(super) fn unlock(file: &File) -> io::Result<()> {
        let mut place = place();
        // SAFETY: as in `try_lock`.
        let result = unsafe { UnlockFileEx(file.as_raw_handle(), 0, 1, 0, &raw mut place) };
        if result != 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Gives the position of the byte, as this system wants it: in two halves.
    fn place() -> OVERLAPPED {
        const LOW: u32 = 0xffff_ffff;
        const HIGH: u32 = 0x3fff_ffff;
        const _: () = assert!((HIGH as i64) << 32 | LOW as i64 == TAIL);
        let position = OVERLAPPED_0_0 { Offset: LOW, OffsetHigh: HIGH };
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

    pub(super) fn try_lock(file: &File) -> io::Result<bool> {
        match file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    pub(super) fn unlock(file: &File) -> io::Result<()> {
        file.unlock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_files_exclude_each_other() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (first, second) = (file.as_file(), file.reopen().unwrap());
        assert!(try_lock(first).unwrap());
        assert!(!try_lock(&second).unwrap());

        // Closing another handle of the file must not drop the lock, as a classic POSIX lock would.
        drop(file.reopen().unwrap());
        assert!(!try_lock(&second).unwrap());

        unlock(first).unwrap();
        assert!(try_lock(&second).unwrap());
        drop(second);
        assert!(try_lock(first).unwrap());
    }
}
