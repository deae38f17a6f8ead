//! Backfills and images in shared mode, where any process may bring the image forward.
//!
//! ```text
//! 1. take the lock of backfills, which all processes share
//! 2. take the turn; bring in what the others committed; make the journal hard; end the turn
//! 3. see whether the store grew from the newest root; else begin anew from that root, and replay the rest
//! 4. as ever: write what changed since that root, publish
//! ```
//!
//! Who opens only reads the image, for others may be writing it: what is wrong with it is left to whoever
//! holds the lock of backfills. Commits of other processes go on from step 3 on, those of this one's other
//! threads from step 4 on.

use std::ops::ControlFlow;
use std::sync::{Arc, MutexGuard, TryLockError};

use super::backfill::{Laps, report};
use super::imager::{Imager, Working};
use super::opening::{Begun, Found, Looking};
use super::report::{BackfillMode, BackfillOutcome, BackfillPhases, Backfilled, Watching};
use crate::db::core::Writing;
use crate::db::database::Database;
use crate::db::shared::{Sharing, replay_between};
use crate::image::Root;
use crate::journal::{Head, Point, lock};
use crate::storage::Access;
use crate::store::Store;
use crate::{Error, Result};

/// How far the image has to have come forward, in bytes of the journal, before whoever follows begins anew
/// from its newest root: about a hundredth of a second of replay.
const WORTH_IT: u64 = 1 << 20;

/// Tells whether it is worth it to begin anew from a root at `newest`, for a store that began at `from`, to
/// come to `end`: less has to be replayed again than the image has come forward.
pub(in crate::db) const fn is_worth_it(from: u64, newest: u64, end: u64) -> bool {
    let forward = newest.saturating_sub(from);
    newest <= end && forward >= WORTH_IT && forward >= end - newest
}

impl Database {
    /// Brings the image forward that other processes may be bringing forward, too.
    pub(in crate::db) fn backfill_among_others(
        &self,
        sharing: &Sharing,
        mode: BackfillMode,
        watch: Watching<'_>,
    ) -> Result<Backfilled> {
        let imager = self.core().imager()?;
        let (mut phases, mut laps) = (BackfillPhases::default(), Laps::begin(imager));
        let mut working = lock(&imager.working);
        let waits = mode != BackfillMode::Passive;
        let postponed = |working: &Working, phases| {
            Ok(report(mode, BackfillOutcome::Postponed, working, (imager, phases)))
        };
        let Some(_claim) = sharing.turns.claim_image(waits)? else {
            return postponed(&working, phases);
        };
        let Some(mut writing) = self.writer(waits) else { return postponed(&working, phases) };
        match waits {
            true => self.take_turn(&mut writing)?,
            false if self.try_to_take_turn(&mut writing)? => {}
            false => return postponed(&working, phases),
        }
        self.core().forget_image_error();
        phases.wait = laps.next();
        let hardened = self.group().settle().and_then(|()| self.checkpoints().hard());
        self.end_turn();
        hardened?;
        phases.harden = laps.next();
        self.advance_among_others(sharing, (imager, mode, watch), &mut working, (writing, phases))
    }

    /// As the last one that has the journal open, and in its turn: brings the image forward if replaying the
    /// tail would make the next opening noticeably longer.
    pub(in crate::db) fn backfill_as_the_last(
        &self,
        sharing: &Sharing,
        writing: MutexGuard<'_, Writing>,
    ) -> Result<()> {
        let Some(imager) = self.core().image() else { return Ok(()) };
        let Some(_claim) = sharing.turns.claim_image(false)? else { return Ok(()) };
        let newest = imager.peek().map_or(0, |root| root.point.position);
        if !self.core().is_backfill_worth_it_at_close(newest) {
            return Ok(());
        }
        self.checkpoints().hard()?;
        let mut working = lock(&imager.working);
        let watch: Watching<'_> = &mut |_| ControlFlow::Continue(());
        let how = (imager, BackfillMode::Passive, watch);
        let phases = BackfillPhases::default();
        self.advance_among_others(sharing, how, &mut working, (writing, phases)).map(drop)
    }

    /// Writes a new root. The journal is hard up to the end of the store, in which nothing is pending.
    fn advance_among_others(
        &self,
        sharing: &Sharing,
        (imager, mode, watch): (&Imager, BackfillMode, Watching<'_>),
        working: &mut Working,
        (mut writing, phases): (MutexGuard<'_, Writing>, BackfillPhases),
    ) -> Result<Backfilled> {
        self.core().install_now(imager, &mut writing);
        let image = working.image.as_ref().filter(|_| working.root.is_some());
        let is_newest = image.map_or(Ok(false), |(image, _)| image.is_writable_newest())?;
        if !is_newest {
            self.begin_anew(sharing, imager, (working, &mut writing), Access::Write)?;
        }
        let published = self.group().published();
        drop(writing);
        if working.root.is_some_and(|root| root.point == published.point) {
            return Ok(report(mode, BackfillOutcome::UpToDate, working, (imager, phases)));
        }
        self.core().carry_out((imager, mode, watch), working, published, phases)
    }

    /// Begins anew from the newest root, if the image has come forward so much that it is worth it, so that
    /// the space of older roots isn't kept for this handle. What goes wrong is no reason to fail: the store
    /// stays as it is.
    pub(in crate::db) fn follow_the_image(&self, sharing: &Sharing, writing: &mut Writing) {
        let Some(imager) = self.core().image() else { return };
        let Ok(mut working) = imager.working.try_lock() else { return };
        let end = writing.writer.committed().position;
        let from = working.root.map_or(0, |root| root.point.position);
        if end.saturating_sub(from) < WORTH_IT {
            return;
        }
        let newest = imager.peek().map_or(0, |root| root.point.position);
        if is_worth_it(from, newest, end) {
            let _ = self.begin_anew(sharing, imager, (&mut working, writing), Access::Read);
        }
    }

    /// Lets the store begin anew from the newest root of the image, and replays what follows; without an
    /// image, or with one that can't be used, it has all in memory afterwards.
    fn begin_anew(
        &self,
        sharing: &Sharing,
        imager: &Imager,
        (working, writing): (&mut Working, &mut Writing),
        access: Access,
    ) -> Result<()> {
        let file = self.file();
        let looking = Looking {
            directory: imager.directory(),
            name: &sharing.file,
            storage: &*file.storage,
            access,
            clock: Arc::clone(imager.clock()),
            budget: imager.budget(),
            spills: false,
        };
        let mut found = looking.find()?;
        let end = writing.writer.committed();
        let replayed = self.replay_from(&mut found, &looking, end);
        for note in std::mem::take(&mut found.notes) {
            self.core().note_image_error(&Error::corrupt(note));
        }
        let store = match replayed {
            Some(store) => store,
            None if access == Access::Read => return Ok(()),
            None if writing.store.view().root() == 0 => {
                imager.begin_anew(working, &found);
                return Ok(());
            }
            None => {
                let start = Head::read(&*file.storage, &file.name)?.start();
                self.replay(Store::new(), (start, end))?
            }
        };
        writing.store = store;
        imager.begin_anew(working, &found);
        self.group().replace(writing.store.republish());
        Ok(())
    }

    /// Sees to it that nobody finds an image that is ahead of the journal, of which commits were taken back.
    pub(in crate::db) fn see_to_the_image(&self, sharing: &Sharing, end: Point) {
        let Some(imager) = self.core().image() else { return };
        let is_ahead = |root: Root| root.point.position > end.position;
        if !imager.peek().is_some_and(is_ahead) {
            return;
        }
        // Whoever has the right to it now, or opens it, finds out for itself.
        if let Ok(Some(_claim)) = sharing.turns.claim_image(false) {
            let _ = imager.set_aside("commits that it has were taken back");
        }
    }

    /// Replays from the root that was found, if there is one that can be used.
    fn replay_from(&self, found: &mut Found, looking: &Looking<'_>, end: Point) -> Option<Store> {
        let Begun { root, view, .. } = found.begun.as_ref()?;
        let (from, store) = (root.point, Store::resume(view.share()));
        let replayed = match from.position <= end.position {
            true => self.replay(store, (from, end)),
            false => Err(Error::corrupt("it is ahead of the journal")),
        };
        match replayed {
            Ok(store) => Some(store),
            Err(error) => {
                looking.set_aside(found, error.to_string());
                None
            }
        }
    }

    /// Replays from one commit to another.
    fn replay(&self, store: Store, (from, end): (Point, Point)) -> Result<Store> {
        let file = self.file();
        let range = (from, end.position);
        let (store, replayed) = replay_between(&*file.storage, store, range, &file.name);
        match replayed? {
            (_, point) if point == end => Ok(store),
            _ => Err(Error::corrupt("the journal goes on otherwise from there")),
        }
    }

    /// Gives the writer's side; nothing if a transaction has it and this doesn't wait.
    fn writer(&self, waits: bool) -> Option<MutexGuard<'_, Writing>> {
        if waits {
            return Some(lock(self.writing()));
        }
        match self.writing().try_lock() {
            Ok(writing) => Some(writing),
            Err(TryLockError::Poisoned(writing)) => Some(writing.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}
