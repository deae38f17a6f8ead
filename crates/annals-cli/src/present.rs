//! The state that a session sees: the last commit, or its own pending changes.

use std::ops::Deref;

use annals::{Blob, BlobReader, Field, Result, Snapshot, Table, Transaction, View};

/// The present state, pending changes included.
pub(crate) enum Present<'s> {
    /// A transaction is open.
    Pending(&'s Transaction<'s>),
    /// None is.
    Committed(Snapshot),
}

impl Present<'_> {
    /// Opens a blob for reading.
    pub(crate) fn blob(&self, blob: Blob) -> Result<BlobReader<'_>> {
        match self {
            Self::Pending(transaction) => transaction.blob(blob),
            Self::Committed(snapshot) => snapshot.blob(blob),
        }
    }
}

impl Deref for Present<'_> {
    type Target = View;

    fn deref(&self) -> &View {
        match self {
            Self::Pending(transaction) => transaction.view(),
            Self::Committed(snapshot) => snapshot,
        }
    }
}

/// Returns the fields of a table that may not be null, but have values that were erased, or once had: those are null.
pub(crate) fn erased<'t>(present: &Present<'_>, table: &'t Table) -> Result<Vec<&'t Field>> {
    let rows = present.table(table.number)?;
    Ok(table.fields.iter().filter(|field| rows.has_erased(field.number)).collect())
}
