//! What is asked of a log that many machines share, and nothing more: so any that can compare its end before it appends will do.

use std::fmt::Debug;
use std::time::Duration;

use annals::Result;
use bytes::Bytes;

/// A message as the log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its place: the first is 1.
    pub sequence: u64,
    /// When the log has taken it, by its own clock, in microseconds since 1970.
    pub time: i64,
    /// Its bytes.
    pub bytes: Bytes,
}

/// The result of appending.
#[derive(Debug)]
pub enum Appended {
    /// All are in the log, on permanent storage; with the time at which the log has taken the last one, if it says so.
    Committed(Option<i64>),
    /// Somebody says that the log ends elsewhere. That proves nothing: a leader that was replaced says so of messages that
    /// its successor stores.
    Refused,
    /// Nothing was said that can be believed.
    Unknown(annals::Error),
}

/// Which copy of a message is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// That of any replica: quick, and perhaps older or damaged.
    Any,
    /// That of the leader.
    Leader,
}

/// What the replicas of a log have at one place.
#[derive(Clone, Debug)]
pub struct Replicas {
    /// How many replicas the log has.
    pub count: usize,
    /// What those have that answered, each one once; `None`: that one hasn't got a message.
    pub copies: Vec<Option<Message>>,
}

/// A replicated log of messages.
pub trait Log: Debug + Send + Sync {
    /// Names it in messages, as a person would write it.
    fn name(&self) -> String;

    /// Returns the most bytes of a message.
    ///
    /// # Errors
    /// `Unreachable`.
    fn most(&self) -> Result<usize>;

    /// Appends messages one after the other, if the log ends with the sequence `after`.
    ///
    /// # Errors
    /// Nothing was sent.
    fn append(&self, after: u64, messages: Vec<Bytes>) -> Result<Appended>;

    /// Returns messages from a sequence on, in order, of any replica: about `most` bytes or one message. Some may be missing.
    ///
    /// # Errors
    /// `Unreachable`.
    fn read(&self, from: u64, most: usize) -> Result<Vec<Message>>;

    /// Returns a message; `None` if the source hasn't got it.
    ///
    /// # Errors
    /// `Unreachable`: that source can't be asked.
    fn get(&self, sequence: u64, source: Source) -> Result<Option<Message>>;

    /// Returns a message as each replica has it.
    ///
    /// # Errors
    /// `Unreachable`: no replica can be asked.
    fn copies(&self, sequence: u64) -> Result<Replicas>;

    /// Returns the sequences of the first and of the last message, as the leader knows them: `first` is `last + 1` if it is
    /// empty.
    ///
    /// # Errors
    /// `Unreachable`.
    fn extent(&self) -> Result<Extent>;

    /// Returns the same, if it is certain that no other leader has stored more: a majority follows the leader that answers.
    /// `None`: it is about to lose that place, or the others don't reach it.
    ///
    /// # Errors
    /// `Unreachable`.
    fn confirmed(&self) -> Result<Option<Extent>> {
        self.extent().map(Some)
    }

    /// Removes all messages before a sequence.
    ///
    /// # Errors
    /// `Unreachable`; `Unsupported`: the log doesn't allow that.
    fn remove(&self, before: u64) -> Result<()>;

    /// Waits until there may be a message after a sequence, up to `timeout`.
    fn wait(&self, after: u64, timeout: Duration);
}

/// The messages that a log has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The sequence of the first.
    pub first: u64,
    /// The sequence of the last.
    pub last: u64,
}

/// How far the clock of a commit may be ahead of the log's, in microseconds.
const MOST_AHEAD: i64 = 10_000_000;

/// Returns the latest time that a commit may have, by its clock, in a message that the log has taken at a time.
pub(super) const fn latest(log_time: i64) -> i64 {
    log_time.saturating_add(MOST_AHEAD)
}
