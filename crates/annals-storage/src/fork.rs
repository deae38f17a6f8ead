//! Forks: an open file belongs to the process that opened it, and a forked child gets none of it.
//!
//! A child inherits its parent's memory and open files, but not its threads. If it went on with them
//! it would write into what its parent writes; and since it has the same *open file descriptions* it
//! would keep its parent's locks alive after the parent's end. So, in the child, before `fork` returns:
//!
//! 1. the generation is bumped: every call of a handle of an earlier generation is an error;
//! 2. each registered descriptor is replaced by the read end of a pipe that nobody writes to (which,
//!    unlike `/dev/null`, needs no file system, and whose writes fail): the description is the
//!    parent's alone.
//!
//! The child's handler does nothing but load and store atomics and call `dup2` and `fcntl`, which POSIX
//! allows there. Invariants:
//!
//! 1. A descriptor is registered from before its file is used until just before it is closed. So what
//!    the handler replaces is open, and is ours.
//! 2. No fork begins between the opening of a file and its registration: if one did, the file is opened
//!    again. What the child then has is a description that was never locked.
//!
//! A fork that goes around the C library (a raw `clone`, `_Fork`) isn't seen; neither is `vfork`,
//! whose child may do nothing but start a program, and has no memory of its own. Started programs get
//! nothing: all descriptors are close-on-exec.

#![cfg_attr(
    unix,
    allow(
        unsafe_code,
        reason = "the C library is asked to tell of forks, and descriptors replaced"
    )
)]

use std::fs::File;
use std::io;

pub(super) use system::OwnFile;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) use system::{Registered, open_own};

/// The process in which something was made, as told from its forked children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin(u32);

impl Origin {
    /// Gives this process.
    pub fn here() -> Self {
        Self(system::generation())
    }

    /// Gives this process, and has its children told apart from it from now on, if no file does that yet.
    #[inline]
    pub fn watched() -> Self {
        // If the system refuses, for want of memory, nobody is told: then children are what they are without this.
        let _ = system::notice_forks();
        Self::here()
    }

    /// Tells whether this process is a child, forked since. A few instructions.
    #[inline]
    pub fn is_elsewhere(self) -> bool {
        self.0 != system::generation()
    }

    /// Gives a number that no process has that this one was forked from, nor one that is forked from it.
    #[inline]
    pub const fn generation(self) -> u32 {
        self.0
    }

    /// Fails in a forked child.
    #[inline]
    pub fn check(self) -> io::Result<()> {
        if self.is_elsewhere() { Err(forked()) } else { Ok(()) }
    }
}

#[cold]
fn forked() -> io::Error {
    io::Error::other(
        "this handle was opened before the process was forked: open the database again in the child",
    )
}

/// How a file is opened, or opened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    First,
    /// A fork came between: the file is there, though the first opening created it.
    #[cfg_attr(not(unix), expect(dead_code, reason = "there are no forks"))]
    Again,
}

#[cfg(unix)]
mod system {
    use std::io::PipeReader;
    use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
    use std::ptr;
    use std::sync::atomic::Ordering::SeqCst;
    use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, Ordering};
    use std::sync::{Mutex, PoisonError};

    use super::{File, Opening, Origin, io};

    /// How often this process, counted on from its parent's number, was forked off.
    static GENERATION: AtomicU32 = AtomicU32::new(0);
    /// How many forks this process has begun, and ended.
    static BEGUN: AtomicU32 = AtomicU32::new(0);
    static ENDED: AtomicU32 = AtomicU32::new(0);
    /// What takes the place of a descriptor.
    static STAND_IN: AtomicI32 = AtomicI32::new(FREE);
    static REGISTRY: Block = Block::new();

    /// Stands for no descriptor.
    const FREE: RawFd = -1;

    /// Some places for descriptors, and where there are more. Blocks stay for good.
    struct Block {
        places: [AtomicI32; 64],
        next: AtomicPtr<Self>,
    }

    impl Block {
        const fn new() -> Self {
            let places = [const { AtomicI32::new(FREE) }; 64];
            Self { places, next: AtomicPtr::new(ptr::null_mut()) }
        }

        fn next(&self) -> Option<&'static Self> {
            let next = self.next.load(Ordering::Acquire);
            // SAFETY: it is null, or was leaked by `next_or_new`, which made it whole before.
            unsafe { next.as_ref() }
        }

        fn next_or_new(&self) -> &'static Self {
            if let Some(next) = self.next() {
                return next;
            }
            let new: *mut Self = Box::leak(Box::new(Self::new()));
            let was = self.next.compare_exchange(
                ptr::null_mut(),
                new,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            // Another thread may have been faster; then this block, a few hundred bytes, is lost.
            let next = was.map_or_else(|others| others, |_null| new);
            // SAFETY: both are blocks that were leaked, so they are whole and stay.
            unsafe { &*next }
        }
    }

    /// An open file of this process; in a forked child nothing.
    #[derive(Debug)]
    pub(crate) struct OwnFile {
        /// Before the file, which is closed after it.
        _place: Registered,
        file: File,
        origin: Origin,
    }

    impl OwnFile {
        pub(crate) fn open(open: impl FnMut(Opening) -> io::Result<File>) -> io::Result<Self> {
            let (place, file) = open_own(open)?;
            Ok(Self { _place: place, file, origin: Origin::here() })
        }

        /// Gives the file; an error in a forked child.
        #[inline]
        pub(crate) fn get(&self) -> io::Result<&File> {
            self.origin.check().map(|()| &self.file)
        }
    }

    /// Opens something of which a forked child gets nothing. The first of the two must be dropped first.
    pub(crate) fn open_own<T: AsRawFd>(
        mut open: impl FnMut(Opening) -> io::Result<T>,
    ) -> io::Result<(Registered, T)> {
        watch()?;
        let mut opening = Opening::First;
        loop {
            let begun = forks_when_none_goes_on();
            let own = open(opening)?;
            let place = register(own.as_raw_fd());
            if BEGUN.load(SeqCst) == begun {
                return Ok((place, own));
            }
            drop(place);
            opening = Opening::Again;
        }
    }

    /// The place of a descriptor among those that a forked child doesn't get.
    #[derive(Debug)]
    pub(crate) struct Registered {
        descriptor: RawFd,
        place: &'static AtomicI32,
    }

    impl Drop for Registered {
        /// Before the file is closed: then its number may be that of another file at once.
        fn drop(&mut self) {
            // In a child the handler has freed the place, which may be another file's by now.
            let _ = self.place.compare_exchange(self.descriptor, FREE, SeqCst, SeqCst);
        }
    }

    pub(super) fn generation() -> u32 {
        GENERATION.load(Ordering::Relaxed)
    }

    fn forks_when_none_goes_on() -> u32 {
        loop {
            let begun = BEGUN.load(SeqCst);
            if ENDED.load(SeqCst) == begun {
                return begun;
            }
            std::thread::yield_now();
        }
    }

    fn register(descriptor: RawFd) -> Registered {
        let mut block = &REGISTRY;
        loop {
            let taken = |place: &&AtomicI32| {
                place.compare_exchange(FREE, descriptor, SeqCst, SeqCst).is_ok()
            };
            if let Some(place) = block.places.iter().find(taken) {
                return Registered { descriptor, place };
            }
            block = block.next_or_new();
        }
    }

    /// Asks to be told of forks. Without a lock, which a child would find locked if another thread did this: two
    /// threads may both ask, and being told twice does no harm.
    #[inline]
    pub(super) fn notice_forks() -> io::Result<()> {
        static NOTICED: AtomicBool = AtomicBool::new(false);
        if NOTICED.load(Ordering::Acquire) { Ok(()) } else { ask(&NOTICED) }
    }

    #[cold]
    fn ask(noticed: &AtomicBool) -> io::Result<()> {
        // SAFETY: the functions are there as long as this code is (a library that is unloaded takes its
        // handlers along), and the child's does only what is allowed in one.
        let failed =
            unsafe { libc::pthread_atfork(Some(fork_begins), Some(fork_ended), Some(forked_off)) };
        if failed != 0 {
            return Err(io::Error::from_raw_os_error(failed));
        }
        noticed.store(true, Ordering::Release);
        Ok(())
    }

    /// Sees to it, once, that a child gets nothing of what is registered.
    fn watch() -> io::Result<()> {
        static WATCHED: AtomicBool = AtomicBool::new(false);
        static WATCHING: Mutex<()> = Mutex::new(());
        if WATCHED.load(Ordering::Acquire) {
            return Ok(());
        }
        let _watching = WATCHING.lock().unwrap_or_else(PoisonError::into_inner);
        if !WATCHED.load(Ordering::Acquire) {
            let (stand_in, _writer): (PipeReader, _) = io::pipe()?;
            notice_forks()?;
            STAND_IN.store(stand_in.into_raw_fd(), SeqCst);
            WATCHED.store(true, Ordering::Release);
        }
        Ok(())
    }

    extern "C" fn fork_begins() {
        BEGUN.fetch_add(1, SeqCst);
    }

    extern "C" fn fork_ended() {
        ENDED.fetch_add(1, SeqCst);
    }

    /// Runs in the child, whose only thread this is.
    extern "C" fn forked_off() {
        GENERATION.fetch_add(1, SeqCst);
        // Forks that other threads of the parent had begun don't end here.
        ENDED.store(BEGUN.load(SeqCst), SeqCst);
        let stand_in = STAND_IN.load(SeqCst);
        let mut block = Some(&REGISTRY);
        while let Some(places) = block {
            for place in &places.places {
                let descriptor = place.swap(FREE, SeqCst);
                if descriptor != FREE {
                    replace(descriptor, stand_in);
                }
            }
            block = places.next();
        }
    }

    /// Puts a copy of `stand_in` in the place of `descriptor`.
    fn replace(descriptor: RawFd, stand_in: RawFd) {
        // SAFETY: these calls only change what the numbers stand for; the first is one of ours, whose
        // handles give no access to it any more.
        unsafe {
            if libc::dup2(stand_in, descriptor) == descriptor {
                libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
            } else {
                // Somebody closed the pipe behind our back. Still the parent must have its file alone.
                libc::close(descriptor);
            }
        }
    }
}

#[cfg(not(unix))]
mod system {
    //! There are no forks here.
    use super::{File, Opening, io};

    #[derive(Debug)]
    pub(crate) struct OwnFile(File);

    impl OwnFile {
        pub(crate) fn open(mut open: impl FnMut(Opening) -> io::Result<File>) -> io::Result<Self> {
            open(Opening::First).map(Self)
        }

        #[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
        pub(crate) fn get(&self) -> io::Result<&File> {
            Ok(&self.0)
        }
    }

    pub(super) const fn generation() -> u32 {
        0
    }

    #[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
    pub(super) const fn notice_forks() -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "this room touches the machine")]
mod tests {
    use super::*;

    #[test]
    fn as_many_files_as_one_likes_are_registered_and_let_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, b"x").unwrap();
        // More than a block has places for.
        let count = if cfg!(miri) { 70 } else { 200 };
        for _ in 0..2 {
            let open = || OwnFile::open(|_| File::open(&path)).unwrap();
            let files: Vec<_> = (0..count).map(|_| open()).collect();
            assert!(files.iter().all(|file| file.get().unwrap().metadata().unwrap().len() == 1));
        }
        assert!(!Origin::here().is_elsewhere());
    }

    #[test]
    fn what_was_made_before_a_fork_says_what_to_do() {
        let Origin(generation) = Origin::here();
        let error = Origin(generation.wrapping_sub(1)).check().unwrap_err();
        assert!(error.to_string().contains("open the database again in the child"), "{error}");
    }
}
