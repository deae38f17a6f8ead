//! Appending frames to a log, and finding out what became of them.
//!
//! The place of an append is the sequence after the end that it expects. The message in that place is compared with the
//! one that was sent, byte by byte: each message has a nonce. While the place is empty, a fence is sent there: another
//! message that expects the same end. If the log accepts the fence, it hasn't accepted the append, and never will.

use std::ops::RangeInclusive;
use std::time::Duration;

use annals::{Cursor, Error, ErrorKind, Result};
use annals_storage::{Clock as _, Spool, SystemClock};
use bytes::{Bytes, BytesMut};

use super::copies::{Copies, Found};
use super::log::{Appended, latest};
use super::message::{Head, Kind, OVERHEAD, encode};
use super::status::Counts;
use crate::Patience;
use crate::frames::transaction_ends;
use crate::outcome::{self, Answer, Attempt, Seen, Settled, Tries};

/// The longest pause between two tries: an election takes some seconds.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// Messages on their way to a log.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// The sequence that they follow.
    pub(super) after: u64,
    pub(super) from: Cursor,
    pub(super) end: Cursor,
    messages: Vec<Bytes>,
    /// The fences that were sent after them.
    fences: Vec<Bytes>,
    /// The chain after the first of their transactions.
    first: u64,
    /// The latest time of their commits by a clock.
    newest: i64,
}

/// How long a node waits, after the log refused its append, for the message that came first.
const REFUSED: Duration = Duration::from_millis(100);

/// The outcome of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// They are in the log, the last with this sequence.
    Committed(u64),
    /// They are in the log, the last with this sequence, and don't count: the clock here is ahead of the log's.
    Ahead(u64),
    /// Others came first.
    Conflict,
    /// They aren't in the log, and never will be; it ended with this sequence then.
    Fenced(u64),
}

impl Outgoing {
    /// Makes the messages of some frames: one, or as many parts as it takes.
    pub(super) fn of(
        copies: &Copies,
        after: u64,
        from: Cursor,
        end: Cursor,
        frames: &Spool,
    ) -> Result<Self> {
        let most = copies.log.most()?.saturating_sub(OVERHEAD).max(1);
        let len = frames.end() - frames.begin();
        let too_large = || Error::new(ErrorKind::TooLarge, "too many parts for a log");
        let parts = u32::try_from(len.div_ceil(most as u64).max(1)).map_err(|_| too_large())?;
        let mut messages = Vec::new();
        let mut push = |payload: &[u8]| {
            let part = u32::try_from(messages.len()).unwrap_or(u32::MAX);
            let sequence = after + 1 + u64::from(part);
            let (kind, nonce) = (Kind::Frames, SystemClock.random());
            messages.push(encode(&Head { kind, sequence, from, end, part, parts, nonce }, payload));
        };
        let mut rest = BytesMut::new();
        let spooled = frames.pieces(|_, piece| {
            rest.extend_from_slice(piece);
            while rest.len() > most {
                push(&rest.split_to(most));
            }
            Ok(())
        });
        spooled.map_err(|error| Error::io("can't read the spooled frames", error))?;
        push(&rest);
        let ends = transaction_ends(frames, frames.begin())?.unwrap_or_default();
        let newest = ends.iter().filter_map(|end| end.clock_time).max().unwrap_or(i64::MIN);
        let first = ends.first().map_or(end.chain, |end| end.chain);
        Ok(Self { after, from, end, messages, fences: Vec::new(), first, newest })
    }

    /// Makes the first message of a log that counts: after a fence, or after 0.
    pub(super) fn beginning(after: u64, start: Cursor, header: &[u8]) -> Self {
        let from = Cursor { txid: annals::Txid(0), chain: 0 };
        let (kind, nonce) = (Kind::Beginning, SystemClock.random());
        let head = Head { kind, sequence: after + 1, from, end: start, part: 0, parts: 1, nonce };
        let messages = vec![encode(&head, header)];
        let (first, newest) = (start.chain, i64::MIN);
        Self { after, from, end: start, messages, fences: Vec::new(), first, newest }
    }

    /// True if the messages may have a transaction in common with some frames: their first ones are the same, or the
    /// frames have none that can be read.
    pub(super) fn may_bring(&self, frames: &Spool) -> bool {
        let ends = transaction_ends(frames, frames.begin()).ok().flatten();
        ends.is_none_or(|ends| ends.first().is_none_or(|end| end.chain == self.first))
    }

    /// Appends the messages, and determines the outcome. Retries while the log has no leader.
    ///
    /// # Errors
    /// `UnknownOutcome`: the outcome couldn't be determined before the deadline; [`settle`](Self::settle) tries again.
    /// After any other error, such as `Unreachable`, the messages certainly aren't in the log.
    pub(super) fn send(&mut self, copies: &Copies, patience: Patience) -> Result<Outcome> {
        self.attempt(copies, patience, true)
    }

    /// Determines the outcome of messages that were sent before.
    ///
    /// # Errors
    /// `UnknownOutcome`: the log couldn't be read before the deadline.
    pub(super) fn settle(&mut self, copies: &Copies, patience: Patience) -> Result<Outcome> {
        self.attempt(copies, patience, false)
    }

    fn attempt(&mut self, copies: &Copies, patience: Patience, is_new: bool) -> Result<Outcome> {
        let mut tries = Tries::new(patience, LONGEST_PAUSE);
        let mut attempt = Appending { out: self, copies, is_new, landed: 0, is_refused: false };
        let settled = outcome::settle(&mut attempt, &mut tries)?;
        match settled {
            Settled::Done(Landed::Fence(sequence)) => Ok(Outcome::Fenced(sequence)),
            Settled::Done(Landed::All(time)) => self.confirm(copies, &mut tries, time),
            Settled::Conflict(()) => Ok(Outcome::Conflict),
            Settled::NotSent(error) => Err(error),
        }
    }

    /// Decides whether the messages count, which are in the log: by the `time` at which the log stored the last one. If
    /// the log hasn't returned it, that message is read.
    fn confirm(&self, copies: &Copies, tries: &mut Tries, time: Option<i64>) -> Result<Outcome> {
        let last = self.last();
        if time.is_some_and(|time| self.newest <= latest(time)) {
            return Ok(Outcome::Committed(last));
        }
        loop {
            let error = match copies.fetch(last) {
                Ok(Found::Whole(whole)) if self.newest > latest(whole.message.time) => {
                    return Ok(Outcome::Ahead(last));
                }
                Ok(Found::Whole(_)) => return Ok(Outcome::Committed(last)),
                Ok(Found::Void) => Error::corrupt("it doesn't verify any more"),
                Err(error) => error,
            };
            if !tries.again() {
                let message = format!(
                    "{}: transaction {} is in the log, but message {last} can't be read: {error}",
                    copies.log.name(),
                    self.end.txid
                );
                return Err(Error::new(ErrorKind::UnknownOutcome, message));
            }
        }
    }

    /// Makes a fence that expects an end of the log.
    fn fence(&mut self, after: u64) -> Bytes {
        let fence = fence(after + 1, self.from);
        self.fences.push(fence.clone());
        fence
    }

    /// Returns the places of the messages.
    pub(super) fn sequences(&self) -> RangeInclusive<u64> {
        self.after + 1..=self.last()
    }

    fn last(&self) -> u64 {
        self.after + self.messages.len() as u64
    }
}

/// Makes a fence with a sequence, in a history that ends with a cursor there.
pub(super) fn fence(sequence: u64, from: Cursor) -> Bytes {
    let (kind, nonce) = (Kind::Fence, SystemClock.random());
    encode(&Head { kind, sequence, from, end: from, part: 0, parts: 1, nonce }, &[])
}

/// What of an append is in the log.
enum Landed {
    /// All messages; with the time at which the log has taken the last one, if it says so.
    All(Option<i64>),
    /// A fence in their place, with this sequence.
    Fence(u64),
}

/// Messages, and fences after them, on their way.
struct Appending<'a> {
    out: &'a mut Outgoing,
    copies: &'a Copies,
    /// True if the messages were not sent yet.
    is_new: bool,
    /// So many of the messages were seen in the log.
    landed: usize,
    /// True if the log says that something else is in their place.
    is_refused: bool,
}

impl Appending<'_> {
    /// Returns the sequence after which the next of the messages is to be.
    fn after(&self) -> u64 {
        self.out.after + self.landed as u64
    }

    fn append(&mut self, after: u64, messages: Vec<Bytes>) -> Answer<Option<i64>> {
        let appended = self.copies.log.append(after, messages);
        self.is_refused = matches!(appended, Ok(Appended::Refused));
        match appended {
            Ok(Appended::Committed(time)) => Answer::Done(time),
            Ok(Appended::Refused) => Answer::Unproven(Error::new(
                ErrorKind::Conflict,
                format!("{}: says that it ends elsewhere", self.copies.log.name()),
            )),
            Ok(Appended::Unknown(error)) => {
                Counts::add(&self.copies.counts.unknown);
                Answer::Unproven(error)
            }
            Err(error) if error.kind() == ErrorKind::Unreachable => Answer::NotSent(error),
            Err(error) => Answer::Refused(error),
        }
    }
}

impl Attempt for Appending<'_> {
    type Done = Landed;
    type Other = ();

    fn send(&mut self) -> Answer<Landed> {
        if !self.is_new {
            let after = self.after();
            let fence = self.out.fence(after);
            return match self.append(after, vec![fence]) {
                Answer::Done(_) => Answer::Done(Landed::Fence(after + 1)),
                // That of the fence: the messages may be on their way all the same.
                Answer::NotSent(error) | Answer::Refused(error) | Answer::Unproven(error) => {
                    Answer::Unproven(error)
                }
            };
        }
        // A part that comes too late is alone: those after it would take the places of others.
        let (first, rest) = self.out.messages.split_at(1);
        let (first, rest, after) = (first.to_vec(), rest.to_vec(), self.out.after);
        let mut answer = self.append(after, first);
        if matches!(answer, Answer::Done(_)) && !rest.is_empty() {
            answer = match self.append(after + 1, rest) {
                Answer::NotSent(error) | Answer::Refused(error) => Answer::Unproven(error),
                answer => answer,
            };
        }
        self.is_new = matches!(answer, Answer::NotSent(_));
        match answer {
            Answer::Done(time) => Answer::Done(Landed::All(time)),
            Answer::NotSent(error) => Answer::NotSent(error),
            Answer::Refused(error) => Answer::Refused(error),
            Answer::Unproven(error) => Answer::Unproven(error),
        }
    }

    fn look(&mut self) -> Result<Seen<Landed, ()>> {
        if self.is_refused {
            // A leader refuses before it has stored the other one.
            self.copies.log.wait(self.after(), REFUSED);
        }
        while let Some(found) = self.copies.peek(self.after() + 1)? {
            let Found::Whole(it) = found else { return Ok(Seen::Another(())) };
            if self.out.messages.get(self.landed) == Some(&it.message.bytes) {
                self.landed += 1;
                if self.landed == self.out.messages.len() {
                    return Ok(Seen::Mine(Landed::All(Some(it.message.time))));
                }
                continue;
            }
            return Ok(match self.out.fences.contains(&it.message.bytes) {
                true => Seen::Mine(Landed::Fence(it.message.sequence)),
                false => Seen::Another(()),
            });
        }
        Ok(Seen::Nothing)
    }

    fn unknown(&self, heard: &Error) -> Error {
        let message = format!(
            "{}: whether transaction {} (chain {:016x}) is in the log is not known: {heard}; no fence could be appended",
            self.copies.log.name(),
            self.out.end.txid,
            self.out.end.chain
        );
        Error::new(ErrorKind::UnknownOutcome, message)
    }
}
