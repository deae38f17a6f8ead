//! Making room for a transaction that is larger than memory.

use crate::db::image::backfill;
use std::sync::atomic::Ordering;

use annals_storage::step;

use crate::Result;
use crate::db::follow::image_state::ImageState;
use crate::db::follow::report::BackfillMode;
use crate::db::follow::spill::SpillMark;
use crate::db::write::core::{Core, Writing};
use crate::journal::lock;

/// Returns how many bytes of changes may be in memory alone before a transaction makes room, where there
/// are `found` bytes when it begins.
pub(in crate::db) fn limit(core: &Core, found: usize) -> usize {
    let Some(image_state) = core.image() else { return usize::MAX };
    let limit = image_state.spill_limit();
    if image_state.is_stuck.load(Ordering::Relaxed) { limit.saturating_add(found) } else { limit }
}

/// Returns how many bytes of values a transaction inserts at a time: about so many changes come before it makes room.
pub(in crate::db) fn batch(core: &Core) -> usize {
    let least_and_most = (1 << 20, 64 << 20);
    core.image().map_or(usize::MAX, |image_state| {
        image_state.batch().clamp(least_and_most.0, least_and_most.1)
    })
}

/// Makes the cache leave room for changes in memory alone; returns how many bytes of them there may be before it
/// leaves more.
pub(in crate::db) fn room(core: &Core, changes: usize, limit: usize) -> usize {
    core.image().map_or(usize::MAX, |image_state| image_state.make_way(changes)).min(limit)
}

/// Makes room for a transaction that has filled the memory with its changes; returns true if a part of it is in
/// the image now.
///
/// # Errors
/// Those of writing to the image: the store is unchanged.
pub(in crate::db) fn spill(core: &Core, writing: &mut Writing) -> Result<bool> {
    let image_state = core.image_state()?;
    // Waits for the backfill that is under way, which may be all that is needed.
    let mut working = lock(&image_state.working);
    image_state.install(&mut writing.store);
    if !writing.store.has_unsaved(image_state.spill_limit()) {
        return Ok(false);
    }
    let txid = writing.writer.committed().txid.0 + 1;
    image_state.spill(&mut working, &mut writing.store, txid, true).map(|()| true)
}

/// Returns how much more memory a transaction may use after making room has failed, if most of the used memory
/// isn't its own; otherwise `None`. Commits of others aren't its fault.
pub(in crate::db) fn room_without_spill(core: &Core, found: usize, now: usize) -> Option<usize> {
    let image_state = core.image()?;
    let limit = image_state.spill_limit();
    if now.saturating_sub(found) >= limit / 2 {
        return None;
    }
    image_state.is_stuck.store(true, Ordering::Relaxed);
    Some(now.saturating_add(limit))
}

/// Publishes a root with the pages that opening has spilled, which may be visible from now on.
pub(in crate::db) fn publish_spilled(core: &Core) {
    if core.image().is_some_and(ImageState::show_spilled)
        && let Err(error) = backfill::backfill(core, BackfillMode::Passive)
    {
        core.note_image_error(&error);
    }
}

/// Marks the spilled pages of a transaction as committed: snapshots may refer to them from now on.
pub(in crate::db) fn commit_spilled(core: &Core) {
    if let Some(image_state) = core.image() {
        image_state.commit_spilled();
        step!(SpillNotShown, image_state.show_spilled());
    }
}

/// Frees the spilled pages of a transaction that the store has already rolled back.
pub(in crate::db) fn roll_back_spilled(core: &Core) {
    core.image().into_iter().for_each(ImageState::roll_back_spilled);
}

/// Returns how much the open transaction has spilled so far, for a savepoint.
pub(in crate::db) fn mark(core: &Core) -> Option<SpillMark> {
    core.image().and_then(ImageState::mark_spilled)
}

/// Frees the pages that the transaction has spilled since a savepoint; all of them, without a mark. The store has
/// already returned to it.
pub(in crate::db) fn return_to(core: &Core, mark: Option<&SpillMark>) {
    match (core.image(), mark) {
        (Some(image_state), Some(mark)) => image_state.return_spilled(mark),
        _ => roll_back_spilled(core),
    }
}
