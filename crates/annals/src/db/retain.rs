//! Rules of retention, and what is done by them: by the thread in the background behind each of its backfills,
//! when the database is closed, and on request.
//!
//! ```text
//! 1. see which segments there are, and how large the live state is
//! 2. restart with the state, if so much was written since the last one      (writers wait meanwhile)
//! 3. bring the image into the new segment                                   (it needs nothing of the old ones then)
//! 4. remove the older segments that no rule asks for, unless somebody reads one of them
//! ```
//!
//! Each step is whole by itself: what comes in between, or fails, leaves the rest to the next time.

use std::ops::ControlFlow;
use std::time::Duration;

use super::core::Core;
use super::database::Database;
use super::image::BackfillMode;
use super::restart::{Forgotten, Older};
use super::snapshot::Snapshot;
use super::state;
use crate::journal::{Plan, Retention, lock};
use crate::{Error, ErrorKind, Result};

/// How long a restart in the background waits for the transaction that is open, before it leaves it to the
/// next time.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

impl Database {
    /// Gives the size of the live state in bytes, by which rules of retention measure what is worth forgetting:
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

    /// Tells what may be done by rules of retention; `live` is the size of the live state in bytes, as
    /// [`live_bytes`](Self::live_bytes) gives it.
    ///
    /// # Errors
    /// As [`Self::segments`].
    pub fn plan_retention(&self, live: u64, rules: &Retention) -> Result<Plan> {
        self.check_origin()?;
        self.core().plan_retention(live, rules)
    }

    /// Forgets what rules of retention let go, and gives what that was: first what they let go at once, which needs no
    /// free space. Then it brings the image forward, and lets the journal go on in a segment that begins with the state where the rules need one; so it costs nothing
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
        // What may go by now needs no space, and gives some to the rest.
        let first = self.core().forget_by(rules)?;
        self.backfill(BackfillMode::Full)?;
        let second = self.core().retain_by(rules, || {
            self.restart(Older::NotNeeded, timeout)?;
            self.backfill(BackfillMode::Full).map(drop)
        })?;
        Ok(joined(first, second))
    }

    /// Gives all that was forgotten by the rules of retention since the database was opened, but for what
    /// [`retain`](Self::retain) told.
    #[must_use]
    pub fn forgotten(&self) -> Option<Forgotten> {
        lock(&self.core().forgotten).clone()
    }
}

impl Core {
    /// Does what the rules say that the database was opened with, if it was with any, and notes what was
    /// forgotten. Others being in the way is no error: it is left to the next time then.
    ///
    /// # Errors
    /// As [`Database::retain`], but for `Busy`.
    pub(super) fn keep_the_rules(&self, patience: Duration) -> Result<()> {
        if self.retention == Retention::default() {
            return Ok(());
        }
        let forgotten = self.retain_by(&self.retention, || {
            self.restart(Older::NotNeeded, patience)?;
            self.backfill_watched(BackfillMode::Passive, &mut |_| ControlFlow::Continue(()))
                .map(drop)
        });
        match forgotten {
            Ok(forgotten) => self.note_forgotten(forgotten),
            Err(error) if error.kind() == ErrorKind::Busy => {}
            Err(error) => {
                return Err(error.within("rules of retention weren't kept; nothing is lost"));
            }
        }
        Ok(())
    }

    /// Forgets what rules of retention let go, behind a backfill; `restart` lets the journal go on in a segment
    /// that begins with the state, and brings the image into it.
    fn retain_by(
        &self,
        rules: &Retention,
        restart: impl FnOnce() -> Result<()>,
    ) -> Result<Option<Forgotten>> {
        let reached = self.reached()?;
        if self.plan_retention(reached, rules)? == Plan::default() {
            return Ok(None);
        }
        // Only now they are counted: there may be many.
        let live = reached.saturating_add(self.blob_bytes()?);
        if self.plan_retention(live, rules)?.begin_with_state {
            restart()?;
        }
        // What the image stands for must stay, else the next opening would replay the state.
        let imaged = self.imager()?.segment().unwrap_or(0);
        match self.plan_retention(live, rules)?.forget_before {
            Some(before) if before <= imaged => {
                self.forget_before(before).map(|(forgotten, _)| forgotten)
            }
            _ => Ok(None),
        }
    }

    /// Forgets what rules let go by the image as it is; writes nothing.
    fn forget_by(&self, rules: &Retention) -> Result<Option<Forgotten>> {
        let Some(imager) = self.image() else { return Ok(None) };
        let (Some(reached), Some(imaged)) = (imager.reached()?, imager.segment()) else {
            return Ok(None);
        };
        if self.plan_retention(reached, rules)?.forget_before.is_none() {
            return Ok(None);
        }
        let live = reached.saturating_add(self.blob_bytes()?);
        match self.plan_retention(live, rules)?.forget_before {
            Some(before) if before <= imaged => Ok(self.forget_before(before)?.0),
            _ => Ok(None),
        }
    }

    fn plan_retention(&self, live: u64, rules: &Retention) -> Result<Plan> {
        Ok(rules.plan(&self.segments()?, live, self.clock.now()))
    }

    /// Gives how many bytes the newest root of the image reaches.
    fn reached(&self) -> Result<u64> {
        self.imager()?.reached()?.ok_or_else(|| {
            let name = &self.file().name;
            let message = format!("{name}: there is no image yet: a backfill makes one");
            Error::new(ErrorKind::NotFound, message)
        })
    }

    /// Gives how many bytes all blobs have that a row leads to.
    fn blob_bytes(&self) -> Result<u64> {
        let snapshot = Snapshot::new(self.group.published());
        let lens = state::live_blobs(&snapshot)?.into_iter().map(|blob| snapshot.blob_len(blob));
        lens.map(|len| Ok(len?.unwrap_or(0))).sum()
    }

    /// Notes what was forgotten, besides what was before.
    fn note_forgotten(&self, forgotten: Option<Forgotten>) {
        let mut all = lock(&self.forgotten);
        *all = joined(all.take(), forgotten);
    }
}

/// Joins what was forgotten with what was forgotten after it.
fn joined(first: Option<Forgotten>, second: Option<Forgotten>) -> Option<Forgotten> {
    match (first, second) {
        (Some(before), Some(now)) => Some(Forgotten {
            segments: before.segments + now.segments,
            bytes: before.bytes + now.bytes,
            transactions: (before.transactions.0, now.transactions.1),
            times: (before.times.0, now.times.1),
        }),
        (first, second) => first.or(second),
    }
}
