//! Figures of an open database: plain values, and their text.

use std::fmt;
use std::time::Duration;

use annals_schema::{Timestamp, Txid};

use crate::store::{View, pages_of_process};

/// What an open database has done since it was opened, and what it holds now: see
/// [`Database::stats`](crate::Database::stats).
///
/// Its text is a paragraph for people. `examples/metrics.rs` serves it to Prometheus.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// The last acknowledged transaction.
    pub txid: Txid,
    /// How many commits were acknowledged.
    pub commits: u64,
    /// How long commits waited for the flushes of the journal. A flush that several commits share counts once.
    pub flushes: Latencies,
    /// How many bytes of the journal the image doesn't have: the next opening would replay them.
    pub tail_bytes: u64,
    /// How many transactions those are.
    pub tail_transactions: u64,
    /// The length of the image in bytes; 0 if there is none.
    pub image_bytes: u64,
    /// When the last backfill of the image began; `None` if there is no image.
    pub last_backfill: Option<Timestamp>,
    /// The pages of the image in memory.
    pub cache: CacheStats,
    /// The memory that it holds.
    pub memory: MemoryStats,
    /// How many snapshots exist, about: a thread that is beginning to read counts too.
    pub readers: u64,
    /// The oldest state that snapshots read; `None` if all of them read the last one.
    pub oldest_reader: Option<OldestState>,
    /// How many subscriptions follow the commits.
    pub subscribers: u64,
}

/// The pages of the image in memory, since the image was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheStats {
    /// How often a page was found in the cache. Counted only if the image is larger than the limit: otherwise loaded
    /// pages stay where they are used, and nothing is looked up.
    pub hits: u64,
    /// How often a page was read from the file.
    pub misses: u64,
    /// How many bytes were read from the file.
    pub read_bytes: u64,
    /// How many bytes the cache holds now. 0 if the whole image fits: then all that was read stays in memory.
    pub bytes: u64,
    /// The limit, of [`Options::memory`](crate::Options::memory).
    pub limit: u64,
}

/// The memory that a database holds, in bytes, by what it is for. Their sum is what the process holds for its databases,
/// but for some hundred KiB and for what its own questions hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryStats {
    /// What the image doesn't have: all changes since the last backfill, and everything where there is no image.
    pub changes: u64,
    /// What the image has, and what stays where it is used: all that was read of it, if all of it fits within the limit,
    /// else the nodes that lead to pages.
    pub image: u64,
    /// The cache of an image that is larger than the limit.
    pub cache: u64,
    /// Pages of an open transaction, of a backfill that is writing, of older states that snapshots read, and of other
    /// databases of this process.
    pub others: u64,
    /// Pages that are free for the next changes, of all databases of the process.
    pub free: u64,
}

impl MemoryStats {
    /// Returns the sum.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.changes + self.image + self.cache + self.others + self.free
    }

    /// Counts what a published state takes, what the cache has, and the pages of the process.
    pub(in crate::db) fn of(view: &View, cache: u64) -> Self {
        let (all, changes) = (view.memory() as u64, view.unsaved() as u64);
        let (image, pages) = (all.saturating_sub(changes), pages_of_process());
        // Long values and directories aren't in pages, so these are too few by so much.
        let others = pages.used.saturating_sub(all + cache);
        Self { changes, image, cache, others, free: pages.free }
    }
}

/// A state that is still read, though there is a newer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OldestState {
    /// Its last transaction.
    pub txid: Txid,
    /// How long ago a newer state replaced it.
    pub age: Duration,
}

/// A histogram of durations, in buckets whose bounds double.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    pub(in crate::db) counts: [u64; Self::BUCKETS],
    pub(in crate::db) total: Duration,
}

impl Latencies {
    pub(in crate::db) const BUCKETS: usize = 21;
    const FIRST: Duration = Duration::from_micros(16);

    /// Returns the bucket of a duration.
    pub(in crate::db) fn bucket(took: Duration) -> usize {
        (0..Self::BUCKETS - 1)
            .find(|&bucket| took <= Self::bound(bucket))
            .unwrap_or(Self::BUCKETS - 1)
    }

    fn bound(bucket: usize) -> Duration {
        Self::FIRST * (1 << bucket)
    }

    /// Returns the buckets, each with the longest duration in it, 16 microseconds to 8.4 seconds, and how many there
    /// are. The last one has all that are longer.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<Duration>, u64)> {
        let last = Self::BUCKETS - 1;
        let bound = move |bucket| (bucket < last).then(|| Self::bound(bucket));
        self.counts.into_iter().enumerate().map(move |(bucket, count)| (bound(bucket), count))
    }

    /// Returns how many durations there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of all durations.
    #[must_use]
    pub const fn total(&self) -> Duration {
        self.total
    }

    /// Returns a duration that this part of them doesn't exceed: `at_most(0.5)` is near the median. It is the bound of
    /// a bucket. `None` if there are none, or if it would be in the last bucket.
    #[must_use]
    pub fn at_most(&self, part: f64) -> Option<Duration> {
        let count = self.count();
        let (mut seen, mut buckets) = (0, self.buckets());
        let found = buckets.find(|(_, count_here)| {
            seen += count_here;
            seen > 0 && seen as f64 >= part * count as f64
        });
        found.and_then(|(bound, _)| bound)
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} commits since it was opened, the last is transaction {}. ",
            self.commits, self.txid
        )?;
        let flushes = self.flushes.count();
        write!(f, "They waited for {flushes} flushes")?;
        if let (Some(half), Some(most)) = (self.flushes.at_most(0.5), self.flushes.at_most(0.99)) {
            write!(f, ", half of which took at most {half:?}, and 99% at most {most:?}")?;
        }
        write!(f, ". The image has {} bytes", self.image_bytes)?;
        if let Some(last) = self.last_backfill {
            write!(f, ", of a backfill at {last}")?;
        }
        write!(
            f,
            "; it lacks {} bytes of the journal, {} transactions. ",
            self.tail_bytes, self.tail_transactions
        )?;
        let CacheStats { hits, misses, read_bytes, bytes, limit } = self.cache;
        write!(
            f,
            "{misses} pages were read from it, {read_bytes} bytes, and {hits} found in its cache, which has {bytes} \
             bytes of at most {limit}. "
        )?;
        let MemoryStats { changes, image, others, free, .. } = self.memory;
        write!(
            f,
            "Besides, {changes} bytes of memory are changes that the image lacks, {image} are of the image, {others} of \
             transactions and older states, and {free} are free. "
        )?;
        write!(f, "{} snapshots and {} subscriptions are open", self.readers, self.subscribers)?;
        match self.oldest_reader {
            Some(OldestState { txid, age }) => {
                write!(f, "; the oldest snapshot is of transaction {txid}, replaced {age:.1?} ago.")
            }
            None => f.write_str("."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_counted_in_buckets_that_double() {
        let mut all = Latencies::default();
        assert_eq!((all.count(), all.at_most(0.5)), (0, None));
        for micros in [0, 16, 17, 32, 33, 64, 65, 1 << 23, 1 << 24] {
            all.counts[Latencies::bucket(Duration::from_micros(micros))] += 1;
        }
        let found: Vec<_> = all.buckets().filter(|(_, count)| *count > 0).collect();
        let micros = |micros| Some(Duration::from_micros(micros));
        let expected = [
            (micros(16), 2),
            (micros(32), 2),
            (micros(64), 2),
            (micros(128), 1),
            (micros(1 << 23), 1),
            (None, 1),
        ];
        assert_eq!(found, expected);
        assert_eq!(
            (all.at_most(0.2), all.at_most(0.5), all.at_most(1.0)),
            (micros(16), micros(64), None)
        );
    }
}
