//! Examining a journal file without opening: its head, its checkpoints, the bytes after its end, and the verdict.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use annals_schema::Timestamp;

use crate::db::follow::continuation::locate;
use crate::db::follow::inspection::{Inspection, SegmentInspection};
use crate::db::follow::options::Options;
use crate::db::follow::segments::{Opened, Past, open_to_read};
use crate::db::follow::source::{FrameFacts, FrameSource, Visitor, is_damaged};
use crate::db::follow::state::Replay;
use crate::db::follow::unapplied::{Counted, Unapplied};
use crate::db::follow::witness::{check_end, image_witnesses};
use crate::db::image::inspection as image;
use crate::db::past::history::inspection as history;
use crate::db::present::marks::Marks;
use crate::db::present::segment::JournalFile;
use crate::db::present::snapshot::{Published, Snapshot};
use crate::db::progress::{Watch, Watched};
use crate::image::Witness;
use crate::journal::format::Header;
use crate::journal::{
    Committed, Copies, Erasure, Frame, Head, Point, Recovery, Rule, SegmentFacts, Survey,
};
use crate::storage::{self, Directory, Storage};
use crate::{Error, ErrorKind, Result};

impl Inspection {
    /// Checks that the journal has all commits that the files beside it prove durable. If not, notes the damage.
    fn against(
        mut self,
        witnesses: &[Witness],
        directory: &dyn Directory,
        name: &str,
        storage: &dyn Storage,
    ) -> Result<Self> {
        if self.damage.is_none()
            && let Err(error) = check_end(witnesses, &self, directory, name, storage)
        {
            if says_nothing(&error) {
                return Err(error);
            }
            self.damage = Some(error.to_string());
        }
        Ok(self)
    }

    /// Examines the image and the history index, too.
    fn with_image(mut self, directory: &dyn Directory, name: &str) -> Self {
        self.image = image::inspect(directory, name, &self, &storage::SystemClock);
        self.history = history::inspect(directory, name, &self);
        self
    }
}

/// The contents of a journal file, as far as it verifies.
#[derive(Clone, Debug)]
pub struct Examination {
    /// The contents of its head.
    pub inspection: Inspection,
    /// The state as of the last valid commit.
    pub snapshot: Snapshot,
    /// How many events the valid transactions have.
    pub events: u64,
    /// The first transaction.
    pub first: Option<Committed>,
    /// The existing segments of the journal, the oldest first and this file last; empty if an earlier one is wrong.
    pub segments: Vec<SegmentInspection>,
    /// Why the history can't be replayed, though every frame verifies: then the snapshot is empty.
    pub problem: Option<String>,
    /// The commit that doesn't apply, if there is one: the snapshot is the state before it, unless `problem` says
    /// that it is empty.
    pub unapplied: Option<Unapplied>,
    /// The marks of erasures, the oldest first.
    pub erasures: Vec<Erasure>,
    /// The problem of one of them, if there is any: the chains in it aren't those of the journal.
    pub wrong_mark: Option<String>,
}

/// Reads only the first 16 KiB of a journal file. Takes no lock and writes nothing; damage is part of
/// the answer.
///
/// # Errors
/// `NotFound`, `Io`; `NotAJournal` if there is neither a header nor a slot.
pub fn inspect_head(path: impl AsRef<Path>) -> Result<Copies> {
    let (directory, name) = locate(path.as_ref())?;
    inspect_head_in(&*directory, &name)
}

/// Does what [`inspect_head`] does, in a directory that the caller passes.
///
/// # Errors
/// As [`inspect_head`].
pub fn inspect_head_in(directory: &dyn Directory, name: &str) -> Result<Copies> {
    let (storage, shown) = open_to_read(directory, name)?;
    let io = |error| Error::io(format!("{shown}: can't read it"), error);
    let copies = Copies::read(&*storage).map_err(io)?;
    if copies.is_empty() {
        let message =
            format!("{shown}: neither a header nor a slot of a journal is there; check the path");
        return Err(Error::new(ErrorKind::NotAJournal, message));
    }
    Ok(copies)
}

/// Examines a journal file. Writes nothing. Takes a single lock for a moment, which prevents removal of older
/// segments while they are read; damage is part of the answer.
///
/// Cost: reads the file once, and the bytes after its end again if there seems to be a problem.
///
/// # Errors
/// `NotFound`, `NotAJournal`, `Unsupported`, `Io`; `Corrupt` if not even a header is left.
pub fn inspect(path: impl AsRef<Path>) -> Result<Inspection> {
    Options::new().inspect(path)
}

impl Options {
    /// Examines a journal file, as [`inspect`](crate::inspection::inspect) does, and reports the progress.
    ///
    /// # Errors
    /// As [`inspect`](crate::inspection::inspect); `Cancelled`.
    pub fn inspect(&self, path: impl AsRef<Path>) -> Result<Inspection> {
        let (directory, name) = locate(path.as_ref())?;
        examine_frames(&*directory, &name, self.watch.as_ref())
    }
}

/// Does what [`inspect`] does, in a directory that the caller passes.
///
/// # Errors
/// As [`inspect`].
pub fn inspect_in(directory: &dyn Directory, name: &str) -> Result<Inspection> {
    examine_frames(directory, name, None)
}

fn examine_frames(
    directory: &dyn Directory,
    name: &str,
    watch: Option<&Watch>,
) -> Result<Inspection> {
    let (storage, shown) = open_to_read(directory, name)?;
    let watched = Watched::new(&*storage, watch);
    // They are read before the journal, so that it has at least their transactions.
    let head = Head::read(&*storage, &shown);
    let witnesses = head.map(|head| image_witnesses(directory, name, &head)).unwrap_or_default();
    // Seeming damage from another process's writing disappears at the next read.
    let rule = Rule::new(Recovery::Checked);
    let source = FrameSource { past: None, storage: &watched, shown: &shown };
    let (survey, ()) = source.survey(rule, is_damaged, || ())?;
    Ok(Inspection::of(survey, &shown)
        .against(&witnesses, directory, name, &*storage)?
        .with_image(directory, name))
}

/// Examines a file that is open for reading.
pub(in crate::db) fn examine_storage(
    directory: &dyn Directory,
    name: &str,
    opened: &Opened,
    options: &Options,
) -> Result<Examination> {
    let Opened { storage, shown, past, witnesses } = opened;
    let watched = Watched::new(&**storage, options.watch.as_ref());
    let source = FrameSource { past: past.as_ref().ok(), storage: &watched, shown };
    let missing = past.as_ref().err().map(|error| (0, error.to_string()));
    let look = |until| {
        let begin = || Findings {
            replay: Replay::default().until(until),
            problem: missing.clone(),
            ..Findings::default()
        };
        source.survey(Rule::new(options.recovery), is_damaged, begin)
    };
    let (mut survey, mut state) = look(None)?;
    if let Some(txid) = state.misfit {
        watched.read_again();
        (survey, state) = look(Some(txid))?;
    }
    state.count(survey.end.position);
    let (head, end, hard) = (&survey.head, survey.end, survey.hard);
    let counted = Counted { head, from: None, shown, end, hard };
    let unapplied = state.replay.unapplied(&counted);
    let stopped = match state.replay.before(&counted) {
        _ if state.problem.is_some() => None,
        Ok(stopped) => stopped,
        Err(error) => {
            state.problem = Some((0, error.to_string()));
            None
        }
    };
    let first = state.first.filter(|first| first.position <= survey.end.position);
    let problem = state.problem.filter(|(at, _)| *at < survey.end.position).map(|(_, why)| why);
    let replay = if problem.is_some() { Replay::default() } else { state.replay };
    let view = Arc::clone(replay.finish().published());
    let segments = past.as_ref().map_or_else(|_| Vec::new(), |past| segments(past, &survey, shown));
    let segment = survey.head.header.segment;
    let file = JournalFile::new(Arc::clone(storage), segment, directory.again(), name);
    let file = Arc::new(file);
    let point = stopped.as_ref().map_or(survey.end, |stopped| stopped.point);
    let published = Published { view, point, file };
    Ok(Examination {
        inspection: Inspection::of(survey, shown)
            .against(witnesses, directory, name, &**storage)?
            .with_image(directory, name),
        snapshot: Snapshot::new(Arc::new(published)),
        events: state.events,
        first: state.first_kept.or(first),
        segments,
        problem,
        unapplied,
        wrong_mark: state.marks.problem(),
        erasures: state.marks.erasures,
    })
}

/// Describes all segments; the newest one, named by `shown`, is last.
fn segments(past: &Past, survey: &Survey, shown: &str) -> Vec<SegmentInspection> {
    // The pins of this read are released, so that only others are found.
    past.let_go();
    let kept = past.segments();
    let next = kept.iter().skip(1).map(|next| &next.head).chain([&survey.head]);
    let facts = past.facts((survey.len, survey.end.txid.0));
    let newest = facts.last().map(|&facts| SegmentInspection {
        path: shown.to_owned(),
        facts,
        start: survey.head.start(),
        end: survey.end,
        sealed: None,
        pinned_by: None,
    });
    let older = kept.iter().zip(next).zip(&facts).map(|((kept, next), &facts)| {
        let pinned_by = kept.storage.holder(storage::Lock::History);
        let (txid, chain) = (facts.last_txid, next.header.previous_chain);
        SegmentInspection {
            path: kept.shown.clone(),
            facts: SegmentFacts { is_pinned: pinned_by.is_some(), ..facts },
            start: kept.head.start(),
            end: Point { position: kept.len, txid, chain },
            sealed: Some(Timestamp(next.header.created)),
            pinned_by,
        }
    });
    older.chain(newest).collect()
}

/// True if an error means only that a file couldn't be read, and nothing about its contents.
pub(in crate::db) fn says_nothing(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Io | ErrorKind::Busy | ErrorKind::Cancelled)
}

/// The findings frame by frame.
#[derive(Debug, Default)]
struct Findings {
    replay: Replay,
    first: Option<Committed>,
    /// The first one in the segments before the file.
    first_kept: Option<Committed>,
    /// Events of the accepted transactions.
    events: u64,
    /// Ends of commits that aren't accepted yet, with the number of events since the one before.
    pending: VecDeque<(u64, u64)>,
    since_commit: u64,
    /// Where a frame can't be replayed, and why.
    problem: Option<(u64, String)>,
    /// The transaction that doesn't apply.
    misfit: Option<u64>,
    marks: Marks,
}

impl Findings {
    /// Records why a frame can't be replayed.
    fn note(&mut self, frame: &Frame<'_>, error: Error) -> Result<()> {
        if says_nothing(&error) {
            return Err(error);
        }
        self.misfit = error.transaction();
        self.problem = Some((frame.header.position, error.to_string()));
        Ok(())
    }

    /// Counts the frames that are accepted by now.
    fn count(&mut self, end: u64) {
        while let Some((_, events)) = self.pending.front().copied().filter(|(at, _)| *at <= end) {
            self.events += events;
            self.pending.pop_front();
        }
    }
}

impl Visitor for Findings {
    fn begin(&mut self, header: &Header) {
        self.marks.begin();
        self.replay.begin(header);
        self.first_kept = self.first_kept.take().or(self.first.take());
        // Whatever is before the file counts.
        self.problem = self.problem.take().map(|(_, why)| (0, why));
    }

    fn frame(&mut self, frame: &Frame<'_>, facts: &FrameFacts<'_>) -> Result<()> {
        self.marks.frame(frame);
        if self.problem.is_none() {
            match self.replay.take(frame, facts) {
                Ok(events) => self.since_commit += events,
                Err(error) => self.note(frame, error)?,
            }
        }
        if facts.is_repeated {
            return Ok(());
        }
        if let Some(committed) = Committed::of(frame) {
            self.first.get_or_insert(committed);
            self.pending.push_back((frame.end, std::mem::take(&mut self.since_commit)));
        }
        self.count(facts.end);
        Ok(())
    }

    fn fail(&mut self, error: Error) -> Result<()> {
        if says_nothing(&error) {
            return Err(error);
        }
        self.problem = Some((0, error.to_string()));
        Ok(())
    }
}
