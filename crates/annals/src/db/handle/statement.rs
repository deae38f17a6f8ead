//! The part of a statement that changes the store.

use crate::db::engine::rebuild;
use crate::db::handle::transaction::Transaction;
use crate::store::Store;
use crate::{Error, ErrorKind, Result};

/// Does a part of a statement in the store: again, where a page is lost and nothing was changed yet.
#[inline(always)]
pub(in crate::db) fn change<T>(
    tx: &mut Transaction<'_>,
    mut change: impl FnMut(&mut Store) -> Result<T>,
) -> Result<T> {
    tx.statements += 1;
    tx.writing.store.forget_rescue();
    match change(&mut tx.writing.store) {
        Err(error) => change_again(tx, error, change),
        done => done,
    }
}

#[cold]
fn change_again<T>(
    tx: &mut Transaction<'_>,
    mut error: Error,
    mut change: impl FnMut(&mut Store) -> Result<T>,
) -> Result<T> {
    loop {
        recover_from(tx, error)?;
        match change(&mut tx.writing.store) {
            Err(again) => error = again,
            done => return done,
        }
    }
}

fn recover_from(tx: &mut Transaction<'_>, error: Error) -> Result<()> {
    if error.kind() != ErrorKind::PageLost {
        return Err(stopped(&mut tx.broken, error));
    }
    // Savepoints lie over the lost page, too.
    let changed = !tx.is_empty() || !tx.savepoints.is_empty();
    let core = tx.database;
    let gone = rebuild::recover_from_lost_page(core, &mut tx.writing, changed, error);
    gone.map_err(|error| stopped(&mut tx.broken, error))
}

/// Sets `broken` if an error can have stopped the store in the middle of a change; returns the error.
#[cold]
fn stopped(broken: &mut bool, error: Error) -> Error {
    *broken |= matches!(error.kind(), ErrorKind::Io | ErrorKind::Corrupt | ErrorKind::PageLost);
    error
}
