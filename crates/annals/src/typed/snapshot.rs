//! A snapshot of a database whose schema is known when compiling.

use annals_schema::Txid;
use std::fmt;
use std::ops::Deref;

use super::{Change, Id, TypedSchema, Version, Versioned};
use crate::{Blob, BlobReader, Result};

/// An immutable, consistent view of the database as of one transaction. Cheap to clone.
///
/// Its tables are methods of the generated [`Tables`](TypedSchema::Reading), to which it
/// dereferences: `db.read().city()`.
pub struct Snapshot<S: TypedSchema> {
    tables: S::Reading,
}

impl<S: TypedSchema> Snapshot<S> {
    /// Adds the methods of the schema to a snapshot that has it.
    #[doc(hidden)]
    #[must_use]
    pub fn new(snapshot: crate::Snapshot) -> Self {
        Self { tables: S::reading(snapshot) }
    }

    /// Returns the number of the last transaction that it sees.
    #[must_use]
    pub fn txid(&self) -> Txid {
        self.as_dynamic().txid()
    }

    /// Returns the last change of a row up to this snapshot, with its transaction, time and comments; `None` if the row
    /// never existed. So it says since when the row is as it is, for an `ETag` or "modified at".
    ///
    /// Cost: as [`History::newest`](super::History::newest).
    ///
    /// # Errors
    /// The file is damaged; I/O error.
    pub fn last_change<R: Versioned<Schema = S>>(
        &self,
        id: Id<R>,
    ) -> Result<Option<Version<Change<R>>>>
    where
        S::Change: From<Change<R>>,
    {
        self.as_dynamic().last_change(R::TABLE, id.into())?.map(Version::new).transpose()
    }

    /// Opens a blob, to be read piece by piece. The reader may outlive the snapshot.
    ///
    /// # Errors
    /// There is no such blob.
    pub fn read_blob(&self, blob: Blob) -> Result<BlobReader<'static>> {
        self.as_dynamic().blob(blob)
    }

    /// Returns the same snapshot without the types of its schema.
    #[must_use]
    pub fn as_dynamic(&self) -> &crate::Snapshot {
        S::snapshot(&self.tables)
    }
}

impl<S: TypedSchema> Deref for Snapshot<S> {
    type Target = S::Reading;

    #[inline]
    fn deref(&self) -> &S::Reading {
        &self.tables
    }
}

impl<S: TypedSchema> Clone for Snapshot<S> {
    fn clone(&self) -> Self {
        Self { tables: self.tables.clone() }
    }
}

impl<S: TypedSchema> fmt::Debug for Snapshot<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_dynamic().fmt(f)
    }
}
