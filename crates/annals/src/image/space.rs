//! Which space of an image is free: what no root on disk and nobody's pin reaches. It is found by
//! walking the roots, and is never stored.
//!
//! Invariants
//! 1. `used` has all that either root on disk reaches, all that a pin may reach, and what the backfill
//!    under way was given. Only what isn't in it is given out.
//! 2. `live` has what the newest root reaches, with the changes of the backfill under way.
//! 3. What a root no longer reaches waits with that root's number and the number of the root that had it
//!    first, until no root on disk and none that is pinned lies between. So a root that is pinned for
//!    ever keeps what it reaches, and nothing else.
//! 4. Nobody knows here what a root that is older than `known_from` reaches, but that it lies before
//!    `fence`. While one is pinned, space is only given out behind that.

use super::file::Image;
use super::format::{OBJECTS_AT, Root, UNIT};
use super::stored::Stored;
use super::units::{Extent, Units, units};
use super::walk::{Step, walk};
use crate::mistakes::{Mistake, is_made};
use crate::{Error, ErrorKind, Result};

/// The space of an image.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    used: Units,
    live: Units,
    waiting: Vec<Waiting>,
    known_from: u64,
    /// Where the file ended when the space was found, in units.
    fence: u64,
    /// Where the search for space goes on.
    cursor: u64,
    given: Vec<Extent>,
    released: Vec<Released>,
    /// How many bytes and objects were asked for.
    asked: (u64, u64),
}

/// Units that a root reached, and the number of the first root that did.
type Released = (Extent, u64);

/// What a root no longer reaches.
#[derive(Clone, Debug)]
struct Waiting {
    /// The number of that root.
    root: u64,
    units: Vec<Released>,
}

/// Adds units to a list, joined to the last ones if they follow them.
fn push(list: &mut Vec<Extent>, extent: Extent) {
    match list.last_mut() {
        Some(last) if last.start + last.count == extent.start => last.count += extent.count,
        _ => list.push(extent),
    }
}

/// Gives the number of the root whose backfill wrote something. An entry has its lower half; a root
/// isn't pinned for four thousand million backfills.
fn first_root(stored: &Stored, number: u64) -> u64 {
    let low = u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default();
    number.saturating_sub(u64::from(low.wrapping_sub(stored.backfill)))
}

impl Space {
    /// Makes the space of an image that has no root yet.
    pub(super) fn empty() -> Self {
        let mut used = Units::default();
        used.take(Extent { start: 0, count: OBJECTS_AT / UNIT });
        Self {
            live: used.clone(),
            used,
            waiting: Vec::new(),
            known_from: 1,
            fence: 0,
            cursor: 0,
            given: Vec::new(),
            released: Vec::new(),
            asked: (0, 0),
        }
    }

    /// Finds the space by walking the directories of the newest root and of the other one, if that is
    /// whole. Costs a read of each node that the newest reaches, and of those of the other that differ.
    ///
    /// # Errors
    /// `Io`; `Corrupt` if the newest root's directory is. (If the other's is, nobody can use that root.)
    pub(super) fn find(image: &Image, newest: &Root, other: Option<&Root>) -> Result<Self> {
        let mut space = Self::empty();
        let live = walk(image, newest, |_, _| Ok(Step::Enter))?;
        for extent in live.runs() {
            space.live.take(extent);
            space.used.take(extent);
        }
        space.known_from = newest.number;
        space.fence = units(image.len()?);
        let Some(other) = other.filter(|other| other.number < newest.number) else {
            return Ok(space);
        };
        let old = walk(image, other, |_, stored| {
            // What both reach is at the same place, and so is all that it leads to.
            match Extent::of(stored) {
                extent if live.are_used(extent) => Ok(Step::Skip),
                extent if live.are_free(extent) => Ok(Step::Enter),
                _ => Err(Error::corrupt(format!("damaged: {} is written over", stored.place))),
            }
        });
        match old {
            Ok(old) => {
                // Which root had it first nobody asked: the oldest of all.
                let waiting: Vec<_> = old.runs().map(|extent| (extent, 0)).collect();
                for (extent, _) in &waiting {
                    space.used.take(*extent);
                }
                space.waiting.push(Waiting { root: newest.number, units: waiting });
                space.known_from = other.number;
                Ok(space)
            }
            Err(error) if error.kind() == ErrorKind::Corrupt => Ok(space),
            Err(error) => Err(error),
        }
    }

    /// Begins a backfill: what waited for none of these roots is free now. `on_disk` are those that an
    /// opening may take, the newest last, `pinned` those that somebody reads.
    pub(super) fn begin(&mut self, on_disk: &[u64], pinned: &[u64]) {
        debug_assert!(self.given.is_empty() && self.released.is_empty());
        let last = on_disk.len().saturating_sub(1);
        let on_disk_before = match is_made(Mistake::OlderRootWrittenOver) {
            true => &[],
            false => on_disk.split_at(last).0,
        };
        let read = if is_made(Mistake::PinnedRootWrittenOver) { &[] } else { pinned };
        let mut roots = [on_disk_before, on_disk.split_at(last).1, read].concat();
        roots.sort_unstable();
        let Self { waiting, used, .. } = self;
        for waiting in &mut *waiting {
            let last = roots.iter().rev().find(|root| **root < waiting.root);
            let is_read = |first: u64| {
                last.is_some_and(|last| first <= *last) || is_made(Mistake::FreedSpaceForgotten)
            };
            waiting.units.retain(|(extent, first)| {
                let is_read = is_read(*first);
                if !is_read {
                    used.give_back(*extent);
                }
                is_read
            });
        }
        waiting.retain(|waiting| !waiting.units.is_empty());
        let newest = on_disk.last().copied();
        self.cursor = if self.is_unknown(newest, pinned) { self.fence } else { 0 };
        self.asked = (0, 0);
    }

    /// Tells whether a root is pinned of which nobody knows here what it reaches: an old one, or one that
    /// an opening found and a later one didn't.
    pub(super) fn is_unknown(&self, newest: Option<u64>, pinned: &[u64]) -> bool {
        let newest = newest.unwrap_or(u64::MAX);
        pinned.iter().any(|&pin| pin < self.known_from || pin > newest)
    }

    /// Gives out space for an object of `len` bytes: behind what was given out before in the same
    /// backfill, so that it is written in one ascending sequence; in bytes.
    pub(super) fn allocate(&mut self, len: u32) -> u64 {
        let count = units(u64::from(len.max(1)));
        let start = self.used.find(self.cursor, count);
        let extent = Extent { start, count };
        self.used.take(extent);
        self.live.take(extent);
        push(&mut self.given, extent);
        self.cursor = start + count;
        self.asked = (self.asked.0 + u64::from(len), self.asked.1 + 1);
        start * UNIT
    }

    /// Notes that the next root, of this number, won't reach something.
    pub(super) fn release(&mut self, stored: &Stored, number: u64) {
        let extent = Extent::of(stored);
        let was_live = self.live.give_back(extent);
        debug_assert!(was_live, "{stored:?} isn't reached, or was released before");
        if was_live {
            self.released.push((extent, first_root(stored, number)));
        }
    }

    /// Gives how many bytes and objects the backfill under way asked for.
    pub(super) const fn asked(&self) -> (u64, u64) {
        self.asked
    }

    /// Ends a backfill that is on disk now as the root of this number.
    pub(super) fn published(&mut self, number: u64) {
        self.given.clear();
        let units = std::mem::take(&mut self.released);
        self.waiting.push(Waiting { root: number, units });
    }

    /// Ends a backfill that failed: takes back what it was given.
    pub(super) fn abandon(&mut self) {
        // What it was given and then released itself is in both lists, and no longer alive.
        for (extent, _) in std::mem::take(&mut self.released) {
            self.live.take(extent);
        }
        for extent in std::mem::take(&mut self.given) {
            self.live.give_back(extent);
            self.used.give_back(extent);
        }
    }

    /// Gives where the last of the newest root's objects ends, in bytes.
    pub(crate) fn end(&self) -> u64 {
        self.live.end() * UNIT
    }

    /// Gives where the last of all objects ends that somebody may reach, in bytes.
    pub(crate) fn used_end(&self) -> u64 {
        self.used.end() * UNIT
    }

    /// Gives how much the newest root reaches, the head of the file included, in bytes.
    pub(super) const fn live_bytes(&self) -> u64 {
        self.live.used() * UNIT
    }

    #[cfg(test)]
    /// Gives how much is used, the head of the file included, in bytes.
    pub(crate) const fn used_bytes(&self) -> u64 {
        self.used.used() * UNIT
    }

    #[cfg(test)]
    /// Gives the places and lengths, in bytes, that are free before the end of all that is used.
    pub(crate) fn free(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.used.free_from(0).map(|extent| (extent.start * UNIT, extent.count * UNIT))
    }

    /// Gives what the newest root reaches, the head of the file included.
    #[cfg(test)]
    pub(super) const fn live(&self) -> &Units {
        &self.live
    }

    /// Gives all that is used.
    #[cfg(test)]
    pub(super) const fn used(&self) -> &Units {
        &self.used
    }
}
