//! Waiting: other threads of Python run meanwhile, and signals are handled.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::errors::invalid;

/// How long a wait takes before signals are looked at.
pub(crate) const TICK: Duration = Duration::from_millis(50);

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the present time.
#[expect(clippy::disallowed_methods, reason = "no database waits here, but a thread of Python")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Returns the end of a timeout; none if it is without end.
pub(crate) fn deadline_of(timeout: Option<Duration>) -> Option<Instant> {
    timeout.and_then(|timeout| now().checked_add(timeout))
}

/// Does work that may take long. Signals are handled meanwhile: if a handler raises, as that of Ctrl-C does, this returns
/// its exception at once. The work then ends in a thread of its own, and its result is dropped there.
pub(crate) fn blocking<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let threading = py.import("threading")?;
    let main = threading.call_method0("main_thread")?.getattr("ident")?;
    // Python handles signals in its main thread only.
    if !threading.call_method0("get_ident")?.eq(main)? {
        return Ok(py.detach(work));
    }
    let (send, mut receive) = mpsc::channel();
    let worker = std::thread::Builder::new().name("annals-call".to_owned()).spawn(move || {
        // Nobody may be there to receive it.
        let _ = send.send(work());
    })?;
    loop {
        // Borrowed alone, because it isn't shared between threads.
        let receive = &mut receive;
        match py.detach(move || receive.recv_timeout(TICK)) {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => match worker.join() {
                Err(panicked) => std::panic::resume_unwind(panicked),
                Ok(()) => return Err(invalid("the call ended without a result")),
            },
        }
    }
}

/// Waits until `ready` returns something, also if signals arrive.
pub(crate) fn uninterrupted<S: Send, T: Send>(
    py: Python<'_>,
    (state, changed): (&Mutex<S>, &Condvar),
    mut ready: impl FnMut(&mut S) -> Option<T> + Send,
) -> T {
    py.detach(|| {
        let mut state = locked(state);
        loop {
            if let Some(found) = ready(&mut state) {
                return found;
            }
            state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    })
}

/// Waits until `ready` returns something; `None` at the deadline. Signals are handled meanwhile.
pub(crate) fn until<S: Send, T: Send>(
    py: Python<'_>,
    (state, changed): (&Mutex<S>, &Condvar),
    deadline: Option<Instant>,
    mut ready: impl FnMut(&mut S) -> Option<T> + Send,
) -> PyResult<Option<T>> {
    loop {
        let found = py.detach(|| {
            let mut state = locked(state);
            ready(&mut state).or_else(|| {
                let left = deadline.map(|end| end.saturating_duration_since(now()));
                let step = left.map_or(TICK, |left| left.min(TICK));
                let waited = changed.wait_timeout(state, step);
                ready(&mut waited.unwrap_or_else(PoisonError::into_inner).0)
            })
        });
        if found.is_some() || deadline.is_some_and(|end| now() >= end) {
            return Ok(found);
        }
        py.check_signals()?;
    }
}
