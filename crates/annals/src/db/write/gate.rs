//! The gate of an open database: operations on its files pass it, and closing waits for them.
//!
//! Transactions don't need it: closing waits for their lock, and those that begin after it find the gate closed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use crate::journal::lock;

/// Counts the running operations, until it is closed.
#[derive(Debug, Default)]
pub(in crate::db) struct Gate {
    running: Mutex<usize>,
    is_closed: AtomicBool,
    left: Condvar,
}

/// A running operation.
#[derive(Debug)]
pub(in crate::db) struct Entered<'g>(&'g Gate);

impl Gate {
    /// Begins an operation, which ends when the value is dropped; `None` if the gate is closed.
    pub(in crate::db) fn enter(&self) -> Option<Entered<'_>> {
        let mut running = lock(&self.running);
        if self.is_closed() {
            return None;
        }
        *running += 1;
        Some(Entered(self))
    }

    /// True if no operation may begin any more.
    pub(in crate::db) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Lets no operation begin any more, and waits for the running ones.
    pub(in crate::db) fn close(&self) {
        let running = lock(&self.running);
        self.is_closed.store(true, Ordering::Relaxed);
        let waited = self.left.wait_while(running, |running| *running > 0);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        *lock(&self.0.running) -= 1;
        self.0.left.notify_all();
    }
}
