//! Writing changes larger than memory ahead of a backfill: see [`spill`](crate::db::follow::spill).

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::db::follow::drafting::Drafting;
use crate::db::follow::image_state::{ImageState, Working, cannot_look};
use crate::db::follow::spill::{Spill, SpillMark, saved_before};
use crate::db::follow::unapplied::MakeRoom;
use crate::image::{Draft, Image, RootPin};
use crate::journal::lock;
use crate::store::{Store, View};
use crate::{Error, Result};

impl MakeRoom for ImageState {
    fn make_room(&self, store: &mut Store, txid: u64, is_open: bool) -> Result<()> {
        if store.unsaved() <= self.spill_limit() || !store.has_unsaved(self.spill_limit()) {
            return Ok(());
        }
        self.spill(&mut lock(&self.working), store, txid, is_open).map_err(|error| {
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

impl ImageState {
    /// Marks all spilled pages as committed.
    pub(in crate::db) fn commit_spilled(&self) {
        lock(&self.working).spill.iter_mut().for_each(Spill::commit);
    }

    /// Keeps the space of spilled pages from being reused, since snapshots may now refer to them. Returns true if some
    /// pages aren't in a published root yet.
    pub(in crate::db) fn show_spilled(&self) -> bool {
        let working = lock(&self.working);
        working.spill.iter().for_each(|spill| spill.draft.show());
        working.spill.is_some()
    }

    /// Returns how much the open transaction has spilled so far, for a savepoint.
    pub(in crate::db) fn mark_spilled(&self) -> Option<SpillMark> {
        lock(&self.working).spill.as_ref().and_then(Spill::mark)
    }

    /// Frees the pages that the open transaction has spilled since a savepoint.
    pub(in crate::db) fn return_spilled(&self, mark: &SpillMark) {
        lock(&self.working).spill.iter_mut().for_each(|spill| spill.return_to(mark));
    }

    /// Frees the spilled pages of a transaction that is rolled back: no view refers to them any more.
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

    /// Writes the pages of a store's working view that are in memory alone to free space, and lets the view continue
    /// from them; `txid` is that of the open transaction,
    /// if `is_open`, or of the last one.
    pub(in crate::db) fn spill(
        &self,
        working: &mut Working,
        store: &mut Store,
        txid: u64,
        is_open: bool,
    ) -> Result<()> {
        let (image, _) = self.image(working)?;
        let len = image.len()?;
        self.write_ahead(working, store, txid, is_open).inspect_err(|_| {
            image.shorten(len);
            working.drop_new();
        })
    }

    fn write_ahead(
        &self,
        working: &mut Working,
        store: &mut Store,
        txid: u64,
        is_open: bool,
    ) -> Result<()> {
        let (image, pager) = self.image(working)?;
        let pin = self.pin_spilled(working, &image, store.unsettled())?;
        let (root, spill) = (working.root, working.spill.as_ref());
        self.choose_what_stays(&pager, root, spill, store.unsettled());
        let before = saved_before(&image, root, spill);
        let save = |draft: &mut Draft<'_>| {
            let unwatched = &mut |_| ControlFlow::Continue(());
            let mut drafting = Drafting::new(draft, &image, txid, &**self.clock(), unwatched);
            let saved = store.unsettled().save(&pager, &mut drafting)?;
            drafting.leave_dropped(&before, &saved);
            drafting.write()?;
            let arrays = saved.arrays();
            Ok::<_, Error>((saved, drafting.end().0, arrays))
        };
        let mut saved = if let Some(spill) = working.spill.as_mut() {
            if is_open && spill.open.is_none() {
                // A rollback restores the state of earlier spills.
                spill.draft.show();
            }
            let mut draft = spill.draft.take_up();
            let (saved, written, arrays) = save(&mut draft)?;
            let before = draft.keep();
            spill.add(written, arrays, before, txid, is_open);
            saved
        } else {
            let mut draft = image.space(working.pinned(&image)?)?;
            let (saved, written, arrays) = save(&mut draft)?;
            let draft = draft.put_aside(&image);
            let (open, committed) = if is_open { (Some(txid), None) } else { (None, Some(txid)) };
            working.spill = Some(Spill { draft, written, arrays, open, committed, before: None });
            saved
        };
        saved.pin = Some(pin);
        store.go_on(&saved);
        self.is_stuck.store(false, Ordering::Relaxed);
        Ok(())
    }
    /// Returns the pin of spilled pages: the same as long as it is one draft, and views lie over it from the first
    /// time on.
    fn pin_spilled(&self, working: &Working, image: &Image, view: &View) -> Result<Arc<RootPin>> {
        let below = view.pin().cloned();
        if let Some(pin) = below.as_ref().filter(|_| working.spill.is_some()) {
            return Ok(Arc::clone(pin));
        }
        let pin = image.pin_early(below, &**self.clock());
        Ok(working.pins.add_early(pin.map_err(|error| cannot_look(image, error))?))
    }
}
