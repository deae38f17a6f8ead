//! Comparing a history index with the journal.

use std::sync::Arc;

use annals_schema::Txid;

use crate::db::past::history::about::{About, COMMANDS, MARKS, TRANSACTIONS, UNIT};
use crate::db::past::history::current::Current;
use crate::db::past::history::files::Files;
use crate::db::present::snapshot::Snapshot;
use crate::journal::format::FRAMES_AT;
use crate::store::history::{Entry, HistoryIndex, Key};
use crate::{Error, Result};

/// Returns the last transaction in a history index.
///
/// # Errors
/// `Corrupt`.
pub fn indexed_until(index: &HistoryIndex) -> Result<Txid> {
    About::decode(index.about()).map(|about| about.end.point.txid)
}

/// Returns the end of the first transaction in a segment, or of the state with which the segment begins, by a history
/// index; `None` if the index doesn't have the segment, or that transaction is one small frame.
///
/// # Errors
/// `Corrupt`; a node can't be loaded.
pub fn first_end(index: &HistoryIndex, segment: u64) -> Result<Option<u64>> {
    let about = About::decode(index.about())?;
    let Some(part) = about.parts.iter().find(|part| part.segment == segment) else {
        return Ok(None);
    };
    if let Some(state) = part.state {
        return Ok(Some(state.end));
    }
    let row = about.unit_of(segment, FRAMES_AT);
    let found = index.record_at(Key { table: TRANSACTIONS, row })?.filter(|it| it.row == row);
    let len = found.and_then(|record| record.numbers.first().copied());
    Ok(len.map(|len| FRAMES_AT + len * UNIT))
}

/// Verifies the history index of a state; if `deep`, also compares its contents with the journal.
///
/// # Errors
/// `Corrupt`: it is wrong, or the journal can't be read; `Io`.
pub fn compare_history_index(snapshot: &Snapshot, deep: bool) -> Result<()> {
    let index = snapshot.published.view.history_index();
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
