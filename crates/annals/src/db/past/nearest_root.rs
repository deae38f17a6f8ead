//! Where the past is replayed from: the nearest earlier root of the image.

use annals_schema::Txid;
use std::sync::Arc;

use crate::Result;
use crate::db::image::opening::load;
use crate::db::past::at::Present;
use crate::db::present::segment::JournalFile;
use crate::db::replay::segments::Since;
use crate::db::replay::state::Replay;
use crate::image::{Guarded, Identity, Image, KeyFrame, Root, image_name};
use crate::journal::format::Header;
use crate::store::{Pager, Store};

/// A root of the image at a moment or before it, ready for a replay from there.
pub(in crate::db) struct NearestRoot {
    /// Where in the journal it is.
    pub(in crate::db) since: Since,
    pub(in crate::db) replay: Replay,
}

/// Returns how many late entries of indexes a past state may keep until they are needed: reading the past seldom
/// needs all indexes. Each takes some 50 bytes.
pub(in crate::db) fn late_entries(budget: u64) -> usize {
    usize::try_from(budget >> 8).unwrap_or(usize::MAX).clamp(1 << 14, 1 << 20)
}

impl NearestRoot {
    /// Finds the nearest root before the end of a transaction, which the segment with this header has. `None` if
    /// there is none that can be used: a problem of an image is no error here.
    ///
    /// # Errors
    /// `Unreachable`, `Forgotten`: the image is on another machine, which doesn't answer, or has another by now.
    pub(in crate::db) fn find(
        file: &JournalFile,
        present: &Present<'_>,
        header: &Header,
        txid: u64,
    ) -> Result<Option<Self>> {
        let Present { clock, budget, .. } = *present;
        if file.storage.has_fixed_len() {
            return Ok(None);
        }
        let (directory, name) = (&file.directory, image_name(&file.journal));
        // A new image that was made meanwhile may be for a later segment.
        let (journal_id, segment) = (header.journal_id, u64::MAX);
        let identity = Identity { journal_id, segment, segment_hash: 0 };
        let last = file.roots_until.map_or(txid, |until| until.0.min(txid));
        let is_before =
            |root: &Root| root.segment <= header.segment && root.point.txid <= Txid(last);
        let found = Image::frame(directory, &name, &identity, clock, &file.damage, &is_before);
        let Some(KeyFrame { image, root, catalog, pin }) = unless_remote(found)?.flatten() else {
            return Ok(None);
        };
        let source = Arc::new(Guarded(Arc::new(image)));
        let pager = Arc::new(Pager::new(source, budget, root.memory() <= budget));
        let Some((_, view)) = unless_remote(load(&catalog, &pager))? else { return Ok(None) };
        let view = view.pinned(Arc::new(pin));
        let store = Store::resume(view).delaying(late_entries(budget));
        let since = Since { segment: root.segment, point: root.point };
        Ok(Some(Self { since, replay: Replay::resume(store, root.segment) }))
    }
}

/// Returns what was found, or nothing after an error that says something about the image.
fn unless_remote<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Err(error) if error.is_remote() => Err(error),
        found => Ok(found.ok()),
    }
}
