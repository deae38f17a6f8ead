//! Packing: keeps the whole present state, and removes the history.
//!
//! In place the journal continues in a segment that begins with the state itself, like a restart. The history is
//! removed once that is on permanent storage. Into another file it is a new journal, whose first transaction is the
//! state. Either way nothing is done if that would have more bytes than there were before.

use annals_schema::Txid;
use std::sync::Arc;
use std::time::Duration;

use crate::db::engine::state;
use crate::db::handle::database::Database;
use crate::db::image::BackfillMode;
use crate::db::outcome::{Forgotten, Older};
use crate::db::present::snapshot::Snapshot;
use crate::journal::format::FRAMES_AT;
use crate::journal::{
    self, Checkpoints, Head, Level, Settled, Writer, first_slot, head_with, new_header,
};
use crate::storage::{Clock, Directory, Hold, Lock, Storage};
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

/// Writes a new journal whose only transaction is a state, and closes it; returns the file, which is locked, and how
/// many bytes it has.
///
/// # Errors
/// `Busy`: another process has opened the new file; `Io`.
pub fn write_state(
    directory: &dyn Directory,
    name: &str,
    snapshot: &Snapshot,
    clock: &Arc<dyn Clock>,
) -> Result<(Arc<dyn Storage>, u64)> {
    let shown = directory.display(name);
    let io = |error| Error::io(format!("{shown}: can't be written"), error);
    let storage = directory.create(name).map_err(io)?;
    if !storage.try_lock(Lock::Head, Hold::Exclusive).map_err(io)? {
        return Err(Error::new(
            ErrorKind::Busy,
            format!("{shown}: somebody else has just opened it"),
        ));
    }
    let header = new_header(&**clock);
    let start = journal::Point { position: FRAMES_AT, txid: Txid(0), chain: header.hash() };
    let secret = clock.secret();
    storage.write_at(0, &head_with(&header, &first_slot(start, secret))).map_err(io)?;
    debug_assert!(Head::read(&*storage, &shown).is_ok_and(|head| head.start() == start));
    let settled = Settled::new_journal(start, secret);
    let checkpoints = Arc::new(Checkpoints::new(
        Arc::clone(&storage),
        &shown,
        header.hash(),
        annals_storage::process_id(),
        start,
        &settled,
    ));
    let mut writer = Writer::new(Arc::clone(&checkpoints), Arc::clone(clock), i64::MIN, 8);
    let mut end = start;
    if snapshot.txid() > Txid(0) {
        writer.begin(Level::Checksummed)?;
        state::write(&mut writer, snapshot, snapshot.last_blob().0, header.segment)?;
        end = writer.commit(Level::Checksummed, None)?;
    }
    checkpoints.acknowledge(end, 1, true);
    checkpoints.close()?;
    Ok((storage, end.position))
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
