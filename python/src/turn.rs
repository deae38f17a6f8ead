//! Whose turn it is to write, among the threads and tasks of this process.
//!
//! A transaction isn't bound to a thread, so that a thread can't be asked whether it would wait for itself: a thread of
//! a pool may begin one for one request, and be asked to begin another for the next. What tells is the context
//! (`contextvars`), which Python and frameworks keep for each thread, task and request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;

use crate::errors::{busy, invalid};
use crate::wait::{deadline_of, locked, now, until};

/// How long an open transaction is unused before a waiting thread collects garbage: it may be part of a cycle, as an
/// exception and its frames are, and then nobody can end it.
const COLLECTED_AFTER: Duration = Duration::from_secs(1);

/// How long it is unused before a thread that waits without a timeout gives up.
const PATIENCE: Duration = Duration::from_secs(10);

/// The transaction that is open.
struct Open {
    number: u64,
    /// The thread that used it last.
    user: ThreadId,
    /// When that use ended; nothing while a call uses it.
    unused_since: Option<Instant>,
}

impl Open {
    fn is_unused_for(&self, time: Duration) -> bool {
        self.unused_since.is_some_and(|since| since.elapsed() >= time)
    }
}

/// Whose turn it is. Waiting for it, unlike waiting for the database's own lock, can be interrupted.
#[derive(Default)]
pub(crate) struct Turn {
    open: Mutex<Option<Open>>,
    is_free: Condvar,
}

/// The turn of one transaction; dropping it gives the turn to the next one.
pub(crate) struct Ticket {
    turn: Arc<Turn>,
}

impl Ticket {
    /// Records that this thread begins to use the transaction.
    pub(crate) fn begin_use(&self) {
        self.note(Some(std::thread::current().id()), None);
    }

    /// Records that nobody uses it now.
    pub(crate) fn end_use(&self) {
        self.note(None, Some(now()));
    }

    fn note(&self, user: Option<ThreadId>, unused_since: Option<Instant>) {
        if let Some(open) = locked(&self.turn.open).as_mut() {
            open.user = user.unwrap_or(open.user);
            open.unused_since = unused_since;
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        *locked(&self.turn.open) = None;
        self.turn.is_free.notify_one();
    }
}

/// How many transactions a context remembers: one of each of so many databases may be open.
const REMEMBERED: usize = 16;

/// Returns the variable of the context that has the numbers of the transactions which it began.
fn variable(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static VARIABLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let made = VARIABLE.get_or_try_init(py, || {
        let class = py.import("contextvars")?.getattr("ContextVar")?;
        Ok::<_, PyErr>(class.call1(("annals_transactions",))?.unbind())
    });
    made.map(|made| made.bind(py))
}

fn begun_here(py: Python<'_>) -> PyResult<Vec<u64>> {
    variable(py)?.call_method1("get", (PyTuple::empty(py),))?.extract()
}

/// True if this thread runs an event loop: another task of it can't end a transaction while this thread waits.
fn runs_event_loop(py: Python<'_>) -> PyResult<bool> {
    let modules = py.import("sys")?.getattr("modules")?;
    let asyncio = modules.call_method1("get", ("asyncio",))?;
    Ok(!asyncio.is_none() && asyncio.call_method0("get_running_loop").is_ok())
}

const NESTED: &str = "this thread has a transaction open already: end it first, or use a savepoint; if no \
    variable has it, an exception keeps it, whose frames are freed by the next one; tasks of an event loop write in \
    threads (`asyncio.to_thread`)";
const UNUSED: &str = "another transaction is open, and nobody has used it for 10 seconds: end it with `commit()` or \
    `rollback()`, as the end of `with db.write() as tx` does; a dependency of this request may have it, too; \
    `timeout=` of `write` waits longer";
const LATE: &str =
    "another thread has a transaction open, and didn't end it within the timeout; try again";

/// Why a thread doesn't wait for an open transaction.
enum Hopeless {
    Nested,
    Unused,
}

impl Turn {
    /// True if a transaction is open.
    pub(crate) fn is_taken(&self) -> bool {
        locked(&self.open).is_some()
    }

    /// Takes the turn, and waits for it up to `timeout`; without one, as long as the open transaction is used. Returns what is
    /// left of the timeout, too, in milliseconds.
    pub(crate) fn take(
        self: &Arc<Self>,
        py: Python<'_>,
        timeout: Option<Duration>,
    ) -> PyResult<(Ticket, Option<Duration>)> {
        let begun = now();
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        self.wait(py, timeout, Some(number))?;
        let ticket = Ticket { turn: Arc::clone(self) };
        let mut numbers = begun_here(py)?;
        numbers.push(number);
        let first = numbers.len().saturating_sub(REMEMBERED);
        variable(py)?.call_method1("set", (PyTuple::new(py, &numbers[first..])?,))?;
        let waited = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let left = timeout.map(|all| all.saturating_sub(Duration::from_millis(waited)));
        Ok((ticket, left))
    }

    /// Waits until no transaction is open.
    pub(crate) fn wait_for_end(&self, py: Python<'_>) -> PyResult<()> {
        self.wait(py, None, None)
    }

    /// Waits until no transaction is open, and then opens the next one. Refuses if this thread would wait for itself.
    fn wait(&self, py: Python<'_>, timeout: Option<Duration>, next: Option<u64>) -> PyResult<()> {
        let me = std::thread::current().id();
        let open_next = |turn: &mut Option<Open>| {
            *turn = next.map(|number| Open { number, user: me, unused_since: None });
        };
        let take = |turn: &mut Option<Open>| turn.is_none().then(|| open_next(turn));
        if take(&mut locked(&self.open)).is_some() {
            return Ok(());
        }
        let (here, in_loop) = (begun_here(py)?, runs_event_loop(py)?);
        let deadline = deadline_of(timeout);
        let mut collected_for = None;
        loop {
            let look = |turn: &mut Option<Open>| {
                let Some(open) = turn else { return take(turn).map(Ok) };
                let is_new = collected_for != Some(open.number);
                let patience = if is_new { COLLECTED_AFTER } else { PATIENCE };
                let why = if open.user == me && (in_loop || here.contains(&open.number)) {
                    Hopeless::Nested
                } else if open.is_unused_for(patience) && (is_new || deadline.is_none()) {
                    Hopeless::Unused
                } else {
                    return None;
                };
                Some(Err((open.number, why)))
            };
            match until(py, (&self.open, &self.is_free), deadline, look)? {
                None => return Err(busy(LATE)),
                Some(Ok(())) => return Ok(()),
                Some(Err((number, _))) if collected_for != Some(number) => {
                    py.import("gc")?.call_method0("collect")?;
                    collected_for = Some(number);
                }
                Some(Err((_, Hopeless::Nested))) => return Err(invalid(NESTED)),
                Some(Err((_, Hopeless::Unused))) => return Err(busy(UNUSED)),
            }
        }
    }
}
