//! The values that were erased since a moment: each is null, also in a field that may be null.

use std::sync::Arc;

use annals_schema::{FieldNumber, Txid};

use crate::Result;
use crate::db::changes::window::Key;
use crate::db::history::ask::ask;
use crate::db::present::snapshot::Published;
use crate::journal::Erasure;

/// The marks of the erasures since a moment.
pub(super) struct Erased(Vec<Erasure>);

impl Erased {
    /// Reads the marks after a transaction.
    ///
    /// Cost: if anything was ever erased, reading the journal after the transaction.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported`, `Io`.
    pub(super) fn since(published: &Arc<Published>, txid: u64) -> Result<Self> {
        let mut marks = Vec::new();
        if published.file.head()?.header.last_erasure().is_none() {
            return Ok(Self(marks));
        }
        let (end, places) = ask(published, |places| places.end_of(txid))?;
        let mut next = Some(end.map_or_else(|| places.files.first(), |end| end.since));
        while let Some(since) = next {
            next = places.files.read(since, u64::MAX, &mut |seen| {
                marks.extend(Erasure::of(seen.frame));
                Ok(())
            })?;
        }
        marks.retain(|mark| mark.txid > Txid(txid));
        Ok(Self(marks))
    }

    /// True if a value of a field of a row was erased.
    pub(super) fn has(&self, (table, row): Key, field: FieldNumber) -> bool {
        self.0.iter().any(|mark| {
            mark.table == table && mark.row == row && mark.field.is_none_or(|it| it == field)
        })
    }
}
