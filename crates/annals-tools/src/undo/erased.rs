//! The values that were erased since a moment: each is null, also in a field that may be null.

use annals::internals::erasures_since;
use annals::journal::Erasure;
use annals::{FieldNumber, Result, RowId, Snapshot, TableNumber, Txid};

/// The marks of the erasures since a moment.
pub(super) struct Erased(Vec<Erasure>);

impl Erased {
    /// Reads the marks after a transaction.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported`, `Io`.
    pub(super) fn since(committed: &Snapshot, txid: Txid) -> Result<Self> {
        erasures_since(committed, txid).map(Self)
    }

    /// True if a value of a field of a row was erased.
    pub(super) fn has(&self, table: TableNumber, row: RowId, field: FieldNumber) -> bool {
        self.0.iter().any(|mark| {
            mark.table == table && mark.row == row && mark.field.is_none_or(|it| it == field)
        })
    }
}
