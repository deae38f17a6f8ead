//! Examining a journal file: what it holds, and the state that its replay leads to.

use std::path::Path;
use std::sync::Arc;

use annals::internals::{
    Counted, FrameSource, Opened, Past, Replay, Watched, is_damaged, locate_continued, recovery,
    snapshot_of, watch,
};
use annals::journal::{Erasure, SegmentFacts, Survey};
use annals::{Committed, Options, Point, Result, Snapshot, Timestamp, Unapplied};
use annals_journal::Rule;
use annals_storage::{Directory, Lock};

use super::findings::Findings;
use super::inspect::{Inspection, says_nothing};

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

/// A segment of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentInspection {
    /// Its path.
    pub path: String,
    /// Its number, length and transactions, and when it was begun. Readers of it are known here only if `pinned_by`
    /// names one.
    pub facts: SegmentFacts,
    /// Where its first frame begins.
    pub start: Point,
    /// The end of its last transaction; after its seal, if the journal continues in another.
    pub end: Point,
    /// When it was sealed, which is when the next one was begun.
    pub sealed: Option<Timestamp>,
    /// A process that reads its history, so that it can't be removed, if the system reports it.
    pub pinned_by: Option<u32>,
}

/// Examines a journal file, as [`inspect`](crate::inspect) does, and builds its state, with the end that
/// [`Options::recovery`] chooses. Writes nothing; damage is part of the answer.
///
/// Cost: reads the file once, and the bytes after its end again if there seems to be a problem; memory for the state.
///
/// # Errors
/// As [`inspect`](crate::inspect).
pub fn examine(options: &Options, path: impl AsRef<Path>) -> Result<Examination> {
    let (directory, name) = locate_continued(path.as_ref())?;
    examine_in(options, &*directory, &name)
}

/// Does what [`examine`] does, in a directory that the caller passes.
///
/// # Errors
/// As [`examine`].
pub fn examine_in(options: &Options, directory: &dyn Directory, name: &str) -> Result<Examination> {
    let opened = match Opened::new(directory, name, Past::whole)? {
        Opened { past: Err(error), .. } if says_nothing(&error) => return Err(error),
        opened => opened,
    };
    examine_storage(directory, name, &opened, options)
}

/// Examines a file that is open for reading.
fn examine_storage(
    directory: &dyn Directory,
    name: &str,
    opened: &Opened,
    options: &Options,
) -> Result<Examination> {
    let Opened { storage, shown, past, witnesses } = opened;
    let watch = watch(options);
    let watched = Watched::new(&**storage, watch.as_ref());
    let source = FrameSource { past: past.as_ref().ok(), storage: &watched, shown };
    let missing = past.as_ref().err().map(|error| (0, error.to_string()));
    let look = |until| {
        let begin = || Findings {
            replay: Replay::default().until(until),
            problem: missing.clone(),
            ..Findings::default()
        };
        source.survey(Rule::new(recovery(options)), is_damaged, begin)
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
    let point = stopped.as_ref().map_or(survey.end, |stopped| stopped.point);
    Ok(Examination {
        inspection: Inspection::of(survey, shown)
            .against(witnesses, directory, name, &**storage)?
            .with_image(directory, name),
        snapshot: snapshot_of(view, point, Arc::clone(storage), segment, directory.again(), name),
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
        let pinned_by = kept.storage.holder(Lock::History);
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
