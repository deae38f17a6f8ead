//! What happened while a log was read and written.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// So many void messages are remembered with their reasons.
const REMEMBERED: usize = 100;

/// How a node stands to its log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The sequence of the last message that the node has judged.
    pub read: u64,
    /// The sequence of the last message of the log.
    pub last: u64,
    /// How many messages were void: garbage, or transactions that don't continue the history or don't apply.
    pub void: u64,
    /// How many fences were read, and parts of transactions that weren't whole, since others came first.
    pub skipped: u64,
    /// How many messages were missing or damaged, and then read from another replica.
    pub repaired: u64,
    /// How often the archive was read, since the log didn't have what came next.
    pub archived: u64,
    /// How many appends had an unknown outcome, which was then settled.
    pub unknown: u64,
    /// The last void messages.
    pub reasons: Vec<Void>,
}

impl Status {
    /// Returns how many messages the node lacks.
    #[must_use]
    pub const fn lag(&self) -> u64 {
        self.last.saturating_sub(self.read)
    }
}

/// A message that doesn't count, for any node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Void {
    /// Its sequence.
    pub sequence: u64,
    /// Why.
    pub reason: String,
}

/// The same, as it is counted.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) read: AtomicU64,
    pub(super) void: AtomicU64,
    pub(super) skipped: AtomicU64,
    pub(super) repaired: AtomicU64,
    pub(super) archived: AtomicU64,
    pub(super) unknown: AtomicU64,
    /// True if the replica that answers first lacked a message that the leader had.
    pub(super) is_suspicious: AtomicBool,
    reasons: Mutex<VecDeque<Void>>,
}

impl Counts {
    /// Adds one.
    pub(super) fn add(count: &AtomicU64) {
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Records a void message.
    pub(super) fn note_void(&self, sequence: u64, reason: String) {
        let mut reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
        if reasons.iter().any(|void| void.sequence == sequence) {
            return;
        }
        Self::add(&self.void);
        if reasons.len() == REMEMBERED {
            reasons.pop_front();
        }
        reasons.push_back(Void { sequence, reason });
    }

    /// Returns the counts, of a log that ends with a message.
    pub(super) fn status(&self, last: u64) -> Status {
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        let reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
        Status {
            read: count(&self.read),
            last,
            void: count(&self.void),
            skipped: count(&self.skipped),
            repaired: count(&self.repaired),
            archived: count(&self.archived),
            unknown: count(&self.unknown),
            reasons: reasons.iter().cloned().collect(),
        }
    }
}
