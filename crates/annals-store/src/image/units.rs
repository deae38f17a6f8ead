//! Which units of a file are used: a bit for each, so that a terabyte takes 32 MiB.
//!
//! Everything after the last bit is free, for files grow.

use super::format::UNIT;
use super::stored::Stored;

/// A set of units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Units {
    words: Vec<u64>,
    used: u64,
}

/// Consecutive units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// The number of the first unit.
    pub(crate) start: u64,
    /// How many there are.
    pub(crate) count: u64,
}

impl Extent {
    /// Returns the units that a stored object takes.
    pub(crate) const fn of(stored: &Stored) -> Self {
        Self { start: stored.place / UNIT, count: units(stored.len as u64) }
    }

    const fn end(&self) -> u64 {
        self.start.saturating_add(self.count)
    }
}

/// Returns how many units a number of bytes takes.
pub(crate) const fn units(len: u64) -> u64 {
    len.div_ceil(UNIT)
}

/// Returns the bits of a word in a range of units, and the word's number.
fn masks(extent: Extent) -> impl Iterator<Item = (usize, u64)> {
    let (mut at, end) = (extent.start, extent.end());
    std::iter::from_fn(move || {
        let first = at % 64;
        let count = (64 - first).min(end.saturating_sub(at));
        let word = usize::try_from(at / 64).ok()?;
        at += count;
        (count > 0).then(|| (word, (u64::MAX >> (64 - count)) << first))
    })
}

impl Units {
    /// True if none of some units is used.
    pub(crate) fn are_free(&self, extent: Extent) -> bool {
        masks(extent).all(|(word, mask)| self.word(word) & mask == 0)
    }

    /// True if all of some units are used.
    pub(crate) fn are_used(&self, extent: Extent) -> bool {
        masks(extent).all(|(word, mask)| self.word(word) & mask == mask)
    }

    /// Uses units; changes nothing and returns `false` if one of them is used already.
    pub(crate) fn take(&mut self, extent: Extent) -> bool {
        if !self.are_free(extent) {
            return false;
        }
        let Ok(words) = usize::try_from(extent.end().div_ceil(64)) else { return false };
        if self.words.len() < words {
            self.words.resize(words, 0);
        }
        for (word, mask) in masks(extent) {
            if let Some(word) = self.words.get_mut(word) {
                *word |= mask;
            }
        }
        self.used += extent.count;
        true
    }

    /// Frees units; changes nothing and returns `false` if one of them isn't used.
    pub(crate) fn give_back(&mut self, extent: Extent) -> bool {
        if !self.are_used(extent) {
            return false;
        }
        for (word, mask) in masks(extent) {
            if let Some(word) = self.words.get_mut(word) {
                *word &= !mask;
            }
        }
        self.used -= extent.count;
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
        true
    }

    /// Returns the first place, at or after a unit, with `count` consecutive free units.
    pub(crate) fn find(&self, from: u64, count: u64) -> u64 {
        let mut start = self.next(from, false);
        loop {
            let end = self.next_within(start, start.saturating_add(count));
            if end - start >= count {
                return start;
            }
            start = self.next(end, false);
        }
    }

    /// Returns the first unit at or after one that is used, or is free; where no bits are, all are free,
    /// and none is used.
    fn next(&self, from: u64, used: bool) -> u64 {
        let mut at = from;
        loop {
            let Some(&word) = usize::try_from(at / 64).ok().and_then(|word| self.words.get(word))
            else {
                return if used { u64::MAX } else { at };
            };
            let word = if used { word } else { !word } & (u64::MAX << (at % 64));
            at = at / 64 * 64;
            match word.trailing_zeros() {
                64 => at += 64,
                zeros => return at + u64::from(zeros),
            }
        }
    }

    /// Returns the first used unit in a range, or its end.
    fn next_within(&self, from: u64, end: u64) -> u64 {
        let mut at = from;
        while at < end {
            match usize::try_from(at / 64).ok().and_then(|word| self.words.get(word)) {
                None => return end,
                Some(&word) => match (word & (u64::MAX << (at % 64))).trailing_zeros() {
                    64 => at = at / 64 * 64 + 64,
                    zeros => return (at / 64 * 64 + u64::from(zeros)).min(end),
                },
            }
        }
        end
    }

    #[cfg(test)]
    /// Returns the free space at or after a unit and before the last used one, in order.
    pub(crate) fn free_from(&self, from: u64) -> impl Iterator<Item = Extent> + '_ {
        let mut at = from;
        std::iter::from_fn(move || {
            let start = self.next(at, false);
            let end = self.next(start, true);
            at = end;
            (end < u64::MAX).then(|| Extent { start, count: end - start })
        })
    }

    /// Returns the used space, in order.
    pub(crate) fn runs(&self) -> impl Iterator<Item = Extent> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            let start = self.next(at, true);
            at = self.next(start, false);
            (start < u64::MAX).then(|| Extent { start, count: at - start })
        })
    }

    /// Returns the number of used units.
    pub(crate) const fn used(&self) -> u64 {
        self.used
    }

    /// Returns the unit after the last used one.
    pub(crate) fn end(&self) -> u64 {
        let last = self.words.iter().rposition(|&word| word != 0);
        let word = last.and_then(|at| Some((at, self.words.get(at)?)));
        word.map_or(0, |(at, word)| at as u64 * 64 + u64::from(64 - word.leading_zeros()))
    }

    fn word(&self, word: usize) -> u64 {
        self.words.get(word).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use annals_simulated::Rng;
    use std::collections::BTreeSet;

    fn extents(rng: &mut Rng) -> Extent {
        let longest = if rng.percent(20) { 200 } else { 6 };
        Extent { start: rng.index(400) as u64, count: 1 + rng.index(longest) as u64 }
    }

    #[test]
    fn they_are_a_set_of_numbers() {
        let mut rng = Rng::new(11);
        for _ in 0..200 {
            let (mut units, mut model) = (Units::default(), BTreeSet::new());
            for _ in 0..100 {
                let extent = extents(&mut rng);
                let all = || extent.start..extent.start + extent.count;
                let (free, used) =
                    (all().all(|at| !model.contains(&at)), all().all(|at| model.contains(&at)));
                assert_eq!((units.are_free(extent), units.are_used(extent)), (free, used));
                if rng.percent(60) {
                    assert_eq!(units.take(extent), free);
                    model.extend(all().filter(|_| free));
                } else {
                    assert_eq!(units.give_back(extent), used);
                    model.retain(|at| !(used && all().contains(at)));
                }
                assert_eq!(units.used(), model.len() as u64);
                assert_eq!(units.end(), model.last().map_or(0, |last| last + 1));
                let fits = |at: &u64| (*at..at + extent.count).all(|at| !model.contains(&at));
                assert_eq!(
                    Some(units.find(extent.start, extent.count)),
                    (extent.start..).find(fits),
                    "{extent:?} in {model:?}"
                );
                let used: Vec<u64> = units.runs().flat_map(|e| e.start..e.end()).collect();
                assert_eq!(used, model.iter().copied().collect::<Vec<_>>());
                let free: Vec<u64> = units.free_from(3).flat_map(|e| e.start..e.end()).collect();
                let expected = (3..units.end()).filter(|at| !model.contains(at));
                assert_eq!(free, expected.collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn absurd_numbers_are_no_overflow() {
        let mut units = Units::default();
        let far = Extent { start: u64::MAX - 1, count: 5 };
        assert!(units.are_free(far) && !units.are_used(far));
        assert!(units.take(Extent { start: 1, count: 1 }));
        assert_eq!(units.find(u64::MAX - 3, 2), u64::MAX - 3);
    }
}
