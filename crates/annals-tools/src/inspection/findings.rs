//! What an examination finds, frame by frame.

use std::collections::VecDeque;

use annals::event::Event;
use annals::internals::{FrameFacts, Replay, Visitor, take_frame};
use annals::{Committed, Error, Result, Schema, Sink};
use annals_journal::Frame;
use annals_journal::format::Header;

use super::inspect::says_nothing;
use super::marks::Marks;

/// What is done with the events of frames.
#[derive(Debug)]
pub(super) enum Events {
    /// They are applied to a store.
    Applied(Box<Replay>),
    /// They are only decoded.
    Decoded(Schema),
}

impl Events {
    /// Takes those of a frame; returns how many they are.
    fn take(&mut self, frame: &Frame<'_>, facts: &FrameFacts<'_>) -> Result<u64> {
        match self {
            Self::Applied(replay) => replay.take(frame, facts),
            Self::Decoded(_) if facts.is_repeated => Ok(0),
            Self::Decoded(schema) => {
                let mut count = Count(0);
                take_frame(frame, frame.payload_at(), schema, facts.shown, &mut count)?;
                Ok(count.0)
            }
        }
    }
}

impl Default for Events {
    fn default() -> Self {
        Self::Applied(Box::default())
    }
}

/// How many events were passed on.
struct Count(u64);

impl Sink for Count {
    fn event(&mut self, _: &Schema, _: &Event<'_>) -> Result<()> {
        self.0 += 1;
        Ok(())
    }

    fn commit(&mut self, _: &Schema, _: &Committed) -> Result<()> {
        Ok(())
    }
}

/// The findings frame by frame.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) events_of: Events,
    pub(super) first: Option<Committed>,
    /// The first one in the segments before the file.
    pub(super) first_kept: Option<Committed>,
    /// Events of the accepted transactions.
    pub(super) events: u64,
    /// Ends of commits that aren't accepted yet, with the number of events since the one before.
    pub(super) pending: VecDeque<(u64, u64)>,
    pub(super) since_commit: u64,
    /// Where a frame can't be replayed, and why.
    pub(super) problem: Option<(u64, String)>,
    /// The transaction that doesn't apply.
    pub(super) misfit: Option<u64>,
    pub(super) marks: Marks,
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

    /// Returns the replay of the frames, which is over.
    pub(super) fn replay(&mut self) -> Replay {
        match std::mem::take(&mut self.events_of) {
            Events::Applied(replay) => *replay,
            Events::Decoded(_) => Replay::default(),
        }
    }

    /// Returns why a frame before a position can't be replayed.
    pub(super) fn problem_before(&self, end: u64) -> Option<String> {
        self.problem.as_ref().filter(|(at, _)| *at < end).map(|(_, why)| why.clone())
    }

    /// Counts the frames that are accepted by now.
    pub(super) fn count(&mut self, end: u64) {
        while let Some((_, events)) = self.pending.front().copied().filter(|(at, _)| *at <= end) {
            self.events += events;
            self.pending.pop_front();
        }
    }
}

impl Visitor for Findings {
    fn begin(&mut self, header: &Header) {
        self.marks.begin();
        if let Events::Applied(replay) = &mut self.events_of {
            replay.begin(header);
        }
        self.first_kept = self.first_kept.take().or(self.first.take());
        // Whatever is before the file counts.
        self.problem = self.problem.take().map(|(_, why)| (0, why));
    }

    fn frame(&mut self, frame: &Frame<'_>, facts: &FrameFacts<'_>) -> Result<()> {
        self.marks.frame(frame);
        if self.problem.is_none() {
            match self.events_of.take(frame, facts) {
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
