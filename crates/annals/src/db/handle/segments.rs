//! What a program does with the segments of its journal: restart it, and forget what is old.

use std::time::Duration;

use crate::db::handle::database::Database;
use crate::db::image::BackfillMode;
use crate::db::outcome::{Forgotten, Older, Restarted};
use crate::journal::{Plan, Retention, SegmentFacts, lock};
use crate::{Error, ErrorKind, Result};

impl Database {
    /// Returns what is known of all segments that are left, the oldest first and the one that is written
    /// last.
    ///
    /// Cost: opens each of them, and reads its head.
    ///
    /// # Errors
    /// `Corrupt` if a segment that is needed to know the state is missing or damaged; `Io`.
    pub fn segments(&self) -> Result<Vec<SegmentFacts>> {
        self.check_origin()?;
        self.core().segments()
    }

    /// Removes all segments with a lower number than `before`, which begins with the state itself. Gives
    /// what was forgotten, and else the oldest one that somebody reads: then nothing was removed.
    /// Snapshots of this handle stay what they are, with their blobs.
    ///
    /// # Errors
    /// `Invalid` if that segment doesn't begin with the state; `Corrupt` if it is missing or damaged;
    /// `Io`.
    pub fn forget_before(&self, before: u64) -> Result<(Option<Forgotten>, Option<u64>)> {
        self.check_writable()?;
        self.core().forget_before(before)
    }

    /// Lets the journal continue in a new segment. The old one is sealed, and kept beside it as
    /// `NAME-segment-NUMBER` unless `older` says that it is forgotten. Waits for the writer at most so
    /// long; readers neither wait nor are waited for, and snapshots stay what they are.
    ///
    /// Cost: a few flushes of the files and of their directory; with the state as much again as writing
    /// all rows and blobs.
    ///
    /// # Errors
    /// `Busy` if another transaction, or a backfill of the image, takes longer; `Invalid` in a thread that has one open; `Unsupported`
    /// on a raw device; `InUse` if another file has the name; `Corrupt` if a blob can't be carried over;
    /// `Io` if nothing was changed, or if all is done but removing older segments; `Poisoned` if it was interrupted half done (opening the database
    /// again ends it), or after a failed flush.
    pub fn restart(&self, older: Older, timeout: Duration) -> Result<Restarted> {
        self.check_writable()?;
        self.refuse_nesting()?;
        self.refuse_nested_backfill()?;
        self.refuse_device()?;
        let restarted = self.restart_if(older, timeout, &mut |_| Ok(()));
        restarted.map_err(|error| self.core().advise_space(error))
    }

    /// Refuses what only files can do.
    pub(in crate::db) fn refuse_device(&self) -> Result<()> {
        let file = self.file();
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

    /// Does what [`restart`](Self::restart) does, unless `fits` refuses so many bytes as the new segment would
    /// begin with: then nothing was changed.
    pub(in crate::db) fn restart_if(
        &self,
        older: Older,
        timeout: Duration,
        fits: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Restarted> {
        // Whoever brings the image forward meanwhile, here or elsewhere, has its right to that from the old
        // segment.
        let (_working, (_claim, mut writing)) = self.claim_wholly(timeout)?;
        let restarted = self.core().restart_in_turn(&mut writing, older, fits);
        self.end_turn();
        restarted
    }

    /// Returns the size of the live state in bytes, by which rules of retention measure what is worth forgetting:
    /// what the newest root of the image reaches, rows with their indexes, and the blobs that a row leads to.
    ///
    /// Cost: of a table with blobs all their cells are read; before the first backfill of a handle also the
    /// directory of the image.
    ///
    /// # Errors
    /// `NotFound` if there is no image yet, which [`backfill`](Self::backfill) makes; `Unsupported` on a raw
    /// device; `Corrupt`; `Io`.
    pub fn live_bytes(&self) -> Result<u64> {
        self.check_writable()?;
        self.refuse_nested_backfill()?;
        Ok(self.core().reached()?.saturating_add(self.core().blob_bytes()?))
    }

    /// Returns what may be done by rules of retention; `live` is the size of the live state in bytes, as
    /// [`live_bytes`](Self::live_bytes) gives it.
    ///
    /// # Errors
    /// As [`Self::segments`].
    pub fn plan_retention(&self, live: u64, rules: &Retention) -> Result<Plan> {
        self.check_origin()?;
        self.core().plan_retention(live, rules)
    }

    /// Forgets what rules of retention let go, and returns what that was: first what they let go at once, which needs no
    /// free space. Then it brings the image forward, and lets the journal continue in a segment that begins with the state where the rules need one; so it costs nothing
    /// but a backfill as long as less was written since the last one than the live state is large. Waits for
    /// others at most so long, for each.
    ///
    /// A database that was opened with [`Options::retention`](crate::Options::retention) does this by itself.
    ///
    /// # Errors
    /// As [`backfill`](Self::backfill), [`restart`](Self::restart) and
    /// [`forget_before`](Self::forget_before). What was done before stays done.
    pub fn retain(&self, rules: &Retention, timeout: Duration) -> Result<Option<Forgotten>> {
        self.check_writable()?;
        // What may go by now needs no space, and returns some to the rest.
        let first = self.core().forget_by(rules)?;
        self.backfill(BackfillMode::Full)?;
        let second = self.core().retain_by(rules, || {
            self.restart(Older::NotNeeded, timeout)?;
            self.backfill(BackfillMode::Full).map(drop)
        })?;
        Ok(Forgotten::joined(first, second))
    }

    /// Returns all that was forgotten by the rules of retention since the database was opened, but for what
    /// [`retain`](Self::retain) told.
    #[must_use]
    pub fn forgotten(&self) -> Option<Forgotten> {
        lock(&self.core().forgotten).clone()
    }
}
