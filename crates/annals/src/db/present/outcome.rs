//! The fate of a journal's segments: plain facts.

use annals_schema::{Timestamp, Txid};

/// The fate of the history before a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Older {
    /// It is kept, and needed to know the state.
    #[default]
    Kept,
    /// It is kept, but not needed: the new segment begins with the state itself, so that older history may be
    /// forgotten later.
    NotNeeded,
    /// It is forgotten: the new segment begins with the state itself, and once that is on permanent
    /// storage all older segments are removed.
    Forgotten,
}

/// The report of a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restarted {
    /// The number of the segment that is written now.
    pub segment: u64,
    /// True if that is a new one: a restart that keeps the history does nothing if nothing was committed
    /// since the last.
    pub is_new: bool,
    /// The length of the new segment's head and state, in bytes, if there is a new segment.
    pub bytes: u64,
    /// The forgotten history, if any was.
    pub forgotten: Option<Forgotten>,
    /// The oldest segment with readers, because of which neither it nor any other was removed.
    pub pinned: Option<u64>,
}

/// History that was forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forgotten {
    /// How many segments were removed.
    pub segments: u64,
    /// How many bytes those had.
    pub bytes: u64,
    /// The first transaction in them, and the last.
    pub transactions: (Txid, Txid),
    /// The beginnings of the first of them, and of the first kept one.
    pub times: (Timestamp, Timestamp),
}

impl Forgotten {
    /// Joins two reports of forgotten history, the earlier one first.
    pub(in crate::db) fn joined(first: Option<Self>, second: Option<Self>) -> Option<Self> {
        match (first, second) {
            (Some(before), Some(now)) => Some(Self {
                segments: before.segments + now.segments,
                bytes: before.bytes + now.bytes,
                transactions: (before.transactions.0, now.transactions.1),
                times: (before.times.0, now.times.1),
            }),
            (first, second) => first.or(second),
        }
    }
}
