//! How those who follow a database in its own process hear of commits.
//!
//! Invariants
//! 1. Where nobody follows, a commit costs one relaxed load here.
//! 2. Nobody who publishes waits for a follower: the locks here are held for a few instructions.
//! 3. A state that a follower has is given up when the image came forward twice without the follower.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use crate::db::changes::rows::RowChanges;
use crate::db::present::snapshot::Published;
use crate::journal::lock;

/// What is told to those who follow.
#[derive(Debug, Default)]
pub(in crate::db) struct Feed {
    /// Whether anybody ever followed who may do so still.
    is_followed: AtomicBool,
    news: Mutex<News>,
    signal: Condvar,
}

#[derive(Debug, Default)]
struct News {
    /// What was committed last; none if nobody follows.
    latest: Option<Arc<Published>>,
    /// Whether the database was closed.
    is_over: bool,
    followers: Vec<Weak<Slot>>,
}

/// The state that a follower has.
pub(in crate::db) type Slot = Mutex<Option<Standing>>;

/// The state in which a follower stands, from which it continues.
#[derive(Debug)]
pub(in crate::db) struct Standing {
    pub(in crate::db) rows: RowChanges,
    /// The transaction after which it stands.
    pub(in crate::db) txid: u64,
    /// A later state, which becomes the one to begin with once it is reached.
    pub(in crate::db) target: Option<Arc<Published>>,
    /// Whether it was the same when the image came forward the last time.
    pub(in crate::db) is_idle: bool,
}

impl Standing {
    /// Goes on from a newer base, if that is the state in which it stands; returns whether it is.
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
    /// Begins to be followed by somebody who keeps a state there; the caller sees to it that nothing is published
    /// meanwhile.
    pub(in crate::db) fn follow(&self, latest: Arc<Published>, slot: &Arc<Slot>) {
        self.is_followed.store(true, Ordering::Relaxed);
        let mut news = lock(&self.news);
        news.latest = Some(latest);
        news.followers.push(Arc::downgrade(slot));
    }

    /// Returns what was published, if anybody wants to know.
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

    /// Takes the same state as it lies over another root of the image, or in another segment: what followers keep
    /// of older ones is given up if they don't come.
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

    /// Notes that nothing will be committed any more.
    pub(in crate::db) fn close(&self) {
        lock(&self.news).is_over = true;
        self.signal.notify_all();
    }

    /// Returns what was committed last, and whether that is all.
    pub(in crate::db) fn latest(&self) -> (Option<Arc<Published>>, bool) {
        let news = lock(&self.news);
        (news.latest.clone(), news.is_over)
    }

    /// Waits until something is committed after a transaction, or nothing will be, at most so long.
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
