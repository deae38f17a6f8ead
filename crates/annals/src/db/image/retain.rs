//! Rules of retention, and their application: by the background thread after each of its backfills, when the database
//! is closed, and on request.
//!
//! ```text
//! 1. see which segments there are, and how large the live state is
//! 2. restart with the state, if so much was written since the last one      (writers wait meanwhile)
//! 3. bring the image into the new segment                                   (it needs nothing of the old ones then)
//! 4. remove the older segments that no rule asks for, unless somebody reads one of them
//! ```
//!
//! Each step is independent: an interruption or failure leaves the rest to the next time.

use crate::db::image::{backfill, restart};
use crate::db::write::forget;
use std::ops::ControlFlow;
use std::time::Duration;

use crate::db::follow::report::BackfillMode;
use crate::db::present::outcome::{Forgotten, Older};
use crate::db::present::snapshot::Snapshot;
use crate::db::write::core::Core;
use crate::db::write::segment_state;
use crate::journal::{Plan, Retention, lock};
use crate::store::history::NODE;
use crate::{Error, ErrorKind, Result};

/// How long a restart in the background waits for the transaction that is open, before it leaves it to the
/// next time.
pub(in crate::db) const PATIENCE: Duration = Duration::from_secs(1);

/// Applies the rules that the database was opened with, if there are any, and notes the forgotten history. A conflict
/// with others isn't an error: it is retried the next time.
///
/// # Errors
/// As [`Database::retain`], except for `Busy`.
pub(in crate::db) fn keep_the_rules(core: &Core, patience: Duration) -> Result<()> {
    if core.retention == Retention::default() {
        return Ok(());
    }
    let forgotten = retain_by(core, &core.retention, || {
        restart::restart(core, Older::NotNeeded, patience)?;
        backfill::backfill_watched(core, BackfillMode::Passive, &mut |_| ControlFlow::Continue(()))
            .map(drop)
    });
    match forgotten {
        Ok(forgotten) => note_forgotten(core, forgotten),
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
    core: &Core,
    rules: &Retention,
    restart: impl FnOnce() -> Result<()>,
) -> Result<Option<Forgotten>> {
    let reached = reached(core)?;
    if plan_retention(core, reached, rules)? == Plan::default() {
        return Ok(None);
    }
    // Only now they are counted: there may be many.
    let live = reached.saturating_add(blob_bytes(core)?);
    if plan_retention(core, live, rules)?.begin_with_state {
        restart()?;
    }
    // The segment of the image's point must stay, else the next opening would replay the state.
    let imaged = core.image_state()?.segment().unwrap_or(0);
    match plan_retention(core, live, rules)?.forget_before {
        Some(before) if before <= imaged => {
            forget::forget_before(core, before).map(|(forgotten, _)| forgotten)
        }
        _ => Ok(None),
    }
}

/// Forgets history beyond the rules with the image as it is; writes nothing.
pub(in crate::db) fn forget_by(core: &Core, rules: &Retention) -> Result<Option<Forgotten>> {
    let Some(image_state) = core.image() else { return Ok(None) };
    let (Some(reached), Some(imaged)) = (image_state.reached()?, image_state.segment()) else {
        return Ok(None);
    };
    if plan_retention(core, reached, rules)?.forget_before.is_none() {
        return Ok(None);
    }
    let live = reached.saturating_add(blob_bytes(core)?);
    match plan_retention(core, live, rules)?.forget_before {
        Some(before) if before <= imaged => Ok(forget::forget_before(core, before)?.0),
        _ => Ok(None),
    }
}

pub(in crate::db) fn plan_retention(core: &Core, live: u64, rules: &Retention) -> Result<Plan> {
    Ok(rules.plan(&forget::segments(core)?, live, core.clock().now()))
}

/// How many entries a node of the directory of an array has.
const FANOUT: u64 = 64;

/// Returns how many bytes the newest root of the image reaches, without the history index: that is no part of the state.
pub(in crate::db) fn reached(core: &Core) -> Result<u64> {
    let reached = core.image_state()?.reached()?.ok_or_else(|| {
        let name = &core.file().name;
        let message = format!("{name}: there is no image yet: a backfill makes one");
        Error::new(ErrorKind::NotFound, message)
    })?;
    let nodes = core.group.published().view.history_index().nodes();
    // Those of its array, and of the array's directory.
    let (mut units, mut level) = (nodes, nodes);
    while level > 0 {
        level = if level == 1 && units > nodes { 0 } else { level.div_ceil(FANOUT) };
        units += level;
    }
    Ok(reached.saturating_sub(units * NODE as u64))
}

/// Returns the total length of the blobs that rows refer to.
pub(in crate::db) fn blob_bytes(core: &Core) -> Result<u64> {
    let snapshot = Snapshot::new(core.group.published());
    let lens =
        segment_state::live_blobs(&snapshot)?.into_iter().map(|blob| snapshot.blob_len(blob));
    lens.map(|len| Ok(len?.unwrap_or(0))).sum()
}

/// Adds to the forgotten history.
fn note_forgotten(core: &Core, forgotten: Option<Forgotten>) {
    let mut all = lock(&core.forgotten);
    *all = Forgotten::joined(all.take(), forgotten);
}
