//! Making the image as small as it can be.

use crate::db::write::reopening;
use crate::db::write::shared;
use std::time::Duration;

use crate::db::follow::image_state::{ImageState, Working, shrink_wholly};
use crate::db::write::inner::Inner;
use crate::storage::Access;
use crate::{ErrorKind, Result};

/// The free space of an image, in bytes, from which the copy is worthwhile. It is half of it, too.
const WORTH: u64 = 1 << 20;

/// How long a transaction that needs space in the image may have to wait for a copy of it.
const NOT_NOTICED: Duration = Duration::from_millis(100);

/// Makes the image as small as possible; the caller holds the lock of backfills. Truncates its unused end. If
/// more than half of the rest is free, replaces it by a copy without gaps, while commits continue. Returns its
/// length.
pub(in crate::db) fn compact_image(
    db: &Inner,
    image_state: &ImageState,
    working: &mut Working,
    timeout: Duration,
) -> Result<u64> {
    let len = shrink_wholly(working)?;
    let (Some((image, _)), Some(root), None) = (&working.image, &working.root, &working.spill)
    else {
        return Ok(len);
    };
    let free = len.saturating_sub(image.reached(root)?);
    if free < WORTH || free <= len / 2 {
        return Ok(len);
    }
    let len = image.compact(&[], &**image_state.clock())?;
    match go_on_from_the_copy(db, image_state, working, timeout) {
        // The next backfill reports it.
        Err(error) if error.kind() != ErrorKind::Busy => Err(error),
        Ok(()) | Err(_) => Ok(len),
    }
}

fn go_on_from_the_copy(
    db: &Inner,
    image_state: &ImageState,
    working: &mut Working,
    timeout: Duration,
) -> Result<()> {
    // A transaction that spills waits for the lock of backfills, which is held here.
    let timeout = match &db.sharing {
        None => timeout.min(NOT_NOTICED),
        Some(_) => timeout,
    };
    let mut writing = db.writer_within(timeout)?;
    shared::take_turn_by(db, &mut writing, |now| now.take_turn_within(timeout))?;
    let begun = match db.group.settle() {
        Ok(()) => {
            reopening::restart_from_root(db, image_state, working, &mut writing, Access::Write)
        }
        Err(error) => Err(error),
    };
    shared::end_turn(db);
    begun
}
