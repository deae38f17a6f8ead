//! Making room for a transaction that is larger than memory.

use crate::db::engine::backfill;
use std::sync::atomic::Ordering;

use annals_storage::step;

use crate::Result;
use crate::db::engine::core::{Core, Writing};
use crate::db::image::BackfillMode;
use crate::db::image::imager::Imager;
use crate::journal::lock;

/// Returns how many bytes of changes may be in memory alone before a transaction makes room, where there
/// are `found` bytes when it begins.
pub(in crate::db) fn room(core: &Core, found: usize) -> usize {
    let Some(imager) = core.image() else { return usize::MAX };
    let limit = imager.spill_limit();
    if imager.is_stuck.load(Ordering::Relaxed) { limit.saturating_add(found) } else { limit }
}

/// Makes room for a transaction that has filled the memory with its changes; returns true if a part of it is in
/// the image now.
///
/// # Errors
/// Those of writing to the image: the store is unchanged.
pub(in crate::db) fn spill(core: &Core, writing: &mut Writing) -> Result<bool> {
    let imager = core.imager()?;
    // Waits for the backfill that is under way, which may be all that is needed.
    let mut working = lock(&imager.working);
    imager.install(&mut writing.store);
    if !writing.store.has_unsaved(imager.spill_limit()) {
        return Ok(false);
    }
    let txid = writing.writer.committed().txid + 1;
    imager.spill(&mut working, &mut writing.store, txid, true).map(|()| true)
}

/// Returns how much more memory a transaction may use after making room has failed, if most of the used memory
/// isn't its own; else `None`. Commits of others aren't its fault.
pub(in crate::db) fn room_without_spill(core: &Core, found: usize, now: usize) -> Option<usize> {
    let imager = core.image()?;
    let limit = imager.spill_limit();
    if now.saturating_sub(found) >= limit / 2 {
        return None;
    }
    imager.is_stuck.store(true, Ordering::Relaxed);
    Some(now.saturating_add(limit))
}

/// Publishes a root with the pages that opening has spilled, which may be visible from now on.
pub(in crate::db) fn publish_spilled(core: &Core) {
    if core.image().is_some_and(Imager::show_spilled)
        && let Err(error) = backfill::backfill(core, BackfillMode::Passive)
    {
        core.note_image_error(&error);
    }
}

/// Notes that a transaction with spilled pages has committed: they may be visible from now on.
pub(in crate::db) fn commit_spilled(core: &Core) {
    if let Some(imager) = core.image() {
        imager.commit_spilled();
        step!(SpillNotShown, imager.show_spilled());
    }
}

/// Frees the spilled pages of a transaction whose changes were undone in the store.
pub(in crate::db) fn roll_back_spilled(core: &Core) {
    core.image().into_iter().for_each(Imager::roll_back_spilled);
}
