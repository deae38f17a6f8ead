//! Appending frames to a log, and finding out what became of them.
//!
//! An append whose outcome is unknown is settled by a fence: a message that expects the same end of the log. If the fence is
//! taken, the append wasn't, and can't be any more. If it isn't, something else has that place, which can be read.

use std::time::Duration;

use annals::internals::transaction_ends;
use annals::{Cursor, Error, ErrorKind, Result};
use annals_storage::{Clock as _, Spool, SystemClock};
use bytes::{Bytes, BytesMut};

use super::copies::{Copies, Found};
use super::log::{Appended, latest};
use super::message::{Head, Kind, OVERHEAD, encode};
use super::status::Counts;
use crate::Patience;

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
    /// The latest time of their commits by a clock.
    newest: i64,
}

/// What became of messages.
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
        Ok(Self { after, from, end, messages, fences: Vec::new(), newest })
    }

    /// Makes the first message of a log that counts: after a fence, or after 0.
    pub(super) fn beginning(after: u64, start: Cursor, header: &[u8]) -> Self {
        let from = Cursor { txid: annals::Txid(0), chain: 0 };
        let (kind, nonce) = (Kind::Beginning, SystemClock.random());
        let head = Head { kind, sequence: after + 1, from, end: start, part: 0, parts: 1, nonce };
        let messages = vec![encode(&head, header)];
        Self { after, from, end: start, messages, fences: Vec::new(), newest: i64::MIN }
    }

    /// Appends them, and settles the outcome if it is unknown. While the log has no leader it tries again.
    ///
    /// # Errors
    /// It is certain that they aren't in the log: `Unreachable` and others. `UnknownOutcome`: it couldn't be settled until
    /// the deadline; [`settle`](Self::settle) tries again.
    pub(super) fn send(&mut self, copies: &Copies, patience: Patience) -> Result<Outcome> {
        let mut tries = Tries::new(patience);
        loop {
            match copies.log.append(self.after, self.messages.clone()) {
                Ok(Appended::Committed(time)) => return self.confirm(copies, &mut tries, time),
                Ok(Appended::Conflict) => return Ok(Outcome::Conflict),
                Ok(Appended::Unknown(cause)) => {
                    Counts::add(&copies.counts.unknown);
                    return self.settle(copies, patience, &cause);
                }
                Err(error) if error.kind() == ErrorKind::Unreachable && tries.again() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Finds out what became of them.
    ///
    /// # Errors
    /// `UnknownOutcome`: the log can't be asked until the deadline.
    pub(super) fn settle(
        &mut self,
        copies: &Copies,
        patience: Patience,
        cause: &Error,
    ) -> Result<Outcome> {
        let mut tries = Tries::new(patience);
        let (mut after, mut landed) = (self.after, 0);
        loop {
            let fence = self.fence(after);
            match copies.log.append(after, vec![fence]) {
                Ok(Appended::Committed(_)) => return Ok(Outcome::Fenced(after + 1)),
                Ok(Appended::Conflict) => match copies.fetch(after + 1) {
                    Ok(Found::Whole(it))
                        if self.messages.get(landed) == Some(&it.message.bytes) =>
                    {
                        (after, landed) = (after + 1, landed + 1);
                        if landed == self.messages.len() {
                            return self.confirm(copies, &mut tries, None);
                        }
                        continue;
                    }
                    Ok(Found::Whole(it)) if self.fences.contains(&it.message.bytes) => {
                        return Ok(Outcome::Fenced(after + 1));
                    }
                    Ok(_) => return Ok(Outcome::Conflict),
                    // A leader that was elected just now, perhaps: the fence is tried again.
                    Err(_) => {}
                },
                Ok(Appended::Unknown(_)) | Err(_) => {}
            }
            if !tries.again() {
                let message = format!(
                    "{}: whether transaction {} is in the log is not known: {cause}; no fence could be appended for {:?}",
                    copies.log.name(),
                    self.end.txid,
                    patience.deadline
                );
                return Err(Error::new(ErrorKind::UnknownOutcome, message));
            }
        }
    }

    /// Checks the time at which the log has taken the last of the messages, which are in the log: that decides whether they
    /// count. If the log hasn't said it, the message is read.
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
        let (kind, nonce, from) = (Kind::Fence, SystemClock.random(), self.from);
        let head = Head { kind, sequence: after + 1, from, end: from, part: 0, parts: 1, nonce };
        let fence = encode(&head, &[]);
        self.fences.push(fence.clone());
        fence
    }

    fn last(&self) -> u64 {
        self.after + self.messages.len() as u64
    }
}

/// Tries with pauses, until a deadline.
struct Tries {
    begun: Duration,
    patience: Patience,
    pause: Duration,
}

impl Tries {
    fn new(patience: Patience) -> Self {
        Self { begun: SystemClock.elapsed(), patience, pause: patience.pause }
    }

    /// Pauses; returns false if the deadline is over.
    fn again(&mut self) -> bool {
        if SystemClock.elapsed().saturating_sub(self.begun) >= self.patience.deadline {
            return false;
        }
        SystemClock.pause(self.pause);
        self.pause = LONGEST_PAUSE.min(self.pause * 2);
        true
    }
}
