//! Forks, while other threads are in SQLite.
//!
//! SQLite has locks for all connections of a process: of its memory, its settings, its random numbers. A child that is
//! forked while another thread holds one finds it locked for ever, also for connections of its own. So all of them are
//! taken before a fork, and freed after it on both sides, as the C library does with its own.

use std::ffi::c_int;
use std::sync::Once;

use annals::internals::around_forks;
use rusqlite::ffi;

/// The locks, each before those that SQLite takes while it holds it.
const LOCKS: [c_int; 9] = [
    ffi::SQLITE_MUTEX_STATIC_VFS1,
    ffi::SQLITE_MUTEX_STATIC_VFS2,
    ffi::SQLITE_MUTEX_STATIC_VFS3,
    ffi::SQLITE_MUTEX_STATIC_OPEN,
    ffi::SQLITE_MUTEX_STATIC_PRNG,
    ffi::SQLITE_MUTEX_STATIC_MAIN,
    ffi::SQLITE_MUTEX_STATIC_LRU,
    ffi::SQLITE_MUTEX_STATIC_PMEM,
    ffi::SQLITE_MUTEX_STATIC_MEM,
];

/// Makes SQLite usable in children that are forked from now on. To be called before the first connection is opened.
#[expect(unsafe_code, reason = "locks of C")]
pub(crate) fn survive_forks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: it may be called at any time; after it the locks are there. Should it fail, opening a connection fails, too.
        let is_ready = unsafe { ffi::sqlite3_initialize() } == ffi::SQLITE_OK;
        if is_ready {
            // Without memory for that, forks are as they were.
            let _ = around_forks(take, free);
        }
    });
}

#[expect(unsafe_code, reason = "locks of C")]
extern "C" fn take() {
    for lock in LOCKS {
        // SAFETY: a static lock of SQLite, which is initialized. This thread holds none: nothing that SQLite calls forks.
        unsafe { ffi::sqlite3_mutex_enter(ffi::sqlite3_mutex_alloc(lock)) };
    }
}

#[expect(unsafe_code, reason = "locks of C")]
extern "C" fn free() {
    for lock in LOCKS.into_iter().rev() {
        // SAFETY: `take` has locked it in this thread, of which a child has the copy.
        unsafe { ffi::sqlite3_mutex_leave(ffi::sqlite3_mutex_alloc(lock)) };
    }
}
