//! Examining a journal file: what it holds, and the state that its replay leads to.

use std::path::Path;
use std::sync::Arc;

use annals::internals::{
    Counted, FrameSource, Opened, Past, Replay, Watched, is_damaged, locate_continued, recovery,
    snapshot_of, watch,
};
use annals::journal::{Erasure, SegmentFacts, Survey};
use annals::{Committed, Options, Point, Result, Snapshot, Timestamp, Unapplied, View};
use annals_journal::Rule;
use annals_storage::{Directory, Lock};

use super::findings::{Events, Findings};
use super::inspect::{Inspection, says_nothing};

/// The contents of a journal file, as far as it verifies.
#[derive(Clone, Debug)]
pub struct Examination {
    /// The contents of its head.
    pub inspection: Inspection,
    /// The state as of the last valid commit.
    pub snapshot: Snapshot,
    /// True if the snapshot is the result of a replay of the journal, and not of the image.
    pub is_replayed: bool,
    /// How many events the valid transactions have; `None` if they weren't all read.
    pub events: Option<u64>,
    /// The first transaction; `None` if there is none, or it wasn't looked for.
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
    Examining { directory, name, opened: &opened, options }.replayed()
}

/// A file that is open for reading, to be examined.
#[derive(Clone, Copy)]
pub(super) struct Examining<'o> {
    pub(super) directory: &'o dyn Directory,
    pub(super) name: &'o str,
    pub(super) opened: &'o Opened,
    pub(super) options: &'o Options,
}

/// The state to which a journal leads.
pub(super) struct Reached {
    pub(super) view: Arc<View>,
    /// The end of its last commit.
    pub(super) point: Point,
    /// The commit after it, if that doesn't apply.
    pub(super) unapplied: Option<Unapplied>,
    /// True if all of it was replayed.
    pub(super) is_replayed: bool,
}

impl Examining<'_> {
    /// Examines it by a replay of all events.
    fn replayed(self) -> Result<Examination> {
        let watch = watch(self.options);
        let watched = Watched::new(&*self.opened.storage, watch.as_ref());
        let look = |until| {
            let begin = || Events::Applied(Box::new(Replay::default().until(until)));
            self.survey(&watched, begin)
        };
        let (mut survey, mut found) = look(None)?;
        if let Some(txid) = found.misfit {
            watched.read_again();
            (survey, found) = look(Some(txid))?;
        }
        let replay = found.replay();
        let (head, end, hard) = (&survey.head, survey.end, survey.hard);
        let counted = Counted { head, from: None, shown: &self.opened.shown, end, hard };
        let unapplied = replay.unapplied(&counted);
        let stopped = match replay.before(&counted) {
            _ if found.problem.is_some() => None,
            Ok(stopped) => stopped,
            Err(error) => {
                found.problem = Some((0, error.to_string()));
                None
            }
        };
        let replay = match found.problem_before(end.position) {
            Some(_) => Replay::default(),
            None => replay,
        };
        let point = stopped.map_or(end, |stopped| stopped.point);
        let view = Arc::clone(replay.finish().published());
        self.told(survey, found, Reached { view, point, unapplied, is_replayed: true })
    }

    /// Reads all frames. `begin` returns what is done with their events.
    pub(super) fn survey(
        self,
        watched: &Watched<'_>,
        begin: impl Fn() -> Events,
    ) -> Result<(Survey, Findings)> {
        let Opened { shown, past, .. } = self.opened;
        let source = FrameSource { past: past.as_ref().ok(), storage: watched, shown };
        let missing = past.as_ref().err().map(|error| (0, error.to_string()));
        let begin =
            || Findings { events_of: begin(), problem: missing.clone(), ..Findings::default() };
        let rule = Rule::new(recovery(self.options));
        let (survey, mut found) = source.survey(rule, is_damaged, begin)?;
        found.count(survey.end.position);
        Ok((survey, found))
    }

    /// Returns what was found.
    pub(super) fn told(
        self,
        survey: Survey,
        found: Findings,
        reached: Reached,
    ) -> Result<Examination> {
        let Self { directory, name, opened: Opened { storage, shown, past, witnesses }, .. } = self;
        let Reached { view, point, unapplied, is_replayed } = reached;
        let first = found.first.filter(|first| first.position <= survey.end.position);
        let problem = found.problem_before(survey.end.position);
        let segments =
            past.as_ref().map_or_else(|_| Vec::new(), |past| segments(past, &survey, shown));
        let segment = survey.head.header.segment;
        Ok(Examination {
            inspection: Inspection::of(survey, shown)
                .against(witnesses, directory, name, &**storage)?
                .with_image(directory, name),
            snapshot: snapshot_of(
                view,
                point,
                Arc::clone(storage),
                segment,
                directory.again(),
                name,
            ),
            is_replayed,
            events: Some(found.events),
            first: found.first_kept.or(first),
            segments,
            problem,
            unapplied,
            wrong_mark: found.marks.problem(),
            erasures: found.marks.erasures,
        })
    }
}

/// Describes all segments; the newest one, named by `shown`, is last.
pub(super) fn segments(past: &Past, survey: &Survey, shown: &str) -> Vec<SegmentInspection> {
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
