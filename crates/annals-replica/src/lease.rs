//! Leases: for a while only one replica's transactions are accepted.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use annals::{Error, ErrorKind, Result, Timestamp, Transaction};
use annals_storage::{Clock as _, SystemClock};

use crate::replica::{Replica, by_value};
use crate::{Accepted, Granted};

/// A lease lasts at most so long, unless it is extended: a client that is lost stalls the others no longer.
const LONGEST: Duration = Duration::from_secs(60);

/// The lease of a database, if somebody has one. It is in memory only: it ends with the process.
#[derive(Debug, Default)]
pub(crate) struct Leases(Mutex<Option<Held>>);

#[derive(Clone, Copy, Debug)]
struct Held {
    granted: Granted,
    /// Its end by the clock that is never set.
    end: Duration,
}

impl Leases {
    fn held(&self) -> MutexGuard<'_, Option<Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails if another than the holder of `ticket` has a lease.
    pub(crate) fn check(&self, ticket: Option<u64>) -> Result<()> {
        let mut held = self.held();
        match *held {
            Some(it) if it.end <= SystemClock.elapsed() => *held = None,
            Some(Held { granted, .. }) if Some(granted.ticket) != ticket => {
                let message = format!(
                    "another has a lease until {}; nothing was changed: try again when it has ended",
                    granted.until
                );
                return Err(Error::new(ErrorKind::Conflict, message));
            }
            _ => {}
        }
        Ok(())
    }

    /// Grants a lease, or extends that with the ticket. The caller lets no transaction run meanwhile.
    pub(crate) fn lock(&self, lasting: Duration, ticket: Option<u64>) -> Result<Granted> {
        self.check(ticket)?;
        let lasting = lasting.min(LONGEST);
        let micros = i64::try_from(lasting.as_micros()).unwrap_or(i64::MAX);
        let until = Timestamp(SystemClock.now().saturating_add(micros));
        let present = self.held().map(|held| held.granted.ticket);
        let granted = Granted { ticket: present.unwrap_or_else(|| SystemClock.random()), until };
        *self.held() = Some(Held { granted, end: SystemClock.elapsed() + lasting });
        Ok(granted)
    }

    /// Ends the lease with this ticket.
    pub(crate) fn unlock(&self, ticket: u64) {
        let mut held = self.held();
        if held.is_some_and(|held| held.granted.ticket == ticket) {
            *held = None;
        }
    }
}

/// A lease that a replica has: until it ends, others' transactions are refused. Dropped, it is given back.
#[must_use = "a lease that isn't kept is given back at once"]
pub struct Lease<'r> {
    replica: &'r Replica,
    granted: Granted,
}

impl fmt::Debug for Lease<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("until", &self.granted.until).finish_non_exhaustive()
    }
}

impl Replica {
    /// Asks for a lease of at most 60 s, and pulls: until it ends only transactions of the lease are accepted, so they run
    /// once. It ends by itself: a replica that is lost stalls the others no longer. Those get errors of kind `Conflict`,
    /// which name its end, or wait for it, as long as their [`Patience`](crate::Patience) lasts.
    ///
    /// No lease is needed: transactions run again after a conflict. It is for those that are too long, or must not.
    ///
    /// # Errors
    /// `Conflict`, which names its end: another has one. `Unsupported`: the other side has none. Those of
    /// [`pull`](Self::pull).
    pub fn lock_pull(&self, lasting: Duration) -> Result<Lease<'_>> {
        let granted = self.connection().lock(lasting, None)?;
        let lease = Lease { replica: self, granted };
        self.pull()?;
        Ok(lease)
    }
}

impl Lease<'_> {
    /// Returns when it ends, by the clock of the other side.
    #[must_use]
    pub const fn until(&self) -> Timestamp {
        self.granted.until
    }

    /// Extends it: from now on it lasts so long, at most 60 s.
    ///
    /// # Errors
    /// `Conflict`: it had ended, and another has one; those of the connection.
    pub fn extend(&mut self, lasting: Duration) -> Result<()> {
        self.granted = self.replica.connection().lock(lasting, Some(self.granted.ticket))?;
        Ok(())
    }

    /// Runs a transaction under the lease: see [`Replica::transaction`]. If it has ended, the transaction is like any other.
    ///
    /// # Errors
    /// As there.
    pub fn transaction<T>(
        &self,
        mut change: impl FnMut(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<(T, Accepted)> {
        let mut work = by_value(|mut transaction| Ok((change(&mut transaction)?, transaction)));
        self.run(&mut work)
    }

    /// Does what [`transaction`](Self::transaction) does, with work that gets the transaction itself.
    pub(crate) fn run<T>(
        &self,
        work: &mut impl for<'db> FnMut(Transaction<'db>) -> Result<(T, Transaction<'db>)>,
    ) -> Result<(T, Accepted)> {
        self.replica.run(work, Some(self.granted.ticket))
    }

    /// Runs a transaction under the lease, and gives it back.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn push_unlock<T>(
        self,
        change: impl FnMut(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<(T, Accepted)> {
        self.transaction(change)
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        // Else it ends by itself.
        let _ = self.replica.connection().unlock(self.granted.ticket);
    }
}
