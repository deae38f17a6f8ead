//! Rebuilding the state in the background, after damage of image pages under the store.
//!
//! ```text
//! a page is lost ─► choose the newest root of which all verifies ─► replay the journal from there
//!                        └► none is left: the image is set aside, and all of the journal replayed
//!        ─► replay what was committed meanwhile, until little is left ─► with the writer's lock: the rest,
//!           and the store continues from there ─► the next root goes into the slot of the dropped one
//! ```
//!
//! Invariants
//! 1. At most one thread of a handle rebuilds. Reads and commits continue meanwhile.
//! 2. The writer's lock is held for the last stretch only: at most [`LAST_STRETCH`] bytes of the journal, unless
//!    commits outrun the replay.
//! 3. No backfill runs during a rebuild: it would publish references to damaged pages.

use crate::db::engine::backfill;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use annals_storage::sync::try_lock;

use crate::db::engine::core::{Core, Writing};
use crate::db::engine::rescued::not_rebuilt;
use crate::db::image::image_state::{ImageState, Working};
use crate::db::image::opening::Looking;
use crate::db::image::rebuilding::{NotRebuilt, Ready};
use crate::db::image::report::BackfillMode;
use crate::db::progress::{Watch, Watched};
use crate::db::replay::forward::{Caught, replay_between};
use crate::journal::lock;
use crate::storage::{Access, Clock as _, SystemClock};
use crate::trace::event;
use crate::{Error, ErrorKind, Result};

/// How many bytes of the journal are replayed with the writer's lock.
const LAST_STRETCH: u64 = 64 << 10;
/// The interval of polling: by the system's clock, as it is for a thread.
const PAUSE: Duration = Duration::from_millis(1);
/// How often a rebuild begins again because the image or the journal continued in another file.
const TRIES: usize = 100;

/// Begins to rebuild the state in the background, unless that is under way.
pub(in crate::db) fn start_rebuild(core: &Core) {
    let Some(rebuilding) = core.image().map(ImageState::rebuilding) else { return };
    if rebuilding.origin.is_elsewhere() || rebuilding.is_stopping.load(Ordering::Acquire) {
        return;
    }
    let mut state = lock(&rebuilding.state);
    if state.is_running {
        return;
    }
    event!(WARN, "a page of the image is lost: the state is rebuilt without it");
    let before = state.thread.take();
    state.failure = None;
    let known = core.image().map_or(0, |image_state| image_state.damage().count());
    rebuilding.seen.store(known, Ordering::Relaxed);
    let core = core.rescuer().upgrade().and_then(|rescuer| rescuer.core());
    let run = move || {
        if let Some(before) = before {
            let _ = before.join(); // it has ended but for its last steps
        }
        if let Some(core) = core {
            run_rebuild(&core);
        }
    };
    match std::thread::Builder::new().name("annals-rebuild".to_owned()).spawn(run) {
        Ok(thread) => (state.is_running, state.thread) = (true, Some(thread)),
        Err(error) => {
            let error = Error::io("no thread can be started", error);
            state.failure = Some(error);
        }
    }
}

fn run_rebuild(core: &Core) {
    let Some(image_state) = core.image() else { return };
    let rebuilding = image_state.rebuilding();
    let done = (0..TRIES).map(|_| rebuild(core, image_state)).find(|done| {
        !matches!(done, Err(NotRebuilt::Moved)) || rebuilding.check_going_on().is_err()
    });
    rebuilding.put(&mut lock(&rebuilding.ready), None);
    let mut state = lock(&rebuilding.state);
    state.is_running = false;
    let is_done = matches!(done, Some(Ok(())));
    state.failure = match done {
        Some(Ok(()) | Err(NotRebuilt::NotNeeded)) => None,
        Some(Err(NotRebuilt::Failed(error))) => Some(error),
        Some(Err(NotRebuilt::Moved)) | None => {
            Some(Error::new(ErrorKind::PageLost, "the image or the journal moves on"))
        }
    };
    let failure = state.failure.as_ref().map(ToString::to_string);
    drop(state);
    if let Some(failure) = failure.filter(|_| rebuilding.check_going_on().is_ok()) {
        image_state.damage().report(format!("the state couldn't be rebuilt: {failure}"));
    }
    if is_done && core.works_in_background {
        // So that the dropped root is replaced. A failure is retried by the next one.
        let stop = || rebuilding.check_going_on().is_err();
        let go_on = |()| if stop() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        let _ = backfill::backfill_watched(core, BackfillMode::Passive, &mut |_| go_on(()));
    }
}

/// Begins to rebuild the state if more damage of the image was found since the last time. Also lets the store
/// continue from a rebuilt state, before a transaction changes it. Two loads, if nothing is to be done.
#[inline]
pub(in crate::db) fn see_to_damage(core: &Core, image_state: &ImageState, writing: &mut Writing) {
    let rebuilding = image_state.rebuilding();
    if image_state.damage().count() != rebuilding.seen.load(Ordering::Relaxed) {
        start_rebuild(core);
    }
    if rebuilding.is_ready() {
        finish_rebuild(core, writing);
    }
}

/// Waits until the store can continue from a rebuilt state, and lets it, for a transaction that has met a lost
/// page; not if it `has_changed` something.
///
/// # Errors
/// The transaction must be run again.
#[cold]
pub(in crate::db) fn recover_from_lost_page(
    core: &Core,
    writing: &mut Writing,
    has_changed: bool,
    error: Error,
) -> Result<()> {
    let Some(rebuilding) = core.image().map(ImageState::rebuilding) else { return Err(error) };
    let deadline = SystemClock.elapsed().saturating_add(core.rebuild_timeout);
    start_rebuild(core);
    while wait_for_rebuild(core, deadline) && rebuilding.is_ready() && !has_changed {
        if finish_rebuild(core, writing) {
            return Ok(());
        }
        SystemClock.pause(PAUSE);
    }
    let failure = lock(&rebuilding.state).failure.take();
    Err(match failure {
        Some(failure) => not_rebuilt(error, failure),
        None => error,
    })
}

/// Waits until no rebuild is running that has not yet a state to continue from; until `deadline` at most, by the
/// clock. Returns true if none is.
pub(in crate::db) fn wait_for_rebuild(core: &Core, deadline: Duration) -> bool {
    let Some(rebuilding) = core.image().map(ImageState::rebuilding) else { return true };
    while rebuilding.is_running() && !rebuilding.is_ready() {
        if SystemClock.elapsed() >= deadline {
            return false;
        }
        SystemClock.pause(PAUSE);
    }
    true
}

/// Rebuilds the state, and lets the store continue from it.
fn rebuild(core: &Core, image_state: &ImageState) -> Result<(), NotRebuilt> {
    let rebuilding = image_state.rebuilding();
    let ready = rebuilt(core, image_state)?;
    rebuilding.put(&mut lock(&rebuilding.ready), Some(ready));
    loop {
        rebuilding.check_going_on()?;
        let mut ready = lock(&rebuilding.ready);
        let Some(state) = ready.as_mut() else { return Ok(()) }; // a transaction has taken it
        if let Err(error) = catch_up(core, state) {
            rebuilding.put(&mut ready, None);
            return Err(error);
        }
        if let Some(mut writing) = core.writing.try_lock()
            && let Some(mut working) = try_lock(&image_state.working)
            && let Some(state) = ready.take()
        {
            rebuilding.is_ready.store(false, Ordering::Release);
            return install_rebuilt(core, image_state, state, &mut writing, &mut working);
        }
        drop(ready);
        SystemClock.pause(PAUSE);
    }
}

/// Lets the store continue from a rebuilt state, in a transaction that has changed nothing yet. Returns true if
/// it does.
#[cold]
fn finish_rebuild(core: &Core, writing: &mut Writing) -> bool {
    let Some(image_state) = core.image() else { return false };
    let rebuilding = image_state.rebuilding();
    let Some(mut working) = try_lock(&image_state.working) else { return false };
    let mut ready = lock(&rebuilding.ready);
    let Some(state) = ready.take() else { return false };
    rebuilding.is_ready.store(false, Ordering::Release);
    install_rebuilt(core, image_state, state, writing, &mut working).is_ok()
}

/// Chooses a root, and replays the journal from there to the published state.
fn rebuilt(core: &Core, image_state: &ImageState) -> Result<Ready, NotRebuilt> {
    let rebuilding = image_state.rebuilding();
    let stopping = Arc::clone(&rebuilding.is_stopping);
    let watch = Watch(Arc::new(move |_| match stopping.load(Ordering::Acquire) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }));
    let published = core.group.published();
    let (file, to) = (Arc::clone(&published.file), published.point.position);
    drop(published);
    let watched = Watched::new(&*file.storage, Some(&watch));
    let access = if core.works_alone { Access::Write } else { Access::Read };
    let looking = Looking {
        access,
        clock: Arc::clone(image_state.clock()),
        spills: image_state.spills(),
        key_frames: image_state.key_frames,
        damage: Some(image_state.damage()),
        is_whole: true,
        ..Looking::to_read(image_state.directory(), &file.journal, &watched, image_state.budget())
    };
    loop {
        rebuilding.check_going_on()?;
        let working = lock(&image_state.working);
        let found = looking.find()?;
        let is_same = found.begun.as_ref().map(|begun| begun.root) == working.root;
        let is_needed = !is_same || working.spill.is_some() || working.root.is_none();
        drop(working);
        if !is_needed {
            return Err(NotRebuilt::NotNeeded);
        }
        for note in &found.notes {
            image_state.damage().report(note.clone());
        }
        let (replayed, fresh) = match &found.begun {
            Some(begun) => (looking.replay_to(begun, to), None),
            None => {
                let fresh = looking.image_state(&found).filter(|_| image_state.spills());
                (looking.replay_all_over(to, fresh.as_ref()), fresh)
            }
        };
        match replayed {
            Err(error) if error.kind() == ErrorKind::PageLost => {}
            Err(error) => return Err(watched.explain(error, &file.name).into()),
            Ok((replay, point)) => {
                let store = replay.finish().0;
                return Ok(Ready { found, fresh, store, point, file });
            }
        }
    }
}

/// Replays the commits made meanwhile, until little is left.
fn catch_up(core: &Core, ready: &mut Ready) -> Result<(), NotRebuilt> {
    loop {
        let published = core.group.published();
        if published.file.segment != ready.file.segment {
            return Err(NotRebuilt::Moved);
        }
        let end = published.point.position;
        if end.saturating_sub(ready.point.position) <= LAST_STRETCH {
            return Ok(());
        }
        ready.go_to(end)?;
    }
}

/// Lets the store, without an open change, continue from the rebuilt state.
fn install_rebuilt(
    core: &Core,
    image_state: &ImageState,
    mut ready: Ready,
    writing: &mut Writing,
    working: &mut Working,
) -> Result<(), NotRebuilt> {
    let end = writing.writer.committed();
    if writing.file.segment != ready.file.segment || !ready.is_newest()? {
        return Err(NotRebuilt::Moved);
    }
    ready.go_to(end.position)?;
    if ready.point != end {
        return Err(Error::corrupt("the journal continues with another history from there").into());
    }
    writing.store = ready.store;
    image_state.restart_from_root(working, &ready.found, &writing.file);
    if let Some(fresh) = ready.fresh {
        *working = std::mem::take(&mut *lock(&fresh.working));
        // Views published from now on refer to the spilled pages.
        working.spill.iter().for_each(|spill| spill.draft.show());
        image_state.note_status(working);
    }
    core.group.replace(writing.store.republish());
    Ok(())
}

impl Ready {
    fn go_to(&mut self, end: u64) -> Result<()> {
        if end <= self.point.position {
            return Ok(());
        }
        let store = std::mem::take(&mut self.store);
        let (store, replayed) = replay_between(&self.file, store, self.point, end);
        self.store = store;
        let Caught { point, unapplied, .. } = replayed?;
        self.point = point;
        unapplied.map_or(Ok(()), |unapplied| Err(unapplied.error(&self.file.name)))
    }

    /// Returns true if no root was published since it was chosen.
    fn is_newest(&self) -> Result<bool> {
        self.found.begun.as_ref().map_or(Ok(true), |begun| begun.image.is_newest())
    }
}
