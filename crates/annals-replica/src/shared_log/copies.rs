//! The copies of a message: which of them to believe.
//!
//! A log may skip messages of a damaged replica without a word. So a message that is missing, or doesn't verify, is asked for
//! again: of any replica a few times, of the leader, of all replicas. Only bytes that most replicas have alike are judged to be
//! void: one damaged replica, the leader too, doesn't stop that.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use annals::{Error, ErrorKind, Result};
use annals_storage::{Clock as _, SystemClock};
use bytes::Bytes;

use super::log::{Extent, Log, Message, Replicas, Source};
use super::message::{CHECK_LEN, HEADER_LEN, Head, decode};
use super::status::Counts;

/// How often any replica is asked before the leader is.
const TRIES: u32 = 2;
/// The pause between them: the replica may have it in a moment.
const PAUSE: std::time::Duration = std::time::Duration::from_micros(500);

/// How often a log that seems to be shorter than it was is asked, and how often in a row it must say so at the end.
const PROVING: u32 = 12;
const PROOFS: u32 = 4;
/// The pause between: leaders lose their place within some seconds.
const PROVING_PAUSE: std::time::Duration = std::time::Duration::from_millis(300);

/// A message that is as its writer made it, or that never will be.
#[derive(Debug)]
pub(super) enum Found {
    /// It verifies.
    Whole(Whole),
    /// Most replicas have the same bytes, which don't verify.
    Void,
}

/// A message that verifies.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) head: Head,
    pub(super) message: Message,
}

impl Whole {
    /// Reads a message; `None` if it doesn't verify, or belongs elsewhere.
    fn of(message: &Message) -> Option<Self> {
        let (head, _) = decode(&message.bytes)?;
        (head.sequence == message.sequence).then(|| Self { head, message: message.clone() })
    }

    /// Returns what it carries.
    pub(super) fn payload(&self) -> Bytes {
        let bytes = &self.message.bytes;
        bytes.slice(HEADER_LEN..bytes.len() - CHECK_LEN)
    }
}

/// Reads messages, and repairs what it reads from other copies.
#[derive(Clone, Debug)]
pub(super) struct Copies {
    pub(super) log: Arc<dyn Log>,
    pub(super) counts: Arc<Counts>,
}

impl Copies {
    /// Judges a message that was read: one that doesn't verify is read again.
    pub(super) fn check(&self, message: &Message) -> Result<Found> {
        match Whole::of(message) {
            Some(whole) => Ok(Found::Whole(whole)),
            None => self.repair(message.sequence),
        }
    }

    /// Reads a message that a replica lacks, or has damaged.
    pub(super) fn repair(&self, sequence: u64) -> Result<Found> {
        let found = self.fetch(sequence)?;
        if matches!(found, Found::Whole(_)) {
            Counts::add(&self.counts.repaired);
        }
        Ok(found)
    }

    /// Reads a message that the log must have, from as many replicas as that takes.
    ///
    /// # Errors
    /// `Unreachable`: not enough of them answer; `Forgotten`: it was removed; `Corrupt`: no replica has it.
    pub(super) fn fetch(&self, sequence: u64) -> Result<Found> {
        let is_suspicious = self.counts.is_suspicious.load(Ordering::Relaxed);
        for again in 0..if is_suspicious { 0 } else { TRIES } {
            if again > 0 {
                SystemClock.pause(PAUSE);
            }
            if let Some(whole) = self.log.get(sequence, Source::Any)?.as_ref().and_then(Whole::of) {
                return Ok(Found::Whole(whole));
            }
        }
        // The replica that answers lags, or is damaged: for what comes next the leader is asked at once.
        self.counts.is_suspicious.store(true, Ordering::Relaxed);
        let leader = self.log.get(sequence, Source::Leader)?;
        if let Some(whole) = leader.as_ref().and_then(Whole::of) {
            return Ok(Found::Whole(whole));
        }
        let replicas = self.log.copies(sequence)?;
        let copies = || replicas.copies.iter().flatten();
        if let Some(whole) = copies().find_map(Whole::of) {
            return Ok(Found::Whole(whole));
        }
        match copies().any(|copy| replicas.agree_on(&copy.bytes)) {
            true => Ok(Found::Void),
            false => Err(self.missing(sequence)),
        }
    }

    /// Looks at a place which may be empty; `None`: nothing is seen there, which proves nothing.
    ///
    /// # Errors
    /// `Unreachable`: nobody can be asked.
    pub(super) fn peek(&self, sequence: u64) -> Result<Option<Found>> {
        if let Some(whole) = self.log.get(sequence, Source::Any)?.as_ref().and_then(Whole::of) {
            return Ok(Some(Found::Whole(whole)));
        }
        match self.log.get(sequence, Source::Leader)? {
            None => Ok(None),
            Some(message) => self.check(&message).map(Some),
        }
    }

    fn missing(&self, sequence: u64) -> Error {
        let name = self.log.name();
        if self.log.extent().is_ok_and(|extent| sequence < extent.first) {
            let message = format!(
                "{name}: message {sequence} was removed from the log; it is in the archive, if there is one"
            );
            return Error::new(ErrorKind::Forgotten, message);
        }
        Error::corrupt(format!(
            "{name}: no replica has message {sequence} whole: it is lost, or the servers that have it can't be reached; \
             replace the damaged server, which its log names: stop it, move its store_dir away, and start it empty; if no \
             server has the message, start this node with --log-archive (see \"A replica is damaged\" in the runbook)"
        ))
    }

    /// Returns the extent of a log that seems to lack a message which it had before. A leader that was cut off from the others
    /// doesn't know what they have stored, and one that was elected just now may not have read its own log to the end: only
    /// if leaders that a majority follows say the same again and again the log is as short as that.
    ///
    /// # Errors
    /// `Unreachable`: it isn't certain.
    pub(super) fn proven_extent(&self, had: u64) -> Result<Extent> {
        let (mut shorter, mut proofs) = (None, 0);
        for _ in 0..PROVING {
            let extent = self.log.confirmed()?;
            if let Some(extent) = extent.filter(|extent| extent.last >= had) {
                return Ok(extent);
            }
            proofs = if extent.is_some() && extent == shorter { proofs + 1 } else { 0 };
            shorter = extent;
            SystemClock.pause(PROVING_PAUSE);
        }
        shorter.filter(|_| proofs >= PROOFS).ok_or_else(|| {
            let message = format!(
                "{}: the server that answers as its leader lacks messages that were there before, and a majority doesn't \
                 confirm that",
                self.log.name()
            );
            Error::new(ErrorKind::Unreachable, message)
        })
    }

    /// Fails unless most replicas have these bytes: then all that read the log judge the same.
    ///
    /// # Errors
    /// `Unreachable`: not enough replicas answer; `Corrupt`: they have something else.
    pub(super) fn settled(&self, message: &Message, reason: &str) -> Result<()> {
        let replicas = self.log.copies(message.sequence)?;
        if replicas.agree_on(&message.bytes) {
            return Ok(());
        }
        let Replicas { count, copies } = &replicas;
        let (alike, asked) = (replicas.alike(&message.bytes), copies.len());
        let kind = match alike * 2 + (count - asked.min(*count)) * 2 > *count {
            true => ErrorKind::Unreachable,
            false => ErrorKind::Corrupt,
        };
        let (name, sequence) = (self.log.name(), message.sequence);
        let message = format!(
            "{name}: message {sequence} doesn't count ({reason}), but {alike} of its {count} replicas have it, of {asked} \
             that answer: most must, so that all nodes judge alike; try again once its servers are well"
        );
        Err(Error::new(kind, message))
    }
}

impl Replicas {
    /// Returns how many replicas have these bytes.
    fn alike(&self, bytes: &Bytes) -> usize {
        self.copies.iter().flatten().filter(|copy| copy.bytes == *bytes).count()
    }

    /// True if most replicas have these bytes.
    fn agree_on(&self, bytes: &Bytes) -> bool {
        self.alike(bytes) * 2 > self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_of_all_replicas_must_agree_and_half_of_them_do_not() {
        let (bytes, other) = (Bytes::from_static(b"same"), Bytes::from_static(b"other"));
        let message = |bytes: &Bytes| Some(Message { sequence: 1, time: 0, bytes: bytes.clone() });
        for (count, needed) in [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)] {
            for alike in 0..=count {
                let mut copies = vec![message(&bytes); alike];
                // Whether the others answer, or have something else, is no matter.
                for rest in [vec![], vec![None], vec![message(&other); count - alike]] {
                    copies.truncate(alike);
                    copies.extend(rest);
                    let replicas = Replicas { count, copies: copies.clone() };
                    assert_eq!(replicas.agree_on(&bytes), alike >= needed, "{alike} of {count}");
                }
            }
        }
    }
}
