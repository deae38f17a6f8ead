//! The free space of an image: space that no root on disk and no pin reaches. It is found by walking the roots, and
//! is never stored.
//!
//! Invariants
//! 1. `used` has all space that either root on disk and the key frames reach. It also has all space that a pin may
//!    reach, and the space of the current backfill. Only space that isn't in it is allocated.
//! 2. `live` has the space of the newest root, with the changes of the current backfill.
//! 3. Space that a root no longer reaches waits with two numbers: that root's, and the number of the first root that
//!    reached the space. It is free when no root on disk or pinned is between them. So a root that is pinned for ever
//!    keeps exactly its own space.
//! 4. Some space is unknown here: the space of a root older than `known_from` that is no key frame, and the space of
//!    another handle's backfill without a root. (The pin of that has a number above all roots'.) It is known only to be
//!    before `fence`. While one of them is pinned, space is only given out after that.
//! 5. A suspended backfill may be visible before it has a root, through views that pin the root below it. Once such a
//!    view may exist, all space of this backfill counts as first reached through the root below, as long as that is
//!    pinned. Space that no view can have reached is free as soon as the backfill's own view continues without it.
//!    Other handles can't know any of this: for them such a view has a separate pin, for which 4 holds.

use std::sync::Arc;

use annals_storage::step;

use super::figures;
use super::file::Image;
use super::format::{OBJECTS_AT, Root, UNIT};
use super::stored::Stored;
use super::units::{Extent, Units, units};
use super::walk::{WalkStep, walk};
use crate::{Error, ErrorKind, Result};

/// How many sizes of objects have a search of their own.
const SIZES: usize = 4;

/// The space of an image.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    used: Units,
    live: Units,
    waiting: Vec<Waiting>,
    known_from: u64,
    /// The key frames before that, of which it is known all the same.
    known: Vec<u64>,
    /// Where the file ended when the space was found, in units.
    fence: u64,
    /// Where the search for space begins in the backfill under way.
    first: u64,
    /// Where it continues for objects of 1, 2, 3 units, and of more: a hole that is too small for one is left to others.
    cursors: [u64; SIZES],
    /// The space of the current backfill, except that which it has freed itself.
    given: Units,
    /// The part of that which no possible view refers to.
    unseen: Units,
    /// The freed part of the latter: it is free as soon as the backfill's own view continues without it.
    garbage: Vec<Extent>,
    /// Which backfills were seen before they were published.
    early: Vec<Early>,
    released: Vec<Released>,
    /// How many bytes and objects the current backfill has written that its root will reach.
    wrote: (u64, u64),
    /// How many bytes more its compressed pages would take, less those of the pages that it released.
    spared: i64,
    /// True if the current backfill is suspended, to continue later.
    is_put_aside: bool,
}

/// Units that a root reached, and the number of the first root that did.
type Released = (Extent, u64);

/// Space that a root no longer reaches.
#[derive(Clone, Debug)]
struct Waiting {
    /// The number of that root.
    root: u64,
    units: Vec<Released>,
}

/// A backfill of which others may have seen something before its root was published.
#[derive(Clone, Copy, Debug)]
struct Early {
    /// The number of its root.
    draft: u64,
    /// The number of the root that each view of it pins; 0: there was none yet.
    below: u64,
}

/// Returns the number of the root whose backfill wrote something. An entry has its lower half; a root
/// isn't pinned for four thousand million backfills.
fn first_root(stored: &Stored, number: u64) -> u64 {
    let low = u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default();
    number.saturating_sub(u64::from(low.wrapping_sub(stored.backfill)))
}

/// Returns how many bytes compression spares of a page, as a difference.
fn spared_by(len: u32) -> i64 {
    figures::spared_by(len).cast_signed()
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
            known_from: 0,
            known: Vec::new(),
            fence: 0,
            first: 0,
            cursors: [0; SIZES],
            given: Units::default(),
            unseen: Units::default(),
            garbage: Vec::new(),
            early: Vec::new(),
            released: Vec::new(),
            wrote: (0, 0),
            spared: 0,
            is_put_aside: false,
        }
    }

    /// Finds the space by walking the directories of the newest root, of the other one, if that is whole, and of the
    /// key frames. Also returns the key frames that are whole. Costs a read of each node that the newest reaches, and
    /// of those of the others that differ.
    ///
    /// # Errors
    /// `Io`; `Corrupt` if the newest root's directory is. (If another is damaged, that root can't be used.)
    pub(super) fn find(
        image: &Image,
        newest: &Root,
        other: Option<&Root>,
        frames: &Arc<[Root]>,
    ) -> Result<(Self, Arc<[Root]>)> {
        let mut space = Self::empty();
        let live = walk(image, newest, |_, _| Ok(WalkStep::Enter))?;
        for extent in live.runs() {
            space.live.take(extent);
            space.used.take(extent);
        }
        space.known_from = newest.number;
        space.fence = units(image.len()?);
        let mut later = newest.number;
        let other = other.filter(|other| other.number < newest.number);
        let is_listed = |other: &&Root| frames.iter().all(|frame| frame.number != other.number);
        if let Some(other) = other.filter(is_listed)
            && space.find_older(image, other, later)?
        {
            space.known_from = other.number;
            later = other.number;
        }
        let mut whole = Vec::with_capacity(frames.len());
        for frame in frames.iter().rev() {
            // One that is newer than the other root can't be.
            if frame.number < later && space.find_older(image, frame, later)? {
                later = frame.number;
                space.known.push(frame.number);
                whole.push(*frame);
            }
        }
        if other.is_some_and(|other| space.known.first() == Some(&other.number)) {
            space.known_from = space.known.remove(0);
        }
        whole.reverse();
        let is_whole = whole.len() == frames.len();
        Ok((space, if is_whole { Arc::clone(frames) } else { whole.into() }))
    }

    /// Finds the space of a root that none of the later ones reaches, of which `later` is the oldest; `false` if it
    /// isn't whole.
    fn find_older(&mut self, image: &Image, root: &Root, later: u64) -> Result<bool> {
        let mut found = Vec::new();
        let used = &self.used;
        let walked = walk(image, root, |_, stored| {
            // Common objects of two roots are at the same place, and so are all objects below.
            match Extent::of(stored) {
                extent if used.are_used(extent) => Ok(WalkStep::Skip),
                extent if used.are_free(extent) => {
                    found.push((extent, first_root(stored, root.number)));
                    Ok(WalkStep::Enter)
                }
                _ => Err(Error::corrupt(format!("damaged: {} is written over", stored.place))),
            }
        });
        match walked {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Corrupt => return Ok(false),
            Err(error) => return Err(error),
        }
        for (extent, _) in &found {
            self.used.take(*extent);
        }
        self.waiting.push(Waiting { root: later, units: found });
        Ok(true)
    }

    /// Returns how many bytes only these older roots hold, in order of their numbers, once the backfill of this
    /// number is published.
    pub(super) fn held_by(&self, roots: &[u64], number: u64) -> u64 {
        let is_held = |first: u64, until: u64| {
            let before = roots.partition_point(|root| *root < until);
            before.checked_sub(1).and_then(|at| roots.get(at)).is_some_and(|last| first <= *last)
        };
        let waiting = self.waiting.iter().flat_map(|waiting| {
            waiting.units.iter().map(|(extent, first)| (extent, *first, waiting.root))
        });
        let released = self.released.iter().map(|(extent, first)| (extent, *first, number));
        let held = waiting.chain(released).filter(|(_, first, until)| is_held(*first, *until));
        held.map(|(extent, ..)| extent.count * UNIT).sum()
    }

    /// Returns true if a root reaches an object. The root is an older one, or the root of the current backfill, whose
    /// number is `next`.
    pub(super) fn is_reached(&self, stored: &Stored, root: u64, next: u64) -> bool {
        let extent = Extent::of(stored);
        let is_since = |first: u64| first <= root;
        if !self.live.are_free(extent) {
            return is_since(first_root(stored, next));
        }
        let waiting = self.waiting.iter().flat_map(|waiting| {
            waiting.units.iter().map(|(extent, first)| (extent, *first, waiting.root))
        });
        let released = self.released.iter().map(|(extent, first)| (extent, *first, next));
        let mut all = waiting.chain(released);
        all.any(|(it, first, until)| it.start == extent.start && is_since(first) && root < until)
    }

    /// Begins a backfill: space that waited for none of these roots is free now. `on_disk` are those that an opening
    /// may use, the newest last, `pinned` those with readers, `frames` the key frames.
    pub(super) fn begin(&mut self, on_disk: &[u64], pinned: &[u64], frames: &[u64]) {
        debug_assert!(self.given.used() == 0 && self.released.is_empty());
        let last = on_disk.len().saturating_sub(1);
        let (before, newest) = on_disk.split_at(last);
        let mut roots = [
            step!(OlderRootWrittenOver, before, else &[]),
            newest,
            step!(PinnedRootWrittenOver, pinned, else &[]),
            step!(KeyFrameWrittenOver, frames, else &[]),
        ]
        .concat();
        roots.sort_unstable();
        let Self { waiting, used, .. } = self;
        for waiting in &mut *waiting {
            let last = roots.iter().rev().find(|root| **root < waiting.root);
            let is_read = |first: u64| step!(FreedSpaceForgotten, last.is_some_and(|last| first <= *last), else true);
            waiting.units.retain(|(extent, first)| {
                let is_read = is_read(*first);
                if !is_read {
                    used.give_back(*extent);
                }
                is_read
            });
        }
        waiting.retain(|waiting| !waiting.units.is_empty());
        self.early.retain(|early| pinned.contains(&early.below));
        let newest = on_disk.last().copied();
        self.first = if self.is_unknown(newest, pinned) { self.fence } else { 0 };
        self.cursors = [self.first; SIZES];
        self.wrote = (0, 0);
        self.spared = 0;
    }

    /// True if a pin's space is unknown here: of an old root, of one that an opening found and a later one didn't, or
    /// of another handle's backfill without a root.
    pub(super) fn is_unknown(&self, newest: Option<u64>, pinned: &[u64]) -> bool {
        let newest = newest.unwrap_or(u64::MAX);
        let is_known = |pin| pin >= self.known_from || self.known.contains(&pin);
        pinned.iter().any(|&pin| pin > newest || !is_known(pin))
    }

    /// Allocates space for an object of `len` bytes: after the previous one of that size of the same backfill, so
    /// that each size is written in one ascending sequence; returns its position in bytes.
    pub(super) fn allocate(&mut self, len: u32) -> u64 {
        let count = units(u64::from(len.max(1)));
        let size = usize::try_from(count).map_or(SIZES, |count| count.min(SIZES));
        let Some(cursor) = self.cursors.get_mut(size - 1) else { return u64::MAX };
        let start = self.used.find(*cursor, count);
        *cursor = start + count;
        let extent = Extent { start, count };
        self.used.take(extent);
        self.live.take(extent);
        self.given.take(extent);
        self.unseen.take(extent);
        self.wrote = (self.wrote.0 + u64::from(len), self.wrote.1 + 1);
        start * UNIT
    }

    /// Releases an object that the next root, of this number, won't reach.
    pub(super) fn release(&mut self, stored: &Stored, number: u64) {
        let extent = Extent::of(stored);
        let was_live = self.live.give_back(extent);
        debug_assert!(was_live, "{stored:?} isn't reached, or was released before");
        if was_live && stored.is_packed() {
            self.spared -= spared_by(stored.len);
        }
        if was_live && self.given.are_used(extent) {
            self.wrote = (self.wrote.0 - u64::from(stored.len), self.wrote.1 - 1);
        }
        if was_live && self.unseen.give_back(extent) {
            self.given.give_back(extent);
            self.garbage.push(extent);
        } else if was_live {
            self.released.push((extent, self.first_that_reached(stored, number)));
        }
    }

    /// Notes that the last allocated object is a compressed page of `len` bytes.
    pub(super) fn note_packed(&mut self, len: u32) {
        self.spared += spared_by(len);
    }

    /// Returns how many more bytes than in the root before are spared by compression.
    pub(super) const fn spared(&self) -> i64 {
        self.spared
    }

    /// Sets how many bytes more than in the root before are spared by compression.
    pub(super) fn set_spared(&mut self, spared: u64) {
        self.spared = i64::try_from(spared).unwrap_or(i64::MAX);
    }

    /// Returns the number of the first pinned root through which a view may have reached something.
    fn first_that_reached(&self, stored: &Stored, number: u64) -> u64 {
        let first = first_root(stored, number);
        let early = self.early.iter().find(|early| early.draft == first);
        early.map_or(first, |early| early.below)
    }

    /// Continues the current backfill from the objects written so far: those it has replaced meanwhile become free
    /// space, and the search for space restarts.
    pub(super) fn go_on(&mut self) {
        for extent in std::mem::take(&mut self.garbage) {
            self.used.give_back(extent);
        }
        self.cursors = [self.first; SIZES];
    }

    /// Keeps the objects that backfill `draft` has written so far, since other views may now refer to them. Such a view
    /// pins the root `below` the draft's.
    pub(super) fn show(&mut self, draft: u64, below: u64) {
        self.unseen = Units::default();
        if self.early.iter().all(|early| early.draft != draft) {
            self.early.push(Early { draft, below });
        }
    }

    /// Pauses the current backfill, to be continued later.
    pub(super) fn put_aside(&mut self) {
        self.go_on();
        self.is_put_aside = true;
    }

    /// True if a backfill is suspended: no other may begin.
    pub(super) const fn is_put_aside(&self) -> bool {
        self.is_put_aside
    }

    /// Returns how many bytes and objects the backfill under way has written that its root will reach.
    pub(super) const fn wrote(&self) -> (u64, u64) {
        self.wrote
    }

    /// Begins to count what the next root of the same draft writes.
    pub(super) const fn begin_root(&mut self) {
        self.wrote = (0, 0);
    }

    /// Ends a backfill that is on disk now as the root of this number.
    pub(super) fn published(&mut self, number: u64) {
        self.go_on();
        self.unseen = Units::default();
        self.given = Units::default();
        self.is_put_aside = false;
        let units = std::mem::take(&mut self.released);
        self.waiting.push(Waiting { root: number, units });
    }

    /// Ends a failed backfill: frees its space.
    pub(super) fn abandon(&mut self) {
        self.is_put_aside = false;
        self.go_on();
        self.unseen = Units::default();
        // Space that it allocated and then freed itself is in both sets, and no longer live.
        for (extent, _) in std::mem::take(&mut self.released) {
            self.live.take(extent);
        }
        for extent in std::mem::take(&mut self.given).runs() {
            self.live.give_back(extent);
            self.used.give_back(extent);
        }
    }

    /// Returns where the last of the newest root's objects ends, in bytes.
    pub(crate) fn end(&self) -> u64 {
        self.live.end() * UNIT
    }

    /// Returns the end of the last object that may be reached, in bytes.
    pub(crate) fn used_end(&self) -> u64 {
        self.used.end() * UNIT
    }

    /// Returns how much the newest root and its key frames reach, the head of the file included, in bytes. Those are
    /// their numbers.
    pub(super) fn kept_bytes(&self, frames: &[u64]) -> u64 {
        self.live_bytes().saturating_add(self.held_by(frames, u64::MAX))
    }

    /// Returns how much the newest root reaches, the head of the file included, in bytes.
    pub(super) const fn live_bytes(&self) -> u64 {
        self.live.used() * UNIT
    }

    #[cfg(test)]
    /// Returns how much is used, the head of the file included, in bytes.
    pub(crate) const fn used_bytes(&self) -> u64 {
        self.used.used() * UNIT
    }

    #[cfg(test)]
    /// Returns the places and lengths, in bytes, that are free before the end of all that is used.
    pub(crate) fn free(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.used.free_from(0).map(|extent| (extent.start * UNIT, extent.count * UNIT))
    }

    /// Returns the space of the newest root, the head of the file included.
    #[cfg(test)]
    pub(super) const fn live(&self) -> &Units {
        &self.live
    }

    /// Returns all that is used.
    #[cfg(test)]
    pub(super) const fn used(&self) -> &Units {
        &self.used
    }
}
