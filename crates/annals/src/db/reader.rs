//! Reading a database without being able to write it.

use std::sync::Arc;

use super::scan::{Replay, open_to_read, survey_moving};
use super::snapshot::{JournalFile, Published, Snapshot};
use crate::Result;
use crate::storage::Directory;

/// A database opened for reading only, as of its last commit when it was opened.
#[derive(Debug)]
pub struct Reader {
    published: Arc<Published>,
}

impl Reader {
    /// Opens for reading only in any directory; see
    /// [`Options::open_read_only`](crate::Options::open_read_only).
    ///
    /// # Errors
    /// `NotFound`, `NotAJournal`, `Unsupported`, `Corrupt`, `Io`.
    pub fn open(directory: &dyn Directory, name: &str) -> Result<Self> {
        let (storage, shown) = open_to_read(directory, name)?;
        let (survey, replay) =
            survey_moving(&*storage, &shown, |replay: &mut Replay, frame, end| {
                replay.frame(frame, end, &shown)
            })?;
        let (_, view) = replay.finish();
        let file = Arc::new(JournalFile { storage, name: shown });
        Ok(Self { published: Arc::new(Published { view, point: survey.end, file }) })
    }

    /// Gives the state as of the last commit.
    #[must_use]
    pub fn read(&self) -> Snapshot {
        Snapshot::new(Arc::clone(&self.published))
    }
}
