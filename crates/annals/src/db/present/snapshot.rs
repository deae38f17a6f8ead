//! Snapshots: a committed state, as long as it is referenced.

use annals_schema::Txid;
use std::ops::Deref;
use std::sync::Arc;

use crate::db::present::segment::JournalFile;
use crate::debug::brief;
use crate::journal::Point;
use crate::store::View;

/// A view and its position in the journal.
#[derive(Debug)]
pub(in crate::db) struct Published {
    pub(in crate::db) view: Arc<View>,
    pub(in crate::db) point: Point,
    pub(in crate::db) file: Arc<JournalFile>,
}

/// An immutable, consistent view of the database as of one transaction. Cheap to clone. A snapshot keeps the
/// pages alive that later transactions replace, and the journal open for reading its blobs.
#[derive(Clone)]
pub struct Snapshot {
    pub(in crate::db) published: Arc<Published>,
}

brief!(Snapshot, "Snapshot", "txid": |it| it.txid());

impl Snapshot {
    pub(in crate::db) const fn new(published: Arc<Published>) -> Self {
        Self { published }
    }

    /// Returns the number of the last transaction in it; 0 if there was none.
    #[must_use]
    pub fn txid(&self) -> Txid {
        self.published.point.txid
    }

    /// Returns the end of the snapshot's last transaction in the journal: position, transaction number and chain hash.
    #[must_use]
    pub fn point(&self) -> Point {
        self.published.point
    }
}

impl Deref for Snapshot {
    type Target = View;

    fn deref(&self) -> &View {
        &self.published.view
    }
}
