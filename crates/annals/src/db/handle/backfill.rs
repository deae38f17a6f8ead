//! Backfills that then continue the journal in a new segment.
//!
//! ```text
//! 1. bring the image forward to the end of the journal
//! 2. wait for the readers of older roots                 (their space can be used again then)
//! 3. restart the journal: the old segment is sealed      (with the state, if history is to be forgotten)
//! 4. bring the image forward into the new segment        (it needs nothing of the old ones then)
//! 5. remove the older segments, if that was said; give back the unused end of the image, or all that is free if
//!    that is most of it
//! ```
//!
//! Commits continue between the steps: they are replayed after the image like any other tail. Whatever fails leaves
//! the steps before it done, each of which is whole.

use crate::db::engine::backfill;
use std::ops::ControlFlow;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::db::handle::database::Database;
use crate::db::handle::image_among_others::{Claimed, Patience};
use crate::db::image::imager::{Imager, Working};
use crate::db::image::report::{
    BackfillMode, BackfillOutcome, BackfillPhases, Backfilled, Restarting, Watching,
};
use crate::db::outcome::{Older, Restarted};
use crate::{BackfillProgress, Error, ErrorKind, Result};

/// The pause before the next check for readers.
const PAUSE: Duration = Duration::from_millis(5);

/// The lock of backfills, if there can be an image, and the other locks for changing the files.
pub(in crate::db) type ClaimedWholly<'d> = (Option<MutexGuard<'d, Working>>, Claimed<'d>);

impl Database {
    /// Does what [`backfill_watched`](Self::backfill_watched) does, and chooses how the journal is restarted in the
    /// modes that do so, [`BackfillMode::Restart`] and [`BackfillMode::Truncate`].
    ///
    /// The history is kept unless `how` allows to forget it: then the new segment begins with the state itself
    /// (schema, rows with their ids, blobs). All older segments are removed once that and an image over it are on
    /// permanent storage. The forgotten history is reported.
    ///
    /// Cost: that of a full backfill, a few flushes for the restart, and of a small backfill; to forget, also
    /// that of writing all rows and blobs to the journal.
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
        if how.forget_history && mode != BackfillMode::Truncate {
            return Err(Error::invalid(format!(
                "history can't be forgotten in the mode {}: ask for {}",
                mode.name(),
                BackfillMode::Truncate.name()
            )));
        }
        if !mode.restarts() {
            return self.backfill_watched(mode, watch);
        }
        let first = self.backfill_watched(BackfillMode::Full, watch)?;
        let imager = self.core().imager()?;
        self.wait_for_readers(imager, how.timeout)?;
        let older = if how.forget_history { Older::NotNeeded } else { Older::Kept };
        let mut restarted = self.restart(older, how.timeout)?;
        let goes_on = format!("the journal goes on in segment {}", restarted.segment);
        let finished = self.finish_restarting(mode, how, &mut restarted, watch);
        let second = finished.map_err(|error| error.within(goes_on))?;
        Ok(Backfilled { mode, restarted: Some(restarted), ..joined(first, second) })
    }

    /// Updates the image into the new segment, and removes files that aren't needed any more.
    fn finish_restarting(
        &self,
        mode: BackfillMode,
        how: Restarting,
        restarted: &mut Restarted,
        watch: Watching<'_>,
    ) -> Result<Backfilled> {
        if how.forget_history {
            let from = &self.core().imager()?.frames_from;
            from.fetch_max(restarted.segment, Ordering::Relaxed);
        }
        let done = self.backfill_watched(BackfillMode::Full, watch)?;
        if how.forget_history {
            let begun = self.clock.elapsed();
            loop {
                (restarted.forgotten, restarted.pinned) = self.forget_before(restarted.segment)?;
                let is_late = self.clock.elapsed().saturating_sub(begun) >= how.timeout;
                if restarted.pinned.is_none() || is_late {
                    break;
                }
                self.clock.pause(PAUSE);
            }
        }
        if mode != BackfillMode::Truncate {
            return Ok(done);
        }
        let image_bytes = self.shrink_image(how.timeout)?;
        Ok(Backfilled { image_bytes, ..done })
    }

    /// Waits until no reader pins a root of the image older than the newest.
    fn wait_for_readers(&self, imager: &Imager, timeout: Duration) -> Result<()> {
        let begun = self.clock.elapsed();
        loop {
            let oldest =
                imager.oldest_reader(&*backfill::wait_for_backfill(self.core(), imager, timeout)?);
            let Some(oldest) = oldest else { return Ok(()) };
            if self.clock.elapsed().saturating_sub(begun) >= timeout {
                let who = oldest.pid.map_or_else(
                    || "a process".to_owned(),
                    |pid| match pid {
                        pid if pid == std::process::id() => format!("this process (pid {pid})"),
                        pid => format!("process {pid}"),
                    },
                );
                let age = oldest.age.map(|age| format!(", replaced {age:.1?} ago"));
                return Err(Error::new(
                    ErrorKind::Busy,
                    format!(
                        "{}: {who} was reading an older root of the image, number {}{}, for all of \
                         {timeout:?}: let it read anew or end it, and try again; the image was brought \
                         forward",
                        self.file().name,
                        oldest.root,
                        age.unwrap_or_default()
                    ),
                ));
            }
            self.clock.pause(PAUSE);
        }
    }

    /// Truncates the free end of the image; returns its length.
    fn shrink_image(&self, timeout: Duration) -> Result<u64> {
        let (working, (claim, writing)) = self.claim_wholly(timeout)?;
        let (Some(mut working), Some(imager)) = (working, self.core().image()) else {
            self.end_turn();
            return Ok(0);
        };
        // Commits continue.
        self.end_turn();
        drop(writing);
        let shrunk = self.compact_image(imager, &mut working, timeout);
        drop(claim);
        shrunk
    }

    /// Acquires the lock of `working`, the lock of backfills, the writer and the turn, in this order (see
    /// `db::engine::core`). The caller ends the turn.
    pub(in crate::db) fn claim_wholly(&self, timeout: Duration) -> Result<ClaimedWholly<'_>> {
        let wait = || {
            let core = self.core();
            core.image()
                .map(|imager| backfill::wait_for_backfill(core, imager, timeout))
                .transpose()
        };
        let mut working = wait()?;
        if self.sharing().is_none() {
            // It was for not letting the writer wait; it is taken after the writer.
            working = None;
        }
        let Some(claimed) = self.claim(Patience::AtMost(timeout))? else {
            return Err(Error::new(ErrorKind::Busy, format!("{}: try again", self.file().name)));
        };
        let working = if working.is_none() { wait()? } else { working };
        Ok((working, claimed))
    }
}

/// Joins the reports of two consecutive backfills.
fn joined(first: Backfilled, second: Backfilled) -> Backfilled {
    let outcome = match first.outcome {
        BackfillOutcome::Advanced => BackfillOutcome::Advanced,
        _ => second.outcome,
    };
    let (a, b) = (first.phases, second.phases);
    Backfilled {
        outcome,
        journal_bytes: first.journal_bytes + second.journal_bytes,
        pages: first.pages + second.pages,
        from_memory: first.from_memory + second.from_memory,
        copied: first.copied + second.copied,
        nodes: first.nodes + second.nodes,
        bytes: first.bytes + second.bytes,
        runs: first.runs + second.runs,
        phases: BackfillPhases {
            wait: a.wait + b.wait,
            harden: a.harden + b.harden,
            collect: a.collect + b.collect,
            write: a.write + b.write,
            publish: a.publish + b.publish,
            install: a.install + b.install,
            free: a.free + b.free,
        },
        ..second
    }
}
