//! Known damage of images: objects that don't verify, or can't be read.
//!
//! Invariants
//! 1. An object that was noted is never used again, also if a later read of it succeeds.
//! 2. A root that reaches one is dropped: opening doesn't choose it, and no root is published that reaches one.
//! 3. The record of a place is dropped when that place is allocated again.
//! 4. Damage of an object on which nothing but speed depends drops no root; but no later one reaches it, and no key
//!    frame.
//! 5. A read that needs a noted object fails. The state is opened again without it, before something else is read.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::file::Image;
use super::format::Root;
use super::stored::{Source, Stored, is_damage};
use super::units::Extent;
use super::walk::{Object, WalkStep, walk};
use crate::{Error, ErrorKind, Result};
use annals_storage::sync::lock;

/// How many findings are kept for a person to read.
const MOST_FINDINGS: usize = 100;

/// The damage that a handle found in the images that it opened.
#[derive(Debug, Default)]
pub struct Damage {
    /// How many objects were noted so far.
    count: AtomicUsize,
    /// How many objects were noted on which nothing but speed depends.
    spares: AtomicUsize,
    /// True if an object was noted, or a read of one failed, since the handle tried last to open its state without those.
    is_lost: AtomicBool,
    /// How many objects were noted when it did so.
    opened_without: AtomicUsize,
    known: Mutex<KnownDamage>,
}

#[derive(Debug, Default)]
struct KnownDamage {
    /// By the hash of the image's header, and the place.
    bad: HashMap<(u64, u64), Stored>,
    findings: Vec<String>,
}

impl Damage {
    /// Returns a sentence for each finding: at most the first hundred.
    #[inline]
    pub fn findings(&self) -> Vec<String> {
        lock(&self.known).findings.clone()
    }

    /// Returns the findings, and forgets them.
    #[inline]
    pub fn take_findings(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.known).findings)
    }

    /// Adds a finding, unless it is recorded.
    #[inline]
    pub fn report(&self, finding: String) {
        let findings = &mut lock(&self.known).findings;
        if findings.len() < MOST_FINDINGS && !findings.contains(&finding) {
            #[cfg(feature = "tracing")]
            tracing::warn!(target: "annals", finding, "damage of the image");
            findings.push(finding);
        }
    }

    /// Returns how many objects were noted so far: it only grows.
    #[inline]
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// True if an object was noted since the handle opened its state, which may need it: that should be opened again.
    /// Two loads.
    #[inline]
    pub fn is_state_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
            && self.count() != self.opened_without.load(Ordering::Relaxed)
    }

    /// Begins to open the state without the noted objects; returns how many these are. If that fails, another failed
    /// read asks for it again.
    pub fn begin_opening(&self) -> usize {
        self.is_lost.store(false, Ordering::Release);
        self.count()
    }

    /// Records that the state was opened without so many noted objects.
    pub fn end_opening(&self, noted: usize) {
        self.opened_without.store(noted, Ordering::Relaxed);
    }

    /// Returns how many objects were noted so far on which nothing but speed depends: it only grows.
    #[inline]
    pub fn spares(&self) -> usize {
        self.spares.load(Ordering::Acquire)
    }
}

impl Image {
    /// Makes the image record damage in a record that others share.
    #[inline]
    pub fn noting_in(mut self, damage: &Arc<Damage>) -> Self {
        self.damage = Arc::clone(damage);
        self
    }

    /// Returns true if an object was noted as damaged.
    pub(super) fn is_bad(&self, stored: &Stored) -> bool {
        self.damage.count() > 0
            && lock(&self.damage.known).bad.get(&(self.header, stored.place)) == Some(stored)
    }

    /// Returns true if nothing was noted.
    #[inline]
    pub fn is_nothing_bad(&self) -> bool {
        self.damage.count() == 0
    }

    /// Returns all that was noted of this image.
    pub(super) fn all_bad(&self) -> Vec<Stored> {
        let known = lock(&self.damage.known);
        let own = known.bad.iter().filter(|((header, _), _)| *header == self.header);
        own.map(|(_, stored)| *stored).collect()
    }

    /// Marks an object as damaged, and reports the damage once.
    pub fn note_bad(&self, stored: &Stored, error: &Error) {
        let mut known = lock(&self.damage.known);
        if known.bad.insert((self.header, stored.place), *stored) == Some(*stored) {
            return;
        }
        self.damage.count.fetch_add(1, Ordering::Release);
        self.damage.is_lost.store(true, Ordering::Release);
        drop(known);
        self.damage.report(format!(
            "{error}; that part of the image isn't used any more, and what it held comes from an older state or \
             the journal; nothing is lost, but check the disk"
        ));
    }

    /// Does so for an object on which nothing but speed depends.
    fn note_spare(&self, stored: &Stored, error: &Error) {
        let before = lock(&self.damage.known).bad.insert((self.header, stored.place), *stored);
        if before == Some(*stored) {
            return;
        }
        self.damage.spares.fetch_add(1, Ordering::Release);
        self.damage.report(format!(
            "{error}; that part of the image only makes reading the past faster, and the next backfill stores it \
             again; nothing is lost, but check the disk"
        ));
    }

    /// Drops the records of damage in space that is allocated again.
    pub(super) fn forget_bad(&self, given: &Stored) {
        if self.damage.count() + self.damage.spares() == 0 {
            return;
        }
        let given = Extent::of(given);
        let overlaps = |stored: &Stored| {
            let bad = Extent::of(stored);
            bad.start < given.start + given.count && given.start < bad.start + bad.count
        };
        let header = self.header;
        lock(&self.damage.known).bad.retain(|(of, _), it| *of != header || !overlaps(it));
    }

    /// Returns true if no damage of a root is known, according to its directory; `is_whole`: all its objects are
    /// read. Records the findings.
    ///
    /// # Errors
    /// Errors of reading it that say nothing about the image.
    pub fn is_sound(&self, root: &Root, is_whole: bool) -> Result<bool> {
        let mut last = root.catalog;
        let walked = walk(self, root, |object, stored| {
            if object == Object::Frames {
                return Ok(WalkStep::Enter); // only the past needs it
            }
            last = *stored;
            if self.is_bad(stored) {
                return Err(Error::corrupt("known to be damaged"));
            }
            if is_whole && matches!(object, Object::Page | Object::Bytes) {
                self.verify(stored)?;
            }
            Ok(WalkStep::Enter)
        });
        match walked {
            Ok(_) => Ok(true),
            Err(error) if is_damage(&error) => {
                if !self.is_bad(&last) {
                    self.note_bad(&last, &error.within(self.path()));
                }
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns true if an object of a root or of its key frames doesn't verify, and all of those were written by
    /// earlier backfills: tests damage the output of those.
    #[cfg(feature = "testing")]
    pub fn has_older_damage(&self, newest: &Root) -> bool {
        let (mut found, mut is_older) = (false, true);
        let mut visit = |object, stored: &Stored| match self.verify(stored) {
            Ok(()) => Ok(WalkStep::Enter),
            Err(_) => {
                found = true;
                is_older &= object == Object::Frames || !newest.wrote(stored);
                Ok(WalkStep::Skip)
            }
        };
        let frames = self.frames_of(newest);
        let walked = frames.iter().chain([newest]).all(|root| walk(self, root, &mut visit).is_ok());
        walked && found && is_older
    }
}

/// An image as views read it: unreadable parts are recorded, and are lost for its readers.
#[derive(Debug)]
pub struct Guarded(pub Arc<Image>);

impl Guarded {
    #[cold]
    fn lost(&self, stored: &Stored) -> Error {
        self.0.damage.is_lost.store(true, Ordering::Release);
        Error::new(
            ErrorKind::PageLost,
            format!(
                "{}: the {} bytes at {} are damaged, and the next snapshot or transaction does without them: try \
                 again, from a new snapshot or in a new transaction; nothing is lost",
                self.0.path(),
                stored.len,
                stored.place
            ),
        )
    }
}

impl Source for Guarded {
    fn read(&self, stored: &Stored, out: &mut [u8]) -> Result<()> {
        if self.0.is_bad(stored) {
            return Err(self.lost(stored));
        }
        match self.0.read(stored, out) {
            Err(error) if is_damage(&error) => {
                self.0.note_bad(stored, &error);
                Err(self.lost(stored))
            }
            read => read,
        }
    }

    fn read_spare(&self, stored: &Stored, out: &mut [u8]) -> Result<()> {
        self.0.read(stored, out).inspect_err(|error| {
            if is_damage(error) {
                self.0.note_spare(stored, error);
            }
        })
    }

    fn holds(&self, stored: &Stored) -> Result<()> {
        match self.0.holds(stored) {
            Err(error) if is_damage(&error) => {
                self.0.note_bad(stored, &error);
                Err(self.lost(stored))
            }
            held => held,
        }
    }
}
