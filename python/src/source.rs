//! Where rows are read: in a snapshot, or in an open transaction.

use annals::View;
use pyo3::prelude::*;

use crate::transaction::Transaction;
use crate::values::Blobs;

/// A state of the database: that of a snapshot stays, that of a transaction is its present one.
pub(crate) enum Source {
    Snapshot(annals::Snapshot),
    Transaction(Py<Transaction>),
}

impl Source {
    pub(crate) fn share(&self, py: Python<'_>) -> Self {
        match self {
            Self::Snapshot(snapshot) => Self::Snapshot(snapshot.clone()),
            Self::Transaction(transaction) => Self::Transaction(transaction.clone_ref(py)),
        }
    }

    /// Reads in it.
    pub(crate) fn look<T>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(&View, Blobs<'_>) -> PyResult<T>,
    ) -> PyResult<T> {
        match self {
            Self::Snapshot(snapshot) => read(snapshot, &|blob| read_blob(snapshot, blob)),
            Self::Transaction(transaction) => transaction
                .get()
                .in_part(py, |tx| read(tx.view(), &|blob| tx.blob(blob)?.to_vec(usize::MAX))),
        }
    }
}

/// Reads the bytes of a blob.
pub(crate) fn read_blob(
    snapshot: &annals::Snapshot,
    blob: annals::Blob,
) -> annals::Result<Vec<u8>> {
    snapshot.blob(blob)?.to_vec(usize::MAX)
}
