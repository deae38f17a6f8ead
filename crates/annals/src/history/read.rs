//! Lookups: the zones that change a row or may have a comment, and the data of a zone.

use std::collections::HashMap;
use std::io;

use super::entry::{Entry, PageReader};
use super::extent::{Extent, Tree};
use super::file::IndexFile;
use super::format::{CHILDREN, PAGE, ZONE_LEN, ZONES};
use super::node::{self, Key};
use super::zone::Zone;
use crate::bytes::hash;
use crate::{Error, Result};

/// Lookups in an index, with its head at the time when this was made. It caches the pages that it has read.
#[derive(Debug)]
pub(crate) struct Lookup<'f> {
    file: &'f IndexFile,
    pages: HashMap<u64, Vec<u8>>,
    /// How many bytes were read.
    bytes: u64,
}

impl<'f> Lookup<'f> {
    pub(crate) fn new(file: &'f IndexFile) -> Self {
        Self { file, pages: HashMap::new(), bytes: 0 }
    }

    /// Returns how many bytes were read.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the zones with an entry for a row, in their order.
    ///
    /// # Errors
    /// `Corrupt` if a page doesn't verify: it is damaged, or its room was used again meanwhile; `Io`.
    pub(crate) fn zones_of(&mut self, table: u64, row: u64) -> Result<Vec<u64>> {
        let (key, mut found) = (Key { table, row }, Vec::new());
        for run in &self.file.head().runs {
            let tree = run.row_tree();
            if tree.leaves > 0 {
                self.stab(run, tree.top(), 0, key, &mut found)?;
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// Finds the entries with a row in a page and all below it.
    fn stab(
        &mut self,
        run: &Extent,
        level: usize,
        index: u64,
        key: Key,
        found: &mut Vec<u64>,
    ) -> Result<()> {
        let tree = &run.row_tree();
        let page = self.page(tree, level, index)?;
        if level == 0 {
            let has = |entry: &Entry| {
                entry.table == key.table
                    && entry.first <= key.row
                    && key.row - entry.first < entry.count
            };
            let behind = |entry: &Entry| (entry.table, entry.first) > (key.table, key.row);
            let entries = PageReader::new(page, run.zone).take_while(|entry| !behind(entry));
            found.extend(entries.filter(has).map(|entry| entry.zone));
            return Ok(());
        }
        let below = tree.levels().nth(level - 1).unwrap_or(0);
        let children = (0..CHILDREN).take_while(|place| index * CHILDREN + place < below);
        let children: Vec<_> = children
            .filter_map(|place| Some((place, node::child(page, place)?)))
            .take_while(|(_, child)| child.first <= key)
            .filter(|(_, child)| child.end > key)
            .map(|(place, _)| index * CHILDREN + place)
            .collect();
        children.into_iter().try_for_each(|at| self.stab(run, level - 1, at, key, found))
    }

    /// Returns the last zone with a commit whose time isn't later.
    ///
    /// # Errors
    /// As [`Self::zones_of`].
    pub(crate) fn zone_of_time(&mut self, time: i64) -> Result<Option<(u64, Zone)>> {
        let runs = &self.file.head().runs;
        let Some(run) = runs.iter().rev().find(|run| run.least_time <= time) else {
            return Ok(None);
        };
        let later = self.partition(run, |zone| zone.least_time > time)?;
        let last = later.saturating_sub(1);
        Ok(Some((last, self.zone_in(run, last)?)))
    }

    fn first_zone(
        &mut self,
        is_run: impl Fn(&Extent) -> bool,
        is_it: impl Fn(&Zone) -> bool,
    ) -> Result<Option<(u64, Zone)>> {
        let Some(run) = self.file.head().runs.iter().find(|run| is_run(run)) else {
            return Ok(None);
        };
        let first = self.partition(run, is_it)?;
        match first < run.end_zone() {
            true => Ok(Some((first, self.zone_in(run, first)?))),
            false => Ok(None),
        }
    }

    /// Returns the first zone of a run with a property that all later ones have too.
    fn partition(&mut self, run: &Extent, is_so: impl Fn(&Zone) -> bool) -> Result<u64> {
        let (mut low, mut high) = (run.zone, run.end_zone());
        while low < high {
            let middle = low + (high - low) / 2;
            match is_so(&self.zone_in(run, middle)?) {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        Ok(low)
    }

    /// Returns the zone of a number; `None` if it doesn't exist (any more).
    ///
    /// # Errors
    /// As [`Self::zones_of`].
    pub(crate) fn zone(&mut self, number: u64) -> Result<Option<Zone>> {
        let runs = &self.file.head().runs;
        let run = runs.iter().find(|run| (run.zone..run.end_zone()).contains(&number));
        run.map(|run| self.zone_in(run, number)).transpose()
    }

    /// Returns the last zone that ends, in its segment, not after a place.
    ///
    /// # Errors
    /// As [`Self::zones_of`].
    pub(crate) fn last_before(&mut self, place: (u64, u64)) -> Result<Option<(u64, Zone)>> {
        let is_behind = |zone: &Zone| (zone.segment, zone.end.position) > place;
        let runs = &self.file.head().runs;
        for run in runs.iter().rev() {
            let behind = self.partition(run, is_behind)?;
            if behind > run.zone {
                return Ok(Some((behind - 1, self.zone_in(run, behind - 1)?)));
            }
        }
        Ok(None)
    }

    /// Returns the first zone whose segment isn't before one.
    ///
    /// # Errors
    /// As [`Self::zones_of`].
    pub(crate) fn first_of_segment_at(&mut self, segment: u64) -> Result<Option<(u64, Zone)>> {
        self.first_zone(|run| run.segments.1 >= segment, |zone| zone.segment >= segment)
    }

    /// Returns the first zone of a run whose segment isn't before one.
    pub(super) fn first_of_segment(&mut self, run: &Extent, segment: u64) -> Result<u64> {
        self.partition(run, |zone| zone.segment >= segment)
    }

    fn zone_in(&mut self, run: &Extent, number: u64) -> Result<Zone> {
        let place = number - run.zone;
        let tree = run.zone_tree();
        let page = self.page(&tree, 0, place / ZONES)?;
        let at = usize::try_from(place % ZONES).unwrap_or(usize::MAX).saturating_mul(ZONE_LEN);
        let bytes = page.get(at..).and_then(|rest| rest.first_chunk());
        bytes.map(Zone::decode).ok_or_else(|| self.file.corrupt("has no such zone"))
    }

    /// Returns all zones of a run.
    pub(super) fn zones_in(&mut self, run: &Extent) -> Result<Vec<Zone>> {
        (run.zone..run.end_zone()).map(|number| self.zone_in(run, number)).collect()
    }

    /// Returns the entries of a page.
    pub(super) fn entries_in(&mut self, run: &Extent, leaf: u64) -> Result<Vec<Entry>> {
        let tree = run.row_tree();
        let page = self.page(&tree, 0, leaf)?;
        let entries = PageReader::new(page, run.zone).collect();
        // Each is read once.
        self.pages.remove(&tree.page_at(0, leaf));
        Ok(entries)
    }

    /// Reads a page that the one above it, or the head, proves.
    fn page(&mut self, tree: &Tree, level: usize, index: u64) -> Result<&[u8]> {
        let at = tree.page_at(level, index);
        if !self.pages.contains_key(&at) {
            let sum = match level == tree.top() {
                true => Some(tree.sum),
                false => {
                    let above = self.page(tree, level + 1, index / CHILDREN)?;
                    node::child(above, index % CHILDREN).map(|child| child.sum)
                }
            };
            let mut page = vec![0; PAGE];
            let io = |error: io::Error| self.file.io("can't be read", error);
            let read = self.file.storage().read_at(at, &mut page).map_err(io)?;
            self.bytes += read as u64;
            if Some(hash(&page)) != sum {
                return Err(self.wrong(at));
            }
            self.pages.insert(at, page);
        }
        Ok(self.pages.get(&at).map_or(&[], Vec::as_slice))
    }

    #[cold]
    fn wrong(&self, at: u64) -> Error {
        self.file.corrupt(format_args!("doesn't verify at position {at}"))
    }
}
