//! Runs of rows that a transaction notes.

use std::ops::Range;

/// How many of the last runs are searched for one that has the row or ends before it: more than a table usually has
/// references.
const OPEN: usize = 4;

/// The number of runs that are noted before the first merge.
const MERGED: usize = 1024;

/// Consecutive ids, each run under a key, such as the table's number.
#[derive(Clone, Debug)]
pub struct RowRuns<K> {
    runs: Vec<(K, Range<u64>)>,
    /// How many there were after the last merge.
    merged: usize,
}

impl<K> Default for RowRuns<K> {
    fn default() -> Self {
        Self { runs: Vec::new(), merged: 0 }
    }
}

impl<K: Copy + Ord> RowRuns<K> {
    /// Notes ids after those that were noted before. A run of the last ones that they overlap or adjoin is lengthened.
    #[inline]
    pub fn push(&mut self, key: K, ids: Range<u64>) {
        let mut open = self.runs.iter_mut().rev().take(OPEN);
        let touches = |run: &Range<u64>| run.start <= ids.start && ids.start <= run.end;
        match open.find(|(of, run)| *of == key && touches(run)) {
            Some((_, run)) => run.end = run.end.max(ids.end),
            None => self.runs.push((key, ids)),
        }
    }

    /// Notes ids in any order: many runs are merged, so that those of one place take no more memory.
    pub fn add(&mut self, key: K, ids: Range<u64>) {
        self.push(key, ids);
        if self.runs.len() > MERGED + 2 * self.merged {
            self.merge();
        }
    }

    /// Sorts the runs, and joins those that overlap or adjoin.
    pub fn merge(&mut self) {
        self.runs.sort_unstable_by_key(|(key, run)| (*key, run.start));
        self.runs.dedup_by(|(next_key, next), (key, run)| {
            let touches = next_key == key && next.start <= run.end;
            if touches {
                run.end = run.end.max(next.end);
            }
            touches
        });
        self.merged = self.runs.len();
    }

    /// Returns the runs.
    #[must_use]
    pub const fn runs(&self) -> &[(K, Range<u64>)] {
        self.runs.as_slice()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_are_noted_again_are_in_one_run() {
        let mut runs = RowRuns::default();
        let mut note = |field, first, count| runs.push(field, first..first + count);
        for _ in 0..3 {
            (0..4).for_each(|field| note(field, 10, 5));
        }
        note(0, 12, 5); // overlaps
        note(0, 17, 1); // goes on
        note(0, 11, 2); // within
        note(1, 16, 1); // after a gap
        note(1, 9, 1); // in front
        let first = [(0, 10..18), (1, 10..15), (2, 10..15), (3, 10..15)];
        assert_eq!(runs.runs(), [&first[..], &[(1, 16..17), (1, 9..10)]].concat());
        runs.merge();
        let merged = [(0, 10..18), (1, 9..15), (1, 16..17), (2, 10..15), (3, 10..15)];
        assert_eq!(runs.runs(), merged);
    }

    #[test]
    fn ids_in_any_order_take_no_more_than_their_runs() {
        let mut runs = RowRuns::default();
        for id in (0..100_000).rev().step_by(2).chain((0..100_000).step_by(2)) {
            runs.add((), id..id + 1);
        }
        runs.merge();
        assert_eq!(runs.runs(), [((), 0..100_000)]);
    }
}
