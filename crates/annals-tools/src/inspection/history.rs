//! Looking at a history index from outside, and verifying it.

use std::sync::Arc;

use annals::internals::{compare_history_index, indexed_until, load_image};
use annals::journal::Survey;
use annals::{ErrorKind, Result, Snapshot, Txid};
use annals_storage::{Directory, SystemClock};
use annals_store::Pager;
use annals_store::history::HistoryIndex;
use annals_store::image::{Damage, Guarded, Identity, Image, KeyFrame, image_name};

/// Facts of the history index, the part of an image that leads to the changes of each row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryInspection {
    /// The last transaction in it; or the reason that it can't be used.
    pub txid: std::result::Result<Txid, String>,
    /// The number of its entries: consecutive rows that were changed at one place of the journal, a comment there, or
    /// a number that describes a part of the journal.
    pub entries: u64,
    /// How many nodes of at most 4 KiB its tree has had.
    pub nodes: u64,
}

/// The result of verifying a history index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryCheck {
    /// Facts of it.
    pub inspection: HistoryInspection,
    /// Its problem, if there is one. Nothing is lost by that.
    pub problem: Option<String>,
}

/// Examines the history index in the image of a journal; `None` if there is none.
pub(super) fn inspect(
    directory: &dyn Directory,
    journal: &str,
    survey: &Survey,
) -> Option<HistoryInspection> {
    let header = survey.head.header;
    let journal_id = header.journal_id;
    let identity = Identity { journal_id, segment: u64::MAX, segment_hash: 0 };
    let (directory, name) = (directory.again(), image_name(journal));
    let damage = Arc::<Damage>::default();
    let newest = Image::frame(&directory, &name, &identity, &SystemClock, &damage, &|_| true);
    let KeyFrame { image, catalog, pin, .. } = newest.ok()??;
    let pager = Arc::new(Pager::new(Arc::new(Guarded(Arc::new(image))), 0, false));
    let (_, view) = load_image(&catalog, &pager).ok()?;
    let view = view.pinned(Arc::new(pin));
    inspection_of(view.history_index())
}

fn inspection_of(index: &HistoryIndex) -> Option<HistoryInspection> {
    if index.is_missing() {
        return None;
    }
    let txid = indexed_until(index).map_err(|error| error.to_string());
    Some(HistoryInspection { txid, entries: index.entries(), nodes: index.nodes() })
}

/// Verifies the history index in the image: its nodes, their order, and the number of entries. If `deep`, the
/// index is also rebuilt in memory from the journal, and each entry compared. `None` if there is no image, or no
/// index in it.
///
/// Cost: reads the index, and for a deep check the journal; memory for all entries.
///
/// # Errors
/// `Corrupt` if the journal can't be read; `Io`. That the index is wrong is part of the answer.
pub fn check_history_index(snapshot: &Snapshot, deep: bool) -> Result<Option<HistoryCheck>> {
    let Some(inspection) = inspection_of(snapshot.history_index()) else { return Ok(None) };
    let problem = match compare_history_index(snapshot, deep) {
        Err(error) if error.kind() == ErrorKind::Io => return Err(error),
        compared => compared.err().map(|error| error.to_string()),
    };
    Ok(Some(HistoryCheck { inspection, problem }))
}
