//! Continuing from another image: one that other processes updated, or that was rebuilt because the previous one lost
//! its name, or was mostly free space.

use std::sync::Arc;

use crate::db::engine::core::{Core, Writing};
use crate::db::image::image_state::{ImageState, Working};
use crate::db::image::opening::Looking;
use crate::storage::Access;
use crate::{Error, ErrorKind, Result};

/// Makes sure, in a journal that no other process writes, that the image is at the name that opening uses. One
/// that was removed or renamed while the database was open is copied there from the file that is still open.
/// Returns `false` if a transaction is open: a holder of the lock of backfills must not wait for one.
pub(in crate::db) fn keep_named_or_postpone(
    core: &Core,
    image_state: &ImageState,
    working: &mut Working,
) -> Result<bool> {
    if is_named(working)? {
        return Ok(true);
    }
    let Some(mut writing) = core.writing.try_lock() else { return Ok(false) };
    core.group.settle()?;
    keep_named(core, image_state, working, &mut writing)?;
    Ok(true)
}

/// Does what [`keep_named_or_postpone`] does, for the writer without pending changes.
pub(in crate::db) fn keep_named(
    core: &Core,
    image_state: &ImageState,
    working: &mut Working,
    writing: &mut Writing,
) -> Result<()> {
    if is_named(working)? {
        return Ok(());
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

/// Starts the store again from the newest root of the image, and replays the journal after it. Without a usable
/// image, everything is in memory afterwards.
pub(in crate::db) fn restart_from_root(
    core: &Core,
    image_state: &ImageState,
    working: &mut Working,
    writing: &mut Writing,
    access: Access,
) -> Result<()> {
    let file = core.file();
    let looking = Looking {
        access,
        clock: Arc::clone(image_state.clock()),
        damage: Some(image_state.damage()),
        ..Looking::to_read(
            image_state.directory(),
            &file.journal,
            &*file.storage,
            image_state.budget(),
        )
    };
    let end = writing.writer.committed();
    let (mut found, store) = looking.state_at(end)?;
    for note in std::mem::take(&mut found.notes) {
        core.note_image_error(&Error::corrupt(note));
    }
    let store = match store {
        Some(store) => store,
        None if access == Access::Read => return Ok(()),
        None if writing.store.view().root() == 0 => {
            image_state.restart_from_root(working, &found, &file);
            return Ok(());
        }
        None => {
            let (replay, point) = looking.replay_all(end.position)?;
            if point != end {
                return Err(Error::corrupt(
                    "the journal continues with another history from there",
                ));
            }
            replay.finish().0
        }
    };
    writing.store = store;
    image_state.restart_from_root(working, &found, &file);
    core.group.replace(writing.store.republish());
    Ok(())
}

/// Returns true if the image, if there is one, is at the name that opening uses.
fn is_named(working: &Working) -> Result<bool> {
    match working.image.as_ref().filter(|_| working.root.is_some()) {
        Some((image, _)) => image.is_linked(),
        None => Ok(true),
    }
}
