//! Following a journal that another process continued in a new segment.
//!
//! Commits in the old segment up to its seal are loaded first, then commits of the segments in between, then those
//! of the new one. If the segments in between were forgotten meanwhile, the state is built again from the segment that
//! begins with it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::db::follow::segments::{Successor, TRIES, find_successor, gone};
use crate::db::present::segment::Segment;
use crate::db::present::turns::Turns;
use crate::db::write::core::Writing;
use crate::db::write::inner::Inner;
use crate::db::write::sharing::Sharing;
use crate::journal::segments::{self, Maker};
use crate::journal::{self, Checkpoints, Head, Rule, Survey};
use crate::storage::{Access, Hold, Lock, Storage};
use crate::{Error, ErrorKind, Result};

/// The pause before trying again while another process checks whether it is alone.
const PAUSE: Duration = Duration::from_millis(1);

/// Continues in the segment that the path names now, in shared mode. Takes no turn.
pub(in crate::db) fn follow(db: &Inner, writing: &mut Writing, sharing: &Sharing) -> Result<()> {
    let old = db.segment.load_full();
    let id = Head::read(&*old.file.storage, &old.file.name)?.header.journal_id;
    for _ in 0..TRIES {
        let txid = writing.writer.committed().txid.0;
        let Some(found) = find_successor(&old.file, id, txid, Access::Write)? else {
            return finish_before(db, &old, sharing);
        };
        let io = |error| Error::io(format!("{}: can't lock it", old.file.name), error);
        if !join_again(db, &*found.storage, &old)? {
            continue;
        }
        match go_on_in(db, &found, &old, writing, sharing) {
            // It continued again, and forgot history that was needed.
            Err(_) if !found.storage.is_linked().map_err(io)? => {}
            done => return done,
        }
    }
    Err(gone(&old.file.name))
}

/// Ends the restart of the segment before, which got the path back when the path to this one couldn't be
/// made durable.
fn finish_before(db: &Inner, old: &Segment, sharing: &Sharing) -> Result<()> {
    let Sharing { directory, file: name, .. } = sharing;
    let shown = directory.display(name);
    let storage = directory
        .open(name, Access::Write)
        .map_err(|error| crate::journal::cannot_open(&shown, Access::Write, error))?;
    if !join_again(db, &*storage, old)? {
        return Ok(());
    }
    // Its locks go with the storage.
    old.turns.as_ref().map_or(Ok(()), |turns| turns.next(&storage).take())?;
    let head = Head::read(&*storage, &shown)?;
    let rule = Rule::new(sharing.recovery).after(Some(head.hard_point()));
    let survey = Survey::make(&*storage, &shown, rule, |_, _| Ok(()))?;
    match &survey.sealed {
        Some(seal) => {
            let by = Maker { clock: &**db.clock(), shared: true };
            segments::finish(&**directory, name, &*storage, &survey, seal, by)
        }
        None => Ok(()),
    }
}

/// Acquires the head lock of a segment in shared mode; returns true if the path still refers to it.
fn join_again(db: &Inner, storage: &dyn Storage, old: &Segment) -> Result<bool> {
    let io = |error| Error::io(format!("{}: can't lock it", old.file.name), error);
    let clock = db.clock();
    let timeout = old.turns.as_ref().map_or(Duration::ZERO, Turns::timeout);
    let begun = clock.elapsed();
    while !storage.try_lock(Lock::Head, Hold::Shared).map_err(io)? {
        if !storage.is_linked().map_err(io)? {
            return Ok(false);
        }
        // A process that opens or closes it checks for a moment whether it is alone. The live block may still
        // name one who was killed.
        if clock.elapsed().saturating_sub(begun) >= timeout {
            let message = format!(
                "{}: another process has it open alone by now: end it, or try again later",
                old.file.name
            );
            return Err(Error::new(ErrorKind::Busy, message));
        }
        clock.pause(PAUSE);
    }
    storage.is_linked().map_err(io)
}

fn go_on_in(
    db: &Inner,
    found: &Successor,
    old: &Segment,
    writing: &mut Writing,
    sharing: &Sharing,
) -> Result<()> {
    let Successor { storage, head } = found;
    let name = &old.file.name;
    let ahead = Survey::since_now(&**storage, name, head.start())?;
    let commands = writing.store.view().schema().commands().len();
    let file = writing.follow(|state| {
        state.enter(found, ahead.end.position)?;
        Ok(Arc::clone(&state.file))
    })?;
    let hard = ahead.head.newest_slot().map_or(head.start(), |slot| slot.point);
    let checkpoints = Checkpoints::new(
        Arc::clone(storage),
        name,
        head.hash,
        annals_storage::process_id(),
        ahead.end,
        &journal::join(&ahead),
    );
    let checkpoints = Arc::new(checkpoints.share(hard));
    let mut writer = writing.writer.in_segment(Arc::clone(&checkpoints));
    writer.adopt(ahead.end, ahead.last_clock_time);
    let turns = old.turns.as_ref().map(|turns| turns.next(storage));
    // The process that made it may have ended before the flush.
    let is_named = AtomicBool::new(false);
    db.core.enter(writing, Segment { checkpoints, file, turns, is_named }, writer);
    // It isn't needed any more: the segment is sealed.
    let _ = old.file.storage.unlock(Lock::Head);
    let is_changed = writing.store.view().schema().commands().len() != commands;
    sharing.note_schema(db.has_fixed_schema() && is_changed)?;
    db.group.begin_segment(Arc::clone(writing.store.published()), ahead.end);
    Ok(())
}
