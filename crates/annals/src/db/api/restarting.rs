//! Backfills that then continue the journal in a new segment.
//!
//! ```text
//! 1. bring the image forward to the end of the journal
//! 2. wait for the readers of older roots                 (their space can be used again then)
//! 3. restart the journal: the old segment is sealed      (with the state, if history is to be forgotten)
//! 4. bring the image forward into the new segment        (it needs nothing of the old ones then)
//! 5. remove the older segments, if that was said; give back the unused end of the image, or all that is free if
//!    that is most of it
//! ```
//!
//! Commits continue between the steps: they are replayed after the image like any other tail. Whatever fails leaves
//! the steps before it done, each of which is whole.

use crate::db::image::shared_image;
use crate::db::write::{compact, shared};
use std::ops::ControlFlow;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::db::follow::image_state::{ImageState, Working};
use crate::db::follow::report::{
    BackfillMode, BackfillOutcome, BackfillPhases, Backfilled, Restarting, Watching,
};
use crate::db::image::shared_image::{Claimed, Patience};
use crate::db::present::outcome::{Older, Restarted};
use crate::db::write::database::Database;
use crate::{BackfillProgress, Error, ErrorKind, Result};

/// The pause before the next check for readers.
const PAUSE: Duration = Duration::from_millis(5);

/// The lock of backfills, if there can be an image, and the other locks for changing the files.
pub(in crate::db) type ClaimedWholly<'d> = (Option<MutexGuard<'d, Working>>, Claimed<'d>);

/// Updates the image into the new segment, and removes files that aren't needed any more.
fn finish_restarting(
    db: &Database,
    mode: BackfillMode,
    how: Restarting,
    restarted: &mut Restarted,
    watch: Watching<'_>,
) -> Result<Backfilled> {
    if how.forget_history {
        let from = &db.inner().image_state()?.frames_from;
        from.fetch_max(restarted.segment, Ordering::Relaxed);
    }
    let done = db.backfill_watched(BackfillMode::Full, watch)?;
    if how.forget_history {
        let begun = db.inner().clock().elapsed();
        loop {
            (restarted.forgotten, restarted.pinned) = db.forget_before(restarted.segment)?;
            let is_late = db.inner().clock().elapsed().saturating_sub(begun) >= how.timeout;
            if restarted.pinned.is_none() || is_late {
                break;
            }
            db.inner().clock().pause(PAUSE);
        }
    }
    if mode != BackfillMode::Truncate {
        return Ok(done);
    }
    let image_bytes = shrink_image(db, how.timeout)?;
    Ok(Backfilled { image_bytes, ..done })
}

/// Waits until no reader pins a root of the image older than the newest.
fn wait_for_readers(db: &Database, image_state: &ImageState, timeout: Duration) -> Result<()> {
    db.inner().segment.load().file.images.last_past.forget();
    let begun = db.inner().clock().elapsed();
    loop {
        db.inner().segment.load().file.images.exposed.release();
        let working = db.inner().wait_for_backfill(image_state, timeout)?;
        let Some(oldest) = image_state.oldest_reader(&working) else { return Ok(()) };
        drop(working);
        if db.inner().clock().elapsed().saturating_sub(begun) >= timeout {
            let who = oldest.pid.map_or_else(
                || "a process".to_owned(),
                |pid| match pid {
                    pid if pid == annals_storage::process_id() => {
                        format!("this process (pid {pid})")
                    }
                    pid => format!("process {pid}"),
                },
            );
            let age = oldest.age.map(|age| format!(", replaced {age:.1?} ago"));
            return Err(Error::new(
                ErrorKind::Busy,
                format!(
                    "{}: {who} was reading an older root of the image, number {}{}, for all of \
                     {timeout:?}: let it read anew or end it, and try again; the image was brought \
                     forward",
                    db.inner().file().name,
                    oldest.root,
                    age.unwrap_or_default()
                ),
            ));
        }
        db.inner().clock().pause(PAUSE);
    }
}

/// Truncates the free end of the image; returns its length.
fn shrink_image(db: &Database, timeout: Duration) -> Result<u64> {
    let (working, (claim, writing)) = claim_wholly(db, timeout)?;
    let (Some(mut working), Some(image_state)) = (working, db.inner().image()) else {
        shared::end_turn(db.inner());
        return Ok(0);
    };
    // Commits continue.
    shared::end_turn(db.inner());
    drop(writing);
    let shrunk = compact::compact_image(db.inner(), image_state, &mut working, timeout);
    drop(claim);
    shrunk
}

/// Acquires the claim, the writer, the turn and the lock of `working`, in this order (see `db::write::core`). The
/// caller ends the turn.
pub(in crate::db) fn claim_wholly(db: &Database, timeout: Duration) -> Result<ClaimedWholly<'_>> {
    let wait = || {
        let core = db.inner();
        core.image().map(|image_state| core.wait_for_backfill(image_state, timeout)).transpose()
    };
    // First without the others, which need not wait for a backfill; then in the order of the locks.
    drop(wait()?);
    let Some(claimed) = shared_image::claim(db.inner(), Patience::AtMost(timeout))? else {
        return Err(Error::new(ErrorKind::Busy, format!("{}: try again", db.inner().file().name)));
    };
    let working = wait().inspect_err(|_| shared::end_turn(db.inner()))?;
    Ok((working, claimed))
}

/// Joins the reports of two consecutive backfills.
fn joined(first: Backfilled, second: Backfilled) -> Backfilled {
    let outcome = match first.outcome {
        BackfillOutcome::Advanced => BackfillOutcome::Advanced,
        _ => second.outcome,
    };
    let (a, b) = (first.phases, second.phases);
    Backfilled {
        outcome,
        journal_bytes: first.journal_bytes + second.journal_bytes,
        pages: first.pages + second.pages,
        from_memory: first.from_memory + second.from_memory,
        copied: first.copied + second.copied,
        nodes: first.nodes + second.nodes,
        bytes: first.bytes + second.bytes,
        runs: first.runs + second.runs,
        phases: BackfillPhases {
            wait: a.wait + b.wait,
            harden: a.harden + b.harden,
            collect: a.collect + b.collect,
            write: a.write + b.write,
            publish: a.publish + b.publish,
            install: a.install + b.install,
            free: a.free + b.free,
        },
        ..second
    }
}

/// Does what [`Database::backfill_with`] does.
pub(in crate::db) fn backfill_with(
    db: &Database,
    mode: BackfillMode,
    how: Restarting,
    watch: &mut dyn FnMut(BackfillProgress) -> ControlFlow<()>,
) -> Result<Backfilled> {
    if how.forget_history && mode != BackfillMode::Truncate {
        return Err(Error::invalid(format!(
            "history can't be forgotten in the mode {}: ask for {}",
            mode.name(),
            BackfillMode::Truncate.name()
        )));
    }
    if !mode.restarts() {
        return db.backfill_watched(mode, watch);
    }
    let first = db.backfill_watched(BackfillMode::Full, watch)?;
    let image_state = db.inner().image_state()?;
    wait_for_readers(db, image_state, how.timeout)?;
    let older = if how.forget_history { Older::NotNeeded } else { Older::Kept };
    let mut restarted = db.restart(older, how.timeout)?;
    let goes_on = format!("the journal goes on in segment {}", restarted.segment);
    let finished = finish_restarting(db, mode, how, &mut restarted, watch);
    let second = finished.map_err(|error| error.within(goes_on))?;
    Ok(Backfilled { mode, restarted: Some(restarted), ..joined(first, second) })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Options;
    use crate::storage::{Clock as _, MemoryDirectory, SystemClock};

    #[test]
    fn who_gives_up_on_the_image_lets_others_write() {
        let directory = Arc::new(MemoryDirectory::new());
        let options = Options::new().shared(true).background(false).lock_timeout(Duration::ZERO);
        let open =
            || options.open_in(Arc::clone(&directory) as _, "journal", Arc::new(SystemClock));
        let (one, other) = (open().unwrap(), open().unwrap());
        one.write(|tx| tx.comment("a")).unwrap();
        let (inner, image_state) = (one.inner(), one.inner().image().unwrap());
        // It has the claim, and is to have all else but the image.
        let writing = inner.writing.lock();
        let (restarted, working) = std::thread::scope(|scope| {
            let restart = scope.spawn(|| one.restart(Older::Kept, Duration::from_secs(1)));
            while !inner.segment.load().is_claimed_here() {
                SystemClock.pause(PAUSE);
            }
            let working = image_state.working.lock().unwrap();
            drop(writing);
            (restart.join().unwrap(), working)
        });
        assert_eq!(restarted.unwrap_err().kind(), ErrorKind::Busy);
        other.write(|tx| tx.comment("b")).unwrap();
        drop(working);
    }
}
