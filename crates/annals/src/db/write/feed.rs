//! How subscribers in the same process are notified of commits.
//!
//! Invariants
//! 1. Without subscribers, a commit costs one relaxed load here.
//! 2. Publishing never waits for a subscriber: the locks here are held for a few instructions.
//! 3. The state of a subscriber is released after two backfills without progress of the subscriber.

use annals_schema::Txid;
use std::collections::BTreeMap;
#[cfg(feature = "tokio")]
use std::sync::atomic::AtomicU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;

use crate::db::present::snapshot::Published;
use crate::db::write::rows::RowChanges;
use crate::journal::lock;
use crate::store::View;

/// The notifications to subscribers.
#[derive(Debug, Default)]
pub(in crate::db) struct Feed {
    /// True if somebody ever subscribed and may still do so.
    is_followed: AtomicBool,
    news: Mutex<News>,
    signal: Condvar,
    /// The number of the next waiter.
    #[cfg(feature = "tokio")]
    waiters: AtomicU64,
}

#[derive(Debug, Default)]
struct News {
    /// The last commit; `None` without subscribers.
    latest: Option<Arc<Published>>,
    /// True if the database was closed.
    is_over: bool,
    followers: Vec<Weak<Slot>>,
    /// The tasks that wait for the next commit, by the numbers of their waiters.
    tasks: BTreeMap<u64, Waker>,
}

/// A task's place among those that wait for commits. Dropping it removes the task, so that who gives up costs nothing
/// however long no commit comes.
#[cfg(feature = "tokio")]
#[derive(Debug)]
pub(in crate::db) struct Waiter {
    feed: Arc<Feed>,
    number: u64,
}

#[cfg(feature = "tokio")]
impl Waiter {
    /// Wakes a task at the next commit; `false` if one after `txid` is there, or if no more will follow.
    pub(in crate::db) fn wake_after(&self, txid: u64, waker: &Waker) -> bool {
        let mut news = lock(&self.feed.news);
        let is_still = news.is_still(txid);
        let replaced = is_still.then(|| news.tasks.insert(self.number, waker.clone()));
        drop(news);
        drop(replaced); // with no lock held, since it may drop a task
        is_still
    }
}

#[cfg(feature = "tokio")]
impl Drop for Waiter {
    fn drop(&mut self) {
        let removed = lock(&self.feed.news).tasks.remove(&self.number);
        drop(removed);
    }
}

impl News {
    /// True if nothing was committed after `txid`, and something may be.
    fn is_still(&self, txid: u64) -> bool {
        !self.is_over && self.latest.as_ref().is_none_or(|latest| latest.point.txid.0 <= txid)
    }

    fn add_follower(&mut self, slot: &Arc<Slot>) {
        // Commits do that, too; without any, the list mustn't grow by those that come and go.
        if self.followers.len() == self.followers.capacity() {
            self.followers.retain(|slot| slot.strong_count() > 0);
        }
        self.followers.push(Arc::downgrade(slot));
    }
}

/// The state that a follower has.
pub(in crate::db) type Slot = Mutex<Option<Standing>>;

/// The state at a subscriber's position, from which it continues.
#[derive(Debug)]
pub(in crate::db) struct Standing {
    pub(in crate::db) rows: RowChanges,
    /// The transaction after which it is.
    pub(in crate::db) txid: u64,
    /// A later state, which becomes the one to begin with once it is reached.
    pub(in crate::db) target: Option<Arc<Published>>,
    /// True if it was the same at the last backfill.
    pub(in crate::db) is_idle: bool,
}

impl Standing {
    /// Begins with the state after a transaction.
    pub(in crate::db) fn new(base: Arc<View>, txid: u64) -> Self {
        let present = Arc::clone(base.schema());
        Self { rows: RowChanges::new(base, present), txid, target: None, is_idle: false }
    }

    /// Continues from a newer base, if that is its own state; returns true if it is.
    pub(in crate::db) fn take_over(&mut self, published: &Published) -> bool {
        let is_there = published.point.txid == Txid(self.txid);
        if is_there {
            self.rows.rebase(Arc::clone(&published.view));
            self.target = None;
        }
        is_there
    }
}

impl Feed {
    /// Adds a subscriber, which keeps its state in `slot`; the caller makes sure that nothing is published meanwhile.
    pub(in crate::db) fn follow(&self, latest: Arc<Published>, slot: &Arc<Slot>) {
        self.is_followed.store(true, Ordering::Relaxed);
        let mut news = lock(&self.news);
        news.latest = Some(latest);
        news.add_follower(slot);
    }

    /// Publishes to subscribers, if there are any.
    #[inline]
    pub(in crate::db) fn tell(&self, published: impl FnOnce() -> Arc<Published>) {
        if self.is_followed.load(Ordering::Relaxed) {
            self.tell_all(published());
        }
    }

    #[cold]
    fn tell_all(&self, published: Arc<Published>) {
        let mut news = lock(&self.news);
        news.followers.retain(|slot| slot.strong_count() > 0);
        if news.followers.is_empty() {
            news.latest = None;
            self.is_followed.store(false, Ordering::Relaxed);
            return;
        }
        news.latest = Some(published);
        self.wake_all(news);
    }

    /// Publishes the same state over another root of the image, or in another segment: older states of subscribers
    /// are released if they make no progress.
    pub(in crate::db) fn replace(&self, published: impl FnOnce() -> Arc<Published>) {
        if !self.is_followed.load(Ordering::Relaxed) {
            return;
        }
        let published = published();
        let followers = lock(&self.news).followers.clone();
        for slot in followers.iter().filter_map(Weak::upgrade) {
            let mut standing = lock(&slot);
            let is_given_up = standing.as_mut().is_some_and(|standing| {
                let was_idle = std::mem::replace(&mut standing.is_idle, true);
                !standing.take_over(&published) && was_idle
            });
            if is_given_up {
                *standing = None;
            }
        }
        self.tell_all(published);
    }

    /// Records that nothing will be committed any more.
    pub(in crate::db) fn close(&self) {
        let mut news = lock(&self.news);
        news.is_over = true;
        self.wake_all(news);
    }

    /// Returns how many subscribers there are, and the state that is kept for them.
    pub(in crate::db) fn subscribers(&self) -> (usize, Option<Arc<Published>>) {
        let news = lock(&self.news);
        let alive = news.followers.iter().filter(|slot| slot.strong_count() > 0).count();
        (alive, news.latest.clone())
    }

    fn wake_all(&self, mut news: MutexGuard<'_, News>) {
        let tasks = std::mem::take(&mut news.tasks);
        drop(news);
        self.signal.notify_all();
        tasks.into_values().for_each(Waker::wake); // with no lock held
    }

    /// Returns a place for a task that waits for commits.
    #[cfg(feature = "tokio")]
    pub(in crate::db) fn waiter(self: &Arc<Self>) -> Waiter {
        let number = self.waiters.fetch_add(1, Ordering::Relaxed);
        Waiter { feed: Arc::clone(self), number }
    }

    /// Returns the last commit, and whether no more will follow.
    pub(in crate::db) fn latest(&self) -> (Option<Arc<Published>>, bool) {
        let news = lock(&self.news);
        (news.latest.clone(), news.is_over)
    }

    /// Waits up to `timeout` until a transaction after `txid` is committed, or no more will be.
    pub(in crate::db) fn wait(&self, txid: u64, timeout: Option<Duration>) {
        let is_still = |news: &mut News| news.is_still(txid);
        let news: MutexGuard<'_, News> = lock(&self.news);
        match timeout {
            None => {
                drop(self.signal.wait_while(news, is_still).unwrap_or_else(PoisonError::into_inner))
            }
            Some(timeout) => drop(
                self.signal
                    .wait_timeout_while(news, timeout, is_still)
                    .unwrap_or_else(PoisonError::into_inner),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscribers_that_come_and_go_are_forgotten_without_a_commit() {
        let mut news = News::default();
        let stays: Arc<Slot> = Arc::default();
        news.add_follower(&stays);
        for _ in 0..1000 {
            news.add_follower(&Arc::default());
        }
        assert!(news.followers.len() < 10, "{}", news.followers.len());
        assert!(news.followers[0].upgrade().is_some());
    }

    #[cfg(feature = "tokio")]
    #[test]
    fn who_gives_up_waiting_is_forgotten() {
        let feed: Arc<Feed> = Arc::default();
        let waiters: Vec<_> = (0..3).map(|_| feed.waiter()).collect();
        for waiter in waiters.iter().chain(&waiters) {
            assert!(waiter.wake_after(7, Waker::noop()), "nothing is committed");
        }
        assert_eq!(lock(&feed.news).tasks.len(), 3, "each once");
        drop(waiters);
        assert_eq!(lock(&feed.news).tasks.len(), 0);
    }
}
