//! How many events were decoded: for tests.
#![allow(missing_docs, reason = "it is for tests")]

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    static DECODED: Cell<u64> = const { Cell::new(0) };
}

static ALL: AtomicU64 = AtomicU64::new(0);

/// Returns how many events this thread has decoded.
#[must_use]
pub fn decoded_events() -> u64 {
    DECODED.get()
}

/// Returns how many events all threads of this process have decoded.
#[must_use]
pub fn decoded_by_all() -> u64 {
    ALL.load(Ordering::Relaxed)
}

pub(super) fn count_event() {
    DECODED.set(DECODED.get() + 1);
    ALL.fetch_add(1, Ordering::Relaxed);
}
