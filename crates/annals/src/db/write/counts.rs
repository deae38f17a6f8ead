//! What an open database counts, once for each group of commits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use crate::db::present::snapshot::Published;
use crate::db::present::stats::{Latencies, OldestState};
use crate::journal::lock;

/// The counts of commits and flushes, and the replaced states that somebody reads.
#[derive(Debug, Default)]
pub(in crate::db) struct Counts {
    commits: AtomicU64,
    flushes: [AtomicU64; Latencies::BUCKETS],
    /// The sum of the flushes, in microseconds.
    micros: AtomicU64,
    replaced: Mutex<Replaced>,
}

/// Replaced states that somebody read when they were replaced, in order.
#[derive(Debug, Default)]
struct Replaced {
    states: Vec<(Weak<Published>, OldestState)>,
    /// At this length those that nobody reads any more are removed.
    limit: usize,
}

impl Counts {
    /// Counts commits that were acknowledged.
    pub(super) fn add_commits(&self, count: u64) {
        self.commits.fetch_add(count, Ordering::Relaxed);
    }

    /// Counts a flush that commits waited for.
    pub(super) fn add_flush(&self, took: Duration) {
        if let Some(count) = self.flushes.get(Latencies::bucket(took)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Notes a state that was replaced at `now`, if somebody reads it.
    pub(super) fn note_replaced(&self, old: &Arc<Published>, now: impl FnOnce() -> Duration) {
        if Arc::strong_count(old) == 1 {
            return;
        }
        let mut replaced = lock(&self.replaced);
        if replaced.states.len() >= replaced.limit {
            replaced.states.retain(|(state, _)| state.strong_count() > 0);
            replaced.limit = 2 * replaced.states.len() + 16;
        }
        let state = OldestState { txid: old.point.txid, age: now() };
        replaced.states.push((Arc::downgrade(old), state));
    }

    /// Returns how many commits there were.
    pub(in crate::db) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Returns the durations of the flushes.
    pub(in crate::db) fn flushes(&self) -> Latencies {
        let counts = self.flushes.each_ref().map(|count| count.load(Ordering::Relaxed));
        Latencies { counts, total: Duration::from_micros(self.micros.load(Ordering::Relaxed)) }
    }

    /// Returns how often replaced states are read at `now`, and the oldest of them.
    pub(in crate::db) fn readers(&self, now: Duration) -> (usize, Option<OldestState>) {
        let mut replaced = lock(&self.replaced);
        replaced.states.retain(|(state, _)| state.strong_count() > 0);
        let count = replaced.states.iter().map(|(state, _)| state.strong_count()).sum();
        let oldest = replaced
            .states
            .first()
            .map(|(_, state)| OldestState { age: now.saturating_sub(state.age), ..*state });
        (count, oldest)
    }
}
