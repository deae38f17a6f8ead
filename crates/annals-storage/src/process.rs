//! Other processes.

#![cfg_attr(unix, allow(unsafe_code, reason = "signals and limits of the system"))]

use std::sync::atomic::{AtomicBool, Ordering};

/// Returns the number of this process; 1 where there are none, in WebAssembly.
#[must_use]
pub fn process_id() -> u32 {
    #[cfg(target_family = "wasm")]
    return 1;
    #[cfg(not(target_family = "wasm"))]
    std::process::id()
}

/// True if there is a process of this number, for messages: it may be another by now, or one that lives where this
/// system can't see it. If the system can't be queried (not on Unix), it returns true.
pub fn is_alive(pid: u32) -> bool {
    system::is_alive(pid)
}

/// Lets this process survive a write past its limit on the size of files (`ulimit -f`). The write fails with
/// [`FileTooLarge`](std::io::ErrorKind::FileTooLarge), as on a full disk, and the signal `SIGXFSZ` doesn't end the
/// process. The limit isn't changed, nor is a handler that the process has set.
///
/// The library doesn't call this itself, since signals belong to the program. A program that may run under such a
/// limit calls it once, when it starts. Programs that it starts ignore the signal, too. Does nothing where there is
/// no such signal.
pub fn ignore_file_size_signal() {
    system::ignore_file_size_signal();
}

/// Returns how many files and connections this process may have open (`ulimit -n`); the largest number where there is no
/// such limit.
#[must_use]
pub fn most_open_files() -> u64 {
    system::most_open_files()
}

/// Raises that limit as far as the system lets this process. Programs that it starts have it, too. The library doesn't call
/// this itself: a program with many connections does, when it starts.
pub fn raise_most_open_files() {
    system::raise_most_open_files();
}

/// Lowers the priority of this thread until it ends, so that short work of other threads doesn't wait for its long one. Does
/// nothing where only processes have a priority: it is for Linux.
pub fn lower_priority() {
    system::lower_priority();
}

/// Makes the allocator of the system give freed memory back within about a second from now on, by a thread of its own. The
/// library doesn't call this itself: a program that promises a bound of its memory does, when it starts. Does nothing with other
/// allocators than that of glibc.
pub fn return_freed_memory() {
    system::return_freed_memory();
}

/// While it exists, Ctrl-C at the terminal (`SIGINT`) doesn't end this process, but is noted. It is for programs in
/// which a person has begun something that isn't lost lightly. There is one at a time. On Unix only.
#[derive(Debug)]
pub struct Interrupts {
    _handler: system::Handler,
}

impl Interrupts {
    /// Records interrupts (Ctrl-C) until this is dropped.
    #[must_use]
    pub fn catch() -> Self {
        INTERRUPTED.store(false, Ordering::Relaxed);
        Self { _handler: system::Handler::set() }
    }

    /// True if there was an interrupt since the last call.
    #[must_use]
    pub fn take(&self) -> bool {
        INTERRUPTED.swap(false, Ordering::Relaxed)
    }
}

/// True if there was an interrupt that wasn't taken yet.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

#[cfg(unix)]
mod system {
    use std::sync::atomic::Ordering;

    use super::INTERRUPTED;
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    use crate::Clock as _;

    /// The previous handler.
    #[derive(Debug)]
    pub(super) struct Handler(libc::sighandler_t);

    impl Handler {
        pub(super) fn set() -> Self {
            let handler: extern "C" fn(libc::c_int) = note;
            // SAFETY: the handler only stores to an atomic, which POSIX allows in one.
            Self(unsafe { libc::signal(libc::SIGINT, handler as libc::sighandler_t) })
        }
    }

    impl Drop for Handler {
        fn drop(&mut self) {
            if self.0 != libc::SIG_ERR {
                // SAFETY: it was the handler before, and only this code has set another.
                unsafe { libc::signal(libc::SIGINT, self.0) };
            }
        }
    }

    extern "C" fn note(_signal: libc::c_int) {
        INTERRUPTED.store(true, Ordering::Relaxed);
    }

    pub(super) fn ignore_file_size_signal() {
        // SAFETY: no memory is touched, and the new handler is either none or the previous one.
        unsafe {
            let before = libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            if before != libc::SIG_DFL && before != libc::SIG_ERR {
                libc::signal(libc::SIGXFSZ, before);
            }
        }
    }

    /// Returns the limit of open files, and how far it can be raised.
    fn open_files() -> Option<libc::rlimit> {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the call writes one such struct, which lives here.
        let result = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
        (result == 0).then_some(limit)
    }

    pub(super) fn most_open_files() -> u64 {
        open_files().map_or(u64::MAX, |limit| limit.rlim_cur)
    }

    pub(super) fn raise_most_open_files() {
        if let Some(limit) = open_files() {
            let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
            // SAFETY: the call reads one such struct, which lives here. If it fails, the limit is as before.
            unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) };
        }
    }

    /// How much lower the priority of a thread becomes: such threads have a tenth of the time of the others, if those want
    /// all of it.
    #[cfg(target_os = "linux")]
    const NICER: libc::c_int = 10;

    pub(super) fn lower_priority() {
        // SAFETY: the call touches no memory; 0 means this thread. If it fails, the priority is as before.
        #[cfg(target_os = "linux")]
        unsafe {
            libc::setpriority(libc::PRIO_PROCESS, 0, NICER)
        };
    }

    /// The interval of giving memory back.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    const OFTEN: std::time::Duration = std::time::Duration::from_secs(1);

    pub(super) fn return_freed_memory() {
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        for (setting, value) in [
            // Larger pieces are mapped one by one, and unmapped when they are freed.
            (libc::M_MMAP_THRESHOLD, 256 << 10),
            // So much is kept free at the end of a heap.
            (libc::M_TRIM_THRESHOLD, 256 << 10),
            // So many heaps are there, each with gaps of its own.
            (libc::M_ARENA_MAX, 4),
        ] {
            // SAFETY: the call only changes settings of the allocator, which may happen at any time.
            unsafe { libc::mallopt(setting, value) };
        }
        // What is freed in the midst of a heap stays there otherwise. Without the thread the program takes more, and works.
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        drop(std::thread::Builder::new().name("annals-trim".to_owned()).spawn(|| {
            loop {
                crate::SystemClock.pause(OFTEN);
                // SAFETY: the call may happen at any time, and touches only memory that isn't in use.
                unsafe { libc::malloc_trim(0) };
            }
        }));
    }

    pub(super) fn is_alive(pid: u32) -> bool {
        // 0 and negative numbers mean groups of processes.
        let Some(pid) = libc::pid_t::try_from(pid).ok().filter(|pid| *pid > 0) else {
            return false;
        };
        // SAFETY: signal 0 is none: the call only looks whether one could be sent.
        let result = unsafe { libc::kill(pid, 0) };
        // A process of another user can't be sent signals, but exists.
        result == 0 || std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
    }
}

#[cfg(not(unix))]
mod system {
    /// Nothing: an interrupt ends the process.
    #[derive(Debug)]
    pub(super) struct Handler;

    impl Handler {
        pub(super) const fn set() -> Self {
            Self
        }
    }

    pub(super) const fn ignore_file_size_signal() {}

    pub(super) const fn most_open_files() -> u64 {
        u64::MAX
    }

    pub(super) const fn raise_most_open_files() {}

    pub(super) const fn lower_priority() {}

    pub(super) const fn return_freed_memory() {}

    pub(super) fn is_alive(_pid: u32) -> bool {
        true
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_open_files_is_raised() {
        let before = most_open_files();
        raise_most_open_files();
        assert!(before > 0 && most_open_files() >= before);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn only_the_thread_that_asks_has_a_lower_priority() {
        let priority = || {
            let status = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            let after = status.rsplit(") ").next().unwrap().to_owned();
            after.split(' ').nth(16).unwrap().parse::<i32>().unwrap()
        };
        let before = priority();
        let lowered = std::thread::spawn(move || {
            lower_priority();
            priority()
        });
        assert!(lowered.join().unwrap() > before);
        assert_eq!(priority(), before);
    }

    #[test]
    fn a_process_lives_until_it_ended() {
        assert!(is_alive(std::process::id()));
        assert!(is_alive(1), "somebody else's");
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert!(!is_alive(pid));
        for absurd in [0, u32::MAX, 1 << 31] {
            assert!(!is_alive(absurd), "{absurd}");
        }
    }
}
