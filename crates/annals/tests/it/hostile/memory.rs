//! Counts the memory that a thread takes, to see that no number in a file makes it take more.

#![allow(unsafe_code, reason = "an allocator that counts can't be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static NOW: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

/// Notes that this thread has so much more, or less.
fn count(more: usize, less: usize) {
    // A thread that is ending has no counters any more, and nobody asks for them.
    let _ = NOW.try_with(|now| {
        now.set(now.get().saturating_add(more).saturating_sub(less));
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(now.get())));
    });
}

// SAFETY: every call is handed on to the system's allocator as it came; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller keeps the contract of `alloc_zeroed`, which is the same.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: `place` came from the system's allocator with this layout, as all do here.
        unsafe { System.dealloc(place, layout) }
    }
    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: `place` came from the system's allocator with this layout, as all do here.
        unsafe { System.realloc(place, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs something, and returns how many bytes this thread had at most beyond those before.
pub(crate) fn peak<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.get();
    PEAK.set(before);
    let result = run();
    (result, PEAK.get().saturating_sub(before))
}

#[test]
fn the_counter_counts() {
    let (_, taken) = peak(|| drop(vec![1u8; 1 << 20]));
    assert!((1 << 20..2 << 20).contains(&taken), "{taken}");
    let (_, taken) = peak(|| ());
    assert!(taken < 1000, "{taken}");
}
