//! Forks: an open file belongs to the process that opened it, and a forked child may not use it.
//!
//! A child inherits its parent's memory and open files, but not its threads. If it wrote, it would write into the
//! file that its parent writes; if it unlocked, it would free its parent's lock, which belongs to the *open file
//! description* that both have. So each handle remembers the id of the process that made it. A call that would
//! write, lock or unlock compares it with the id of the present process, and is an error in a child.
//!
//! No handler is installed in the host program for that, so nothing happens in the child before it calls (only SQL asks for
//! one, since SQLite has locks that all of a process share):
//!
//! - Its copies of the descriptors stay open until it starts a program (all are close-on-exec) or ends. Until then
//!   the locks of a parent that was killed stay held. A parent that closes its database, or drops it, unlocks
//!   explicitly, which frees the lock for everybody.
//! - A descendant that gets the id of the process that opened the file isn't recognised. The system reuses an id only
//!   after that process has ended, and after all other ids.
//!
//! `getpid` is a system call, which can take as long as a small commit's work in memory. So on Linux the id is kept in
//! a page of memory that the kernel clears in a child (`MADV_WIPEONFORK`).

#![cfg_attr(
    all(target_os = "linux", not(miri)),
    allow(unsafe_code, reason = "a page of memory is mapped that a forked child finds cleared")
)]

use std::io;

/// The process in which something was made, distinguished from its forked children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin(u32);

impl Origin {
    /// Returns this process.
    #[inline]
    pub fn here() -> Self {
        Self(system::process())
    }

    /// True in a child that was forked later. A few instructions on Linux; elsewhere a call of the C library.
    #[inline]
    pub fn is_elsewhere(self) -> bool {
        !system::is(self.0)
    }

    /// Returns the id of the process.
    #[inline]
    pub const fn process(self) -> u32 {
        self.0
    }

    /// Fails in a forked child.
    #[inline]
    pub fn check(self) -> io::Result<()> {
        if self.is_elsewhere() { Err(forked()) } else { Ok(()) }
    }
}

/// Has functions called around each fork from now on: one before it, and one after it in the parent and in the child.
///
/// # Errors
/// There is no memory for that.
#[cfg_attr(unix, expect(unsafe_code, reason = "a function of C"))]
pub fn around_forks(before: extern "C" fn(), after: extern "C" fn()) -> io::Result<()> {
    #[cfg(unix)]
    {
        // SAFETY: both functions are there as long as the program.
        match unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) } {
            0 => Ok(()),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }
    #[cfg(not(unix))]
    {
        let _ = (before, after);
        Ok(())
    }
}

#[cold]
fn forked() -> io::Error {
    io::Error::other(
        "this handle was opened before the process was forked: open the database again in the child",
    )
}

#[cfg(all(target_os = "linux", not(miri)))]
mod system {
    use std::ptr::null_mut;
    use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

    /// Where the id of the process is kept: in a page that a forked child finds cleared, or in `NONE`.
    static KEPT: AtomicPtr<AtomicU32> = AtomicPtr::new((&raw const NONE).cast_mut());
    /// Replaces the page before it is mapped, or permanently if it can't be. It stays 0.
    static NONE: AtomicU32 = AtomicU32::new(0);

    #[inline]
    pub(super) fn process() -> u32 {
        match kept().load(Ordering::Relaxed) {
            0 => ask(),
            process => process,
        }
    }

    /// True if this is the process with that id.
    #[inline]
    pub(super) fn is(process: u32) -> bool {
        kept().load(Ordering::Relaxed) == process || ask() == process
    }

    #[inline]
    fn kept() -> &'static AtomicU32 {
        // SAFETY: it points to a static, or to the beginning of a page of zeros that `map` mapped and that stays.
        unsafe { &*KEPT.load(Ordering::Acquire) }
    }

    #[cold]
    fn ask() -> u32 {
        static MAPPED: AtomicBool = AtomicBool::new(false);
        if let Some(page) = (!MAPPED.swap(true, Ordering::Relaxed)).then(map).flatten() {
            KEPT.store(page, Ordering::Release);
        }
        let process = std::process::id();
        if !std::ptr::eq(kept(), &raw const NONE) {
            kept().store(process, Ordering::Relaxed);
        }
        process
    }

    /// Maps the page; `None` where the system refuses, as one before Linux 4.14 does.
    fn map() -> Option<*mut AtomicU32> {
        let len = size_of::<AtomicU32>(); // the system rounds up to a page
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: new memory, at a place that the system chooses.
        let page = unsafe { libc::mmap(null_mut(), len, access, kind, -1, 0) };
        if page == libc::MAP_FAILED {
            return None;
        }
        // SAFETY: it advises on the page that was mapped just now.
        let takes = |advice| unsafe { libc::madvise(page, len, advice) } == 0;
        // Some emulators ignore advice and return success, also for an undefined number.
        if takes(-1) || !takes(libc::MADV_WIPEONFORK) {
            // SAFETY: nothing refers to it.
            unsafe { libc::munmap(page, len) };
            return None;
        }
        Some(page.cast())
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod system {
    use crate::process_id;

    pub(super) fn process() -> u32 {
        process_id()
    }

    pub(super) fn is(process: u32) -> bool {
        process_id() == process
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_made_before_a_fork_says_what_to_do() {
        let Origin(process) = Origin::here();
        assert_eq!(process, std::process::id());
        assert!(!Origin::here().is_elsewhere());
        let error = Origin(process.wrapping_sub(1)).check().unwrap_err();
        assert!(error.to_string().contains("open the database again in the child"), "{error}");
    }

    /// Each process sees its own id, though it inherits the memory where its parent keeps one.
    #[cfg(all(unix, not(miri)))]
    #[test]
    #[allow(unsafe_code, reason = "to fork is unsafe")]
    fn children_and_their_children_are_elsewhere() {
        fn fork(depth: u32) -> bool {
            let origin = Origin::here();
            // SAFETY: the child compares numbers, forks, and ends.
            let child = unsafe { libc::fork() };
            if child == 0 {
                let is_elsewhere = origin.is_elsewhere() && origin.check().is_err();
                let is_right = Origin::here().process() == std::process::id();
                let went_well = is_elsewhere && is_right && (depth == 0 || fork(depth - 1));
                // SAFETY: ends the process, and nothing else.
                unsafe { libc::_exit(i32::from(!went_well)) }
            }
            let mut status = 0;
            // SAFETY: the system writes to `status`, which is borrowed for that.
            let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
            child > 0 && waited == child && status == 0 && !origin.is_elsewhere()
        }
        assert!(fork(3));
    }
}
