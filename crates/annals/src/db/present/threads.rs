//! Telling threads apart.

/// Returns a number that no other thread has now, and that isn't 0.
pub(in crate::db) fn this_thread() -> usize {
    thread_local!(static PLACE: u8 = const { 0 });
    PLACE.with(|place| std::ptr::from_ref(place).addr())
}
