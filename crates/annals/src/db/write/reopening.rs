//! Continuing from another root of the image, or another image: where other processes updated it, where it lost its
//! name or was mostly free space, and where a read failed because a page of it is lost.
//!
//! ```text
//! a read needs a lost page ─► it fails, and the page is noted ─► the next snapshot or transaction: is a root with that
//!      page under the state? ─► the newest root of which all verifies, or none; the journal after it is replayed
//! ```
//!
//! Invariants
//! 1. A state is swapped with the writer's lock and the lock of backfills: no transaction and no backfill is open.
//! 2. Who takes a snapshot waits for a thread that swaps the state, but never for a transaction. Where one is open, the
//!    snapshot is of the state as it was, and a read of the lost page fails again.
//! 3. A failure to open another state is reported, and the state stays: only reads of lost pages fail.
//! 4. The states of all commits that readers may still be shown are swapped: the published one, and those that wait.

use std::sync::Arc;
use std::time::Duration;

use annals_storage::step;

use crate::db::follow::image_state::{ImageState, Working};
use crate::db::follow::opening::OpenRequest;
use crate::db::follow::reading::not_opened_again;
use crate::db::follow::state::{Replay, State};
use crate::db::follow::survey::over;
use crate::db::write::core::{Core, Writing};
use crate::journal::lock;
use crate::storage::Access;
use crate::trace::event;
use crate::{Error, ErrorKind, Result};

/// How long a snapshot or a transaction waits for a backfill to end, before a state is swapped.
const PATIENCE: Duration = Duration::from_secs(5);

/// Swaps the state if a read found a page under it lost, before a snapshot is taken; not while a transaction is open.
/// Returns true if it did.
#[cold]
pub(in crate::db) fn reopen_to_read(core: &Core) -> bool {
    // Who is told about a backfill, or has a transaction open, can't wait for its end.
    let Some(image_state) = core.image().filter(|it| it.refuse_nesting().is_ok()) else {
        return false;
    };
    let _one = lock(&image_state.reopening);
    let writing = core.writing.try_lock();
    writing.is_some_and(|mut writing| reopen(core, image_state, &mut writing))
}

/// Swaps the state if a read found a page under it lost, before a transaction changes it. Returns true if it did.
/// Costs two loads, if none was lost.
#[inline]
pub(in crate::db) fn reopen_to_write(
    core: &Core,
    image_state: &ImageState,
    writing: &mut Writing,
) -> bool {
    if !image_state.damage().is_state_lost() || image_state.refuse_nesting().is_err() {
        return false;
    }
    let _one = lock(&image_state.reopening);
    reopen(core, image_state, writing)
}

fn reopen(core: &Core, image_state: &ImageState, writing: &mut Writing) -> bool {
    // In shared mode a backfill may wait for this process's turn.
    let patience = if core.works_alone { PATIENCE } else { Duration::ZERO };
    let working = core.wait_for_backfill(image_state, patience);
    match working.and_then(|mut working| leave_lost(core, image_state, &mut working, writing)) {
        Ok(is_swapped) => is_swapped,
        Err(error) => {
            // The next snapshot or transaction tries it again.
            if error.kind() != ErrorKind::Busy {
                image_state.damage().report(not_opened_again(&error));
            }
            false
        }
    }
}

/// Swaps the state if a read found a page under it lost, for a holder of both locks. Returns true if it did.
pub(in crate::db) fn leave_lost(
    core: &Core,
    image_state: &ImageState,
    working: &mut Working,
    writing: &mut Writing,
) -> Result<bool> {
    let damage = image_state.damage();
    if !damage.is_state_lost() {
        return Ok(false);
    }
    let do_commits_wait = core.group.points().len() > 1;
    if do_commits_wait && working.spill.is_some() {
        return Ok(false); // what they spilled would have to fit in memory
    }
    let noted = damage.begin_opening();
    // It may lie over the lost page.
    writing.file.images.last_past.forget();
    let is_behind = core.group.published().view.root() != image_state.newest();
    // The directory of a root doesn't have the pages that were spilled since.
    let is_under = working.spill.is_some() || !working.is_sound()?;
    let is_swapped = is_under || (is_behind && do_commits_wait);
    if is_swapped {
        event!(WARN, "a page of the image is lost: the state is opened again without it");
        let access = if core.works_alone { Access::Write } else { Access::Read };
        step!(LostStateKept, restart_from_root(core, image_state, working, writing, access)?);
    } else if is_behind {
        core.install_now(image_state, writing);
    }
    damage.end_opening(noted);
    Ok(is_swapped)
}

/// Makes sure, in a journal that no other process writes, that the image is at the name that opening uses, and the
/// state not over a lost page. An image that was removed or renamed while the database was open is copied there from
/// the file that is still open. Returns `false` if a transaction is open: a holder of the lock of backfills must not
/// wait for one.
pub(in crate::db) fn keep_usable_or_postpone(
    core: &Core,
    image_state: &ImageState,
    working: &mut Working,
) -> Result<bool> {
    if is_named(working)? && !image_state.damage().is_state_lost() {
        return Ok(true);
    }
    let Some(mut writing) = core.writing.try_lock() else { return Ok(false) };
    core.group.settle()?;
    keep_usable(core, image_state, working, &mut writing)?;
    Ok(true)
}

/// Does what [`keep_usable_or_postpone`] does, for the writer without pending changes.
pub(in crate::db) fn keep_usable(
    core: &Core,
    image_state: &ImageState,
    working: &mut Working,
    writing: &mut Writing,
) -> Result<()> {
    if is_named(working)? {
        return leave_lost(core, image_state, working, writing).map(drop);
    }
    let compacted = match &working.image {
        Some((image, _)) => image.compact(&[], &**image_state.clock()).map(drop),
        None => Ok(()),
    };
    match compacted {
        Err(error) if error.kind() == ErrorKind::Io => {
            return Err(
                error.within("the image was removed or renamed, and can't be created again")
            );
        }
        // Another file has the name now, which is opened; or a part can't be read, and is replayed.
        Ok(()) | Err(_) => {}
    }
    restart_from_root(core, image_state, working, writing, Access::Write)
}

/// Starts the store again from the newest root of the image of which no damage is known, and replays the journal after
/// it. Without one, replays all of the journal. Who only reads the image uses no root that is newer than what it shows:
/// others bring it forward.
pub(in crate::db) fn restart_from_root(
    core: &Core,
    image_state: &ImageState,
    working: &mut Working,
    writing: &mut Writing,
    access: Access,
) -> Result<()> {
    let (file, mut later) = (core.file(), core.group.points().into_iter());
    let Some(at) = later.next() else { return Ok(()) };
    let request = OpenRequest {
        access,
        clock: Arc::clone(image_state.clock()),
        spills: image_state.spills(),
        key_frames: image_state.key_frames,
        damage: Some(image_state.damage()),
        is_whole: true,
        roots_until: (access == Access::Read).then_some(at.txid),
        ..OpenRequest::to_read(
            image_state.directory(),
            &file.journal,
            &file.storage,
            image_state.budget(),
        )
    };
    let (mut found, state) = request.state_at(&file, at)?;
    for note in std::mem::take(&mut found.notes) {
        image_state.damage().report(note.clone());
        core.note_image_error(&Error::corrupt(note));
    }
    let mut spilled = None;
    let mut state = match state {
        Some(state) => state,
        // The root under the state is better than none.
        None if access == Access::Read && working.is_sound()? => return Ok(()),
        // All of it is in memory.
        None if writing.store.view().root() == 0 && working.spill.is_none() => {
            image_state.restart_from_root(working, &found, &file);
            return Ok(());
        }
        None => {
            spilled = request.image_state(&found).filter(|_| image_state.spills());
            let replay = over(Replay::default(), spilled.as_ref());
            State::at(&file, None, replay, at.position)?.ending_with(at)?
        }
    };
    let mut views = vec![(at, Arc::clone(state.store.published()))];
    for point in later {
        state.advance(point.position)?;
        views.push((point, Arc::clone(state.store.published())));
    }
    if state.point != writing.writer.committed() {
        return Err(Error::corrupt("the journal continues with another history from there"));
    }
    writing.store = state.store;
    image_state.restart_from_root(working, &found, &state.file);
    if let Some(fresh) = spilled {
        *working = std::mem::take(&mut *lock(&fresh.working));
        // Views published from now on refer to the spilled pages.
        working.spill.iter().for_each(|spill| spill.draft.show());
        image_state.note_status(working);
    }
    core.group.replace_all(views);
    Ok(())
}

/// Returns true if the image, if there is one, is at the name that opening uses.
fn is_named(working: &Working) -> Result<bool> {
    match working.image.as_ref().filter(|_| working.root.is_some()) {
        Some((image, _)) => image.is_linked(),
        None => Ok(true),
    }
}
