//! Shared mode: loading commits of other processes, and writing in turn with them.
//!
//! ```text
//! begin:   take the turn; see that the name still leads to the file; bring in what follows; recover if
//!          whoever wrote last was interrupted or marked the file as suspect
//! commit:  as ever, up to its acknowledgement; tell the live block; let go of the turn
//! ```
//!
//! A turn is one transaction, or other work, of the thread that holds the writer's side. So a thread of this process
//! that waits for that side waits for the end of the turn, too.
//!
//! If the name refers to another file now, the journal may continue there; see `next_segment`.
//!
//! The journal can also be read without the turn: frames after the last known commit are loaded as far as they verify
//! and count.

use crate::db::image::shared_image;
use crate::db::write::next_segment;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use annals_storage::step;

use crate::db::follow::source::FrameSource;
use crate::db::present::segment::Segment;
use crate::db::present::snapshot::Snapshot;
use crate::db::progress::Watched;
use crate::db::write::core::Writing;
use crate::db::write::inner::Inner;
use crate::db::write::reopening;
use crate::db::write::sharing::Sharing;
use crate::journal::format::FRAME_HEADER_LEN;
use crate::journal::segments::Maker;
use crate::journal::{self, Head, Point, Rule, Survey, Verdict, lock, segments};
use crate::storage::{Hold, Lock};
use crate::{Error, ErrorKind, Result};

/// How long closing waits for threads that wait for the writer's side.
const QUEUE: Duration = Duration::from_millis(100);
/// How often a process follows a journal that is restarted repeatedly.
const TRIES: usize = 100;

/// Runs something that writes the file, in this process's turn.
pub(in crate::db) fn in_turn<T>(db: &Inner, act: impl FnOnce() -> Result<T>) -> Result<T> {
    if db.sharing.is_none() {
        return act();
    }
    db.refuse_nesting()?;
    let mut writing = db.writing.lock();
    take_turn(db, &mut writing)?;
    let done = act();
    let_go(db);
    done
}

/// Closes a journal that other processes may be writing: the last one to do so leaves it closed.
pub(in crate::db) fn close_shared(db: &Inner) -> Result<()> {
    let Some(sharing) = &db.sharing else { return Ok(()) };
    if sharing.is_outdated.load(Ordering::Relaxed) {
        db.segment.load().take_turn()?;
        return close_as_it_is(db);
    }
    // Threads that waited for it find the handle closed.
    let Ok(mut writing) = db.writer_within(QUEUE) else {
        // A transaction was forgotten (`mem::forget`): it holds this for ever, and the turn too. The next process
        // recovers its writes.
        return close_as_it_is(db);
    };
    take_turn(db, &mut writing)?;
    let closed = match is_alone(db) {
        Ok(is_alone) if step!(ClosedAmongOthers, is_alone, else true) => {
            if is_alone {
                // A problem of the image doesn't prevent closing: the next opening replays more.
                let _ = shared_image::backfill_as_the_last(db, writing);
            }
            db.checkpoints().close()
        }
        // A process that has it open may write it, so it can't be left closed.
        Ok(_) => db.checkpoints().hard().map(drop),
        Err(error) => Err(unreadable(db, error)),
    };
    let_go(db);
    closed
}

/// Makes the commits of this handle durable, and releases the turn, without reading the rest.
fn close_as_it_is(db: &Inner) -> Result<()> {
    let closed = db.checkpoints().harden();
    let_go(db);
    closed
}

/// Ends the turn; first marks it if a flush failed meanwhile.
pub(in crate::db) fn let_go(db: &Inner) {
    let is_failed = db.checkpoints().check_usable().is_err();
    if step!(FailedFlushNotTold, is_failed, else false) {
        let _ = db.checkpoints().tell();
    }
    db.segment.load().end_turn();
}

/// Returns true if no other handle has the file open for writing. Closes the files that keep it open.
fn is_alone(db: &Inner) -> io::Result<bool> {
    let file = db.file();
    file.storage.unlock(Lock::Head)?;
    Ok(file.storage.try_lock(Lock::Head, Hold::Exclusive)?
        && !segments::are_held(&*file.directory, &file.journal, file.segment)?)
}

/// Takes the turn, and loads the commits of the others. Nothing in exclusive mode.
pub(in crate::db) fn take_turn(db: &Inner, writing: &mut Writing) -> Result<()> {
    take_turn_by(db, writing, Segment::take_turn)
}

/// Does what [`take_turn`] does, where `take` waits for the turn.
pub(in crate::db) fn take_turn_by(
    db: &Inner,
    writing: &mut Writing,
    take: impl Fn(&Segment) -> Result<()>,
) -> Result<()> {
    let Some(sharing) = &db.sharing else { return Ok(()) };
    db.checkpoints().check_usable()?;
    sharing.check_schema()?;
    for _ in 0..TRIES {
        let segment = db.segment.load_full();
        take(&segment)?;
        match catch_up(db, writing, sharing) {
            Ok(true) => return Ok(()),
            caught_up => {
                segment.end_turn();
                caught_up?;
            }
        }
        next_segment::follow(db, writing, sharing)?;
    }
    let name = &db.file().name;
    let message = format!(
        "{name}: other processes continued it in another segment during each attempt; try again later"
    );
    Err(Error::new(ErrorKind::Busy, message))
}

/// Does what [`take_turn`] does in shared mode, but doesn't wait: returns true if it has the turn. It hasn't if
/// the journal continues elsewhere either, where it will look the next time.
pub(in crate::db) fn try_to_take_turn(db: &Inner, writing: &mut Writing) -> Result<bool> {
    let Some(sharing) = &db.sharing else { return Ok(true) };
    db.checkpoints().check_usable()?;
    sharing.check_schema()?;
    let segment = db.segment.load_full();
    if !segment.try_to_take_turn()? {
        return Ok(false);
    }
    let caught_up = catch_up(db, writing, sharing);
    if !matches!(caught_up, Ok(true)) {
        segment.end_turn();
        caught_up?;
        next_segment::follow(db, writing, sharing)?;
        return Ok(false);
    }
    Ok(true)
}

/// Ends the turn: publishes the end of the journal, and lets the next process write. Nothing in exclusive mode.
pub(in crate::db) fn end_turn(db: &Inner) {
    if db.sharing.is_none() {
        return;
    }
    let checkpoints = db.checkpoints();
    if checkpoints.check_usable().is_ok() {
        // If this fails, the next turn does it: nothing acknowledged depends on it.
        let _ = checkpoints.prefill();
        let _ = checkpoints.harden_lagging();
    }
    let _ = checkpoints.tell();
    db.segment.load().end_turn();
}

/// Loads the commits of the others; `false` if the journal continues elsewhere.
fn catch_up(db: &Inner, writing: &mut Writing, sharing: &Sharing) -> Result<bool> {
    if !is_linked(db)? {
        return Ok(false);
    }
    keep_path(db, writing, sharing)?;
    if step!(OthersNotLookedAt, is_up_to_date(db, writing)?, else true) {
        return Ok(true);
    }
    let ahead = look(db, read_head(db)?, writing)?;
    bring_in(db, writing, sharing, ahead.end, ahead.last_clock_time)?;
    if step!(SealIgnored, ahead.sealed.is_some(), else false) {
        finish_restart(db, sharing, &ahead)?;
        return Ok(false);
    }
    if ahead.is_told() && ahead.verdict() == Verdict::Whole {
        db.checkpoints().take_over(ahead.end, &ahead.head, ahead.len);
        // The live block names this process for an error of others that wait too long for the turn.
        return db.checkpoints().tell().map(|_| true);
    }
    recover(db, writing, sharing).map(|()| true)
}

/// Makes the path of a segment durable that another process made, before anything is committed there.
fn keep_path(db: &Inner, writing: &Writing, sharing: &Sharing) -> Result<()> {
    let segment = db.segment.load_full();
    if step!(RestartNotFlushed, segment.is_named.load(Ordering::Relaxed), else true) {
        return Ok(());
    }
    let ahead = look(db, read_head(db)?, writing)?;
    // The process that made an image of it had made the path durable.
    let newest = db.image().and_then(|image_state| image_state.peek());
    let is_imaged = newest.is_some_and(|root| root.segment == segment.file.segment);
    if ahead.is_empty() && !is_imaged {
        segments::keep_path(&*sharing.directory, &sharing.file, &ahead.head.header)
            .map_err(|error| unreadable(db, error))?;
    }
    segment.is_named.store(true, Ordering::Relaxed);
    Ok(())
}

/// Ends the restart of a process that was interrupted in it: the segment is sealed, and has the path.
fn finish_restart(db: &Inner, sharing: &Sharing, ahead: &Survey) -> Result<()> {
    let Some(seal) = &ahead.sealed else { return Ok(()) };
    let file = db.file();
    let by = Maker { clock: &**db.clock(), shared: true };
    let Sharing { directory, file: name, .. } = sharing;
    segments::finish(&**directory, name, &*file.storage, ahead, seal, by)
}

/// True if a few small reads show that no process wrote since this handle did.
fn is_up_to_date(db: &Inner, writing: &Writing) -> Result<bool> {
    let file = db.file();
    let storage = &*file.storage;
    let live = journal::live(storage).filter(|live| db.checkpoints().is_unchanged(live));
    let end = writing.writer.committed();
    let is_own =
        live.is_some_and(|live| live.soft == end && live.pid == annals_storage::process_id());
    let mut next = [0; FRAME_HEADER_LEN];
    let read = storage.read_at(end.position, &mut next).map_err(|error| unreadable(db, error))?;
    Ok(is_own && next.iter().take(read).all(|&byte| byte == 0))
}

/// Recovers the writes of an interrupted process. No other process writes meanwhile.
fn recover(db: &Inner, writing: &mut Writing, sharing: &Sharing) -> Result<()> {
    let Sharing { directory, file, recovery, .. } = sharing;
    let shown = directory.display(file);
    let looks_wrong = |survey: &Survey| survey.verdict() != Verdict::Whole;
    let own = db.file();
    let (storage, rule) = (Watched::new(&*own.storage, None), Rule::new(*recovery));
    let source = FrameSource { past: None, storage: &storage, shown: &shown };
    let (found, ()) = source.survey(rule, looks_wrong, || ())?;
    bring_in(db, writing, sharing, found.end, found.last_clock_time)?;
    let (storage, secret) = (&*own.storage, db.clock().secret());
    let settled = journal::settle_shared(storage, &**directory, file, &found, *recovery, secret)?;
    db.checkpoints().adopt_settled(found.end, &settled);
    db.checkpoints().tell()?;
    if settled.recovered.cut.is_some() {
        lock(&db.later_recoveries).push(settled.recovered);
        shared_image::set_aside_ahead(db, found.end);
    }
    Ok(())
}

/// Reads the frames after the last known commit.
fn look(db: &Inner, head: Head, writing: &Writing) -> Result<Survey> {
    let file = db.file();
    Survey::since(&*file.storage, &file.name, head, writing.writer.committed())
}

/// Replays the frames after the last known commit up to `end`, and shows them.
fn bring_in(
    db: &Inner,
    writing: &mut Writing,
    sharing: &Sharing,
    end: Point,
    last_clock_time: i64,
) -> Result<()> {
    if writing.writer.committed() == end {
        return Ok(());
    }
    let commands = writing.store.view().schema().commands().len();
    let (end, unapplied) = writing.follow(|state| {
        let unapplied = state.advance(end.position)?;
        Ok((state.point, unapplied))
    })?;
    let view = Arc::clone(writing.store.published());
    if db.has_fixed_schema() && view.schema().commands().len() != commands {
        return sharing.note_schema(true);
    }
    writing.writer.adopt(end, last_clock_time);
    db.group.show(view, end);
    match unapplied {
        None => Ok(()),
        Some(unapplied) => Err(db.stay_before(unapplied)),
    }
}

/// Locks belong to files, not to names: a file that isn't at its name any more must not be written.
fn is_linked(db: &Inner) -> Result<bool> {
    db.file().storage.is_linked().map_err(|error| unreadable(db, error))
}

fn read_head(db: &Inner) -> Result<Head> {
    let file = db.file();
    Head::read(&*file.storage, &file.name)
}

fn unreadable(db: &Inner, error: io::Error) -> Error {
    Error::io(format!("{}: can't read the journal", db.file().name), error)
}

/// Does what [`Database::pull`] does.
pub(in crate::db) fn pull(db: &Inner) -> Result<Snapshot> {
    if let Some(sharing) = &db.sharing {
        db.refuse_nesting()?;
        db.refuse_unapplied()?;
        let mut writing = db.writing.lock();
        sharing.check_schema()?;
        if let Some(image_state) = db.image() {
            reopening::reopen_to_write(db, image_state, &mut writing);
        }
        if !is_linked(db)? {
            next_segment::follow(db, &mut writing, sharing)?;
        }
        let (file, from) = (db.file(), writing.writer.committed());
        let ahead = Survey::since_now(&*file.storage, &file.name, from)?;
        bring_in(db, &mut writing, sharing, ahead.end, ahead.last_clock_time)?;
        db.checkpoints().adopt(ahead.end, &ahead.head, ahead.len);
        shared_image::follow_the_image(db, &mut writing);
    }
    Ok(db.read())
}
