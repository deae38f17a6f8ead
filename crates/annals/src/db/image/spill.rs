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
//!    waits until that pin is gone.
//!
//! The journal need not be hard before: nothing here is believed before a root is published, and the
//! backfill that does it makes the journal hard first.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use super::drafting::{Counts, Drafting};
use super::imager::{Imager, Working};
use super::report::BackfillMode;
use crate::db::core::{Core, Writing};
use crate::image::{Draft, Mark, PutAside, RootPin};
use crate::journal::lock;
use crate::store::Store;
use crate::{Error, Result};

/// What was written ahead of the backfill that publishes it.
#[derive(Debug)]
pub(super) struct Spill {
    pub(super) draft: PutAside,
    /// What was written so far.
    pub(super) written: Counts,
    /// Whether a part of it is of the transaction that is open.
    is_open: bool,
    /// The last transaction that is committed of those that it has something of.
    committed: Option<u64>,
    /// How the space was before the transaction that is open.
    before: Option<Mark>,
}

impl Spill {
    /// Tells up to which transaction something has to be published; none if one of it is still open.
    pub(super) const fn due(&self) -> Option<u64> {
        if self.is_open { None } else { self.committed }
    }

    /// Notes that more was written; `before` is how the space was.
    fn add(&mut self, written: Counts, before: Option<Mark>, (txid, is_open): (u64, bool)) {
        self.written = self.written.and(written);
        if !is_open {
            self.committed = Some(txid);
        } else if !self.is_open {
            self.before = before.filter(|_| self.committed.is_some());
        }
        self.is_open = is_open;
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

    /// Lets a root lead to what the opening has spilled.
    pub(in crate::db) fn publish_spilled(&self) {
        if self.image().is_some_and(Imager::has_spilled)
            && let Err(error) = self.backfill(BackfillMode::Passive)
        {
            self.note_image_error(&error);
        }
    }

    /// Notes that a transaction has committed that has spilled.
    pub(in crate::db) fn commit_spilled(&self, txid: u64) {
        self.image().into_iter().for_each(|imager| imager.commit_spilled(txid));
    }

    /// Takes back what a transaction has spilled, whose changes are gone from the store.
    pub(in crate::db) fn roll_back_spilled(&self) {
        self.image().into_iter().for_each(Imager::roll_back_spilled);
    }
}

impl Imager {
    /// Spills what replay has made of a store, if that is too much; `is_open`: not all of it may count.
    ///
    /// # Errors
    /// Those of writing to the image.
    #[inline]
    pub(in crate::db) fn make_room(
        &self,
        store: &mut Store,
        (txid, is_open): (u64, bool),
    ) -> Result<()> {
        if store.unsaved() <= self.spill_limit() || !store.has_unsaved(self.spill_limit()) {
            return Ok(());
        }
        self.spill(&mut lock(&self.working), store, (txid, is_open)).map_err(|error| {
            error
                .within("what the journal replays to is larger than memory")
                .advising("free space on the disk, or open it with more memory (Options::memory)")
        })
    }

    /// Notes that all that was spilled is committed.
    pub(in crate::db) fn commit_spilled(&self, txid: u64) {
        if let Some(spill) = lock(&self.working).spill.as_mut().filter(|spill| spill.is_open) {
            spill.is_open = false;
            spill.before = None;
            spill.committed = Some(txid);
            spill.draft.show();
        }
    }

    /// Takes back what was spilled of a transaction that is rolled back: no view leads to it any more.
    pub(in crate::db) fn roll_back_spilled(&self) {
        let mut working = lock(&self.working);
        let Some(spill) = working.spill.as_mut().filter(|spill| spill.is_open) else { return };
        match spill.before.take() {
            Some(before) => {
                spill.draft.go_back(before);
                spill.is_open = false;
            }
            None => working.spill = None,
        }
    }

    /// Takes back all that was spilled, where replay begins anew.
    pub(in crate::db) fn forget_spilled(&self) {
        lock(&self.working).spill = None;
    }

    /// Tells whether something was spilled that no root leads to yet.
    pub(in crate::db) fn has_spilled(&self) -> bool {
        lock(&self.working).spill.is_some()
    }

    /// Writes what is in memory alone of a store's working view to free space, and lets the view go on from
    /// that; `of` is the transaction that is open, if it is, or the last one.
    fn spill(&self, working: &mut Working, store: &mut Store, of: (u64, bool)) -> Result<()> {
        let (image, _) = self.image(working)?;
        let len = image.len()?;
        self.write_ahead(working, store, of).inspect_err(|_| image.cut(len))
    }

    fn write_ahead(&self, working: &mut Working, store: &mut Store, of: (u64, bool)) -> Result<()> {
        let (image, pager) = self.image(working)?;
        let spilled = working.spill.as_ref();
        self.choose_what_stays(&pager, (working.root, spilled), store.view());
        let save = |draft: &mut Draft<'_>| {
            let unwatched = &mut |_| ControlFlow::Continue(());
            let how = (&**self.clock(), unwatched as _);
            let mut drafting = Drafting::new(draft, &image, of.0, how);
            let saved = store.view().save(&pager, &mut drafting)?;
            drafting.write()?;
            Ok::<_, Error>((saved, drafting.end().0))
        };
        let mut saved = if let Some(spill) = working.spill.as_mut() {
            if of.1 && !spill.is_open {
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
            let (saved, written) = save(&mut draft)?;
            let draft = draft.put_aside(&image);
            let (txid, is_open) = of;
            let committed = (!is_open).then_some(txid);
            working.spill = Some(Spill { draft, written, is_open, committed, before: None });
            saved
        };
        // A view without a pin lies over no root: nobody but this process can read what it leads to.
        let first = || working.pins.add(RootPin::here(0), self.clock().elapsed());
        saved.pin = Some(store.view().pin().cloned().unwrap_or_else(first));
        store.rebase(&saved);
        store.note_rest();
        self.is_stuck.store(false, Ordering::Relaxed);
        Ok(())
    }
}
