//! A transaction that stays open between calls of Python. Any thread may use and end it, one at a time.
//!
//! Invariants
//! 1. `transaction` borrows the database of the same `Held`, which is dropped after it, and after that the turn is given
//!    to the next one.
//! 2. While a call uses it, the slot says so, and the call has it; it comes back when the call ends.
//! 3. While a call takes rows one by one, which may run other code, nothing but its own parts changes or ends it.
#![allow(
    unsafe_code,
    reason = "a transaction borrows its database, and Python's objects have no lifetimes"
)]

use std::sync::{Arc, Condvar, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

use annals::{Commit, Database, Result, Transaction, internals};
use pyo3::prelude::*;

use crate::errors::invalid;
use crate::turn::Ticket;
use crate::wait::{locked, uninterrupted, until};

/// A transaction, its database and its turn.
pub(crate) struct Held {
    // In the order in which they are dropped.
    transaction: Transaction<'static>,
    database: Arc<Database>,
    ticket: Ticket,
}

impl Held {
    /// Begins a transaction. In shared mode it waits for other processes up to `timeout`, and while `is_wanted`.
    pub(crate) fn begin(
        database: &Database,
        ticket: Ticket,
        timeout: Option<Duration>,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Self> {
        let database = Arc::new(database.clone());
        // SAFETY: the database has a place of its own, which outlives the transaction (invariant 1).
        let lasting: &'static Database = unsafe { &*Arc::as_ptr(&database) };
        let transaction = internals::begin_while(lasting, timeout, is_wanted)?;
        Ok(Self { transaction, database, ticket })
    }

    /// Commits. The next transaction begins while this one waits for its flush.
    pub(crate) fn commit(self) -> Result<Commit> {
        let Self { transaction, database, ticket } = self;
        let pending = transaction.submit()?;
        drop(ticket);
        let committed = pending.wait();
        drop(database);
        committed
    }

    /// Rolls back.
    pub(crate) fn rollback(self) -> Result<()> {
        // What remains is dropped after it.
        self.transaction.rollback()
    }
}

enum State {
    Free(Box<Held>),
    /// A call has it: of this thread, or one that ends by itself after its caller was interrupted.
    Used(Option<ThreadId>),
    Over,
}

struct Inside {
    state: State,
    /// The thread of a call that takes rows one by one.
    taking: Option<ThreadId>,
}

/// Who uses a transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Call,
    /// One that only reads, or a part of the call that takes rows.
    Part,
    /// The end of the call that takes rows: it waits also if a signal arrives, which is handled after it.
    End,
}

/// Where a transaction is between calls.
pub(crate) struct Slot {
    inside: Mutex<Inside>,
    is_free: Condvar,
}

impl Slot {
    pub(crate) fn new(held: Held) -> Arc<Self> {
        let inside = Inside { state: State::Free(Box::new(held)), taking: None };
        Arc::new(Self { inside: Mutex::new(inside), is_free: Condvar::new() })
    }

    /// True if the transaction was committed or rolled back.
    pub(crate) fn is_over(&self) -> bool {
        matches!(locked(&self.inside).state, State::Over)
    }

    /// Takes the transaction for a call; waits for one of another thread.
    pub(crate) fn take(self: &Arc<Self>, py: Python<'_>, by: By) -> PyResult<Taken> {
        let me = std::thread::current().id();
        let take = move |Inside { state, taking }: &mut Inside| match state {
            State::Over => Some(Err("the transaction is over; begin another one")),
            _ if by == By::Call && taking.is_some_and(|other| other != me) => None,
            _ if by == By::Call && taking.is_some() => Some(Err(
                "the transaction is taking rows, and what makes them can't change or end it: it may read only",
            )),
            State::Free(_) => match std::mem::replace(state, State::Used(Some(me))) {
                State::Free(held) => Some(Ok(held)),
                other => {
                    *state = other;
                    None
                }
            },
            State::Used(Some(user)) if *user == me => Some(Err(
                "the transaction is in use by a call of this thread, which must end first",
            )),
            State::Used(_) => None,
        };
        let now = take(&mut locked(&self.inside));
        let taken = match now {
            Some(taken) => Some(taken),
            None if by == By::End => Some(uninterrupted(py, (&self.inside, &self.is_free), take)),
            None => until(py, (&self.inside, &self.is_free), None, take)?,
        };
        let held = taken.unwrap_or(Err("the transaction is in use")).map_err(invalid)?;
        held.ticket.begin_use();
        Ok(Taken { slot: Arc::clone(self), held: Some(held) })
    }
}

/// A transaction that a call has.
pub(crate) struct Taken {
    slot: Arc<Slot>,
    held: Option<Box<Held>>,
}

impl Taken {
    /// Returns the transaction.
    pub(crate) fn get(&mut self) -> &mut Transaction<'static> {
        &mut self.held.as_mut().expect("it is there until this is dropped").transaction
    }

    /// Lets the call go on after its thread was interrupted: then that thread, too, waits for it.
    pub(crate) fn leave(&self) {
        locked(&self.slot.inside).state = State::Used(None);
    }

    /// Lets only parts of this thread's call change or end it from now on, or others again.
    pub(crate) fn takes_rows(&self, takes: bool) {
        locked(&self.slot.inside).taking = takes.then(|| std::thread::current().id());
    }

    /// Ends the transaction.
    pub(crate) fn end<T>(mut self, end: impl FnOnce(Held) -> Result<T>) -> Result<T> {
        let held = self.held.take().expect("it is there until this is dropped");
        end(*held)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(held) = &self.held {
            held.ticket.end_use();
        }
        locked(&self.slot.inside).state = self.held.take().map_or(State::Over, State::Free);
        self.slot.is_free.notify_all();
    }
}
