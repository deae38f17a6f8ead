//! Spilling: a working view that is larger than memory goes into free space of the image before it commits.
//!
//! A spill is the beginning of a backfill: pages and nodes are written, the working view goes on from them,
//! and the draft is put aside until what it holds is committed and acknowledged. Then a backfill goes on
//! with it and publishes. Until then no root leads to what was spilled: a crash, or a rollback, leaves
//! free space.
//!
//! Invariants
//! 1. There is at most one draft that was put aside, in `Working`; no root is published meanwhile but its own.
//! 2. What was spilled and is committed is reached by all views that are published from then on.
//! 3. A view over what was spilled pins the root below: whatever the draft's own root doesn't reach of it
//!    waits until that pin is gone. It pins the draft, too, by a number that no root has: a handle that opens
//!    the image later, when such a view has outlived this one, can't know what it reaches, and writes behind
//!    the file's end as long as it is there.
//!
//! The journal need not be hard before: nothing here is believed before a root is published, and the
//! backfill that does it makes the journal hard first.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::drafting::{Counts, Drafting};
use super::imager::{Imager, Working, cannot_look};
use super::report::BackfillMode;
use crate::db::core::{Core, Writing};
use crate::db::unapplied::MakeRoom;
use crate::image::{Array, Draft, Image, Mark, PutAside, Root, RootPin, read_catalog};
use crate::journal::lock;
use crate::mistakes::{Mistake, is_made};
use crate::store::{Store, View};
use crate::{Error, Result};

/// What was written ahead of the backfill that publishes it.
#[derive(Debug)]
pub(super) struct Spill {
    pub(super) draft: PutAside,
    /// What was written so far.
    pub(super) written: Counts,
    /// The arrays of what was spilled last, as a catalog would have them.
    arrays: Vec<Array>,
    /// The transaction that is open, if a part of it is that one's.
    open: Option<u64>,
    /// The last transaction that is committed of those that it has something of.
    committed: Option<u64>,
    /// How the space was before the transaction that is open, and which arrays there were.
    before: Option<(Mark, Vec<Array>)>,
}

impl Spill {
    /// Tells up to which transaction something has to be published; none if one of it is still open.
    pub(super) const fn due(&self) -> Option<u64> {
        if self.open.is_some() { None } else { self.committed }
    }

    /// Notes that more was written; `before` is how the space was.
    fn add(
        &mut self,
        (written, arrays): (Counts, Vec<Array>),
        before: Option<Mark>,
        (txid, is_open): (u64, bool),
    ) {
        self.written = self.written.and(written);
        let arrays_before = std::mem::replace(&mut self.arrays, arrays);
        if !is_open {
            (self.open, self.committed) = (None, Some(txid));
        } else if self.open.replace(txid).is_none() && self.committed.is_some() {
            self.before = before.map(|mark| (mark, arrays_before));
        }
    }

    /// Notes that all of it is committed.
    fn commit(&mut self) {
        self.committed = self.open.take().or(self.committed);
        self.before = None;
    }
}

/// Gives the arrays as they were saved last: when something was spilled, else by the backfill of the root.
pub(super) fn saved_before(
    image: &Image,
    (root, spill): (Option<Root>, Option<&Spill>),
) -> Vec<Array> {
    match (spill, root) {
        (Some(spill), _) => spill.arrays.clone(),
        // What can't be read now is told by whoever needs it.
        (None, Some(root)) => read_catalog(image, &root).map(|it| it.arrays).unwrap_or_default(),
        (None, None) => Vec::new(),
    }
}

impl Core {
    /// Gives how many bytes of changes may be in memory alone before a transaction makes room, where there
    /// are `found` bytes when it begins.
    pub(in crate::db) fn room(&self, found: usize) -> usize {
        let Some(imager) = self.image() else { return usize::MAX };
        let limit = imager.spill_limit();
        if imager.is_stuck.load(Ordering::Relaxed) { limit.saturating_add(found) } else { limit }
    }

    /// Makes room for a transaction that has filled the memory with its changes; tells whether anything of
    /// it lies in the image now.
    ///
    /// # Errors
    /// Those of writing to the image: the store is as it was.
    pub(in crate::db) fn spill(&self, writing: &mut Writing) -> Result<bool> {
        let imager = self.imager()?;
        // Waits for the backfill that is under way, which may be all that is needed.
        let mut working = lock(&imager.working);
        imager.install(&mut writing.store);
        if !writing.store.has_unsaved(imager.spill_limit()) {
            return Ok(false);
        }
        let txid = writing.writer.committed().txid + 1;
        imager.spill(&mut working, &mut writing.store, (txid, true)).map(|()| true)
    }

    /// Tells how much more a transaction may have in memory that found much there, when making room has
    /// failed; none if most of it is its own. What others committed is no error of it.
    pub(in crate::db) fn room_without_spill(&self, found: usize, now: usize) -> Option<usize> {
        let imager = self.image()?;
        let limit = imager.spill_limit();
        if now.saturating_sub(found) >= limit / 2 {
            return None;
        }
        imager.is_stuck.store(true, Ordering::Relaxed);
        Some(now.saturating_add(limit))
    }

    /// Lets a root lead to what the opening has spilled, which may be seen from now on.
    pub(in crate::db) fn publish_spilled(&self) {
        if self.image().is_some_and(Imager::show_spilled)
            && let Err(error) = self.backfill(BackfillMode::Passive)
        {
            self.note_image_error(&error);
        }
    }

    /// Notes that a transaction has committed that has spilled: anybody may see that from now on.
    pub(in crate::db) fn commit_spilled(&self) {
        if let Some(imager) = self.image() {
            imager.commit_spilled();
            if !is_made(Mistake::SpillNotShown) {
                imager.show_spilled();
            }
        }
    }

    /// Takes back what a transaction has spilled, whose changes are gone from the store.
    pub(in crate::db) fn roll_back_spilled(&self) {
        self.image().into_iter().for_each(Imager::roll_back_spilled);
    }
}

impl MakeRoom for Imager {
    fn make_room(&self, store: &mut Store, txid: u64, is_open: bool) -> Result<()> {
        if store.unsaved() <= self.spill_limit() || !store.has_unsaved(self.spill_limit()) {
            return Ok(());
        }
        self.spill(&mut lock(&self.working), store, (txid, is_open)).map_err(|error| {
            error
                .within("what the journal replays to is larger than memory")
                .advising("free space on the disk, or open it with more memory (Options::memory)")
        })
    }

    fn begin(&self) {
        lock(&self.working).spill = None;
    }

    fn commit(&self) {
        self.commit_spilled();
    }

    fn roll_back(&self) {
        self.roll_back_spilled();
    }
}

impl Imager {
    /// Notes that all that was spilled is committed.
    pub(in crate::db) fn commit_spilled(&self) {
        lock(&self.working).spill.iter_mut().for_each(Spill::commit);
    }

    /// Notes that anybody may see what was spilled from now on; tells whether anything was, which no root
    /// leads to yet.
    fn show_spilled(&self) -> bool {
        let working = lock(&self.working);
        working.spill.iter().for_each(|spill| spill.draft.show());
        working.spill.is_some()
    }

    /// Takes back what was spilled of a transaction that is rolled back: no view leads to it any more.
    pub(in crate::db) fn roll_back_spilled(&self) {
        let mut working = lock(&self.working);
        let Some(spill) = working.spill.as_mut().filter(|it| it.open.is_some()) else { return };
        match spill.before.take() {
            Some((before, arrays)) => {
                spill.draft.go_back(before);
                (spill.open, spill.arrays) = (None, arrays);
            }
            None => working.spill = None,
        }
    }

    /// Writes what is in memory alone of a store's working view to free space, and lets the view go on from
    /// that; `of` is the transaction that is open, if it is, or the last one.
    fn spill(&self, working: &mut Working, store: &mut Store, of: (u64, bool)) -> Result<()> {
        let (image, _) = self.image(working)?;
        let len = image.len()?;
        self.write_ahead(working, store, of).inspect_err(|_| image.shorten(len))
    }

    fn write_ahead(&self, working: &mut Working, store: &mut Store, of: (u64, bool)) -> Result<()> {
        let (image, pager) = self.image(working)?;
        let pin = self.pin_spilled(working, &image, store.view())?;
        let before = (working.root, working.spill.as_ref());
        self.choose_what_stays(&pager, before, store.view());
        let before = saved_before(&image, before);
        let save = |draft: &mut Draft<'_>| {
            let unwatched = &mut |_| ControlFlow::Continue(());
            let how = (&**self.clock(), unwatched as _);
            let mut drafting = Drafting::new(draft, &image, of.0, how);
            let saved = store.view().save(&pager, &mut drafting)?;
            drafting.leave_dropped(&before, &saved);
            drafting.write()?;
            let arrays = saved.arrays();
            Ok::<_, Error>((saved, (drafting.end().0, arrays)))
        };
        let mut saved = if let Some(spill) = working.spill.as_mut() {
            if of.1 && spill.open.is_none() {
                // A rollback goes back to what was spilled before.
                spill.draft.show();
            }
            let mut draft = spill.draft.take_up();
            let (saved, written) = save(&mut draft)?;
            let before = draft.keep();
            spill.add(written, before, of);
            saved
        } else {
            let mut draft = image.space(working.pinned(&image)?)?;
            let (saved, (written, arrays)) = save(&mut draft)?;
            let draft = draft.put_aside(&image);
            let (open, committed) = if of.1 { (Some(of.0), None) } else { (None, Some(of.0)) };
            working.spill = Some(Spill { draft, written, arrays, open, committed, before: None });
            saved
        };
        saved.pin = Some(pin);
        store.go_on(&saved);
        self.is_stuck.store(false, Ordering::Relaxed);
        Ok(())
    }
    /// Gives what pins what is spilled: the same as long as it is one draft, over which a view lies from the
    /// first time on.
    fn pin_spilled(&self, working: &Working, image: &Image, view: &View) -> Result<Arc<RootPin>> {
        let below = view.pin().cloned();
        if let Some(pin) = below.as_ref().filter(|_| working.spill.is_some()) {
            return Ok(Arc::clone(pin));
        }
        let pin = image.pin_early(below, &**self.clock());
        Ok(working.pins.add_early(pin.map_err(|error| cannot_look(image, error))?))
    }
}
