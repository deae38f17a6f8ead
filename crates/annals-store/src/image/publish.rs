//! A backfill's draft of the next root, and how it is published.
//!
//! ```text
//! objects of the new root ─► first copy ─► flush ─► second copy (─► link, flush the directory: a new image)
//! ```
//!
//! | crash | what opening finds |
//! |---|---|
//! | before the first copy | the root before, whole; nothing that it reaches was written over |
//! | before the flush is over | the first copy at most: what the backfill wrote is verified, or the root before is taken |
//! | later | the new root: all of it is on permanent storage, and its first copy |
//!
//! The next flush, for any reason, covers the second copy. Until then an image whose last backfill wrote much opens
//! with the previous root, whose slot and space aren't reused before the next backfill.

use std::sync::{Arc, MutexGuard};

use super::file::{HeldRoots, Image};
use super::format::{Root, UNIT};
use super::roots::{Chosen, ROOTS, Roots};
use super::space::Space;
use super::stored::{Packed, Source, Stored};
use super::walk::{WalkStep, walk};
use crate::{Error, ErrorKind, Result};
use annals_storage::sync::lock;
use annals_storage::{Point, step};

/// The caller's data of a root; the rest is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewRoot {
    /// The segment of the journal that `point` is in.
    pub segment: u64,
    /// The point of the root in the journal: the journal is hard up to it.
    pub point: Point,
    /// When the backfill began, in microseconds since 1970.
    pub time: i64,
    /// The catalog.
    pub catalog: Stored,
    /// The list of key frames, if there are any.
    pub frames: Option<Stored>,
}

/// A backfill under way: the only one. Unless it is published it leaves nothing.
#[derive(Debug)]
pub struct Draft<'i> {
    pub(super) image: &'i Image,
    pub(super) working: MutexGuard<'i, Option<Space>>,
    pub(super) held: HeldRoots,
    pub(super) number: u64,
    /// The key frames that its root lists.
    pub(super) frames: Arc<[Root]>,
    pub(super) unpublished: Unpublished,
}

/// The fate of the space if a draft isn't published.
#[derive(Debug)]
pub(super) enum Unpublished {
    /// Its space is free again.
    Abandon,
    /// It is as it was when the draft was resumed.
    Restore(Box<Space>),
    /// It stays: the draft was suspended.
    Keep,
}

impl Image {
    /// Begins a backfill. `pinned` are the numbers of all roots with readers. Waits for another one of this handle.
    /// The first time it walks the directory, to find free space.
    ///
    /// # Errors
    /// `Poisoned` if the image is disabled; `Busy` if another process has updated it, or if a draft of this handle is
    /// suspended; `Io`; `Corrupt`.
    pub fn space(&self, pinned: impl IntoIterator<Item = u64>) -> Result<Draft<'_>> {
        let pinned: Vec<_> = pinned.into_iter().collect();
        let mut working = lock(&self.working);
        self.check_usable()?;
        if working.as_ref().is_some_and(Space::is_put_aside) {
            let what = "a transaction larger than memory has its pages in it: it has to end first";
            return Err(Error::new(ErrorKind::Busy, format!("{}: {what}", self.path())));
        }
        self.make_whole()?;
        let mut held = lock(&self.held).clone();
        let newest = held.newest.map(|newest| newest.root);
        let frames = match (held.frames.take(), newest) {
            (Some(frames), _) => frames,
            (None, Some(newest)) => self.frames_of(&newest),
            (None, None) => Arc::default(),
        };
        let (mut space, frames) = match (working.take(), newest) {
            (Some(space), _) => (space, frames),
            (None, Some(newest)) => Space::find(self, &newest, held.other.as_ref(), &frames)?,
            (None, None) => (Space::empty(), frames),
        };
        held.frames = Some(Arc::clone(&frames));
        lock(&self.held).frames.clone_from(&held.frames);
        let on_disk: Vec<_> = held.other.into_iter().chain(newest).map(|it| it.number).collect();
        let frames: Vec<_> = frames.iter().map(|frame| frame.number).collect();
        space.begin(&on_disk, &pinned, &frames);
        *working = Some(space);
        let number = held.last_number + step!(RootNumberRepeated, 1, else 0);
        let frames = Arc::default();
        Ok(Draft { image: self, working, held, number, frames, unpublished: Unpublished::Abandon })
    }

    /// Completes a root that was found by its first copy alone, and makes the name of a new image durable. The next
    /// backfill depends on both, and bytes in the page cache need not be on disk. A flush doesn't write it either if
    /// an earlier one failed: everything that the backfill wrote is rewritten.
    fn make_whole(&self) -> Result<()> {
        let HeldRoots { newest, is_named, .. } = lock(&self.held).clone();
        if newest.is_some() && !is_named {
            let flushed = self.directory.flush();
            flushed.map_err(|error| self.stop(self.io("can't make its name durable", error)))?;
            lock(&self.held).is_named = true;
        }
        let Some(newest) = newest.filter(|newest| !newest.is_whole) else { return Ok(()) };
        self.check_newest()?;
        step!(FirstCopyNotRewritten, self.write_again(&newest.root)?);
        let root = newest.root.encode(self.header);
        let written = ROOTS.write_in_turn(&*self.storage, newest.slot, &root);
        written.map_err(|error| self.stop(self.io("can't make its root whole", error)))?;
        lock(&self.held).newest = Some(Chosen { is_whole: true, ..newest });
        Ok(())
    }

    /// Rewrites the unchanged output of a root's backfill, and the length.
    fn write_again(&self, root: &Root) -> Result<()> {
        walk(self, root, |_, stored| {
            if !root.wrote(stored) {
                return Ok(WalkStep::Skip);
            }
            let mut bytes = vec![0; usize::try_from(stored.len).unwrap_or(usize::MAX)];
            self.read(stored, &mut bytes)?;
            self.write(&[(stored.place, &[&bytes])])?;
            Ok(WalkStep::Enter)
        })?;
        step!(LengthNotRewritten, self.change_len()?);
        Ok(())
    }

    /// Changes the length: a flush that fails drops it, and it is only written once it has changed.
    fn change_len(&self) -> Result<()> {
        let grown = self.storage.set_len(self.len()?.saturating_add(UNIT));
        grown.map_err(|error| self.io("can't make its length durable", error))
    }

    /// Refuses to continue from a root that another process has replaced, or that is damaged.
    pub(super) fn check_newest(&self) -> Result<()> {
        let roots = self.roots()?;
        if self.holds_newest(&roots) {
            return Ok(());
        }
        if roots.last_number() <= lock(&self.held).last_number {
            // No process has: its contents didn't verify any more.
            return Err(Error::corrupt(format!(
                "{}: damaged: its newest root isn't what was read before",
                self.path()
            )));
        }
        Err(Error::new(
            ErrorKind::Busy,
            format!("{}: another process has advanced the image: reopen it", self.path()),
        ))
    }

    /// True if the root in use is the newest in the slots, as when it was chosen.
    pub(super) fn holds_newest(&self, roots: &Roots) -> bool {
        let held = lock(&self.held);
        let told = match held.newest {
            Some(newest) if held.is_frame => Some(newest.root),
            newest => newest.and_then(|newest| roots.slots.get(newest.slot)?.root().copied()),
        };
        // A new one has none, whatever number its first root will have.
        let last = if held.newest.is_some() { held.last_number } else { 0 };
        told == held.newest.map(|newest| newest.root) && roots.last_number() == last
    }

    /// Truncates the file's unused end; returns the file's length in bytes, or `None` if a reader has a root whose
    /// space is unknown here.
    ///
    /// # Errors
    /// As [`Self::space`]; `Io`.
    pub fn shrink(&self, pinned: impl IntoIterator<Item = u64>) -> Result<Option<u64>> {
        let pinned: Vec<_> = pinned.into_iter().collect();
        let draft = self.space(pinned.iter().copied())?;
        self.check_newest()?;
        let Some(newest) = draft.held.newest else { return Ok(None) };
        if draft.is_pinned_unknown(&pinned) {
            return Ok(None);
        }
        let len = draft.used_end().max(newest.root.end);
        if self.len()? > len {
            self.storage.set_len(len).map_err(|error| self.io("can't shrink it", error))?;
        }
        Ok(Some(len))
    }
}

impl Draft<'_> {
    /// Returns the number of the backfill, which is that of its root.
    #[inline]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Allocates space for an object of `len` bytes; returns its place, in bytes.
    pub(crate) fn allocate(&mut self, len: u32) -> u64 {
        self.working.as_mut().map_or(0, |space| space.allocate(len))
    }

    /// Returns space for an object, and the entry for it. `txid` is the last transaction of the backfill.
    ///
    /// # Errors
    /// `Invalid` if it is longer than 2 GiB.
    pub fn place(&mut self, bytes: &[u8], txid: u64) -> Result<Stored> {
        self.place_as(bytes, txid, Packed::Not)
    }

    /// Does what [`Self::place`] does; `packed` says how the bytes are to be read.
    ///
    /// # Errors
    /// As `place`.
    pub fn place_as(&mut self, bytes: &[u8], txid: u64, packed: Packed) -> Result<Stored> {
        let len = u32::try_from(bytes.len()).ok().filter(|len| len & Stored::PACKED == 0);
        let len = len.ok_or_else(|| {
            let path = self.image.path();
            Error::invalid(format!("{path}: {} bytes are too many for an object", bytes.len()))
        })?;
        let place = self.allocate(len);
        if let Some(space) = self.working.as_mut().filter(|_| packed != Packed::Not) {
            space.note_packed(len);
        }
        self.image.forget_bad(&Stored { place, len, ..Stored::default() });
        let low = self.number & u64::from(u32::MAX);
        let backfill = u32::try_from(low).unwrap_or_default();
        let sum = Stored::sum_of(place, bytes);
        Ok(Stored { place, sum, txid, len, packed, backfill })
    }

    /// Releases the space of an object that the newest root reaches and the new one won't. To be called for every
    /// entry that is replaced or left out, also for nodes and the catalog.
    #[inline]
    pub fn release(&mut self, stored: &Stored) {
        if let Some(space) = self.working.as_mut() {
            space.release(stored, self.number);
        }
    }

    /// Returns where the last of the objects ends that the new root reaches as it is, in bytes.
    #[inline]
    pub fn end(&self) -> u64 {
        self.space().map_or(0, Space::end)
    }

    /// Sets how many bytes its compressed pages spare, if it also has pages that its root doesn't reach.
    pub(super) fn set_spared(&mut self, spared: u64) {
        if let Some(space) = self.working.as_mut() {
            space.set_spared(spared);
        }
    }

    /// Begins the next root of the same draft, of the next number.
    pub(super) fn next_root(&mut self) {
        self.number += 1;
        self.working.iter_mut().for_each(Space::begin_root);
    }

    /// Returns the space as it is.
    pub(crate) fn space(&self) -> Option<&Space> {
        self.working.as_ref()
    }

    fn used_end(&self) -> u64 {
        self.space().map_or(u64::MAX, Space::used_end)
    }

    fn is_pinned_unknown(&self, pinned: &[u64]) -> bool {
        let newest = self.held.newest.map(|newest| newest.root.number);
        self.space().is_none_or(|space| space.is_unknown(newest, pinned))
    }

    /// Publishes a root whose objects were all written: it is on permanent storage once this returns.
    ///
    /// # Errors
    /// `Busy` if another process has updated the image; `Invalid` if the root isn't newer, or reaches unwritten
    /// space; `InUse` if a new image's name was taken meanwhile. Nothing was changed then. `Io`: the image is
    /// disabled for this handle; opening it determines its root.
    pub fn publish(mut self, new: &NewRoot) -> Result<Root> {
        let image = self.image;
        image.check_usable()?;
        let root = self.complete(new)?;
        image.check_newest()?;
        let slot = self.held.newest.map_or(0, |newest| 1 - newest.slot);
        let written = ROOTS.write_in_turn(&*image.storage, slot, &root.encode(image.header));
        written.map_err(|error| image.stop(image.io("can't publish its root", error)))?;
        if let Some(temporary) = &self.held.temporary {
            image.link(temporary).map_err(|error| image.stop(error))?;
        }
        if let Some(space) = self.working.as_mut() {
            space.published(root.number);
        }
        self.unpublished = Unpublished::Keep;
        *lock(&image.held) = HeldRoots {
            newest: Some(Chosen { root, slot, is_whole: true }),
            other: self.held.newest.map(|newest| newest.root),
            last_number: root.number,
            is_frame: false,
            live: self.working.as_ref().map(Space::live_bytes),
            temporary: None,
            is_named: true,
            frames: Some(std::mem::take(&mut self.frames)),
        };
        Ok(root)
    }

    /// Returns something that is known to be damaged and that the new root reaches, if it does.
    fn bad_that_is_reached(&self) -> Option<Stored> {
        if self.image.is_nothing_bad() {
            return None;
        }
        let space = self.space()?;
        let is_live = |stored: &Stored| space.is_reached(stored, self.number, self.number);
        self.image.all_bad().into_iter().find(is_live)
    }

    /// Makes the root; checks that it is newer, and that the file contains its space.
    fn complete(&self, new: &NewRoot) -> Result<Root> {
        let place = |root: &NewRoot| (root.segment, root.point.position, root.point.txid);
        let before = self.held.newest.map(|newest| newest.root);
        let back = before
            .is_some_and(|root| (root.segment, root.point.position, root.point.txid) > place(new));
        let end = self.end();
        let (bytes, objects) = self.space().map_or((0, 0), Space::wrote);
        let number = self.number;
        let spared = self.space().map_or(0, Space::spared);
        let spared = before.map_or(0, |root| root.spared).saturating_add_signed(spared);
        let NewRoot { segment, point, time, catalog, frames } = *new;
        let root =
            Root { number, segment, point, time, catalog, end, bytes, objects, frames, spared };
        let path = self.image.path();
        if back {
            return Err(Error::invalid(format!(
                "{path}: a backfill can't go back to an older point"
            )));
        }
        if let Some(bad) = step!(DamagePublished, self.bad_that_is_reached(), else None) {
            return Err(Error::new(
                ErrorKind::PageLost,
                format!(
                    "{path}: the new root would reach the {} damaged bytes at {}",
                    bad.len, bad.place
                ),
            ));
        }
        if !root.wrote(&catalog) || self.image.len()? < end || end < 4 * UNIT {
            return Err(Error::invalid(format!(
                "{path}: the new root reaches what wasn't written"
            )));
        }
        Ok(root)
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.unpublished, Unpublished::Keep) {
            Unpublished::Abandon => self.working.iter_mut().for_each(Space::abandon),
            Unpublished::Restore(before) => *self.working = Some(*before),
            Unpublished::Keep => {}
        }
    }
}
