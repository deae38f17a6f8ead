//! Finding the segment in which a journal continued.

use std::io;
use std::sync::Arc;

use crate::db::present::segment::JournalFile;
use crate::journal::Head;
use crate::storage::{Access, Storage};
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
