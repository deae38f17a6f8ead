//! Turns: several processes write one file in turn.
//!
//! A writer acquires the turn lock, then waits for the tail lock, and releases the turn lock once it has that. So a
//! process that writes repeatedly waits after one that waited already. Locks vanish with their process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::journal;
use crate::storage::{Clock, Hold, Lock, Storage};
use crate::{Error, ErrorKind, Result};

/// The first and the longest pause between two tries.
const PAUSES: [Duration; 2] = [Duration::from_micros(20), Duration::from_millis(1)];

/// The advice to a refused process: the program and the library have different words for it.
const WAIT_LONGER: &str =
    "wait longer (--timeout of the program, `timeout=` in Python, `Options::lock_timeout`)";

/// The state needed to acquire the right to write.
#[derive(Debug)]
pub(in crate::db) struct Turns {
    storage: Arc<dyn Storage>,
    clock: Arc<dyn Clock>,
    name: String,
    timeout: Duration,
    /// True if a thread of this process has the claim: the lock of the file is this process's then.
    is_claimed: Arc<AtomicBool>,
}

/// The exclusive right to update the image, among processes and threads.
#[derive(Debug)]
pub(in crate::db) struct Claim {
    storage: Arc<dyn Storage>,
    is_claimed: Arc<AtomicBool>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        // It could fail only if the file weren't open; and then the lock is released too.
        let _ = self.storage.unlock(Lock::Backfill);
        self.is_claimed.store(false, Ordering::Release);
    }
}

impl Turns {
    pub(in crate::db) fn new(
        storage: &Arc<dyn Storage>,
        clock: &Arc<dyn Clock>,
        name: &str,
        timeout: Duration,
    ) -> Self {
        let (storage, clock) = (Arc::clone(storage), Arc::clone(clock));
        Self { storage, clock, name: name.to_owned(), timeout, is_claimed: Arc::default() }
    }

    /// Makes the same state for another segment of the journal.
    pub(in crate::db) fn next(&self, storage: &Arc<dyn Storage>) -> Self {
        Self::new(storage, &self.clock, &self.name, self.timeout)
    }

    /// Waits for the right to write frames, until the deadline.
    pub(in crate::db) fn take(&self) -> Result<()> {
        self.take_within(self.timeout)
    }

    /// Waits up to `timeout` for the right to write frames.
    pub(in crate::db) fn take_within(&self, timeout: Duration) -> Result<()> {
        self.take_while(timeout, &|| true)
    }

    /// Waits up to `timeout` for the right to write frames, as long as `is_wanted`.
    pub(in crate::db) fn take_while(
        &self,
        timeout: Duration,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<()> {
        let begun = self.clock.elapsed();
        // Doesn't wait if no other process waits: then the turn lock is free as well.
        self.wait_for(|| self.try_lock(Lock::Turn), begun, timeout, is_wanted)?;
        let taken = self.wait_for(|| self.try_lock(Lock::Tail), begun, timeout, is_wanted);
        let let_go = self.storage.unlock(Lock::Turn).map_err(|error| self.cannot_lock(error));
        taken?;
        let_go.inspect_err(|_| self.end())
    }

    /// Takes the right to write frames if it is free and no other waits for it.
    pub(in crate::db) fn try_take(&self) -> Result<bool> {
        if !self.try_lock(Lock::Turn)? {
            return Ok(false);
        }
        let taken = self.try_lock(Lock::Tail);
        let let_go = self.storage.unlock(Lock::Turn).map_err(|error| self.cannot_lock(error));
        let taken = taken?;
        let_go.inspect_err(|_| self.end())?;
        Ok(taken)
    }

    /// Returns how long a transaction waits.
    pub(in crate::db) const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Acquires the lock for updating the image: at once, or not at all; or waits up to a timeout.
    pub(in crate::db) fn claim_image(&self, waits: Option<Duration>) -> Result<Option<Claim>> {
        let claim = || {
            let (storage, is_claimed) = (Arc::clone(&self.storage), Arc::clone(&self.is_claimed));
            Some(Claim { storage, is_claimed })
        };
        if self.try_claim()? {
            return Ok(claim());
        }
        let Some(timeout) = waits else { return Ok(None) };
        match self.wait_for(|| self.try_claim(), self.clock.elapsed(), timeout, &|| true) {
            Err(error) if error.kind() == ErrorKind::Busy => {
                let who = match self.storage.holder(Lock::Backfill) {
                    _ if self.is_claimed_here() => "another thread".to_owned(),
                    Some(pid) => format!("process {pid}"),
                    None => "another process".to_owned(),
                };
                let name = &self.name;
                Err(Error::new(
                    ErrorKind::Busy,
                    format!(
                        "{name}: {who} was bringing the image forward for all of {timeout:?}: try again, or \
                         {WAIT_LONGER}"
                    ),
                ))
            }
            waited => waited.map(|()| claim()),
        }
    }

    /// True if a thread of this process has the claim.
    pub(in crate::db) fn is_claimed_here(&self) -> bool {
        self.is_claimed.load(Ordering::Acquire)
    }

    fn try_claim(&self) -> Result<bool> {
        if self.is_claimed.swap(true, Ordering::Acquire) {
            return Ok(false);
        }
        let locked = self.try_lock(Lock::Backfill);
        self.is_claimed.store(matches!(locked, Ok(true)), Ordering::Release);
        locked
    }

    /// Lets the next one write.
    pub(in crate::db) fn end(&self) {
        // It could fail only if the file weren't open; and then the lock is released too.
        let _ = self.storage.unlock(Lock::Tail);
    }

    fn wait_for(
        &self,
        try_lock: impl Fn() -> Result<bool>,
        begun: Duration,
        timeout: Duration,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<()> {
        let [mut pause, longest] = PAUSES;
        while !try_lock()? {
            if !is_wanted() {
                let message = format!("{}: nobody waits for the turn any more", self.name);
                return Err(Error::new(ErrorKind::Cancelled, message));
            }
            if self.clock.elapsed().saturating_sub(begun) >= timeout {
                return Err(self.busy(timeout));
            }
            self.clock.pause(pause);
            pause = (pause * 2).min(longest);
        }
        Ok(())
    }

    fn try_lock(&self, which: Lock) -> Result<bool> {
        self.storage.try_lock(which, Hold::Exclusive).map_err(|error| self.cannot_lock(error))
    }

    fn cannot_lock(&self, error: std::io::Error) -> Error {
        let message = match error.kind() {
            std::io::ErrorKind::Unsupported => format!(
                "{}: can't be shared for writing on this system, which has no locks on parts of a \
                 file: open it unshared",
                self.name
            ),
            _ => format!("{}: can't lock it", self.name),
        };
        Error::io(message, error)
    }

    fn busy(&self, timeout: Duration) -> Error {
        let last = journal::holder(&*self.storage).map_or_else(String::new, |pid| {
            format!(" (process {pid} was the last one that wrote)")
        });
        Error::new(
            ErrorKind::Busy,
            format!(
                "{}: other processes were writing for all of {:?}{last}: try again, or {WAIT_LONGER}",
                self.name, timeout
            ),
        )
    }
}
