//! Snapshots: a committed state, as long as it is referenced.

use annals_schema::{TableNumber, Txid};
use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::Result;
use crate::db::present::segment::JournalFile;
use crate::debug::brief;
use crate::journal::Point;
use crate::storage::{Directory, Storage};
use crate::store::{Past, PastRow, View};

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

    /// Returns what was published, to the process that opened the database; fails in a child that was forked since.
    pub(in crate::db) fn here(&self) -> Result<&Arc<Published>> {
        check_origin(self).map(|()| &self.published)
    }

    /// Returns the state of a database as a process sees it that was forked since: each read of it is an error.
    #[cold]
    pub(in crate::db) fn elsewhere(published: &Published) -> Self {
        let Published { view, point, file } = published;
        let view = Arc::new(View::lazily(view, Arc::new(Elsewhere(Arc::clone(file)))));
        Self::new(Arc::new(Published { view, point: *point, file: Arc::clone(file) }))
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

/// Makes a snapshot of a state that was read from outside: of a journal in a directory, in this segment of it.
#[must_use]
pub fn snapshot_of(
    view: Arc<View>,
    point: Point,
    storage: Arc<dyn Storage>,
    segment: u64,
    directory: Arc<dyn Directory>,
    journal: &str,
) -> Snapshot {
    let file = Arc::new(JournalFile::new(storage, segment, directory, journal));
    Snapshot::new(Arc::new(Published { view, point, file }))
}

/// Returns the name of its file in messages.
#[must_use]
pub fn name_of(snapshot: &Snapshot) -> &str {
    &snapshot.published.file.name
}

/// Fails in a process that was forked since a state's database was opened.
///
/// # Errors
/// `Poisoned`.
pub fn check_origin(snapshot: &Snapshot) -> Result<()> {
    snapshot.published.file.check_origin()
}

/// The state of another process.
#[derive(Debug)]
struct Elsewhere(Arc<JournalFile>);

impl Past for Elsewhere {
    fn whole(&self) -> Result<Arc<View>> {
        let Err(error) = self.0.check_origin() else { unreachable!("it was made in a child") };
        Err(error)
    }

    fn row(&self, _: TableNumber, _: &Range<u64>) -> Result<PastRow> {
        Ok(PastRow::Unknown)
    }
}

impl Deref for Snapshot {
    type Target = View;

    fn deref(&self) -> &View {
        &self.published.view
    }
}
