//! The position of a run, and of the pages of its two trees: the tree of entries, then the tree of zones.
//!
//! ```text
//! run:    tree of entries │ tree of zones
//! tree:   its leaves │ the pages above them │ .. │ the one on top, whose hash the head has
//! ```

use super::format::{CHILDREN, HISTORY_RUN_LEN, MOST_RUNS, PAGE, RUNS_AT, ZONES};
use crate::bytes::{Fields, Layout};

/// A run, as recorded in the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Where it begins in the file.
    pub(crate) place: u64,
    /// Its first zone, and how many.
    pub(crate) zone: u64,
    pub(crate) zones: u64,
    /// How many pages its entries need, and how many there are.
    pub(crate) leaves: u64,
    pub(crate) entries: u64,
    /// The segment of its first zone, and of its last.
    pub(crate) segments: (u64, u64),
    /// The last transaction that has committed at its end.
    pub(crate) end_txid: u64,
    /// The least time of a commit in it.
    pub(crate) least_time: i64,
    /// The hashes of the pages on top.
    pub(crate) rows_sum: u64,
    pub(crate) zones_sum: u64,
}

/// The pages of a tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tree {
    /// Where the first is in the file.
    pub(super) place: u64,
    pub(super) leaves: u64,
    pub(super) sum: u64,
}

impl Extent {
    pub(super) fn encode(&self) -> [u8; HISTORY_RUN_LEN] {
        let mut to = Layout([0; HISTORY_RUN_LEN]);
        let numbers = [
            self.place,
            self.zone,
            self.zones,
            self.leaves,
            self.entries,
            self.segments.0,
            self.segments.1,
            self.end_txid,
            self.least_time.cast_unsigned(),
            self.rows_sum,
            self.zones_sum,
        ];
        for (place, number) in numbers.into_iter().enumerate() {
            to.put(place * 8, number.to_le_bytes());
        }
        to.0
    }

    /// Decodes the head's record of a run; `None` if it is invalid.
    pub(super) fn decode(bytes: &[u8; HISTORY_RUN_LEN]) -> Option<Self> {
        let from = Fields(bytes);
        let extent = Self {
            place: from.u64(0),
            zone: from.u64(8),
            zones: from.u64(16),
            leaves: from.u64(24),
            entries: from.u64(32),
            segments: (from.u64(40), from.u64(48)),
            end_txid: from.u64(56),
            least_time: from.u64(64).cast_signed(),
            rows_sum: from.u64(72),
            zones_sum: from.u64(80),
        };
        // Far more than any file has, and nothing overflows.
        const MANY: u64 = 1 << 40;
        let few = extent.zones < MANY && extent.leaves < MANY && extent.zone < 1 << 60;
        let placed = extent.place >= RUNS_AT && extent.place < 1 << 62;
        (few && placed && extent.zones > 0).then_some(extent)
    }

    /// Returns the number of the zone after it.
    pub(crate) const fn end_zone(&self) -> u64 {
        self.zone + self.zones
    }

    /// Returns where it ends in the file.
    pub(crate) fn end(&self) -> u64 {
        self.zone_tree().end()
    }

    pub(super) const fn row_tree(&self) -> Tree {
        Tree { place: self.place, leaves: self.leaves, sum: self.rows_sum }
    }

    pub(super) fn zone_tree(&self) -> Tree {
        let leaves = self.zones.div_ceil(ZONES);
        Tree { place: self.row_tree().end(), leaves, sum: self.zones_sum }
    }
}

impl Tree {
    /// Returns how many pages each level has, the leaves first.
    pub(super) fn levels(&self) -> impl Iterator<Item = u64> {
        let next = |&pages: &u64| (pages > 1).then(|| pages.div_ceil(CHILDREN));
        std::iter::successors((self.leaves > 0).then_some(self.leaves), next)
    }

    /// Returns the number of the level on top, 0 if that is a leaf.
    pub(super) fn top(&self) -> usize {
        self.levels().count().saturating_sub(1)
    }

    /// Returns where a page is in the file.
    pub(super) fn page_at(&self, level: usize, index: u64) -> u64 {
        let before: u64 = self.levels().take(level).sum();
        self.place + (before + index) * PAGE as u64
    }

    fn end(&self) -> u64 {
        self.place + self.levels().sum::<u64>() * PAGE as u64
    }
}

/// How many runs of similar size become one.
const TOGETHER: usize = 4;

/// Returns how many of the last runs become one: those of a size class, if there are enough of them. Classes grow by
/// [`TOGETHER`], so that of n zones there are some log n runs, and each entry is written so often.
pub(crate) fn due(runs: &[Extent]) -> Option<usize> {
    let class = |run: &Extent| run.zones.saturating_add(run.leaves).ilog(TOGETHER as u64);
    let newest = class(runs.last()?);
    // A run after smaller ones counts as one of them.
    let alike = runs.iter().rev().take_while(|run| class(run) <= newest).count();
    match runs.len() >= MOST_RUNS {
        true => Some(runs.len()),
        false => (alike >= TOGETHER).then_some(alike),
    }
}
