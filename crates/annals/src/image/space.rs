//! Which space of an image is free: what no root on disk and nobody's pin reaches. It is found by
//! walking the roots, and is never stored.
//!
//! Invariants
//! 1. `used` has all that either root on disk reaches, all that a pin may reach, and what the backfill
//!    under way was given. Only what isn't in it is given out.
//! 2. `live` has what the newest root reaches, with the changes of the backfill under way.
//! 3. What a root no longer reaches waits with that root's number, until no root on disk and no pin is
//!    older than it.
//! 4. Nobody knows here what a root that is older than `known_from` reaches. While one is pinned,
//!    space is only given out behind everything.

use std::collections::VecDeque;

use super::file::Image;
use super::format::{OBJECTS_AT, Root, UNIT};
use super::stored::Stored;
use super::units::{Extent, Units, units};
use super::walk::{Step, walk};
use crate::{Error, ErrorKind, Result};

/// The space of an image.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    used: Units,
    live: Units,
    /// What waits, by the number of the root that no longer reaches it.
    waiting: VecDeque<(u64, Vec<Extent>)>,
    known_from: u64,
    /// Where the search for space begins in the backfill under way, and where it goes on.
    first: u64,
    cursor: u64,
    /// What the backfill under way was given, and hasn't thrown away itself.
    given: Units,
    /// Which part of that no view leads to that anybody can have.
    unseen: Units,
    /// What of the latter it has thrown away: free as soon as its own view goes on without it.
    garbage: Vec<Extent>,
    released: Vec<Extent>,
    /// How many bytes and objects were asked for.
    asked: (u64, u64),
    /// Whether the backfill under way was put aside, to go on later.
    is_put_aside: bool,
}

/// Adds units to a list, joined to the last ones if they follow them.
fn push(list: &mut Vec<Extent>, extent: Extent) {
    match list.last_mut() {
        Some(last) if last.start + last.count == extent.start => last.count += extent.count,
        _ => list.push(extent),
    }
}

impl Space {
    /// Makes the space of an image that has no root yet.
    pub(super) fn empty() -> Self {
        let mut used = Units::default();
        used.take(Extent { start: 0, count: OBJECTS_AT / UNIT });
        Self {
            live: used.clone(),
            used,
            waiting: VecDeque::new(),
            known_from: 0,
            first: 0,
            cursor: 0,
            given: Units::default(),
            unseen: Units::default(),
            garbage: Vec::new(),
            released: Vec::new(),
            asked: (0, 0),
            is_put_aside: false,
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
                let waiting: Vec<_> = old.runs().collect();
                for extent in &waiting {
                    space.used.take(*extent);
                }
                space.waiting.push_back((newest.number, waiting));
                space.known_from = other.number;
                Ok(space)
            }
            Err(error) if error.kind() == ErrorKind::Corrupt => Ok(space),
            Err(error) => Err(error),
        }
    }

    /// Begins a backfill: what waited for roots up to `oldest_root`, the oldest one on disk, and up to the
    /// oldest pin, is free now; `file_end` is the file's length in bytes.
    pub(super) fn begin(&mut self, oldest_root: u64, oldest_pin: Option<u64>, file_end: u64) {
        debug_assert!(self.given.used() == 0 && self.released.is_empty());
        let oldest = oldest_pin.map_or(oldest_root, |pin| pin.min(oldest_root));
        while self.waiting.front().is_some_and(|(number, _)| *number <= oldest) {
            for extent in self.waiting.pop_front().into_iter().flat_map(|(_, waited)| waited) {
                self.used.give_back(extent);
            }
        }
        self.first =
            if self.is_unknown(oldest_pin) { self.used.end().max(units(file_end)) } else { 0 };
        self.cursor = self.first;
        self.asked = (0, 0);
    }

    /// Tells whether a root is pinned of which nobody knows here what it reaches.
    pub(super) fn is_unknown(&self, oldest_pin: Option<u64>) -> bool {
        oldest_pin.is_some_and(|pin| pin < self.known_from)
    }

    /// Gives out space for an object of `len` bytes: behind what was given out before in the same
    /// backfill, so that it is written in one ascending sequence; in bytes.
    pub(super) fn allocate(&mut self, len: u32) -> u64 {
        let count = units(u64::from(len.max(1)));
        let start = self.used.find(self.cursor, count);
        let extent = Extent { start, count };
        self.used.take(extent);
        self.live.take(extent);
        self.given.take(extent);
        self.unseen.take(extent);
        self.cursor = start + count;
        self.asked = (self.asked.0 + u64::from(len), self.asked.1 + 1);
        start * UNIT
    }

    /// Notes that the next root won't reach something.
    pub(super) fn release(&mut self, stored: &Stored) {
        let extent = Extent::of(stored);
        let was_live = self.live.give_back(extent);
        debug_assert!(was_live, "{stored:?} isn't reached, or was released before");
        if was_live && self.unseen.give_back(extent) {
            self.given.give_back(extent);
            self.garbage.push(extent);
        } else if was_live {
            push(&mut self.released, extent);
        }
    }

    /// Notes that the view of the backfill under way goes on from what was written so far: what it has
    /// thrown away of that is free, and the search for space begins again.
    pub(super) fn go_on(&mut self) {
        for extent in std::mem::take(&mut self.garbage) {
            self.used.give_back(extent);
        }
        self.cursor = self.first;
    }

    /// Notes that others may have a view that leads to what was written so far.
    pub(super) fn show(&mut self) {
        self.unseen = Units::default();
    }

    /// Notes that the backfill under way goes on later.
    pub(super) fn put_aside(&mut self) {
        self.go_on();
        self.is_put_aside = true;
    }

    /// Tells whether a backfill was put aside: no other may begin.
    pub(super) const fn is_put_aside(&self) -> bool {
        self.is_put_aside
    }

    /// Gives how many bytes and objects the backfill under way asked for.
    pub(super) const fn asked(&self) -> (u64, u64) {
        self.asked
    }

    /// Ends a backfill that is on disk now as the root of this number.
    pub(super) fn published(&mut self, number: u64) {
        self.go_on();
        self.show();
        self.given = Units::default();
        self.is_put_aside = false;
        self.waiting.push_back((number, std::mem::take(&mut self.released)));
    }

    /// Ends a backfill that failed: takes back what it was given.
    pub(super) fn abandon(&mut self) {
        self.is_put_aside = false;
        self.go_on();
        self.show();
        // What it was given and then released itself is among both, and no longer alive.
        for extent in std::mem::take(&mut self.released) {
            self.live.take(extent);
        }
        for extent in std::mem::take(&mut self.given).runs() {
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

    /// Gives how much is used, the head of the file included, in bytes.
    pub(crate) const fn used_bytes(&self) -> u64 {
        self.used.used() * UNIT
    }

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
