//! Locks between threads.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Acquires a lock whose data is consistent even if a holder panicked.
#[inline]
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
