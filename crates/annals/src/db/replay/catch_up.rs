//! Following a journal into the segment in which it continued.

use std::io;
use std::sync::Arc;

use crate::db::present::segment::JournalFile;
use crate::db::replay::scan::Replay;
use crate::db::replay::segments::{Past, Since};
use crate::journal::{Head, Point};
use crate::storage::{Access, Directory, Storage};
use crate::store::{Store, View};
use crate::{Error, ErrorKind, Result};

/// The number of tries to find the new segment while it changes.
pub(in crate::db) const TRIES: usize = 100;

/// The file at the path now.
pub(in crate::db) struct Found {
    pub(in crate::db) storage: Arc<dyn Storage>,
    pub(in crate::db) head: Head,
}

/// Opens the file at the path, if it is of the same journal and after the old one. (Or a replacement of it: a segment
/// without commits may have lost the path again. If the path refers to the earlier segment, there is no new one, and
/// no new commits.)
pub(in crate::db) fn find(
    old: &JournalFile,
    id: [u8; 16],
    txid: u64,
    access: Access,
) -> Result<Option<Found>> {
    let storage = match old.directory.open(&old.journal, access) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(gone(&old.name)),
        opened => opened.map_err(|error| crate::journal::cannot_open(&old.name, access, error))?,
    };
    let head = Head::read(&*storage, &old.name)?;
    let header = &head.header;
    let is_behind = header.segment > old.segment;
    let is_in_its_place = header.segment == old.segment && header.first_own_txid() == txid + 1;
    if header.journal_id == id && header.segment + 1 == old.segment {
        return Ok(None);
    }
    if header.journal_id != id || !(is_behind || is_in_its_place) {
        return Err(gone(&old.name));
    }
    Ok(Some(Found { storage, head }))
}

/// Returns the error that the path refers to no continuation of this journal.
pub(in crate::db) fn gone(shown: &str) -> Error {
    let message =
        format!("{shown}: the file was removed or replaced while it was open: open it again");
    Error::new(ErrorKind::NotFound, message)
}

/// Replays a store from a commit in an old segment to the end of one in the new, at position `to`; returns that
/// commit. If it fails, the store is unchanged.
pub(in crate::db) fn catch_up(
    directory: &dyn Directory,
    journal: &str,
    found: &Found,
    since: Since,
    to: u64,
    store: Store,
) -> (Store, Result<(Arc<View>, Point)>) {
    let header = &found.head.header;
    let (storage, head, shown) = (&*found.storage, &found.head, directory.display(journal));
    let past = match since.segment == header.segment {
        true => Ok(Some(Past::known(header, since.point))),
        false => Past::since(directory, journal, header, since),
    };
    let past = match past {
        Ok(past) => past,
        Err(error) => return (store, Err(error)),
    };
    let rebuild = || -> Result<_> {
        let past = Past::needed(directory, journal, header)?;
        let mut replay = Replay::default();
        let end = past.replay_to(&mut replay, storage, head, to, &shown)?;
        Ok((replay.finish(), end))
    };
    let Some(past) = past else {
        return match rebuild() {
            Ok(((rebuilt, view), end)) => (rebuilt, Ok((view, end))),
            Err(error) => (store, Err(error)),
        };
    };
    let mut replay = Replay::resume(store, since.segment);
    match past.replay_to(&mut replay, storage, head, to, &shown) {
        Ok(end) => {
            let (store, view) = replay.finish();
            (store, Ok((view, end)))
        }
        // The commit may have been taken back, in a recovery, before the old segment was sealed.
        Err(error) if since.segment != header.segment && error.kind() == ErrorKind::Corrupt => {
            match rebuild() {
                Ok(((rebuilt, view), end)) => (rebuilt, Ok((view, end))),
                Err(_) => (replay.give_up(), Err(error)),
            }
        }
        Err(error) => (replay.give_up(), Err(unapplied(error, since.point.txid.0))),
    }
}

/// Adds advice for a commit that doesn't apply in a segment in which the journal continued.
fn unapplied(error: Error, txid: u64) -> Error {
    if error.transaction().is_none() {
        return error;
    }
    let advice = "open the database again to see which event, and what to do";
    let message = format!("{error}; what is shown stays as of transaction {txid}: {advice}");
    Error::new(ErrorKind::Unapplied, message)
}
