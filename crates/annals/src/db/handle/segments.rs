//! Operations on the segments of a journal: restart it, and forget old ones.

use crate::db::engine::{forget, restart, retain};
use std::time::Duration;

use crate::db::handle::database::Database;
use crate::db::image::BackfillMode;
use crate::db::outcome::{Forgotten, Older, Restarted};
use crate::journal::{Plan, Retention, SegmentFacts, lock};
use crate::{Error, ErrorKind, Result};

impl Database {
    /// Returns facts of all existing segments, the oldest first and the current one last.
    ///
    /// Cost: opens each of them, and reads its head.
    ///
    /// # Errors
    /// `Corrupt` if a segment that is needed to know the state is missing or damaged; `Io`.
    pub fn segments(&self) -> Result<Vec<SegmentFacts>> {
        self.check_origin()?;
        forget::segments(self.core())
    }

    /// Removes all segments with a lower number than `before`, which begins with the state itself. Returns the
    /// forgotten history; or else the oldest segment in use by a reader: then nothing was removed. Snapshots of this
    /// handle stay valid, with their blobs.
    ///
    /// # Errors
    /// `Invalid` if that segment doesn't begin with the state; `Corrupt` if it is missing or damaged;
    /// `Io`.
    pub fn forget_before(&self, before: u64) -> Result<(Option<Forgotten>, Option<u64>)> {
        self.check_writable()?;
        forget::forget_before(self.core(), before)
    }

    /// Continues the journal in a new segment. The old one is sealed. It is kept beside the new one as
    /// `NAME-segment-NUMBER`, unless `older` says to forget it. Waits for the writer up to `timeout`; readers neither
    /// wait nor are waited for, and snapshots stay valid.
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

    /// Refuses an operation that only files support.
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

    /// Does what [`restart`](Self::restart) does, unless `fits` refuses the length of the state at the beginning of
    /// the new segment: then nothing was changed.
    pub(in crate::db) fn restart_if(
        &self,
        older: Older,
        timeout: Duration,
        fits: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Restarted> {
        // A concurrent backfill, here or elsewhere, holds the lock on the old segment.
        let (_working, (_claim, mut writing)) = self.claim_wholly(timeout)?;
        let restarted = restart::restart_in_turn(self.core(), &mut writing, older, fits);
        self.end_turn();
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
        self.check_writable()?;
        self.refuse_nested_backfill()?;
        Ok(retain::reached(self.core())?.saturating_add(retain::blob_bytes(self.core())?))
    }

    /// Returns the actions that rules of retention allow; `live` is the size of the live state in bytes, from
    /// [`live_bytes`](Self::live_bytes).
    ///
    /// # Errors
    /// As [`Self::segments`].
    pub fn plan_retention(&self, live: u64, rules: &Retention) -> Result<Plan> {
        self.check_origin()?;
        retain::plan_retention(self.core(), live, rules)
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
        self.check_writable()?;
        // Removing unneeded segments first frees space for the rest.
        let first = retain::forget_by(self.core(), rules)?;
        self.backfill(BackfillMode::Full)?;
        let second = retain::retain_by(self.core(), rules, || {
            self.restart(Older::NotNeeded, timeout)?;
            self.backfill(BackfillMode::Full).map(drop)
        })?;
        Ok(Forgotten::joined(first, second))
    }

    /// Returns all history that the rules of retention forgot since the database was opened, except that returned by
    /// [`retain`](Self::retain).
    #[must_use]
    pub fn forgotten(&self) -> Option<Forgotten> {
        lock(&self.core().forgotten).clone()
    }
}
