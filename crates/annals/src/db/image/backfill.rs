//! The backfill: brings the image forward to a commit.
//!
//! ```text
//! 1. take the lock of backfills                     (rule 1: before the bound is sampled)
//! 2. full: wait for the transaction that is open
//! 3. sample the bound: what is published
//! 4. make the journal hard up to it                 (rule 2: before the first page is written)
//! 5. write what changed to free space               (rule 5: from the snapshot itself, which can't change)
//! 6. publish: first copy, flush, second copy        (rules 3 and 7: the writes have completed)
//! 7. let the store go on from the new root          (only now: what failed before changes nothing)
//! ```
//!
//! A failure is an error of the backfill and of nothing else (rule 8): no commit, no reader and no later
//! backfill depends on it, but that a failed flush stops the image for this handle.

use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, TryLockError};
use std::thread;
use std::time::Duration;

use super::imager::{Imager, Working};
use super::pipeline::{self, Batch, Pipeline};
#[cfg(feature = "testing")]
use super::proof;
use super::report::{
    BackfillMode, BackfillOutcome, BackfillPhases, BackfillProgress, Backfilled, Watching,
};
use crate::db::core::{Core, Writing};
use crate::db::snapshot::Published;
use crate::image::{
    Catalog, Draft, NewRoot, Root, RootPin, Step, Stored, read_catalog, walk_array,
};
use crate::journal::lock;
use crate::mistakes::{Mistake, is_made};
use crate::store::{Keep, Pager, Piece, Saved, View};
use crate::{Error, ErrorKind, Result};

/// How much is collected before it is written, in bytes.
const BATCH: usize = 32 << 20;

/// A backfill that wrote so many bytes replaced so much memory that freeing it takes a while.
const FREED_SLOWLY: u64 = 16 << 20;

/// How long, then, a backfill waits for a store to go on from the new root, to free that itself.
const MOMENT: Duration = Duration::from_millis(20);

/// How long it waits between two looks.
const PAUSE: Duration = Duration::from_micros(500);

/// Takes what a view stores: gives it space, and writes it in large batches.
struct Drafting<'d, 'i, 's> {
    draft: &'d mut Draft<'i>,
    pipeline: Pipeline<'s, 'i>,
    txid: u64,
    queue: Batch,
    queued: usize,
    counts: Counts,
    /// What was counted before the batch that is under way, and with it.
    written: [Counts; 2],
    clock: &'d Imager,
    /// How many pages there will be, and whom to tell.
    pages: u64,
    watch: Watching<'d>,
}

/// What was stored.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    pages: u64,
    from_memory: u64,
    nodes: u64,
    bytes: u64,
    runs: u64,
    waited: Duration,
}

impl Drafting<'_, '_, '_> {
    /// Begins to write what is in the queue.
    fn write(&mut self) -> Result<()> {
        let batch = self.take_queue();
        self.wait(|pipeline| pipeline.put(batch))?;
        self.written = [self.written[1], self.counts];
        self.tell()
    }

    /// Writes the rest, and waits until all is written.
    fn finish(&mut self) -> Result<()> {
        let batch = self.take_queue();
        self.wait(|pipeline| Ok(pipeline.finish()? + pipeline.write(&batch)?))?;
        self.written = [self.counts; 2];
        self.tell()
    }

    fn take_queue(&mut self) -> Batch {
        self.queued = 0;
        std::mem::take(&mut self.queue)
    }

    /// Waits for writes, which tell how many runs there were.
    fn wait(&mut self, write: impl FnOnce(&mut Pipeline<'_, '_>) -> Result<u64>) -> Result<()> {
        let begun = self.clock.clock().elapsed();
        match write(&mut self.pipeline) {
            Ok(runs) => self.counts.runs += runs,
            Err(_) if is_made(Mistake::ImageErrorDropped) => {}
            Err(error) => return Err(error),
        }
        self.counts.waited += self.clock.clock().elapsed().saturating_sub(begun);
        Ok(())
    }

    /// Tells how many pages have been written. Where the program wants no more, nothing was changed: what
    /// was written lies in free space, which no root leads to.
    fn tell(&mut self) -> Result<()> {
        let [Counts { pages, from_memory, bytes, .. }, _] = self.written;
        let progress = BackfillProgress { done: pages + from_memory, total: self.pages, bytes };
        match (self.watch)(progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::new(
                ErrorKind::Cancelled,
                format!(
                    "{}: the program stopped the backfill; nothing is lost",
                    self.pipeline.image.path()
                ),
            )),
        }
    }
}

impl Drafting<'_, '_, '_> {
    /// Leaves what those arrays of the root before reach that the new one hasn't: of tables, fields and
    /// indexes that were dropped.
    fn leave_dropped(&mut self, before: &Root, saved: &Saved) -> Result<()> {
        let image = self.pipeline.image;
        let catalog = read_catalog(image, before)?;
        for array in catalog.arrays.iter().filter(|array| !saved.goes_on_from(array)) {
            walk_array(image, array, before.end, |_, stored| {
                self.leave(*stored);
                Ok(Step::Enter)
            })?;
        }
        Ok(())
    }
}

impl Keep for Drafting<'_, '_, '_> {
    fn store(&mut self, piece: Piece) -> Result<Stored> {
        let bytes = piece.as_ref();
        let stored = self.draft.place(bytes, self.txid)?;
        self.counts.bytes += bytes.len() as u64;
        self.queued += bytes.len();
        match &piece {
            Piece::Page(_) | Piece::Long(_) => self.counts.from_memory += 1,
            Piece::Part(_) => self.counts.pages += 1,
            Piece::Node(_) => self.counts.nodes += 1,
        }
        self.queue.push((stored.place, piece));
        if self.queued >= BATCH {
            self.write()?;
        }
        Ok(stored)
    }

    fn expect(&mut self, items: u64) {
        self.pages = items;
    }

    fn leave(&mut self, stored: Stored) {
        self.draft.release(&stored);
    }
}

/// What a new root reaches.
struct Drafted {
    saved: Saved,
    catalog: Stored,
    /// Whether all of it is written.
    written: Result<()>,
    counts: Counts,
    /// What a mistake leaves unwritten.
    late: Batch,
}

/// Takes the time from one step to the next.
pub(super) struct Laps<'i>(&'i Imager, Duration);

impl<'i> Laps<'i> {
    pub(super) fn begin(imager: &'i Imager) -> Self {
        Self(imager, imager.clock().elapsed())
    }

    /// Gives the time since the last step.
    pub(super) fn next(&mut self) -> Duration {
        let now = self.0.clock().elapsed();
        std::mem::replace(&mut self.1, now).abs_diff(now)
    }
}

impl Core {
    /// Brings the image forward.
    pub(in crate::db) fn backfill(&self, mode: BackfillMode) -> Result<Backfilled> {
        self.backfill_watched(mode, &mut |_| ControlFlow::Continue(()))
    }

    /// Brings the image forward, and tells how far that is after each batch.
    pub(in crate::db) fn backfill_watched(
        &self,
        mode: BackfillMode,
        watch: Watching<'_>,
    ) -> Result<Backfilled> {
        let imager = self.imager()?;
        let mut phases = BackfillPhases::default();
        let mut laps = Laps::begin(imager);
        let mut working = lock(&imager.working);
        if mode != BackfillMode::Passive {
            self.wait_for_writer(imager)?;
        }
        phases.wait = laps.next();
        let Some(published) = self.sample(imager, mode)? else {
            return Ok(report(mode, BackfillOutcome::Postponed, &working, (imager, phases)));
        };
        if working.stands_for(&published) {
            return Ok(report(mode, BackfillOutcome::UpToDate, &working, (imager, phases)));
        }
        if !is_made(Mistake::ImageBeforeJournal) {
            self.checkpoints().harden_all()?;
        }
        phases.harden = laps.next();
        self.carry_out((imager, mode, watch), &mut working, published, phases)
    }

    /// Writes what is published, which the journal is hard up to, and which lies over the newest root.
    pub(super) fn carry_out(
        &self,
        (imager, mode, watch): (&Imager, BackfillMode, Watching<'_>),
        working: &mut Working,
        published: Arc<Published>,
        mut phases: BackfillPhases,
    ) -> Result<Backfilled> {
        let retiring = imager.retire();
        let written = self.advance(imager, working, &published, &mut phases, watch);
        let (counts, before) = match written {
            Ok(written) => written,
            Err(error) => {
                if is_made(Mistake::FailedBackfillPoisons) {
                    self.checkpoints().poison("a backfill failed");
                }
                return Err(error.within("the image wasn't brought forward; nothing is lost"));
            }
        };
        #[cfg(feature = "testing")]
        proof::compare(working, &published.view);
        let begun = imager.clock().elapsed();
        phases.install = self.go_on(imager, counts.bytes);
        drop((published, retiring)); // no reader of the root before
        phases.free = imager.clock().elapsed().saturating_sub(begun + phases.install);
        let report = report(mode, BackfillOutcome::Advanced, working, (imager, phases));
        Ok(Backfilled {
            journal_bytes: working.reached.saturating_sub(before),
            pages: counts.pages + counts.from_memory,
            from_memory: counts.from_memory,
            copied: counts.pages,
            nodes: counts.nodes,
            bytes: counts.bytes,
            runs: counts.runs,
            ..report
        })
    }

    /// Writes a new root of the image; gives what was written, and how far the root before reached.
    fn advance(
        &self,
        imager: &Imager,
        working: &mut Working,
        published: &Published,
        phases: &mut BackfillPhases,
        watch: Watching<'_>,
    ) -> Result<(Counts, u64)> {
        let clock = imager.clock();
        let begun = clock.elapsed();
        let time = clock.now();
        let (image, pager) = imager.image(working)?;
        let looking = |error| Error::io(format!("{}: can't see who reads it", image.path()), error);
        let mut draft = image.space(working.pins.all(&image).map_err(looking)?)?;
        let number = draft.number();
        let pin = match image.pin(number, imager.clock()) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => RootPin::here(number),
            pin => pin.map_err(looking)?,
        };
        let drafted = thread::scope(|scope| {
            let drafting = Drafting {
                draft: &mut draft,
                pipeline: Pipeline::new(scope, &image),
                txid: published.point.txid,
                queue: Vec::new(),
                queued: 0,
                counts: Counts::default(),
                written: [Counts::default(); 2],
                clock: imager,
                pages: 0,
                watch,
            };
            self.draft(drafting, &published.view, (working.root, &pager))
        });
        let Drafted { mut saved, catalog, written, counts, late } = drafted?;
        phases.write = counts.waited;
        phases.collect = clock.elapsed().saturating_sub(begun).saturating_sub(counts.waited);
        let begun = clock.elapsed();
        let (segment, point) = (published.file.segment, published.point);
        let new = NewRoot { segment, point, time, catalog };
        let root = written.and_then(|()| draft.publish(&new));
        if let Ok(root) = &root {
            let keeps = root.end <= imager.budget();
            if pager.keeps() && !keeps {
                saved.unload();
            }
            pager.set_keeps(keeps);
        }
        if root.is_ok() || is_made(Mistake::InstalledBeforePublished) {
            saved.pin = Some(working.pins.add(pin, clock.elapsed()));
            imager.note_saved(saved, number);
        }
        let root = root?;
        if is_made(Mistake::PublishedBeforeWritten) {
            pipeline::write(&image, &late)?;
        }
        phases.publish = clock.elapsed().saturating_sub(begun);
        working.root = Some(root);
        let before = std::mem::replace(&mut working.reached, published.file.reach(point.position));
        working.wrote = counts.bytes;
        Ok((counts, before))
    }

    /// Writes all that a new root reaches; `before` is the root that it replaces.
    fn draft(
        &self,
        mut drafting: Drafting<'_, '_, '_>,
        view: &View,
        (before, pager): (Option<Root>, &Arc<Pager>),
    ) -> Result<Drafted> {
        drafting.tell()?;
        let saved = view.save(pager, &mut drafting)?;
        let metadata = self.metadata(&saved.metadata);
        let catalog = Catalog { arrays: saved.arrays(), metadata }.encode();
        if let Some(root) = before {
            // What can't be read stays taken until the database is opened anew: no root reaches it then.
            let _ = drafting.leave_dropped(&root, &saved);
            drafting.leave(root.catalog);
        }
        let catalog = drafting.store(Piece::Node(catalog))?;
        let written = match is_made(Mistake::PublishedBeforeWritten) {
            true => Ok(()),
            false => drafting.finish(),
        };
        Ok(Drafted { saved, catalog, written, counts: drafting.counts, late: drafting.queue })
    }

    /// Gives what a catalog says beside what the store does: how late the clock was.
    fn metadata(&self, of_store: &[u8]) -> Vec<u8> {
        let last = self.checkpoints().last_clock_time.load(Ordering::Relaxed);
        [&last.to_le_bytes()[..], of_store].concat()
    }

    /// Waits until no transaction is open, and all that was written is acknowledged.
    fn wait_for_writer(&self, imager: &Imager) -> Result<()> {
        let mut writing = lock(&self.writing);
        self.group.settle()?;
        self.install_now(imager, &mut writing);
        Ok(())
    }

    /// Gives what is published, if it lies over the newest root: only the difference to that is written.
    fn sample(&self, imager: &Imager, mode: BackfillMode) -> Result<Option<Arc<Published>>> {
        let mut published = self.group.published();
        if published.view.root() != imager.newest() {
            if mode != BackfillMode::Passive {
                self.wait_for_writer(imager)?;
            } else {
                self.try_to_install(imager);
            }
            published = self.group.published();
        }
        let is_newest = published.view.root() == imager.newest();
        Ok((is_newest || is_made(Mistake::OutdatedBoundTaken)).then_some(published))
    }

    /// Lets the store go on from the newest root, as [`Self::try_to_install`]. Where many bytes were written
    /// it waits a moment for a transaction that has to do it: for what is replaced is best freed here,
    /// where nobody waits. Gives how long it held the writer's lock.
    fn go_on(&self, imager: &Imager, bytes: u64) -> Duration {
        let begun = imager.clock().elapsed();
        loop {
            let tried = imager.clock().elapsed();
            self.try_to_install(imager);
            let took = imager.clock().elapsed().saturating_sub(tried);
            let is_over = self.group.published().view.root() == imager.newest();
            let is_late = imager.clock().elapsed().saturating_sub(begun) >= MOMENT;
            if is_over || is_late || bytes < FREED_SLOWLY {
                return took;
            }
            imager.clock().pause(PAUSE);
        }
    }

    /// Lets the store go on from the newest root, if no transaction is open; else the next one does that
    /// when it begins or commits.
    fn try_to_install(&self, imager: &Imager) {
        match self.writing.try_lock() {
            Ok(mut writing) => self.install_now(imager, &mut writing),
            Err(TryLockError::Poisoned(writing)) => {
                self.install_now(imager, &mut writing.into_inner())
            }
            Err(TryLockError::WouldBlock) => {}
        }
    }

    /// Lets the store, which no transaction changes, and what is published go on from the newest root.
    pub(super) fn install_now(&self, imager: &Imager, writing: &mut Writing) {
        imager.install(&mut writing.store);
        self.group.replace(writing.store.republish());
        imager.note_published(&self.group.published().view);
    }
}

pub(super) fn report(
    mode: BackfillMode,
    outcome: BackfillOutcome,
    working: &Working,
    (imager, phases): (&Imager, BackfillPhases),
) -> Backfilled {
    let point = working.root.map(|root| root.point);
    let len = working.image.as_ref().and_then(|(image, _)| image.len().ok());
    Backfilled {
        mode,
        outcome,
        txid: point.map_or(0, |point| point.txid),
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
        oldest_reader: imager.oldest_reader(working),
        restarted: None,
        phases,
    }
}
