//! How subscribers in the same process are notified of commits.
//!
//! Invariants
//! 1. Without subscribers, a commit costs one relaxed load here.
//! 2. Publishing never waits for a subscriber: the locks here are held for a few instructions.
//! 3. The state of a subscriber is released after two backfills without progress of the subscriber.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use crate::db::changes::rows::RowChanges;
use crate::db::present::snapshot::Published;
use crate::journal::lock;

/// The notifications to subscribers.
#[derive(Debug, Default)]
pub(in crate::db) struct Feed {
    /// True if somebody ever subscribed and may still do so.
    is_followed: AtomicBool,
    news: Mutex<News>,
    signal: Condvar,
}

#[derive(Debug, Default)]
struct News {
    /// The last commit; `None` without subscribers.
    latest: Option<Arc<Published>>,
    /// True if the database was closed.
    is_over: bool,
    followers: Vec<Weak<Slot>>,
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
    /// Continues from a newer base, if that is its own state; returns true if it is.
    pub(in crate::db) fn take_over(&mut self, published: &Published) -> bool {
        let is_there = published.point.txid == self.txid;
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
        news.followers.push(Arc::downgrade(slot));
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
        drop(news);
        self.signal.notify_all();
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
        lock(&self.news).is_over = true;
        self.signal.notify_all();
    }

    /// Returns the last commit, and whether no more will follow.
    pub(in crate::db) fn latest(&self) -> (Option<Arc<Published>>, bool) {
        let news = lock(&self.news);
        (news.latest.clone(), news.is_over)
    }

    /// Waits up to `timeout` until a transaction after `txid` is committed, or no more will be.
    pub(in crate::db) fn wait(&self, txid: u64, timeout: Option<Duration>) {
        let is_still = |news: &mut News| {
            !news.is_over && news.latest.as_ref().is_none_or(|latest| latest.point.txid <= txid)
        };
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
