//! Scanning: the whole history of a journal, passed on event by event.

use std::path::Path;

use annals::internals::{
    FrameFacts, FrameSource, Opened, Past, Visitor, Watched, check_end, locate_continued,
    take_frame, watch,
};
use annals::{Options, Result, Schema, Sink, Txid};
use annals_journal::{Frame, Head};
use annals_storage::Directory;

/// Reads the whole history of a journal into a sink, all segments that are left of it, in memory that doesn't grow
/// with it. Writes nothing; older segments aren't forgotten while it reads them. Uncommitted events are not returned.
///
/// Where older history was forgotten, the first transaction is the state at that point.
///
/// Cost: reads the files twice, since a transaction is only shown once it is known to commit.
///
/// # Errors
/// `NotFound`, `NotAJournal`, `Unsupported`, `Corrupt`, `Io`; `Cancelled`; and errors of the sink.
pub fn scan(options: &Options, path: impl AsRef<Path>, sink: &mut impl Sink) -> Result<()> {
    let (directory, name) = locate_continued(path.as_ref())?;
    scan_in(options, &*directory, &name, sink)
}

/// Does what [`scan`] does, in a directory that the caller passes.
///
/// # Errors
/// As [`scan`].
pub fn scan_in(
    options: &Options,
    directory: &dyn Directory,
    name: &str,
    sink: &mut impl Sink,
) -> Result<()> {
    let Opened { storage, shown, past, witnesses } = Opened::new(directory, name, Past::whole)?;
    let (past, watch) = (past?, watch(options));
    let watched = Watched::new(&*storage, watch.as_ref());
    let source = FrameSource { past: Some(&past), storage: &watched, shown: &shown };
    let survey = source.verify()?;
    check_end(&witnesses, &survey, directory, name, &*storage)?;
    watched.read_again();
    let end = survey.sealed.map_or(survey.end.position, |seal| seal.end);
    scan_verified(&source, &survey.head, end, sink)
}

/// Scans a file that was verified a moment ago up to an end, with the segments before it.
pub(crate) fn scan_verified(
    source: &FrameSource<'_>,
    head: &Head,
    end: u64,
    sink: &mut impl Sink,
) -> Result<()> {
    let mut scan = Scan { schema: Schema::default(), sink, is_open: false };
    source.read_to(head, end, &mut scan).map(drop)
}

/// The progress of a scan.
struct Scan<'s, S> {
    schema: Schema,
    sink: &'s mut S,
    /// True if the last frame was of a transaction that continues.
    is_open: bool,
}

impl<S: Sink> Visitor for Scan<'_, S> {
    fn frame(&mut self, frame: &Frame<'_>, facts: &FrameFacts<'_>) -> Result<()> {
        if facts.is_repeated {
            return Ok(());
        }
        if frame.header.has_events() {
            if !self.is_open {
                self.sink.begin(Txid(frame.header.txid))?;
            }
            self.is_open = !frame.header.is_commit();
        }
        take_frame(frame, frame.payload_at(), &mut self.schema, facts.shown, self.sink)
    }
}
