//! The backfill: updates the image to a commit.
//!
//! ```text
//! 1. take the lock of backfills                     (rule 1: before the bound is sampled)
//! 2. full: when no transaction is open
//! 3. sample the bound: what is published
//! 4. make the journal hard up to it                 (rule 2: before the first page is written)
//! 5. extend the history index                       (in memory: a problem of it is noted, and the old one stays)
//! 6. write what changed to free space               (rule 5: from the snapshot itself, which can't change)
//! 7. publish: first copy, flush, second copy        (rules 3 and 7: the writes have completed)
//! 8. let the store continue from the new root       (only now: a failure before this changes nothing)
//! ```
//!
//! The rules are those of `docs/crash.md`, "The rules of a backfill".
//! A failure is an error of the backfill and of nothing else (rule 8): no commit, no reader and no later backfill
//! depends on it. Only a failed flush disables the image for this handle.

use crate::db::past::index_history;
use crate::db::write::reopening;
use annals_schema::Txid;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use annals_storage::step;
use annals_storage::sync::try_lock;

use crate::Result;
use crate::db::follow::drafting::{Counts, Drafting, write_all};
use crate::db::follow::image_state::{ImageState, Working, cannot_look};
use crate::db::follow::report::{
    BackfillMode, BackfillOutcome, BackfillPhases, Backfilled, Watching,
};
use crate::db::follow::spill::{Spill, saved_before};
#[cfg(feature = "testing")]
use crate::db::image::backfill_check;
use crate::db::present::segment::JournalFile;
use crate::db::present::snapshot::Published;
use crate::db::write::core::{Core, Writing};
use crate::image::{Catalog, NewRoot, Root, RootPin, Stored};
use crate::journal::lock;
use crate::journal::segments::kept_name;
use crate::storage::Access;
use crate::store::{Keep as _, Piece};
use crate::trace::{event, span};

/// A backfill that wrote this many bytes replaced so much memory that freeing it takes a while.
const FREED_SLOWLY: u64 = 16 << 20;

/// How long, then, a backfill waits for a store to continue from the new root, to free that itself.
const MOMENT: Duration = Duration::from_millis(20);

/// The number of retries of a backfill that finds damage: there are at most this many roots.
const MOST_ROOTS: usize = 8;

/// How long it waits between two looks.
const PAUSE: Duration = Duration::from_micros(500);

/// A backfill under way: its image and mode, and how long its steps took.
pub(in crate::db) struct BackfillRun<'i> {
    pub(in crate::db) image_state: &'i ImageState,
    mode: BackfillMode,
    pub(in crate::db) phases: BackfillPhases,
    /// The end of the last step.
    last: Duration,
}

impl<'i> BackfillRun<'i> {
    pub(in crate::db) fn begin(image_state: &'i ImageState, mode: BackfillMode) -> Self {
        Self {
            image_state,
            mode,
            phases: BackfillPhases::default(),
            last: image_state.clock().elapsed(),
        }
    }

    /// Returns the time since the last step.
    pub(in crate::db) fn lap(&mut self) -> Duration {
        let now = self.image_state.clock().elapsed();
        std::mem::replace(&mut self.last, now).abs_diff(now)
    }

    /// Returns the report of a backfill that wrote nothing.
    pub(in crate::db) fn report(&self, outcome: BackfillOutcome, working: &Working) -> Backfilled {
        let point = working.root.map(|root| root.point);
        let len = working.image.as_ref().and_then(|(image, _)| image.len().ok());
        Backfilled {
            mode: self.mode,
            outcome,
            txid: point.map_or(Txid(0), |point| point.txid),
            segment: working.root.map_or(0, |root| root.segment),
            position: point.map_or(0, |point| point.position),
            journal_bytes: 0,
            pages: 0,
            from_memory: 0,
            copied: 0,
            nodes: 0,
            bytes: 0,
            runs: 0,
            image_bytes: len.unwrap_or(0),
            oldest_reader: self.image_state.oldest_reader(working),
            restarted: None,
            phases: self.phases,
        }
    }
}

/// Updates the image.
pub(in crate::db) fn backfill(core: &Core, mode: BackfillMode) -> Result<Backfilled> {
    backfill_watched(core, mode, &mut |_| ControlFlow::Continue(()))
}

/// Updates the image, and reports the progress after each batch.
pub(in crate::db) fn backfill_watched(
    core: &Core,
    mode: BackfillMode,
    watch: Watching<'_>,
) -> Result<Backfilled> {
    span!(INFO, "backfill", file = core.file().name.as_str(), mode = mode.name());
    let done = backfill_until_sound(core, mode, watch);
    match &done {
        Ok(done) => {
            let is_postponed = done.outcome == BackfillOutcome::Postponed;
            let (txid, pages) = (done.txid.0, done.pages);
            event!(INFO, "backfilled", txid = txid, pages = pages, is_postponed = is_postponed);
        }
        Err(error) => {
            event!(
                WARN,
                "the backfill failed; nothing is lost",
                kind = format!("{:?}", error.kind())
            );
        }
    }
    done
}

/// Backfills, again from another root each time that one turns out to be damaged.
fn backfill_until_sound(
    core: &Core,
    mode: BackfillMode,
    watch: Watching<'_>,
) -> Result<Backfilled> {
    let image_state = core.image_state()?;
    let mut run = BackfillRun::begin(image_state, mode);
    let mut tries = 0;
    loop {
        run.phases = BackfillPhases::default();
        let mut working = match mode {
            BackfillMode::Passive => lock(&image_state.working),
            _ => wait_for_writer(core, image_state)?,
        };
        let before = image_state.damage().count();
        let done = backfill_once(core, &mut run, &mut working, &mut *watch);
        let Err(error) = done else { return done };
        working.note_damage(&error, image_state.damage().count() > before);
        drop(working);
        tries += 1;
        if image_state.damage().count() == before || tries > MOST_ROOTS {
            return Err(error);
        }
    }
}

fn backfill_once(
    core: &Core,
    run: &mut BackfillRun<'_>,
    working: &mut Working,
    watch: Watching<'_>,
) -> Result<Backfilled> {
    let image_state = run.image_state;
    run.phases.wait = run.lap();
    if !reopening::keep_usable_or_postpone(core, image_state, working)? {
        return Ok(run.report(BackfillOutcome::Postponed, working));
    }
    let Some(published) = sample(core, image_state, working)? else {
        return Ok(run.report(BackfillOutcome::Postponed, working));
    };
    if working.stands_for(&published) && !index_history::is_damaged(core) {
        return Ok(run.report(BackfillOutcome::UpToDate, working));
    }
    step!(ImageBeforeJournal, core.checkpoints().harden()?);
    run.phases.harden = run.lap();
    carry_out(core, run, working, published, watch)
}

/// Writes the published view, up to which the journal is hard, and which lies over the newest root.
pub(in crate::db) fn carry_out(
    core: &Core,
    run: &mut BackfillRun<'_>,
    working: &mut Working,
    published: Arc<Published>,
    watch: Watching<'_>,
) -> Result<Backfilled> {
    let image_state = run.image_state;
    let mut watched = |progress| image_state.watched(|| watch(progress));
    let spill = working.spill.take();
    let retiring = image_state.retire();
    let written = advance(core, run, working, &published, spill.as_ref(), &mut watched);
    let (counts, before) = match written {
        Ok(written) => written,
        Err(error) => {
            working.spill = spill;
            working.drop_new();
            step!(FailedBackfillPoisons, else core.checkpoints().poison("a backfill failed"));
            return Err(error.within("the image wasn't brought forward; nothing is lost"));
        }
    };
    #[cfg(feature = "testing")]
    backfill_check::compare(working, &published.view);
    published.file.images.last_past.forget();
    let begun = image_state.clock().elapsed();
    run.phases.install = install_soon(core, image_state, counts.bytes);
    drop((published, retiring)); // no reader of the root before
    run.phases.free = image_state.clock().elapsed().saturating_sub(begun + run.phases.install);
    Ok(Backfilled {
        journal_bytes: working.reached.saturating_sub(before),
        pages: counts.pages + counts.from_memory,
        from_memory: counts.from_memory,
        copied: counts.pages,
        nodes: counts.nodes,
        bytes: counts.bytes,
        runs: counts.runs,
        ..run.report(BackfillOutcome::Advanced, working)
    })
}

/// Writes a new root of the image; returns the written amounts, and the end of the previous root.
fn advance(
    core: &Core,
    run: &mut BackfillRun<'_>,
    working: &mut Working,
    published: &Published,
    spill: Option<&Spill>,
    watch: Watching<'_>,
) -> Result<(Counts, u64)> {
    let image_state = run.image_state;
    let clock = image_state.clock();
    let begun = clock.elapsed();
    let time = clock.now();
    let (image, pager) = image_state.image(working)?;
    image_state.choose_what_stays(&pager, working.root, spill, &published.view);
    let mut draft = match spill {
        Some(spill) => spill.draft.take_up(),
        None => image.space(working.pinned(&image)?)?,
    };
    let number = draft.number();
    let pin = match image.pin(number, &**clock) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => RootPin::here(number),
        pin => pin.map_err(|error| cannot_look(&image, error))?,
    };
    let mut drafting = Drafting::new(&mut draft, &image, published.point.txid.0, &**clock, watch);
    drafting.tell()?;
    let history = index_history::newest(core, published);
    let mut saved = published.view.save_with(&history, &pager, &mut drafting)?;
    let metadata = metadata(core, &saved.metadata);
    let catalog = Catalog { arrays: saved.arrays(), metadata }.encode();
    drafting.leave_dropped(&saved_before(&image, working.root, spill), &saved);
    if let Some(root) = working.root {
        drafting.leave(root.catalog);
    }
    let frames = key_frames(image_state, published, &mut drafting)?;
    let catalog = drafting.store(Piece::Node(catalog))?;
    let written = step!(PublishedBeforeWritten, drafting.write(), else Ok(()));
    let (counts, late) = drafting.end();
    run.phases.write = counts.took;
    run.phases.collect = clock.elapsed().saturating_sub(begun).saturating_sub(counts.took);
    let begun = clock.elapsed();
    let (segment, point) = (published.file.segment, published.point);
    let new = NewRoot { segment, point, time, catalog, frames };
    let root = written.and_then(|()| draft.publish(&new));
    if let Ok(root) = &root {
        let keeps = root.memory() <= image_state.budget();
        if pager.keeps() && !keeps {
            saved.unload();
        }
        pager.set_keeps(keeps);
    }
    if step!(InstalledBeforePublished, root.is_ok(), else true) {
        saved.pin = Some(working.pins.add(pin, clock.elapsed()));
        image_state.note_saved(saved, number);
    }
    let root = root?;
    step!(PublishedBeforeWritten, else write_all(&image, &late)?);
    let counts = spill.map_or(counts, |spill| spill.written.and(counts));
    run.phases.publish = clock.elapsed().saturating_sub(begun);
    working.root = Some(root);
    let before = std::mem::replace(&mut working.reached, published.file.reach(point.position));
    image_state.note_status(working);
    Ok((counts, before))
}

/// Chooses the key frames that the new root lists, and stores the list. A root of forgotten history isn't kept.
fn key_frames(
    image_state: &ImageState,
    published: &Published,
    drafting: &mut Drafting<'_, '_>,
) -> Result<Option<Stored>> {
    let JournalFile { directory, journal, segment, .. } = &*published.file;
    let known = RefCell::new(BTreeMap::from_iter([(*segment, true)]));
    let from = image_state.frames_from.load(Ordering::Relaxed);
    let are_read = |root: &Root| {
        if root.segment < from {
            return false;
        }
        let is_there = || directory.open(&kept_name(journal, root.segment), Access::Read).is_ok();
        *known.borrow_mut().entry(root.segment).or_insert_with(is_there)
    };
    let next = (*segment, published.point.position);
    drafting.frames(image_state.key_frames, next, &are_read)
}

/// Returns the metadata of a catalog: the time of the last commit by the clock, then the store's.
fn metadata(core: &Core, of_store: &[u8]) -> Vec<u8> {
    let last = core.checkpoints().last_clock_time.load(Ordering::Relaxed);
    [&last.to_le_bytes()[..], of_store].concat()
}

/// Acquires the backfill lock when no transaction is open and all written commits are acknowledged.
///
/// A transaction that spills waits for that lock while it is open: so a thread that waits for a transaction must
/// not hold it.
fn wait_for_writer<'i>(
    core: &Core,
    image_state: &'i ImageState,
) -> Result<MutexGuard<'i, Working>> {
    loop {
        let mut writing = core.writing.lock();
        let Some(mut working) = try_lock(&image_state.working) else {
            drop(writing);
            drop(lock(&image_state.working));
            continue;
        };
        core.group.settle()?;
        reopening::keep_usable(core, image_state, &mut working, &mut writing)?;
        core.install_now(image_state, &mut writing);
        return Ok(working);
    }
}

/// Returns the published view, if it lies over the newest root, and over later spilled pages: only the difference
/// to that is written.
fn sample(
    core: &Core,
    image_state: &ImageState,
    working: &Working,
) -> Result<Option<Arc<Published>>> {
    let mut published = core.group.published();
    if published.view.root() != image_state.newest() {
        try_to_install(core, image_state);
        published = core.group.published();
    }
    if let Some(spill) = &working.spill {
        let Some(txid) = spill.due() else { return Ok(None) };
        if published.point.txid < Txid(txid) {
            // The flush that it waits for is next, or is running.
            core.group.settle()?;
            published = core.group.published();
        }
        if published.point.txid < Txid(txid) {
            return Ok(None);
        }
    }
    let is_newest = published.view.root() == image_state.newest();
    Ok(step!(OutdatedBoundTaken, is_newest, else true).then_some(published))
}

/// Lets the store continue from the newest root, as [`try_to_install`]. After many written bytes it waits a
/// moment for a transaction that would have to do it: the replaced memory is best freed here, where no thread
/// waits. Returns how long it held the writer's lock.
fn install_soon(core: &Core, image_state: &ImageState, bytes: u64) -> Duration {
    let begun = image_state.clock().elapsed();
    loop {
        let tried = image_state.clock().elapsed();
        try_to_install(core, image_state);
        let took = image_state.clock().elapsed().saturating_sub(tried);
        let is_over = core.group.published().view.root() == image_state.newest();
        let is_late = image_state.clock().elapsed().saturating_sub(begun) >= MOMENT;
        if is_over || is_late || bytes < FREED_SLOWLY {
            return took;
        }
        image_state.clock().pause(PAUSE);
    }
}

/// Lets the store continue from the newest root, if no transaction is open; otherwise the next transaction does that
/// when it begins or commits.
fn try_to_install(core: &Core, image_state: &ImageState) {
    if let Some(mut writing) = core.writing.try_lock() {
        core.install_now(image_state, &mut writing);
    }
}

/// Lets the published view continue from the newest root, too, if the ending transaction was open when the backfill
/// ended. Else an idle database would keep the previous root and its stored pages. A load and a comparison, unless
/// one has ended since.
#[inline]
pub(in crate::db) fn install_late(core: &Core, writing: &mut Writing) {
    if let Some(image_state) = core.image()
        && writing.store.published().root() != image_state.newest()
    {
        core.install_now(image_state, writing);
    }
}
