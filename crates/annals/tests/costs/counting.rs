//! An allocator that counts: how often a thread asks for memory, how much all of them hold.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The system's allocator, with counts beside it.
pub(crate) struct Counting;

thread_local! {
    /// How often this thread got memory, or more of it.
    static TIMES: Cell<u64> = const { Cell::new(0) };
}

/// Bytes that all threads hold.
static HELD: AtomicI64 = AtomicI64::new(0);
/// The most that they held.
static PEAK: AtomicI64 = AtomicI64::new(0);
/// Whose turn it is: a test that counts bytes would count those of others.
static TURN: Mutex<()> = Mutex::new(());

fn note(times: u64, more: usize, less: usize) {
    // A thread that ends gives memory back when nothing is counted any more.
    let _ = TIMES.try_with(|counted| counted.set(counted.get() + times));
    let size = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
    let change = size(more) - size(less);
    let held = HELD.fetch_add(change, Relaxed) + change;
    PEAK.fetch_max(held, Relaxed);
}

// SAFETY: every call goes to the system's allocator with the same arguments; counting neither allocates
// nor unwinds, as plain numbers need no memory and no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(1, layout.size(), 0);
        // SAFETY: the caller promises what `System` wants.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(1, layout.size(), 0);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        note(0, 0, layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(1, size, layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }
}

/// Waits until no other test of this program runs, and keeps them waiting.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does something, and returns how often this thread got memory meanwhile.
pub(crate) fn times(work: impl FnOnce()) -> u64 {
    let before = TIMES.get();
    work();
    TIMES.get() - before
}

/// Does something, and returns how many bytes more than before were held at most meanwhile.
pub(crate) fn peak(work: impl FnOnce()) -> i64 {
    let before = HELD.load(Relaxed);
    PEAK.store(before, Relaxed);
    work();
    PEAK.load(Relaxed) - before
}
