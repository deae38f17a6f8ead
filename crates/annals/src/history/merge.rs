//! Merging consecutive runs into one: their entries by rows, without forgotten ones.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::vec;

use super::entry::Entry;
use super::extent::Extent;
use super::file::IndexFile;
use super::read::Lookup;
use super::zone::Zone;
use crate::Result;

/// The entries of some runs, sorted.
pub(super) struct Merging<'f> {
    runs: Vec<Source<'f>>,
    /// The next entry of each.
    next: BinaryHeap<Reverse<(Entry, usize)>>,
    /// Zones before it were forgotten.
    from: u64,
    begun: bool,
}

struct Source<'f> {
    lookup: Lookup<'f>,
    run: Extent,
    leaf: u64,
    entries: vec::IntoIter<Entry>,
}

impl Source<'_> {
    /// Returns the next entry of a zone that isn't forgotten.
    fn next(&mut self, from: u64) -> Result<Option<Entry>> {
        loop {
            if let Some(entry) = self.entries.find(|entry| entry.zone >= from) {
                return Ok(Some(entry));
            }
            if self.leaf == self.run.leaves {
                return Ok(None);
            }
            self.entries = self.lookup.entries_in(&self.run, self.leaf)?.into_iter();
            self.leaf += 1;
        }
    }
}

impl<'f> Merging<'f> {
    /// Begins with the entries of some runs, of zones from `from` on.
    pub(super) fn new(file: &'f IndexFile, runs: &[Extent], from: u64) -> Self {
        let source = |run: &Extent| Source {
            lookup: Lookup::new(file),
            run: *run,
            leaf: 0,
            entries: Vec::new().into_iter(),
        };
        let runs = runs.iter().map(source).collect();
        Self { runs, next: BinaryHeap::new(), from, begun: false }
    }

    /// Returns the zones of the runs from `from` on.
    ///
    /// The least time of a zone is the least of its own and of the later zones' in the run. So the last zone that
    /// isn't later than some time is found from the end.
    pub(super) fn zones(&mut self) -> Result<Vec<Zone>> {
        let mut zones = Vec::new();
        for Source { lookup, run, .. } in &mut self.runs {
            let of_run = lookup.zones_in(run)?;
            let forgotten = usize::try_from(self.from.saturating_sub(run.zone)).unwrap_or(0);
            zones.extend(of_run.into_iter().skip(forgotten));
        }
        Ok(zones)
    }

    fn refill(&mut self, place: usize) -> Result<()> {
        let next = match self.runs.get_mut(place) {
            Some(source) => source.next(self.from)?,
            None => None,
        };
        self.next.extend(next.map(|entry| Reverse((entry, place))));
        Ok(())
    }

    fn step(&mut self) -> Result<Option<Entry>> {
        if !std::mem::replace(&mut self.begun, true) {
            (0..self.runs.len()).try_for_each(|place| self.refill(place))?;
        }
        let Some(Reverse((entry, place))) = self.next.pop() else { return Ok(None) };
        self.refill(place)?;
        Ok(Some(entry))
    }
}

impl Iterator for Merging<'_> {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}
