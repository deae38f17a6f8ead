//! Forgetting history: the segments before one that begins with the state are removed.

use std::sync::Weak;

use annals_schema::{Timestamp, Txid};

use crate::db::follow::segments::Past;
use crate::db::present::outcome::Forgotten;
use crate::db::write::core::Core;
use crate::journal::segments::{self, Kept, kept_name};
use crate::journal::{Head, SegmentFacts, lock};
use crate::storage::Directory;
use crate::{Error, Result};

/// Does what [`Database::segments`] does.
pub(in crate::db) fn segments(core: &Core) -> Result<Vec<SegmentFacts>> {
    let file = core.file();
    let head = Head::read(&*file.storage, &file.name)?;
    let past = Past::whole(&*file.directory, &file.journal, &head.header)?;
    let point = core.checkpoints().acknowledged();
    let mut facts = past.facts((point.position, point.txid.0));
    // This handle's own locks would conflict.
    drop(past);
    for facts in facts.iter_mut().filter(|facts| facts.number < file.segment) {
        let held = segments::is_read(&*file.directory, &file.journal, facts.number);
        facts.is_pinned = held.map_err(|error| {
            let shown = shown(&*file.directory, &file.journal, facts.number);
            Error::io(format!("{shown}: can't be locked"), error)
        })?;
    }
    Ok(facts)
}

/// Does what [`Database::forget_before`] does.
pub(in crate::db) fn forget_before(
    core: &Core,
    before: u64,
) -> Result<(Option<Forgotten>, Option<u64>)> {
    // A backup continues in a segment by the seal of the one before.
    core.group.settle_elsewhere()?;
    // Additions to the history index prevent the removal of segments.
    let _paused = core.history.pause();
    let file = core.file();
    let (directory, journal) = (&*file.directory, file.journal.as_str());
    let head = Head::read(&*file.storage, &file.name)?;
    let past = Past::whole(directory, journal, &head.header)?;
    let headers = past.segments().iter().map(|kept| &kept.head.header);
    let base = headers.chain(std::iter::once(&head.header));
    let base = base.into_iter().find(|header| header.segment == before).copied();
    let Some(base) = base.filter(crate::journal::format::Header::is_base) else {
        return Err(Error::invalid(format!(
            "{}: segment {before} doesn't begin with the state, or isn't there: what is older is \
             needed",
            file.name
        )));
    };
    let oldest = past.segments().first().map_or(head.header, Kept::header);
    // Older snapshots can still read their blobs.
    for retired in lock(&core.retired).iter().filter_map(Weak::upgrade) {
        retired.hold(oldest.segment..before);
    }
    drop(past);
    let io = |error| Error::io(format!("{}: older segments can't be removed", file.name), error);
    let (removed, pinned) = segments::remove(directory, journal, before).map_err(io)?;
    let forgotten = (!removed.is_empty()).then(|| Forgotten {
        segments: removed.len() as u64,
        bytes: removed.iter().map(|(_, bytes)| bytes).sum(),
        transactions: (Txid(oldest.first_own_txid()), Txid(base.first_own_txid() - 1)),
        times: (Timestamp(oldest.created), Timestamp(base.created)),
    });
    Ok((forgotten, pinned))
}

/// Returns how a directory shows a kept segment.
fn shown(directory: &dyn Directory, journal: &str, segment: u64) -> String {
    directory.display(&kept_name(journal, segment))
}
