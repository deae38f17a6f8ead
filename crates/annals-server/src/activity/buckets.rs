//! How much each table was changed, in buckets of transactions: a bounded number of them, however many transactions
//! there are.

use std::collections::BTreeMap;

use annals::TableNumber;

/// The most buckets. When there would be more, neighbours are joined.
pub(crate) const MOST: usize = 2048;
/// The most tables that a bucket counts apart.
const MOST_TABLES: usize = 24;

/// Some transactions in a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bucket {
    /// The first and the last of them.
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// When the last one was committed, in microseconds since 1970.
    pub(crate) time: i64,
    /// How many changes of rows there are, by table; without a table those of all tables that aren't counted apart.
    pub(crate) changes: BTreeMap<Option<TableNumber>, u64>,
}

impl Bucket {
    pub(crate) fn count(&mut self, table: Option<TableNumber>, changes: u64) {
        let is_known = self.changes.contains_key(&table) || self.changes.len() < MOST_TABLES;
        *self.changes.entry(table.filter(|_| is_known)).or_default() += changes;
    }

    /// Adds the bucket after it.
    pub(crate) fn join(&mut self, next: &Self) {
        (self.last, self.time) = (next.last, next.time);
        next.changes.iter().for_each(|(table, changes)| self.count(*table, *changes));
    }
}

/// Buckets of equal width, but for the last one.
#[derive(Debug, Default)]
pub(crate) struct Buckets {
    list: Vec<Bucket>,
    /// How many transactions a bucket has.
    width: u64,
}

impl Buckets {
    /// Adds the next transaction, as a bucket of its own.
    pub(crate) fn add(&mut self, transaction: Bucket) {
        self.width = self.width.max(1);
        match self.list.last_mut() {
            Some(last) if last.last - last.first + 1 < self.width => last.join(&transaction),
            _ => self.list.push(transaction),
        }
        if self.list.len() > MOST {
            self.list = joined(&self.list, 2).collect();
            self.width *= 2;
        }
    }

    /// Returns at most so many buckets.
    pub(crate) fn at_most(&self, most: usize) -> impl Iterator<Item = Bucket> {
        joined(&self.list, self.list.len().div_ceil(most.max(1)).max(1))
    }
}

fn joined(list: &[Bucket], group: usize) -> impl Iterator<Item = Bucket> {
    list.chunks(group).filter_map(|group| {
        let (first, rest) = group.split_first()?;
        let mut joined = first.clone();
        rest.iter().for_each(|next| joined.join(next));
        Some(joined)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transaction(txid: u64) -> Bucket {
        let table = u32::try_from(txid % 40).map(TableNumber).ok();
        let changes = BTreeMap::from([(table, txid % 7)]);
        Bucket { first: txid, last: txid, time: txid.cast_signed(), changes }
    }

    fn sum(buckets: impl Iterator<Item = Bucket>) -> u64 {
        buckets.flat_map(|bucket| bucket.changes.into_values()).sum()
    }

    #[test]
    fn they_are_few_and_lose_nothing() {
        let (mut buckets, mut expected) = (Buckets::default(), 0);
        for txid in 1..=100_000 {
            buckets.add(transaction(txid));
            expected += txid % 7;
        }
        assert!(buckets.list.len() <= MOST && buckets.list.len() > MOST / 4);
        for most in [1, 10, 1000, 10_000] {
            let list: Vec<_> = buckets.at_most(most).collect();
            assert!(list.len() <= most.min(MOST));
            assert_eq!((list[0].first, list[list.len() - 1].last), (1, 100_000));
            assert!(list.windows(2).all(|two| two[0].last + 1 == two[1].first));
            assert!(list.iter().all(|bucket| bucket.changes.len() <= MOST_TABLES + 1));
            assert_eq!(sum(list.into_iter()), expected);
        }
    }
}
