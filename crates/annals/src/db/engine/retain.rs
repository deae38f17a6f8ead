//! Rules of retention, and what is done by them: by the thread in the background after each of its backfills,
//! when the database is closed, and on request.
//!
//! ```text
//! 1. see which segments there are, and how large the live state is
//! 2. restart with the state, if so much was written since the last one      (writers wait meanwhile)
//! 3. bring the image into the new segment                                   (it needs nothing of the old ones then)
//! 4. remove the older segments that no rule asks for, unless somebody reads one of them
//! ```
//!
//! Each step is independent: an interruption or failure leaves the rest to the next time.

use std::ops::ControlFlow;
use std::time::Duration;

use crate::db::engine::core::Core;
use crate::db::engine::state;
use crate::db::image::BackfillMode;
use crate::db::outcome::{Forgotten, Older};
use crate::db::present::snapshot::Snapshot;
use crate::journal::{Plan, Retention, lock};
use crate::{Error, ErrorKind, Result};

/// How long a restart in the background waits for the transaction that is open, before it leaves it to the
/// next time.
pub(in crate::db) const PATIENCE: Duration = Duration::from_secs(1);

impl Core {
    /// Does what the rules say that the database was opened with, if it was with any, and notes what was forgotten. A
    /// conflict with others isn't an error: it is retried the next time.
    ///
    /// # Errors
    /// As [`Database::retain`], except for `Busy`.
    pub(in crate::db) fn keep_the_rules(&self, patience: Duration) -> Result<()> {
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

    /// Forgets the history that rules of retention don't keep, after a backfill; `restart` continues the journal in a
    /// segment that begins with the state, and updates the image into it.
    pub(in crate::db) fn retain_by(
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
        // The segment of the image's point must stay, else the next opening would replay the state.
        let imaged = self.imager()?.segment().unwrap_or(0);
        match self.plan_retention(live, rules)?.forget_before {
            Some(before) if before <= imaged => {
                self.forget_before(before).map(|(forgotten, _)| forgotten)
            }
            _ => Ok(None),
        }
    }

    /// Forgets history beyond the rules with the image as it is; writes nothing.
    pub(in crate::db) fn forget_by(&self, rules: &Retention) -> Result<Option<Forgotten>> {
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

    pub(in crate::db) fn plan_retention(&self, live: u64, rules: &Retention) -> Result<Plan> {
        Ok(rules.plan(&self.segments()?, live, self.clock.now()))
    }

    /// Returns how many bytes the newest root of the image reaches.
    pub(in crate::db) fn reached(&self) -> Result<u64> {
        self.imager()?.reached()?.ok_or_else(|| {
            let name = &self.file().name;
            let message = format!("{name}: there is no image yet: a backfill makes one");
            Error::new(ErrorKind::NotFound, message)
        })
    }

    /// Returns the total length of the blobs that rows refer to.
    pub(in crate::db) fn blob_bytes(&self) -> Result<u64> {
        let snapshot = Snapshot::new(self.group.published());
        let lens = state::live_blobs(&snapshot)?.into_iter().map(|blob| snapshot.blob_len(blob));
        lens.map(|len| Ok(len?.unwrap_or(0))).sum()
    }

    /// Notes what was forgotten, besides what was before.
    fn note_forgotten(&self, forgotten: Option<Forgotten>) {
        let mut all = lock(&self.forgotten);
        *all = Forgotten::joined(all.take(), forgotten);
    }
}
