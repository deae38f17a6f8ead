//! Restarting the journal: it continues in a new segment, and the old one is sealed and kept, or forgotten.
//!
//! The order of the steps is that of `journal::segments`. Between the sealing of the old segment and the
//! end of the restart an error makes the handle unusable: opening the database again ends the restart.

use crate::db::write::{forget, reopening};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use annals_schema::{Blob, Txid};
use annals_storage::step;

use crate::db::follow::state::StateBlobs;
use crate::db::present::outcome::{Older, Restarted};
use crate::db::present::segment::Segment;
use crate::db::present::snapshot::Snapshot;
use crate::db::write::core::{Core, Writing};
use crate::db::write::database::Database;
use crate::db::write::segment_state;
use crate::db::write::segment_state::write_state;
use crate::journal::format::Secret;
use crate::journal::segments::{self, Maker, Next, Sealer, Sealing, kept_name};
use crate::journal::{Checkpoints, Cursor, Head, Level, Point, Settled, Writer, lock};
use crate::storage::{Lock, Storage};
use crate::store::BlobPiece;
use crate::{Error, ErrorKind, Result};

/// How long the end of a backfill, or of a transaction, is waited for before another journal is followed.
const PATIENCE: Duration = Duration::from_secs(60);

/// The beginning of a segment that another journal began so.
#[derive(Debug)]
pub struct SegmentBeginning {
    /// Where it ends.
    pub point: Point,
    /// Where the blobs of the state are, if it begins with that.
    pub blobs: StateBlobs,
}

/// A segment that is about to replace the current one.
struct Prepared {
    checkpoints: Arc<Checkpoints>,
    writer: Writer,
    /// The end of the state, or the start.
    point: Point,
    /// The positions of the blobs then, if the state was written.
    moved: Option<Vec<(Blob, BlobPiece)>>,
}

/// Continues a journal that no other process writes in a new segment, once no thread updates the image or has a
/// transaction open. Waits up to `timeout` for each.
pub(in crate::db) fn restart(core: &Core, older: Older, timeout: Duration) -> Result<Restarted> {
    let wait =
        || core.image().map(|image_state| core.wait_for_backfill(image_state, timeout)).transpose();
    // First without the writer, which need not wait for a backfill; then in the order of the locks.
    drop(wait()?);
    let mut writing = core.writer_within(timeout)?;
    let mut working = wait()?;
    if let Some((image_state, working)) = core.image().zip(working.as_deref_mut()) {
        reopening::leave_lost(core, image_state, working, &mut writing)?;
    }
    restart_in_turn(core, &mut writing, older, &mut |_| Ok(()))
}

/// Does what [`restart`] does, for the writer, which in shared mode has the lock for restarts and the turn.
/// `fits` may refuse the state at the beginning of the new segment, by its length in bytes.
pub(in crate::db) fn restart_in_turn(
    core: &Core,
    writing: &mut Writing,
    older: Older,
    fits: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<Restarted> {
    let old = core.segment.load_full();
    let (storage, name) = (&*old.file.storage, &old.file.name);
    writing.writer.rollback()?;
    core.group.settle()?;
    let _paused = lock(&core.keeping);
    let head = Head::read(storage, name)?;
    let end = writing.writer.committed();
    let has_state = head.header.begins_with_state() && end.txid == Txid(head.header.first_txid);
    if has_state || end.txid == Txid(0) || (older == Older::Kept && end == head.start()) {
        // Nothing was committed since the last restart.
        return end_restart(core, older, false);
    }
    old.checkpoints.draw_secret(|| core.clock().secret())?;
    old.checkpoints.close()?;
    let (directory, journal) = (&*old.file.directory, old.file.journal.as_str());
    let repeats = older != Older::Kept;
    let by = Maker { clock: &**core.clock(), shared: old.turns.is_some() };
    let header = by.header_after(&head.header, end.txid.0, repeats);
    let (segment, secret) = (head.hash, old.checkpoints.secret());
    let sealer = Sealer { segment, secret, nonce: core.clock().random() };
    let sealing = Sealing::new(end, header, &kept_name(journal, header.segment), sealer)?;
    let next = Next::create(directory, journal, &sealing.seal, by)?;
    let prepared = prepare(core, &next, writing, repeats);
    let ready =
        prepared.map_err(|error| segment_state::explain(error, name)).and_then(|prepared| {
            fits(prepared.point.position)?;
            segments::keep(directory, journal, storage, &head.header)?;
            old.checkpoints.seal(&sealing).map(|()| prepared)
        });
    let prepared = ready.inspect_err(|_| next.discard(directory))?;
    next.publish(directory, journal).map_err(|error| interrupted(&old, &error))?;
    go_on(core, writing, &old, &next, prepared)?;
    end_restart(core, older, true)
}

/// Continues in a segment as the journal did that a database follows. `read` returns the seal, which follows a point of
/// the segment with a hash, and what writes and flushes the beginning of the next.
///
/// # Errors
/// Those of `read` and of what it returned, and then nothing was changed; `Io`; `Poisoned`: it was interrupted, and
/// opening the file again ends it.
pub fn continue_as<F>(
    database: &Database,
    read: impl FnOnce(Point, u64) -> Result<(Sealing, F)>,
) -> Result<Cursor>
where
    F: FnOnce(&dyn Storage, Secret) -> Result<SegmentBeginning>,
{
    let inner = database.inner();
    let _entered = inner.enter_to_write()?;
    inner.refuse_nesting()?;
    let wait = || inner.image().map(|state| inner.wait_for_backfill(state, PATIENCE)).transpose();
    // First without the writer, which need not wait for a backfill; then in the order of the locks.
    drop(wait()?);
    let mut writing = inner.writer_within(PATIENCE)?;
    let _working = wait()?;
    let (sealing, fill) = read(writing.writer.committed(), inner.file().segment_hash()?)?;
    restart_as(inner, &mut writing, &sealing, fill)
}

fn restart_as(
    core: &Core,
    writing: &mut Writing,
    sealing: &Sealing,
    fill: impl FnOnce(&dyn Storage, Secret) -> Result<SegmentBeginning>,
) -> Result<Cursor> {
    let old = core.segment.load_full();
    writing.writer.rollback()?;
    core.group.settle()?;
    let _paused = lock(&core.keeping);
    let (storage, name) = (&*old.file.storage, &old.file.name);
    let head = Head::read(storage, name)?;
    old.checkpoints.draw_secret(|| core.clock().secret())?;
    old.checkpoints.close()?;
    let (directory, journal) = (&*old.file.directory, old.file.journal.as_str());
    let header = &sealing.seal.next;
    let (next, SegmentBeginning { point, blobs }) =
        Next::copy(directory, journal, header, &**core.clock(), fill)?;
    let ready = segments::keep(directory, journal, storage, &head.header)
        .and_then(|()| old.checkpoints.seal(sealing));
    ready.inspect_err(|_| next.discard(directory))?;
    next.publish(directory, journal).map_err(|error| interrupted(&old, &error))?;
    let settled = Settled::new_journal(point, next.secret);
    let storage = Arc::clone(&next.storage);
    let pid = annals_storage::process_id();
    let checkpoints = Checkpoints::new(storage, name, header.hash(), pid, point, &settled);
    let checkpoints = Arc::new(checkpoints);
    let writer = writing.writer.in_segment(Arc::clone(&checkpoints));
    let moved = Some(blobs.pieces).filter(|_| header.begins_with_state());
    let prepared = Prepared { checkpoints, writer, point, moved };
    go_on(core, writing, &old, &next, prepared)?;
    Ok(point.into())
}

/// Makes all that the new segment begins with, on permanent storage.
fn prepare(core: &Core, next: &Next, writing: &mut Writing, repeats: bool) -> Result<Prepared> {
    let header = &next.header;
    let start = Head::read(&*next.storage, &writing.file.name)?.start();
    let settled = Settled::new_journal(start, next.secret);
    let mut checkpoints = Checkpoints::new(
        Arc::clone(&next.storage),
        &writing.file.name,
        header.hash(),
        annals_storage::process_id(),
        start,
        &settled,
    );
    if core.segment.load().turns.is_some() {
        checkpoints = checkpoints.share(start);
    }
    let checkpoints = Arc::new(checkpoints);
    let mut writer = writing.writer.in_segment(Arc::clone(&checkpoints));
    if !repeats {
        checkpoints.tell()?;
        return Ok(Prepared { checkpoints, writer, point: start, moved: None });
    }
    let last_blob = writing.store.next_blob().map_or(Blob::MAX.0, |next| next.0 - 1);
    let snapshot = Snapshot::new(core.group.published());
    writer.begin(Level::Checksummed)?;
    let moved = write_state(&mut writer, &snapshot, last_blob, header.segment)?;
    let point = writer.commit(Level::Checksummed, None)?;
    step!(StateNotFlushed, checkpoints.reach(Level::Checksummed, point)?);
    checkpoints.acknowledge(point, 1, true);
    step!(StateNotFlushed, checkpoints.hard()?);
    Ok(Prepared { checkpoints, writer, point, moved: Some(moved) })
}

/// Continues in the new segment, which has the path now.
fn go_on(
    core: &Core,
    writing: &mut Writing,
    old: &Segment,
    next: &Next,
    prepared: Prepared,
) -> Result<()> {
    let Prepared { checkpoints, writer, point, moved } = prepared;
    let storage = Arc::clone(&next.storage);
    let end = old.checkpoints.acknowledged().position;
    let file = Arc::new(old.file.next(Arc::clone(&storage), next.header.segment, end));
    let turns = old.turns.as_ref().map(|turns| turns.next(&storage));
    let is_named = AtomicBool::new(true);
    core.enter(writing, Segment { checkpoints, file, turns, is_named }, writer);
    if let Some(moved) = moved {
        writing.store.move_blobs(moved.into_iter())?;
    }
    let view = writing.store.commit();
    core.group.begin_segment(view, point);
    // It isn't written any more.
    let _ = old.file.storage.unlock(Lock::Head);
    old.end_turn();
    Ok(())
}

fn end_restart(core: &Core, older: Older, is_new: bool) -> Result<Restarted> {
    let now = core.segment.load_full();
    let segment = now.file.segment;
    let bytes = now.checkpoints.acknowledged().position;
    let mut restarted = Restarted { segment, is_new, bytes, forgotten: None, pinned: None };
    if older == Older::Forgotten {
        let forgotten = forget::forget_before(core, segment).map_err(|error| {
            error.within(format_args!("the journal goes on in segment {segment}"))
        });
        (restarted.forgotten, restarted.pinned) = forgotten?;
    }
    Ok(restarted)
}

/// Returns the error that the old segment is sealed, and the path doesn't certainly refer to the next.
fn interrupted(old: &Segment, error: &io::Error) -> Error {
    let name = &old.file.name;
    old.checkpoints.poison(&format!("a restart was interrupted: {error}"));
    Error::new(
        ErrorKind::Poisoned,
        format!(
            "{name}: the restart was interrupted ({error}): reopen the database, which ends it; \
             nothing is lost"
        ),
    )
}
