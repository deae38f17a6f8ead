//! Operations on the segments of a journal: restart it, and forget old ones.

use crate::db::api::restarting;
use crate::db::follow::image_state::ImageState;
use crate::db::follow::report::BackfillProgress;
use crate::db::follow::report::Backfilled;
use crate::db::follow::report::Restarting;
use crate::db::image::backfill;
use crate::db::image::shared_image;
use crate::db::image::{restart, retain, trigger};
use crate::db::write::forget;
use crate::db::write::pack;
use crate::db::write::pack::Packed;
use crate::db::write::shared;
use crate::db::write::upgrade;
use crate::db::write::upgrade::Customs;
use annals_schema::{Schema, Timestamp};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use crate::db::follow::report::BackfillMode;
use crate::db::present::outcome::{Forgotten, Older, Restarted};
use crate::db::present::stats::{CacheStats, MemoryStats, Stats};
use crate::db::write::database::Database;
use crate::journal::{Plan, Retention, SegmentFacts, lock};
use crate::store::PagerUse;
use crate::{Error, ErrorKind, Result};

impl Database {
    /// Returns facts of all existing segments, the oldest first and the current one last.
    ///
    /// Cost: opens each of them, and reads its head.
    ///
    /// # Errors
    /// `Corrupt` if a segment that is needed to know the state is missing or damaged; `Io`.
    pub fn segments(&self) -> Result<Vec<SegmentFacts>> {
        let _entered = self.inner().enter()?;
        forget::segments(self.inner())
    }

    /// Removes all segments with a lower number than `before`, which begins with the state itself. Returns the
    /// forgotten history; or else the oldest segment in use by a reader: then nothing was removed. Snapshots of this
    /// handle stay valid, with their blobs.
    ///
    /// # Errors
    /// `Invalid` if that segment doesn't begin with the state; `Corrupt` if it is missing or damaged;
    /// `Io`.
    pub fn forget_before(&self, before: u64) -> Result<(Option<Forgotten>, Option<u64>)> {
        let _entered = self.inner().enter_to_write()?;
        forget::forget_before(self.inner(), before)
    }

    /// Continues the journal in a new segment. The old one is sealed. It is kept beside the new one as
    /// `NAME-segment-NUMBER`, unless `older` says to forget it. Waits for the writer up to `timeout`; readers neither
    /// wait nor are waited for, and snapshots stay valid.
    ///
    /// Cost: a few flushes of the files and of their directory; with the state as much again as writing
    /// all rows and blobs.
    ///
    /// # Errors
    /// `Busy` if another transaction, or a backfill of the image, takes longer; `Invalid` in a thread that has one
    /// open; `Unsupported` on a raw device; `InUse` if another file has the name; `Corrupt` if a blob can't be carried
    /// over; `Io` if nothing was changed, or if all is done but removing older segments; `Poisoned` if it was
    /// interrupted half done (opening the database again ends it), or after a failed flush.
    pub fn restart(&self, older: Older, timeout: Duration) -> Result<Restarted> {
        let _entered = self.inner().enter_to_write()?;
        self.inner().refuse_following("restart it")?;
        self.inner().refuse_nesting()?;
        self.refuse_nested_backfill()?;
        self.refuse_device()?;
        let restarted = self.restart_if(older, timeout, &mut |_| Ok(()));
        restarted.map_err(|error| self.inner().advise_space(error))
    }

    /// Refuses an operation that only files support.
    pub(in crate::db) fn refuse_device(&self) -> Result<()> {
        let file = self.inner().file();
        if file.storage.has_fixed_len() {
            let message = format!(
                "{}: a device holds one segment, and can't go on in another: history there is as \
                 long as the device",
                file.name
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        Ok(())
    }

    /// Does what [`restart`](Self::restart) does, unless `fits` refuses the length of the state at the beginning of
    /// the new segment: then nothing was changed.
    pub(in crate::db) fn restart_if(
        &self,
        older: Older,
        timeout: Duration,
        fits: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Restarted> {
        // A concurrent backfill, here or elsewhere, holds the lock on the old segment.
        let (_working, (_claim, mut writing)) = restarting::claim_wholly(self, timeout)?;
        let restarted = restart::restart_in_turn(self.inner(), &mut writing, older, fits);
        shared::end_turn(self.inner());
        restarted
    }

    /// Returns the size of the live state in bytes, by which rules of retention decide when forgetting pays: the
    /// space that the newest root of the image reaches (rows with their indexes), and the blobs that rows refer to.
    ///
    /// Cost: of a table with blobs all their cells are read; before the first backfill of a handle also the
    /// directory of the image.
    ///
    /// # Errors
    /// `NotFound` if there is no image yet, which [`backfill`](Self::backfill) makes; `Unsupported` on a raw
    /// device; `Corrupt`; `Io`.
    pub fn live_bytes(&self) -> Result<u64> {
        let _entered = self.inner().enter_to_write()?;
        self.refuse_nested_backfill()?;
        Ok(retain::reached(self.inner())?.saturating_add(retain::blob_bytes(self.inner())?))
    }

    /// Returns the actions that rules of retention allow; `live` is the size of the live state in bytes, from
    /// [`live_bytes`](Self::live_bytes).
    ///
    /// # Errors
    /// As [`Self::segments`].
    pub fn plan_retention(&self, live: u64, rules: &Retention) -> Result<Plan> {
        let _entered = self.inner().enter()?;
        retain::plan_retention(self.inner(), live, rules)
    }

    /// Forgets the history that rules of retention don't keep, and returns it. First it removes all that needs no
    /// free space. Then it updates the image, and continues the journal in a segment that begins with the state if
    /// the rules need one. So it costs only a backfill as long as less was written since the last one than the live
    /// state's size. Waits up to `timeout` for each of the others.
    ///
    /// A database that was opened with [`Options::retention`](crate::Options::retention) does this in the background.
    ///
    /// # Errors
    /// As [`backfill`](Self::backfill), [`restart`](Self::restart) and [`forget_before`](Self::forget_before).
    /// Completed steps stay done.
    pub fn retain(&self, rules: &Retention, timeout: Duration) -> Result<Option<Forgotten>> {
        let _entered = self.inner().enter_to_write()?;
        // Removing unneeded segments first frees space for the rest.
        let first = retain::forget_by(self.inner(), rules)?;
        self.backfill(BackfillMode::Full)?;
        let second = retain::retain_by(self.inner(), rules, || {
            self.restart(Older::NotNeeded, timeout)?;
            self.backfill(BackfillMode::Full).map(drop)
        })?;
        Ok(Forgotten::joined(first, second))
    }

    /// Returns all history that the rules of retention forgot since the database was opened, except that returned by
    /// [`retain`](Self::retain).
    #[must_use]
    pub fn forgotten(&self) -> Option<Forgotten> {
        lock(&self.inner().forgotten).clone()
    }

    /// Does what [`backfill_watched`](Self::backfill_watched) does, and chooses how the journal is restarted in the
    /// modes that do so, [`BackfillMode::Restart`] and [`BackfillMode::Truncate`].
    ///
    /// The history is kept unless `how` allows to forget it: then the new segment begins with the state itself
    /// (schema, rows with their ids, blobs). All older segments are removed once that and an image over it are on
    /// permanent storage. The forgotten history is reported.
    ///
    /// Cost: a full backfill, a few flushes for the restart, and a small backfill. To forget, it also writes all rows
    /// and blobs to the journal.
    ///
    /// # Errors
    /// As [`backfill`](Self::backfill) and [`restart`](Self::restart); `Busy`, naming the oldest reader, if an older
    /// root of the image is read for too long; `Invalid` if history may be forgotten in a mode that doesn't.
    /// Completed steps stay done.
    pub fn backfill_with(
        &self,
        mode: BackfillMode,
        how: Restarting,
        watch: &mut dyn FnMut(BackfillProgress) -> ControlFlow<()>,
    ) -> Result<Backfilled> {
        if mode.restarts() {
            self.inner().refuse_following("restart it")?;
        }
        restarting::backfill_with(self, mode, how, watch)
    }

    /// Updates the image, the page file beside the journal, to the newest commit, so that the next opening has less
    /// to replay. It also happens in the background when the journal has grown; this does it now.
    ///
    /// Readers and writers continue meanwhile; with [`BackfillMode::Full`] it waits for the open transaction. In
    /// shared mode it doesn't happen in the background, but when the last handle is closed. It takes a turn. If
    /// another process has updated the image meanwhile, it first starts again from there, which costs a replay of the
    /// journal after it. Cost: makes the journal hard (a flush), writes each page that changed since the last one,
    /// and flushes the image once.
    ///
    /// # Errors
    /// `Unsupported` on a raw device, which has no image. `Invalid` in a thread that has a transaction open, if the
    /// mode would wait for it, or within a callback of a backfill. `Poisoned` after a failed flush, or in a forked
    /// child. `Io`. In shared mode, unless it is passive, `Busy` if a backfill of another process takes too long.
    /// Commits and readers are not concerned, and nothing is lost.
    pub fn backfill(&self, mode: BackfillMode) -> Result<Backfilled> {
        self.backfill_watched(mode, &mut |_| ControlFlow::Continue(()))
    }

    /// Does what [`backfill`](Self::backfill) does, and reports its progress: at its beginning, and after each write
    /// of a few dozen MiB. An answer of `Break` ends it; the image is unchanged, and nothing is lost.
    ///
    /// # Errors
    /// As [`backfill`](Self::backfill); `Cancelled` after `Break`.
    pub fn backfill_watched(
        &self,
        mode: BackfillMode,
        watch: &mut dyn FnMut(BackfillProgress) -> ControlFlow<()>,
    ) -> Result<Backfilled> {
        let _entered = self.inner().enter_to_write()?;
        self.refuse_nested_backfill()?;
        if mode != BackfillMode::Passive {
            self.inner().refuse_nesting()?;
        }
        if mode.restarts() {
            return self.backfill_with(mode, Restarting::default(), watch);
        }
        match &self.inner().sharing {
            Some(_) => shared_image::backfill_shared(self.inner(), mode, watch),
            None => backfill::backfill_watched(self.inner(), mode, watch),
        }
    }

    /// Refuses to wait for a backfill that this thread watches.
    pub(in crate::db) fn refuse_nested_backfill(&self) -> Result<()> {
        self.inner().image().map_or(Ok(()), ImageState::refuse_nesting)
    }

    /// Returns what the database has done since it was opened, and what it holds now.
    ///
    /// ```
    /// # fn main() -> annals::Result<()> {
    /// let db = annals::Database::in_memory()?;
    /// let before = db.read();
    /// println!("{}", db.stats());
    /// assert_eq!((db.stats().readers, db.stats().commits), (1, 0));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Cost: some locks for a few instructions, a question to the system for the length of the image, and some
    /// nanoseconds for each page in memory, which are counted. Counting commits costs them two or three atomic additions
    /// for each group, and reads nothing.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let core = self.inner();
        let (group, now) = (&core.group, core.clock().elapsed());
        let (subscribers, kept) = group.feed().subscribers();
        let (old_readers, oldest_reader) = group.counts.readers(now);
        let latest = group.published();
        let txid = latest.point.txid;
        // Besides the group, this function, and the feed, if that has followers.
        let others = 2 + usize::from(kept.is_some_and(|kept| Arc::ptr_eq(&kept, &latest)));
        let readers = old_readers + Arc::strong_count(&latest).saturating_sub(others);
        let (mut image, mut reached) = Default::default();
        let mut limit = 0;
        if let Some(image_state) = core.image() {
            (image, reached, limit) =
                (image_state.figures(), image_state.end_in_journal(), image_state.budget());
        }
        let (root, image_bytes, PagerUse { hits, loads, loaded_bytes, cached_bytes }) = image;
        Stats {
            txid,
            commits: group.counts.commits(),
            flushes: group.counts.flushes(),
            tail_bytes: trigger::end(core).saturating_sub(reached),
            tail_transactions: txid.0.saturating_sub(root.map_or(0, |root| root.point.txid.0)),
            image_bytes,
            last_backfill: root.map(|root| Timestamp(root.time)),
            cache: CacheStats {
                hits,
                misses: loads,
                read_bytes: loaded_bytes,
                bytes: cached_bytes,
                limit,
            },
            memory: MemoryStats::of(&latest.view, cached_bytes),
            readers: readers as u64,
            oldest_reader,
            subscribers: subscribers as u64,
        }
    }

    /// Returns the problem of the image in the background since the last backfill; nothing is lost by that.
    #[must_use]
    pub fn image_error(&self) -> Option<String> {
        self.inner().image_error()
    }

    /// Returns the damage of the image, the page file beside the journal, found since it was opened, and the action
    /// for each: one sentence each, at most a hundred. Nothing is lost by that.
    ///
    /// Data that doesn't verify when it is read isn't used any more. A read or a transaction that needs it fails with kind
    /// [`ErrorKind::PageLost`]. The next [`read`](Self::read) or [`begin`](Self::begin) opens the state again without
    /// it, from an older root of the image or from the journal, and the next try succeeds. Snapshots from before stay as
    /// they are: all that doesn't need the damaged data can be read.
    #[must_use]
    pub fn image_damage(&self) -> Vec<String> {
        let image_state = self.inner().image();
        image_state.map(|image_state| image_state.damage().findings()).unwrap_or_default()
    }

    /// Upgrades the schema to a program's, in one transaction; does nothing if they are the same.
    ///
    /// # Errors
    /// `SchemaMismatch`: the file's schema is newer, or another, with the first line that differs. An error of a step
    /// (`Unique`: rows have the same key in a new unique index), with the line of the schema and the rows; an error
    /// of a custom function, with its name. `Unsupported`: an index has a collation, and the library was built without
    /// the feature `collation`. The file is then unchanged.
    pub fn upgrade(&self, schema: &Schema, customs: &mut Customs<'_>) -> Result<()> {
        self.inner().check_open()?;
        upgrade::upgrade(self, schema, customs)
    }

    /// Forgets all history, and keeps the present unchanged: schema, rows with their ids, next ids and blobs. The
    /// journal continues in a new segment that begins with the state; txids and chain continue, too. Nothing is done
    /// if that would take more bytes than all segments have together. Waits for the writer up to `timeout`; snapshots
    /// stay valid.
    ///
    /// Cost: writes all rows and blobs; with an image also a backfill.
    ///
    /// # Errors
    /// As [`restart`](Self::restart), [`backfill`](Self::backfill) and [`forget_before`](Self::forget_before). The
    /// history stays whole until the new segment is on permanent storage.
    pub fn pack(&self, timeout: Duration) -> Result<Packed> {
        pack::pack(self, timeout)
    }
}
