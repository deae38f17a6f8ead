//! Looking at a history index from outside, and verifying it.

use std::sync::Arc;

use crate::db::follow::inspection::HistoryInspection;
use crate::db::follow::opening::load;
use crate::db::past::history::about::{About, COMMANDS, MARKS};
use crate::db::past::history::current::Current;
use crate::db::past::history::files::Files;
use crate::db::present::snapshot::Snapshot;
use crate::image::{Damage, Guarded, Identity, Image, KeyFrame, image_name};
use crate::journal::Survey;
use crate::storage::{Directory, SystemClock};
use crate::store::Pager;
use crate::store::history::{Entry, HistoryIndex};
use crate::{Error, ErrorKind, Result};

/// The result of verifying a history index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryCheck {
    /// Facts of it.
    pub inspection: HistoryInspection,
    /// Its problem, if there is one. Nothing is lost by that.
    pub problem: Option<String>,
}

/// Examines the history index in the image of a journal; `None` if there is none.
pub(in crate::db) fn inspect(
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
    let (_, view) = load(&catalog, &pager).ok()?;
    let view = view.pinned(Arc::new(pin));
    inspection_of(view.history_index())
}

fn inspection_of(index: &HistoryIndex) -> Option<HistoryInspection> {
    if index.is_missing() {
        return None;
    }
    let txid = About::decode(index.about()).map(|about| about.end.point.txid);
    let txid = txid.map_err(|error| error.to_string());
    Some(HistoryInspection { txid, entries: index.entries(), nodes: index.nodes() })
}

/// Does what [`Snapshot::check_history_index`] does.
pub(in crate::db) fn check_index(snapshot: &Snapshot, deep: bool) -> Result<Option<HistoryCheck>> {
    let index = snapshot.published.view.history_index();
    let Some(inspection) = inspection_of(index) else { return Ok(None) };
    let problem = match compare(snapshot, index, deep) {
        Err(error) if error.kind() == ErrorKind::Io => return Err(error),
        compared => compared.err().map(|error| error.to_string()),
    };
    Ok(Some(HistoryCheck { inspection, problem }))
}

/// Compares the contents of an index with the journal.
fn compare(snapshot: &Snapshot, index: &Arc<HistoryIndex>, deep: bool) -> Result<()> {
    index.check()?;
    let about = About::decode(index.about())?;
    if !deep {
        return Ok(());
    }
    let files = Files::open(&snapshot.published)?;
    let first = files.first().segment;
    if about.end.segment < first {
        return Ok(()); // all of it was forgotten
    }
    let mut current = Current { index: Arc::clone(index), about };
    current.extend(&files, &snapshot.published, None)?;
    let mut made = Current::beginning(&files);
    made.about.left_out.clone_from(&current.about.left_out);
    made.extend(&files, &snapshot.published, None)?;
    if entries_of(&current, first)? != entries_of(&made, first)? {
        return Err(Error::corrupt("the history index has other changes than the journal"));
    }
    Ok(())
}

/// Returns the entries of the kept history, with places as if that were all. Marks depend on when they were made.
fn entries_of(Current { index, about }: &Current, first: u64) -> Result<Vec<Entry>> {
    let part = about.parts.iter().find(|part| part.segment == first);
    let base = part.map_or(0, |part| part.base);
    let kept = crate::db::past::history::kept::filtered(index, base / 8, vec![0])?;
    let mut all = Vec::new();
    kept.each(&mut |entry| {
        let is_forgotten = entry.key.table == COMMANDS && entry.key.row < base / 8;
        let is_compared = entry.key.table != MARKS && !is_forgotten;
        all.extend(is_compared.then(|| crate::db::past::history::kept::moved(entry, base / 8)));
        Ok(())
    })?;
    Ok(all)
}
