//! Backfills and images in shared mode, where any process may update the image.
//!
//! ```text
//! 1. take the claim, the lock of backfills that all processes and threads share
//! 2. take the turn; bring in what the others committed; make the journal hard; end the turn
//! 3. see whether the store grew from the newest root; else begin again from that root, and replay the rest
//! 4. as ever: write what changed since that root, publish
//! ```
//!
//! Opening only reads the image, since other processes may be writing it: damage is left to the holder of the claim.
//! Commits of other processes continue from step 3 on, those of this one's other threads from step 4 on.

use crate::db::image::{backfill, trigger};
use crate::db::write::reopening;
use crate::db::write::shared;
use std::ops::ControlFlow;
use std::sync::Arc;

use annals_storage::sync::MovableGuard;
use std::time::Duration;

use crate::db::follow::image_state::Working;
use crate::db::follow::reading::{WORTH_IT, is_worth_it};
use crate::db::follow::report::{BackfillMode, BackfillOutcome, Backfilled, Watching};
use crate::db::image::backfill::BackfillRun;
use crate::db::present::turns::{Claim, Turns};
use crate::db::write::core::Writing;
use crate::db::write::inner::Inner;
use crate::image::Root;
use crate::journal::{Point, lock};
use crate::storage::Access;
use crate::{ErrorKind, Result};

/// The pause before the next look at a claim that another thread has.
const PAUSE: Duration = Duration::from_millis(1);

/// How long to wait for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::db) enum Patience {
    /// Not at all.
    None,
    /// For a transaction of this handle as long as that takes, for other processes as the options say.
    AsEver,
    /// So long for each of them.
    AtMost(Duration),
}

/// The claim, if others may hold it, and the writer in its turn.
pub(in crate::db) type Claimed<'db> = (Option<Claim>, MovableGuard<'db, Writing>);

/// Updates an image that other processes may be updating, too.
pub(in crate::db) fn backfill_shared(
    db: &Inner,
    mode: BackfillMode,
    watch: Watching<'_>,
) -> Result<Backfilled> {
    let image_state = db.image_state()?;
    let mut run = BackfillRun::begin(image_state, mode);
    // First without the others, which need not wait for a backfill; then in the order of the locks.
    drop(lock(&image_state.working));
    let patience = match mode {
        BackfillMode::Passive => Patience::None,
        _ => Patience::AsEver,
    };
    let Some((claim, writing)) = claim(db, patience)? else {
        return Ok(run.report(BackfillOutcome::Postponed, &lock(&image_state.working)));
    };
    let mut working = lock(&image_state.working);
    db.forget_image_error();
    run.phases.wait = run.lap();
    let hardened = db.group.settle().and_then(|()| db.checkpoints().hard());
    shared::end_turn(db);
    hardened?;
    run.phases.harden = run.lap();
    let done = advance_shared(db, &mut run, &mut working, writing, watch);
    // Before `working`: who waited for that finds the claim free.
    drop(claim);
    done
}

/// Acquires the claim, then the writer and the turn; returns nothing if one of them is held and it
/// may not wait. The first belongs to the current segment: a restart of the journal holds it, too.
pub(in crate::db) fn claim(db: &Inner, patience: Patience) -> Result<Option<Claimed<'_>>> {
    loop {
        let segment = db.segment.load_full();
        let timeout = match patience {
            Patience::None => None,
            Patience::AsEver => segment.turns.as_ref().map(Turns::timeout),
            Patience::AtMost(timeout) => Some(timeout),
        };
        let claim = match segment.claim_image(timeout) {
            // A thread that has it may wait for a transaction, as long as that takes.
            Err(error)
                if error.kind() == ErrorKind::Busy
                    && patience == Patience::AsEver
                    && segment.is_claimed_here() =>
            {
                db.clock().pause(PAUSE);
                continue;
            }
            claim => claim?,
        };
        let Some(claim) = claim else { return Ok(None) };
        let Some(mut writing) = writer(db, patience)? else { return Ok(None) };
        match patience {
            Patience::None if !shared::try_to_take_turn(db, &mut writing)? => return Ok(None),
            Patience::None => {}
            Patience::AsEver => shared::take_turn(db, &mut writing)?,
            Patience::AtMost(timeout) => {
                shared::take_turn_by(db, &mut writing, |now| now.take_turn_within(timeout))?;
            }
        }
        if Arc::ptr_eq(&segment, &db.segment.load()) {
            return Ok(Some((claim, writing)));
        }
        // The journal continued in another one meanwhile.
        shared::end_turn(db);
    }
}

/// As the last handle of the journal, in its turn, updates the image if replaying the tail would make the next
/// opening noticeably longer.
pub(in crate::db) fn backfill_as_the_last(
    db: &Inner,
    writing: MovableGuard<'_, Writing>,
) -> Result<()> {
    let Some(image_state) = db.image() else { return Ok(()) };
    let segment = db.segment.load_full();
    let Some(_claim) = segment.claim_image(None)? else { return Ok(()) };
    let mut working = lock(&image_state.working);
    let reach = |root: Root| segment.file.reach_of(root.segment, root.point.position);
    let newest = image_state.peek().map_or(0, reach);
    if !trigger::is_backfill_worth_it_at_close(db, newest) {
        return Ok(());
    }
    db.checkpoints().hard()?;
    let watch: Watching<'_> = &mut |_| ControlFlow::Continue(());
    let mut run = BackfillRun::begin(image_state, BackfillMode::Passive);
    advance_shared(db, &mut run, &mut working, writing, watch)?;
    // Another process that opens the journal meanwhile waits for the turn.
    image_state.shrink(&working, false)
}

/// Writes a new root. The journal is hard up to the end of the store, in which nothing is pending.
fn advance_shared(
    db: &Inner,
    run: &mut BackfillRun<'_>,
    working: &mut Working,
    mut writing: MovableGuard<'_, Writing>,
    watch: Watching<'_>,
) -> Result<Backfilled> {
    let image_state = run.image_state;
    db.install_now(image_state, &mut writing);
    let image = working.image.as_ref().filter(|_| working.root.is_some());
    let is_newest = image.map_or(Ok(false), |(image, _)| image.is_writable_newest())?;
    if !is_newest || !working.is_sound()? {
        reopening::restart_from_root(db, image_state, working, &mut writing, Access::Write)?;
    }
    let published = db.group.published();
    drop(writing);
    if working.stands_for(&published) {
        return Ok(run.report(BackfillOutcome::UpToDate, working));
    }
    let before = image_state.damage().count();
    let done = backfill::carry_out(db, run, working, published, watch);
    // The next one starts again, without the damaged pages.
    done.inspect_err(|error| working.note_damage(error, image_state.damage().count() > before))
}

/// Starts again from the newest root if the image has been updated far enough, so that this handle doesn't pin
/// the space of older roots. A failure is ignored: the store stays unchanged.
pub(in crate::db) fn follow_the_image(db: &Inner, writing: &mut Writing) {
    let Some(image_state) = db.image() else { return };
    let Ok(mut working) = image_state.working.try_lock() else { return };
    let (file, from) = (Arc::clone(&writing.file), working.reached);
    let end = file.reach(writing.writer.committed().position);
    if end.saturating_sub(from) < WORTH_IT {
        return;
    }
    let newest = image_state.peek().filter(|root| root.segment == file.segment);
    let newest = newest.map_or(0, |root| file.reach(root.point.position));
    if is_worth_it(from, newest, end) {
        let _ = reopening::restart_from_root(db, image_state, &mut working, writing, Access::Read);
    }
}

/// Makes sure that no process finds an image ahead of the journal after commits were taken back.
pub(in crate::db) fn set_aside_ahead(db: &Inner, end: Point) {
    let Some(image_state) = db.image() else { return };
    let segment = db.segment.load_full();
    let is_ahead =
        |root: Root| root.segment == segment.file.segment && root.point.position > end.position;
    // The process that holds the lock now, or opens the image, detects this itself.
    let Ok(_working) = image_state.working.try_lock() else { return };
    if !image_state.peek().is_some_and(is_ahead) {
        return;
    }
    if let Ok(Some(_claim)) = segment.claim_image(None) {
        let _ = image_state.set_aside("commits that it has were taken back");
    }
}

/// Returns the writer's side; nothing if a transaction has it and this has no patience.
fn writer(db: &Inner, patience: Patience) -> Result<Option<MovableGuard<'_, Writing>>> {
    match patience {
        Patience::None => Ok(db.writing.try_lock()),
        Patience::AsEver => Ok(Some(db.writing.lock())),
        Patience::AtMost(timeout) => db.writer_within(timeout).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{Clock as _, MemoryDirectory, SystemClock};
    use crate::{Database, Options};

    /// One thread has the claim and waits for the transaction, the other waits for the claim: neither gives up.
    #[test]
    fn threads_that_backfill_wait_for_the_transaction_of_a_third() {
        let options = Options::new().shared(true).background(false).lock_timeout(Duration::ZERO);
        let directory = Arc::new(MemoryDirectory::new());
        let db = options.open_in(directory, "journal", Arc::new(SystemClock)).unwrap();
        let mut tx = db.begin().unwrap();
        tx.comment("a").unwrap();
        let backfill = |db: Database| move || db.backfill(BackfillMode::Full).unwrap().outcome;
        let threads = [(); 2].map(|()| std::thread::spawn(backfill(db.clone())));
        while !db.inner().segment.load().is_claimed_here() {
            SystemClock.pause(PAUSE);
        }
        SystemClock.pause(20 * PAUSE);
        let _ = tx.commit().unwrap();
        let mut outcomes = threads.map(|thread| thread.join().unwrap());
        outcomes.sort_by_key(|outcome| *outcome == BackfillOutcome::UpToDate);
        assert_eq!(outcomes, [BackfillOutcome::Advanced, BackfillOutcome::UpToDate]);
    }
}
