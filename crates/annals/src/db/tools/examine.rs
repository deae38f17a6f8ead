//! Reading a whole journal without opening it: its history, and its state.

use std::path::Path;

use crate::Result;
use crate::db::follow::continuation::locate;
use crate::db::follow::options::Options;
use crate::db::follow::scan;
use crate::db::follow::scan::Sink;
use crate::db::follow::segments::{Opened, Past};
use crate::db::follow::source::FrameSource;
use crate::db::follow::witness::check_end;
use crate::db::progress::Watched;
use crate::db::tools::inspect;
use crate::db::tools::inspect::Examination;
use crate::storage::Directory;

/// Reads the whole history of a journal into a sink, all segments that are left of it, in memory that doesn't grow
/// with it. Writes nothing; older segments aren't forgotten while it reads them. Uncommitted events are not returned.
///
/// Where older history was forgotten, the first transaction is the state at that point.
///
/// Cost: reads the files twice, since a transaction is only shown once it is known to commit.
///
/// # Errors
/// `NotFound`, `NotAJournal`, `Unsupported`, `Corrupt`, `Io`; and errors of the sink.
pub fn scan(path: impl AsRef<Path>, sink: &mut impl Sink) -> Result<()> {
    Options::new().scan(path, sink)
}

/// Does what [`scan`] does, in a directory that the caller passes.
///
/// # Errors
/// As [`scan`].
pub fn scan_in(directory: &dyn Directory, name: &str, sink: &mut impl Sink) -> Result<()> {
    Options::new().scan_in(directory, name, sink)
}

/// Examines a journal file, as [`inspect`](crate::inspection::inspect), and builds its state. Writes nothing; damage is part of
/// the answer.
///
/// Cost: reads the file once, and the bytes after its end again if there seems to be a problem; memory for the state.
///
/// # Errors
/// As [`inspect`](crate::inspection::inspect).
pub fn examine(path: impl AsRef<Path>) -> Result<Examination> {
    Options::new().examine(path)
}

impl Options {
    /// Reads the whole history of a file, as [`scan`](crate::inspection::scan) does.
    ///
    /// # Errors
    /// As [`scan`](crate::inspection::scan); `Cancelled`.
    pub fn scan(&self, path: impl AsRef<Path>, sink: &mut impl Sink) -> Result<()> {
        let (directory, name) = locate(path.as_ref())?;
        self.scan_in(&*directory, &name, sink)
    }

    /// Does what [`Self::scan`] does, in a directory that the caller passes.
    ///
    /// # Errors
    /// As [`Self::scan`].
    pub fn scan_in(
        &self,
        directory: &dyn Directory,
        name: &str,
        sink: &mut impl Sink,
    ) -> Result<()> {
        let Opened { storage, shown, past, witnesses } = Opened::new(directory, name, Past::whole)?;
        let (past, watch) = (past?, self.watch.as_ref());
        let watched = Watched::new(&*storage, watch);
        let source = FrameSource { past: Some(&past), storage: &watched, shown: &shown };
        let survey = source.verify()?;
        check_end(&witnesses, &survey, directory, name, &*storage)?;
        watched.read_again();
        let end = survey.sealed.map_or(survey.end.position, |seal| seal.end);
        scan::scan_verified(&source, &survey.head, end, sink)
    }

    /// Examines a file and builds its state, as [`examine`](crate::inspection::examine) does, with the end that
    /// [`recovery`](Self::recovery) chooses.
    ///
    /// # Errors
    /// As [`examine`](crate::inspection::examine); `Cancelled`.
    pub fn examine(&self, path: impl AsRef<Path>) -> Result<Examination> {
        let (directory, name) = locate(path.as_ref())?;
        self.examine_in(&*directory, &name)
    }

    /// Does what [`Self::examine`] does, in a directory that the caller passes.
    ///
    /// # Errors
    /// As [`Self::examine`].
    pub fn examine_in(&self, directory: &dyn Directory, name: &str) -> Result<Examination> {
        let opened = match Opened::new(directory, name, Past::whole)? {
            Opened { past: Err(error), .. } if inspect::says_nothing(&error) => return Err(error),
            opened => opened,
        };
        inspect::examine_storage(directory, name, &opened, self)
    }
}
