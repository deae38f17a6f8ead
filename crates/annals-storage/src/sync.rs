//! Locks between threads.
//!
//! Invariants of [`MovableMutex`]
//! 1. The value is reached only through the one guard that exists while `state` isn't `FREE`, or through `&mut self`.
//! 2. A thread that waits made `state` `AWAITED` while it had `waiting`, and keeps that lock until it sleeps. Whoever
//!    releases an `AWAITED` lock acquires `waiting` before it wakes a thread, so that it finds the sleeper.
#![allow(
    unsafe_code,
    reason = "a guard of std can't be released by another thread, and a lock of its own needs a cell"
)]

use std::cell::UnsafeCell;
use std::fmt;
use std::hint;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};

/// Acquires a lock whose data is consistent even if a holder panicked.
#[inline]
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Acquires such a lock if it is free.
pub fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and maybe other threads wait.
const AWAITED: u32 = 2;

/// How often a thread looks before it sleeps, as std's lock does: a short commit ends sooner than a sleep begins.
const SPINS: u32 = 100;

/// A lock that one thread may acquire, and another release: unlike a guard of std's `Mutex`, this one's is `Send`. Its
/// data is consistent even if a holder panicked.
#[derive(Default)]
pub struct MovableMutex<T> {
    state: AtomicU32,
    waiting: Mutex<()>,
    is_free: Condvar,
    value: UnsafeCell<T>,
}

// SAFETY: threads that share it reach the value one at a time (invariant 1); it moves between them, so it is `Send`.
unsafe impl<T: Send> Sync for MovableMutex<T> {}

impl<T> MovableMutex<T> {
    /// Makes a lock of a value.
    pub fn new(value: T) -> Self {
        Self {
            state: AtomicU32::new(FREE),
            waiting: Mutex::default(),
            is_free: Condvar::new(),
            value: UnsafeCell::new(value),
        }
    }

    /// Acquires the lock; waits until it is free.
    #[inline]
    pub fn lock(&self) -> MovableGuard<'_, T> {
        self.try_lock().unwrap_or_else(|| self.wait())
    }

    /// Acquires the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<MovableGuard<'_, T>> {
        let taken = self.state.compare_exchange(FREE, HELD, Acquire, Relaxed);
        taken.is_ok().then(|| MovableGuard { mutex: self, value: PhantomData })
    }

    #[cold]
    fn wait(&self) -> MovableGuard<'_, T> {
        let is_held = |_: &u32| self.state.load(Relaxed) == HELD;
        (0..SPINS).take_while(is_held).for_each(|_| hint::spin_loop());
        if let Some(guard) = self.try_lock() {
            return guard;
        }
        let mut waiting = lock(&self.waiting);
        // Others may wait, too: so it stays awaited while this thread has it.
        while self.state.swap(AWAITED, Acquire) != FREE {
            waiting = self.is_free.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        MovableGuard { mutex: self, value: PhantomData }
    }

    #[cold]
    fn wake(&self) {
        drop(lock(&self.waiting));
        self.is_free.notify_one();
    }

    /// Returns the value, of a lock that nobody can hold; also after a guard was forgotten.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<T> fmt::Debug for MovableMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MovableMutex").field("state", &self.state).finish_non_exhaustive()
    }
}

/// A lock that is held. Any thread may drop it.
#[derive(Debug)]
#[must_use = "dropping it releases the lock"]
pub struct MovableGuard<'m, T> {
    mutex: &'m MovableMutex<T>,
    /// Makes it `Send` and `Sync` as the value is.
    value: PhantomData<&'m mut T>,
}

impl<T> Deref for MovableGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this is the only guard (invariant 1), and it is borrowed.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T> DerefMut for MovableGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this is the only guard (invariant 1), and it is borrowed alone.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T> Drop for MovableGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.mutex.state.swap(FREE, Release) == AWAITED {
            self.mutex.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::MovableMutex;

    #[test]
    fn threads_change_the_value_one_at_a_time() {
        let mutex = Arc::new(MovableMutex::new(0));
        let count = if cfg!(miri) { 20 } else { 2_000 };
        let add =
            |mutex: Arc<MovableMutex<u32>>| move || (0..count).for_each(|_| *mutex.lock() += 1);
        let threads: Vec<_> = (0..4).map(|_| thread::spawn(add(Arc::clone(&mutex)))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(*mutex.lock(), 4 * count);
    }

    #[test]
    fn another_thread_releases_it_for_one_that_waits() {
        let mutex = MovableMutex::new(1);
        thread::scope(|scope| {
            let mut guard = mutex.lock();
            let waiter = scope.spawn(|| *mutex.lock());
            assert!(mutex.try_lock().is_none());
            scope.spawn(move || {
                *guard += 1;
                drop(guard);
            });
            assert_eq!(waiter.join().unwrap(), 2);
        });
        assert!(mutex.try_lock().is_some());
    }

    #[test]
    fn a_panic_releases_it_and_a_forgotten_guard_does_not() {
        let mut mutex = MovableMutex::new(1);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _guard = mutex.lock();
            panic!("with the lock");
        }));
        assert!(panicked.is_err() && mutex.try_lock().is_some());
        std::mem::forget(mutex.lock());
        assert!(mutex.try_lock().is_none());
        assert_eq!(*mutex.get_mut(), 1);
    }
}
