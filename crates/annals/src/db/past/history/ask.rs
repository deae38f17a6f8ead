//! Questions to the history index, which the journal answers where the index can't.

use std::sync::Arc;

use crate::db::past::history::places::Places;
use crate::db::present::snapshot::Published;
use crate::{Error, ErrorKind, Result};

/// Asks a question of the history index; returns the answer, and what gave it. If the index is damaged, it is an index
/// made of the journal, which is kept for the next question, and which the next backfill stores.
///
/// Cost: that of the question; with a damaged index reading the whole journal.
///
/// # Errors
/// Those of the question to an index made of the journal.
pub(in crate::db) fn ask<T>(
    published: &Arc<Published>,
    question: impl Fn(&mut Places) -> Result<T>,
) -> Result<(T, Places)> {
    let answered = |mut places| Ok((question(&mut places)?, places));
    match Places::open(published).and_then(answered) {
        Err(error) if may_be_of_index(&error) => Places::anew(published).and_then(answered),
        answer => answer,
    }
}

/// True if an error may be the index's.
pub(in crate::db) fn may_be_of_index(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::PageLost | ErrorKind::Io)
}
