//! Which rows of a table there are, as runs of ids.

use std::collections::BTreeMap;
use std::ops::Range;

/// The rows of one table. Takes memory for each run of ids that has gaps around it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Live {
    /// First id and the end of each run; runs that touch are one.
    runs: BTreeMap<u64, u64>,
    /// One more than the largest id ever used.
    pub(crate) next: u64,
    /// How many rows were ever inserted.
    pub(crate) inserted: u64,
}

impl Live {
    /// Adds rows that weren't there.
    pub(crate) fn insert(&mut self, first: u64, count: u64) {
        let end = first.saturating_add(count);
        self.next = self.next.max(end);
        self.inserted = self.inserted.saturating_add(count);
        let end = self.runs.remove(&end).unwrap_or(end);
        match self.runs.range_mut(..first).next_back() {
            Some((_, before)) if *before == first => *before = end,
            _ => drop(self.runs.insert(first, end)),
        }
    }

    /// Removes rows.
    pub(crate) fn remove(&mut self, first: u64, count: u64) {
        let end = first.saturating_add(count);
        while let Some((&from, &to)) =
            self.runs.range(..end).next_back().filter(|run| *run.1 > first)
        {
            self.runs.remove(&from);
            if from < first {
                self.runs.insert(from, first);
            }
            if to > end {
                self.runs.insert(end, to);
            }
        }
    }

    /// Returns the number of rows.
    pub(crate) fn len(&self) -> u64 {
        self.runs().map(|run| run.end - run.start).sum()
    }

    /// Returns the runs in order.
    pub(crate) fn runs(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.runs.iter().map(|(&from, &to)| from..to)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn runs_are_what_a_set_says() {
        let (mut live, mut set, mut seed) = (Live::default(), BTreeSet::new(), 1_u64);
        for step in 0..5000 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let (first, count) = (seed >> 33 & 63, 1 + (seed >> 50 & 7));
            let range = first..first + count;
            if step % 2 == 0 && range.clone().all(|id| !set.contains(&id)) {
                live.insert(first, count);
                set.extend(range);
            } else if step % 2 == 1 && range.clone().all(|id| set.contains(&id)) {
                live.remove(first, count);
                set.retain(|id| !range.contains(id));
            }
            assert!(live.runs().flatten().eq(set.iter().copied()), "step {step}");
            let apart = live.runs().zip(live.runs().skip(1)).all(|(a, b)| a.end < b.start);
            assert!(apart && live.len() == set.len() as u64, "step {step}");
        }
        assert!(live.inserted > 500);
    }
}
