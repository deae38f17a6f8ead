//! Adding zones to an index file: a new run, and merging it with those before it.

use super::entry::Entry;
use super::extent::{self, Extent};
use super::file::{Creation, IndexFile};
use super::format::{Bound, Head, PAGE, RUNS_AT};
use super::merge::Merging;
use super::read::Lookup;
use super::write::{Made, write_run};
use super::zone::Zone;
use crate::Result;

impl IndexFile {
    /// Adds zones with their entries, which are sorted; the index's end is `bound` then. Zones of segments before
    /// `oldest` are dropped.
    ///
    /// # Errors
    /// `Corrupt` if the existing index doesn't verify; `Io`. The index is unchanged.
    pub(crate) fn add(
        &mut self,
        zones: Vec<Zone>,
        entries: &[Entry],
        bound: Bound,
        oldest: u64,
    ) -> Result<()> {
        let added = self.add_once(zones, entries, bound, oldest);
        if added.is_err() {
            // On a full disk others need that space; if it can't be truncated, it is free space.
            let _ = self.storage.set_len(self.end());
            if let Some(Creation { directory, temporary, .. }) = &self.creation {
                let _ = directory.remove(temporary);
            }
        }
        added
    }

    fn add_once(
        &mut self,
        zones: Vec<Zone>,
        entries: &[Entry],
        bound: Bound,
        oldest: u64,
    ) -> Result<()> {
        let mut runs = self.head.runs.clone();
        runs.retain(|run| run.segments.1 >= oldest);
        let next_zone = self.head.next_zone + zones.len() as u64;
        if !zones.is_empty() {
            let estimate = (entries.len() * 8 + zones.len() * 100) as u64;
            let zone = self.head.next_zone;
            let made = self.write(&runs, estimate, |file, place, limit| {
                let entries = entries.iter().map(|entry| Ok(*entry));
                write_run(file, place, limit, zone, zones.clone(), entries)
            })?;
            runs.push(made);
        }
        while let Some(first) = self.to_merge(&runs, oldest)? {
            let together = runs.split_off(first);
            let estimate = together.iter().map(|run| run.end() - run.place).sum();
            let all: Vec<_> = runs.iter().chain(&together).copied().collect();
            let from = self.first_zone_of(&together, oldest)?;
            let made = self.write(&all, estimate, |file, place, limit| {
                let mut merging = Merging::new(file, &together, from);
                let zones = merging.zones()?;
                let zone = from.max(together.first().map_or(0, |run| run.zone));
                write_run(file, place, limit, zone, zones, merging)
            })?;
            runs.push(made);
        }
        self.move_last(&mut runs)?;
        self.publish(Head {
            number: self.head.number + 1,
            journal_id: self.head.journal_id,
            bound,
            next_zone,
            runs,
        })
    }

    /// Returns the run from which on all become one, if any do; the first one alone, where more than half of it was
    /// forgotten.
    fn to_merge(&self, runs: &[Extent], oldest: u64) -> Result<Option<usize>> {
        if let Some(together) = extent::due(runs) {
            return Ok(Some(runs.len() - together));
        }
        let Some(first) = runs.first().filter(|first| first.segments.0 < oldest) else {
            return Ok(None);
        };
        let left = first.end_zone() - self.first_zone_of(&[*first], oldest)?;
        Ok((left * 2 < first.zones && runs.len() == 1).then_some(0))
    }

    /// Returns the first zone of some runs that isn't forgotten.
    fn first_zone_of(&self, runs: &[Extent], oldest: u64) -> Result<u64> {
        let Some(first) = runs.first() else { return Ok(0) };
        match first.segments.0 < oldest {
            true => Lookup::new(self).first_of_segment(first, oldest),
            false => Ok(first.zone),
        }
    }

    /// Writes a run where there is room for it: in a gap that should be large enough, or else after all others.
    fn write(
        &self,
        runs: &[Extent],
        estimate: u64,
        make: impl Fn(&Self, u64, u64) -> Result<Made>,
    ) -> Result<Extent> {
        let (gap, end) = self.gap(runs, estimate + estimate / 4 + 4 * PAGE as u64);
        for (place, limit) in gap.into_iter().chain([(end, u64::MAX)]) {
            if let Made::Whole(made) = make(self, place, limit)? {
                return Ok(made);
            }
        }
        Err(self.corrupt("has no room behind its end"))
    }

    /// Finds a gap of this length between runs, also those that a copy of the head refers to; also returns the end of
    /// the last one.
    fn gap(&self, runs: &[Extent], wanted: u64) -> (Option<(u64, u64)>, u64) {
        let all = self.taken().chain(runs);
        let mut taken: Vec<_> = all.map(|run| (run.place, run.end())).collect();
        taken.sort_unstable();
        let (mut gap, mut end) = (None, RUNS_AT);
        for (place, behind) in taken {
            if gap.is_none() && place.saturating_sub(end) >= wanted {
                gap = Some((end, place));
            }
            end = end.max(behind);
        }
        (gap, end)
    }

    /// Copies the last run in the file to an earlier gap, if much of the file is free: so the file gets shorter once
    /// no copy of the head refers to the end.
    fn move_last(&self, runs: &mut [Extent]) -> Result<()> {
        let live: u64 = runs.iter().map(|run| run.end() - run.place).sum();
        let Some(last) = runs.iter().copied().max_by_key(|run| run.place) else { return Ok(()) };
        let len = last.end() - last.place;
        let is_sparse = last.end() > RUNS_AT + live + live / 2;
        let (gap, _) = self.gap(runs, len);
        let Some((to, _)) = gap.filter(|(to, _)| is_sparse && *to < last.place) else {
            return Ok(());
        };
        let mut bytes = vec![0; 64 * PAGE];
        for done in (0..len).step_by(bytes.len()) {
            let left = usize::try_from(len - done).unwrap_or(usize::MAX).min(bytes.len());
            let part = bytes.get_mut(..left).unwrap_or_default();
            let read = self.storage.read_at(last.place + done, part);
            read.map_err(|error| self.io("can't be read", error))?;
            let written = self.storage.write_at(to + done, part);
            written.map_err(|error| self.io("can't be written", error))?;
        }
        runs.iter_mut().filter(|run| run.place == last.place).for_each(|run| run.place = to);
        Ok(())
    }
}
