//! Looking at a history index from outside, and verifying it.

use crate::db::history::files::Files;
use crate::db::history::find::with_index;
use crate::db::inspection::HistoryInspection;
use crate::db::present::snapshot::Snapshot;
use crate::history::{self, Bound, Entry, IndexFile, Zone, history_name};
use crate::image::Witness;
use crate::journal::Survey;
use crate::storage::{Access, Directory};
use crate::{Error, Result};

/// The result of verifying a history index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryCheck {
    /// Facts of it.
    pub inspection: HistoryInspection,
    /// Its problem, if there is one. Nothing is lost by that.
    pub problem: Option<String>,
}

/// Examines the history index of a journal; `None` if there is none.
pub(in crate::db) fn inspect(
    directory: &dyn Directory,
    journal: &str,
    survey: &Survey,
) -> Option<HistoryInspection> {
    let name = history_name(journal);
    let path = directory.display(&name);
    let opened = IndexFile::open(directory, &name, survey.head.header.journal_id, Access::Read);
    let told = |txid, len| HistoryInspection { path, len, txid, zones: 0, entries: 0, runs: 0 };
    match opened {
        Ok(None) => None,
        Ok(Some(index)) => Some(told_of(&index)),
        Err(error) => {
            let len = directory.open(&name, Access::Read).and_then(|file| file.len());
            Some(told(Err(error.to_string()), len.unwrap_or(0)))
        }
    }
}

/// Returns the point of the journal that its history index proves: that is never beyond the image's.
pub(in crate::db) fn witness(
    directory: &dyn Directory,
    journal: &str,
    journal_id: [u8; 16],
) -> Option<Witness> {
    let name = history_name(journal);
    let index = IndexFile::open(directory, &name, journal_id, Access::Read).ok()??;
    let Bound { segment, point, .. } = index.head().bound;
    Some(Witness { what: "history index", segment, point })
}

fn told_of(index: &IndexFile) -> HistoryInspection {
    let head = index.head();
    HistoryInspection {
        path: index.shown().to_owned(),
        len: index.len().unwrap_or(0),
        txid: Ok(head.bound.point.txid),
        zones: head.runs.iter().map(|run| run.zones).sum(),
        entries: head.runs.iter().map(|run| run.entries).sum(),
        runs: head.runs.len(),
    }
}

/// Does what [`Snapshot::check_history_index`] does.
pub(in crate::db) fn check_index(snapshot: &Snapshot, deep: bool) -> Result<Option<HistoryCheck>> {
    let files = Files::open(&snapshot.published)?;
    let name = history_name(&files.file.journal);
    let directory = &*files.file.directory;
    let opened = IndexFile::open(directory, &name, files.journal_id(), Access::Read);
    let index = match opened {
        Ok(None) => return Ok(None),
        Ok(Some(index)) => index,
        Err(error) if error.kind() == crate::ErrorKind::Corrupt => {
            let inspection = HistoryInspection {
                path: directory.display(&name),
                len: 0,
                txid: Err(error.to_string()),
                zones: 0,
                entries: 0,
                runs: 0,
            };
            return Ok(Some(HistoryCheck { inspection, problem: Some(error.to_string()) }));
        }
        Err(error) => return Err(error),
    };
    let inspection = told_of(&index);
    let (_, mut problem) = with_index(&files, |_| Ok(()))?;
    if problem.is_none() {
        problem = match compare(snapshot, &files, &index, deep) {
            Err(error) if error.kind() == crate::ErrorKind::Io => return Err(error),
            compared => compared.err().map(|error| error.to_string()),
        };
    }
    Ok(Some(HistoryCheck { inspection, problem }))
}

/// Compares the contents of an index with the journal.
fn compare(snapshot: &Snapshot, files: &Files, index: &IndexFile, deep: bool) -> Result<()> {
    let (mut zones, mut entries) = (Vec::new(), Vec::new());
    let mut zone = |number: u64, zone: &Zone| -> Result<()> {
        zones.push((number, *zone));
        Ok(())
    };
    let mut entry = |entry: &Entry| -> Result<()> {
        entries.extend(deep.then_some(*entry));
        Ok(())
    };
    history::check(index, &mut zone, &mut entry)?;
    if !deep {
        return Ok(());
    }
    entries.sort_unstable_by_key(|entry| (entry.zone, *entry));
    let mut left = entries.as_slice();
    let first = files.first().segment;
    let end = (files.segment(), files.end.position);
    let is_there = |zone: &Zone| zone.segment >= first && (zone.segment, zone.end.position) <= end;
    for (number, zone) in zones.iter().filter(|(_, zone)| is_there(zone)) {
        let made = super::collect::entries_of(files, snapshot.schema(), *number, zone)?;
        let from = left.partition_point(|entry| entry.zone < *number);
        let of = left.get(from..).unwrap_or_default();
        let (of, rest) = of.split_at(of.partition_point(|entry| entry.zone == *number));
        if of != made.as_slice() {
            return Err(Error::corrupt(format!(
                "{}: it tells of other changes from position {} of segment {} on than the journal has",
                index.shown(),
                zone.start.position,
                zone.segment
            )));
        }
        left = rest;
    }
    Ok(())
}
