//! Packing in place: keeps the whole present state, and removes the history.
//!
//! The journal continues in a segment that begins with the state itself, like a restart. The history is removed once that is
//! on permanent storage. Nothing is done if that would have more bytes than there were before.

use std::time::Duration;

use crate::db::follow::report::BackfillMode;
use crate::db::present::outcome::{Forgotten, Older};
use crate::db::write::database::Database;
use crate::{Error, ErrorKind, Result};

/// The report of packing a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    /// True if the database was packed. It isn't if packing would take more bytes than before.
    pub is_done: bool,
    /// How many bytes all files of the journal had before.
    pub before: u64,
    /// How many they have now, or would have.
    pub after: u64,
    /// The forgotten history, if it was packed in place.
    pub forgotten: Option<Forgotten>,
    /// The oldest segment with readers, because of which neither it nor any other was removed: packing again removes
    /// them then.
    pub pinned: Option<u64>,
}

/// Does what [`Database::pack`] does.
pub(in crate::db) fn pack(db: &Database, timeout: Duration) -> Result<Packed> {
    let _entered = db.inner().enter_to_write()?;
    db.inner().refuse_nesting()?;
    db.refuse_nested_backfill()?;
    db.refuse_device()?;
    let before = db.segments()?.iter().map(|facts| facts.bytes).sum();
    let mut larger = None;
    let restarted = db.restart_if(Older::NotNeeded, timeout, &mut |after| match after > before {
        true => {
            larger = Some(after);
            Err(Error::new(ErrorKind::Cancelled, "packed it would be larger"))
        }
        false => Ok(()),
    });
    let mut packed =
        Packed { is_done: false, before, after: before, forgotten: None, pinned: None };
    if let Some(after) = larger {
        return Ok(Packed { after, ..packed });
    }
    let restarted = restarted.map_err(|error| db.inner().advise_space(error))?;
    if db.inner().image().is_some_and(|image_state| image_state.segment().is_some()) {
        // The segment of the image's point must stay, else the next opening would replay the state.
        db.backfill(BackfillMode::Full)?;
    }
    (packed.forgotten, packed.pinned) = match restarted.segment {
        0 => (None, None), // nothing was ever committed
        segment => db.forget_before(segment)?,
    };
    let after = db.segments()?.iter().map(|facts| facts.bytes).sum();
    Ok(Packed { is_done: true, after, ..packed })
}
