//! The tail of a journal: plain events, existing and new ones.

use annals_schema::Txid;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::db::follow::options;
use crate::db::follow::scan::Sink;
use crate::db::follow::segments::open_moving;
use crate::db::past::reader::acknowledged_in;
use crate::db::past::time::cursor::{End, JournalCursor};
use crate::db::present::segment::JournalFile;
use crate::journal::{Head, Point, Survey};
use crate::storage::{Directory, Storage};
use crate::{Error, ErrorKind, Result};

/// Reads the history of a file that another process may be writing, and then new commits, as events without a state.
/// Its memory doesn't grow with the history.
///
/// It shows commits that the writer has acknowledged and noted in the file, which takes it 10 ms. Of a writer that
/// was killed, it shows the commits that the next writer keeps.
pub struct Tail {
    directory: Arc<dyn Directory>,
    name: String,
    cursor: Option<JournalCursor>,
    /// The segment that was written when it last read, by its number and the hash of its header.
    newest: Option<(u64, u64)>,
}

impl fmt::Debug for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tail")
            .field("name", &self.name)
            .field("txid", &self.txid())
            .finish_non_exhaustive()
    }
}

impl Tail {
    /// Begins before the whole kept history of a file. Reads nothing yet.
    ///
    /// # Errors
    /// `Invalid`: the path can't be that of a file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let (directory, name) = options::locate(path.as_ref())?;
        Ok(Self::open_in(&*directory, &name))
    }

    /// Does what [`open`](Self::open) does, in a directory that the caller passes.
    #[must_use]
    pub fn open_in(directory: &dyn Directory, name: &str) -> Self {
        Self { directory: directory.again(), name: name.to_owned(), cursor: None, newest: None }
    }

    /// Returns the number of the last transaction that was read; 0: none was.
    #[must_use]
    pub fn txid(&self) -> Txid {
        Txid(self.cursor.as_ref().map_or(0, JournalCursor::txid))
    }

    /// Reads all new events into a sink, and returns. Writes nothing, and keeps nothing open afterwards.
    ///
    /// # Errors
    /// `NotFound`: there is no such file, or unread history was forgotten; `Diverged`: history that was read has been
    /// rewritten since, or the file is another. `NotAJournal`; `Corrupt`; `Unsupported`; `Io`; and errors of the
    /// sink. It can't be used after an error.
    pub fn read(&mut self, sink: &mut impl Sink) -> Result<()> {
        let (storage, shown, head) = open_moving(
            &*self.directory,
            &self.name,
            |storage, shown| Head::read(&**storage, shown),
            |_| false,
        )?;
        let segment = head.header.segment;
        let file =
            JournalFile::new(Arc::clone(&storage), segment, self.directory.again(), &self.name);
        let file = Arc::new(file);
        let cursor = match &mut self.cursor {
            Some(cursor) => cursor,
            none => none.insert(JournalCursor::first(&file)?),
        };
        let since = cursor.since();
        // A segment in which nothing was committed yet may have been rebuilt.
        let is_in_it = since.segment == segment && since.point.txid != head.start().txid;
        let newest = (segment, head.header.hash());
        let is_another = |known: (u64, u64)| known.0 == segment && known != newest;
        if is_in_it && self.newest.is_some_and(is_another) {
            return Err(Error::new(
                ErrorKind::Diverged,
                format!(
                    "{shown}: it was replaced, or values were erased from it, since transaction {} was read: begin \
                     anew",
                    since.point.txid
                ),
            ));
        }
        self.newest = Some(newest);
        let from = if is_in_it { since.point } else { head.start() };
        let position = reached(&*storage, &shown, from)?;
        let end = End { file: &file, position };
        cursor.read(&end, u64::MAX, u64::MAX, sink).map(drop)
    }
}

/// Returns the end of the last transaction after a commit that is valid and was acknowledged.
fn reached(storage: &dyn Storage, shown: &str, from: Point) -> Result<u64> {
    let survey = Survey::since_now(storage, shown, from)?;
    let acknowledged = acknowledged_in(&survey.head);
    if survey.end.position <= acknowledged {
        return Ok(survey.end.position);
    }
    Ok(acknowledged.max(from.position))
}
