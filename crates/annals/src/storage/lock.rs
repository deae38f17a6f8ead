//! The tail lock: at most one writer of a file, among all handles of all processes.
//!
//! On Linux it is an *open file description* lock on one byte far behind any data. Such a lock
//! belongs to the open file, not to the process: two handles in one process exclude each other,
//! closing some other handle of the file doesn't drop it, and it vanishes with its process.
//!
//! | byte | for |
//! |---|---|
//! | 2^62 - 1 | the tail lock |
//! | 2^62 + n | the pins on root number n of an image |
//!
//! Elsewhere the standard library's lock on the whole file is taken. On Windows that one also
//! keeps others from reading.

#![allow(unsafe_code, reason = "the standard library has no byte-range locks: fcntl is called")]

use std::fs::File;
use std::io;

/// The byte that the tail lock covers. No file grows to 4 EiB, so it never holds data.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
const TAIL: i64 = (1 << 62) - 1;

/// Tries to take the tail lock for this open file, which must be open for writing; gives whether it
/// is held now. Taking it again through the same open file succeeds.
pub(super) fn try_lock(file: &File) -> io::Result<bool> {
    system::try_lock(file)
}

/// Lets go of the tail lock.
pub(super) fn unlock(file: &File) -> io::Result<()> {
    system::unlock(file)
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod system {
    //! `fcntl(F_OFD_SETLK)`.
    use super::TAIL;
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;

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
        let range =
            libc::flock { l_type: kind, l_whence: whence, l_start: TAIL, l_len: 1, l_pid: 0 };
        loop {
            // SAFETY: the descriptor is open, since `file` is borrowed; `range` is a whole,
            // initialised `flock` that outlives the call, which only reads it.
            let result =
                unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const range) };
            if result != -1 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
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
    fn open_files_exclude_each_other_and_clones_share() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (first, second) = (file.as_file(), file.reopen().unwrap());
        assert!(try_lock(first).unwrap());
        assert!(!try_lock(&second).unwrap());
        assert!(try_lock(first).unwrap(), "the holder may ask again");

        // Closing another handle of the file must not drop the lock, as a classic POSIX lock would.
        drop(file.reopen().unwrap());
        assert!(!try_lock(&second).unwrap());

        unlock(first).unwrap();
        assert!(try_lock(&second).unwrap());
        drop(second);
        assert!(try_lock(first).unwrap());
    }
}
