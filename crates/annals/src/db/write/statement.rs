//! The part of a statement that changes the store.

use crate::db::write::transaction::Transaction;
use crate::store::Store;
use crate::{Error, ErrorKind, Result};

/// Does a part of a statement in the store.
#[inline(always)]
pub(in crate::db) fn change<T>(
    tx: &mut Transaction<'_>,
    change: impl FnOnce(&mut Store) -> Result<T>,
) -> Result<T> {
    tx.statements += 1;
    change(&mut tx.writing.store).map_err(|error| stopped(&mut tx.broken, error))
}

/// Sets `broken` if an error can have stopped the store in the middle of a change; returns the error.
#[cold]
fn stopped(broken: &mut bool, error: Error) -> Error {
    *broken |= matches!(error.kind(), ErrorKind::Io | ErrorKind::Corrupt | ErrorKind::PageLost);
    error
}
