//! A transaction that stays open between calls of Python.
//!
//! Invariants
//! 1. `transaction` borrows the database in the box, which doesn't move and is dropped after it.
//! 2. It is touched and dropped only by the thread that began it, whose lock it holds. Another thread that drops the
//!    whole leaks it: the lock stays taken, and `Turn` says so.
#![allow(
    unsafe_code,
    reason = "a transaction borrows its database, and Python's objects have no lifetimes"
)]

use std::mem::ManuallyDrop;
use std::thread::ThreadId;

use annals::{Database, Result, Transaction};

/// A transaction and its database.
pub(crate) struct Held {
    transaction: ManuallyDrop<Transaction<'static>>,
    database: ManuallyDrop<Box<Database>>,
    thread: ThreadId,
    is_taken: bool,
}

// SAFETY: invariant 2: `get`, `take` and `drop` compare the thread before they touch the transaction.
unsafe impl Send for Held {}

impl Held {
    /// Begins a transaction; waits for the one before.
    pub(crate) fn begin(database: &Database) -> Result<Self> {
        let database = Box::new(database.clone());
        // SAFETY: the box outlives the transaction (invariant 1).
        let lasting: &'static Database = unsafe { &*std::ptr::from_ref(&*database) };
        let transaction = ManuallyDrop::new(lasting.begin()?);
        let (database, thread) = (ManuallyDrop::new(database), std::thread::current().id());
        Ok(Self { transaction, database, thread, is_taken: false })
    }

    /// True if this thread began it.
    pub(crate) fn is_of_this_thread(&self) -> bool {
        self.thread == std::thread::current().id()
    }

    /// Returns the transaction; `None` in another thread than the one that began it.
    pub(crate) fn get(&mut self) -> Option<&mut Transaction<'static>> {
        self.is_of_this_thread().then_some(&mut self.transaction)
    }

    /// Ends the transaction by `end`; `None` in another thread than the one that began it.
    pub(crate) fn end<T>(mut self, end: impl FnOnce(Transaction<'_>) -> T) -> Option<T> {
        if !self.is_of_this_thread() {
            return None;
        }
        self.is_taken = true;
        // SAFETY: it is taken once, since `self` is consumed, and `drop` sees that it was. The database outlives it.
        let transaction = unsafe { ManuallyDrop::take(&mut self.transaction) };
        Some(end(transaction))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.is_taken {
            if !self.is_of_this_thread() {
                return;
            }
            // SAFETY: it wasn't taken, and is never used again.
            unsafe { ManuallyDrop::drop(&mut self.transaction) };
        }
        // SAFETY: nothing borrows it any more (invariant 1), and it is dropped once.
        unsafe { ManuallyDrop::drop(&mut self.database) };
    }
}
