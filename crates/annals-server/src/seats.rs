//! The places of connections. A connection keeps its place while it has a request of one who may ask; another one has to
//! give it back after a while, and soon if few are left.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use annals::storage::{Clock as _, SystemClock};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// So often the places are looked at.
pub(crate) const OFTEN: Duration = Duration::from_millis(500);
/// How long a connection keeps its place without a use, while few are left: some rounds between distant machines.
const SHORT: Duration = Duration::from_secs(1);
/// Few are left: less than one in so many. A connection that isn't used takes some 20 KiB.
const FEW: usize = 2;

/// The places of a server.
#[derive(Debug)]
pub(crate) struct Seats {
    free: Arc<Semaphore>,
    most: usize,
    taken: Mutex<Vec<Weak<Seat>>>,
}

/// The place of a connection.
#[derive(Debug)]
pub(crate) struct Seat {
    _permit: OwnedSemaphorePermit,
    use_of: Mutex<Use>,
    end: Notify,
}

#[derive(Debug)]
struct Use {
    /// When the connection began, or its last use ended.
    since: Duration,
    /// The requests that use it now.
    now: usize,
}

/// A request of one who may ask uses a connection until this is dropped.
#[derive(Debug)]
pub(crate) struct Using(Arc<Seat>);

impl Drop for Using {
    fn drop(&mut self) {
        let mut use_of = self.0.use_of();
        use_of.now -= 1;
        use_of.since = SystemClock.elapsed();
    }
}

impl Seat {
    fn use_of(&self) -> MutexGuard<'_, Use> {
        self.use_of.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a request of one who may ask has come.
    pub(crate) fn used(self: &Arc<Self>) -> Using {
        self.use_of().now += 1;
        Using(Arc::clone(self))
    }

    /// Returns when the connection must end.
    pub(crate) async fn ended(&self) {
        self.end.notified().await;
    }
}

impl Seats {
    pub(crate) fn new(most: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(most)), most, taken: Mutex::default() }
    }

    /// Waits for a free place.
    pub(crate) async fn free(&self) -> OwnedSemaphorePermit {
        match Arc::clone(&self.free).acquire_owned().await {
            Ok(permit) => permit,
            // It is never closed.
            Err(_) => std::future::pending().await,
        }
    }

    /// Takes a free place for a connection that begins now.
    pub(crate) fn take(&self, permit: OwnedSemaphorePermit) -> Arc<Seat> {
        let use_of = Mutex::new(Use { since: SystemClock.elapsed(), now: 0 });
        let seat = Arc::new(Seat { _permit: permit, use_of, end: Notify::new() });
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&seat));
        seat
    }

    /// Ends the connections that were not used for so long, and sooner if few places are left, or `are_few` says so.
    pub(crate) fn sweep(&self, silence: Duration, are_few: bool) {
        let are_few = are_few || self.free.available_permits() < self.most.div_ceil(FEW);
        let patience = if are_few { silence.min(SHORT) } else { silence };
        let now = SystemClock.elapsed();
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.retain(|seat| {
            let Some(seat) = seat.upgrade() else { return false };
            let use_of = seat.use_of();
            let is_idle = use_of.now == 0 && now.saturating_sub(use_of.since) >= patience;
            drop(use_of);
            if is_idle {
                seat.end.notify_one();
            }
            true
        });
    }

    /// Returns once all are free.
    pub(crate) async fn all_free(&self) {
        let all = u32::try_from(self.most).unwrap_or(u32::MAX);
        let _all = self.free.acquire_many(all).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_not_used_gives_its_place_back() {
        let seats = Seats::new(2);
        let take = async || seats.take(seats.free().await);
        let (idle, used) = (take().await, take().await);
        let using = used.used();
        let is_ended = async |seat: &Seat| {
            tokio::time::timeout(Duration::from_millis(1), seat.ended()).await.is_ok()
        };
        seats.sweep(Duration::from_secs(60), false);
        assert!(!is_ended(&idle).await, "it is young");
        seats.sweep(Duration::ZERO, false);
        assert!(is_ended(&idle).await && !is_ended(&used).await);
        drop(using);
        seats.sweep(Duration::ZERO, false);
        assert!(is_ended(&used).await);
        drop((idle, used));
        seats.all_free().await;
    }
}
