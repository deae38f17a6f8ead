//! A log as a connection of replicas.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use annals::internals::Origin;
use annals::{Cursor, Error, ErrorKind, Options, Result, Txid};
use annals_storage::{Clock as _, Directory as _, MemoryDirectory, Spool, SystemClock};

use super::copies::{Copies, Found};
use super::finding;
use super::jetstream::{Access, JetStream};
use super::log::{Appended, Log};
use super::place::{Place, Places};
use super::reading::{self, Read};
use super::status::{Counts, Status};
use super::trimming::{self, Trimmed};
use super::turns::{CONFLICTS, NONE, RESERVED, Turns};
use super::writing::{Outcome, Outgoing, fence};
use crate::frames::{begin_replica, count_frames};
use crate::{Connection, Description, Figure, Granted, LAG, Local, Patience, Pulled, Pushed};

/// A journal in a log that many machines share: each of them is a replica that reads it and appends to it.
///
/// It believes nothing that it reads: see the chapter on shared logs in the guide, and `docs/shared-log.md` for the rules.
#[derive(Debug)]
pub struct SharedLog {
    pub(super) copies: Copies,
    pub(super) archive: Option<Arc<dyn Connection>>,
    pub(super) patience: Patience,
    state: Mutex<State>,
    /// Held while messages are appended: one node has one append on its way.
    pushing: Mutex<Option<Outgoing>>,
    turns: Turns,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) places: Places,
    /// Messages up to this sequence are passed on one by one, since one of them doesn't apply.
    single_to: u64,
}

impl SharedLog {
    /// Prepares a connection to a stream of NATS JetStream, `nats://HOST:PORT/STREAM`; nothing is sent yet.
    ///
    /// # Errors
    /// `Invalid`: the URL isn't one of a stream.
    pub fn new(url: &str) -> Result<Self> {
        Self::with(url, Access::default())
    }

    /// Does what [`new`](Self::new) does, with credentials, and with what is needed to check the settings of the servers.
    ///
    /// # Errors
    /// As there.
    pub fn with(url: &str, access: Access) -> Result<Self> {
        Ok(Self::over(Arc::new(JetStream::new(url, access)?)))
    }

    /// Uses any log.
    #[must_use]
    pub fn over(log: Arc<dyn Log>) -> Self {
        let copies = Copies { log, counts: Arc::new(Counts::default()) };
        let (state, pushing, turns) = Default::default();
        Self { copies, archive: None, patience: Patience::default(), state, pushing, turns }
    }

    /// Asks this connection for what the log doesn't have any more.
    #[must_use]
    pub fn archive(mut self, archive: Arc<dyn Connection>) -> Self {
        self.archive = Some(archive);
        self
    }

    /// Sets how long a log without a leader is tried, and an unknown outcome is settled.
    #[must_use]
    pub const fn patience(mut self, patience: Patience) -> Self {
        self.patience = patience;
        self
    }

    /// Returns how this node stands to the log: its lag, and what it met.
    ///
    /// # Errors
    /// `Unreachable`.
    pub fn status(&self) -> Result<Status> {
        Ok(self.copies.counts.status(self.copies.log.extent()?.last))
    }

    /// Returns the same without asking the log: `last` is what this node has read.
    #[must_use]
    pub fn counts(&self) -> Status {
        let status = self.copies.counts.status(0);
        Status { last: status.read, ..status }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns where in the log a cursor is.
    fn place_of(&self, cursor: Cursor) -> Result<Place> {
        if let Some(place) = self.state().places.get(cursor) {
            return Ok(place);
        }
        let extent = self.copies.log.extent()?;
        let place = match finding::place_of(&self.copies, extent, cursor) {
            Err(error) if error.kind() == ErrorKind::Diverged => {
                let extent = self.copies.proven_extent(u64::MAX)?;
                finding::place_of(&self.copies, extent, cursor)?
            }
            found => found?,
        };
        self.state().places.put(cursor, place);
        Ok(place)
    }

    /// Reads what follows a cursor, once.
    fn read(&self, after: Cursor, into: &mut Spool) -> Result<Read> {
        let place = self.place_of(after)?;
        let single_to = self.state().single_to;
        let read = reading::read(&self.copies, after, place, single_to, into)?;
        let mut state = self.state();
        for (cursor, place) in &read.places {
            state.places.put(*cursor, *place);
        }
        drop(state);
        self.turns.note_read(&read);
        Ok(read)
    }

    /// Reads from the archive what the log doesn't have any more, or has lost.
    fn read_archive(&self, after: Cursor, error: Error, into: &mut Spool) -> Result<Pulled> {
        let is_gone = matches!(error.kind(), ErrorKind::Forgotten | ErrorKind::Corrupt);
        let Some(archive) = self.archive.as_ref().filter(|_| is_gone) else { return Err(error) };
        into.truncate(into.begin());
        let problem = match archive.pull(Some(after), Duration::ZERO, into) {
            Ok(pulled) if into.begin() < into.end() => {
                Counts::add(&self.copies.counts.archived);
                return Ok(pulled);
            }
            Ok(_) => format!("{}: has nothing after it", archive.name()),
            Err(problem) => problem.to_string(),
        };
        Err(Error::new(error.kind(), format!("{error}; {problem}")))
    }

    /// Removes the messages before the last `keep`, as far as an archive has the same transactions: each byte is compared. The
    /// last message that the archive has stays.
    ///
    /// Cost: these messages, and the same part of the archive, are read.
    ///
    /// # Errors
    /// `Diverged`: the archive is of another journal; those of the archive and of the log.
    pub fn trim(&self, archive: &dyn Connection, keep: u64) -> Result<Trimmed> {
        let begun = SystemClock.elapsed();
        self.patience.until_reached(begun, || trimming::trim(&self.copies, archive, keep))
    }

    pub(super) fn error(&self, kind: ErrorKind, what: &str) -> Error {
        Error::new(kind, format!("{}: {what}", self.copies.log.name()))
    }

    pub(super) fn pushing(&self) -> MutexGuard<'_, Option<Outgoing>> {
        self.pushing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Settles the append whose outcome is unknown, if there is one.
    pub(super) fn settle(&self, pushing: &mut Option<Outgoing>) -> Result<()> {
        let Some(outgoing) = pushing else { return Ok(()) };
        let outcome = outgoing.settle(&self.copies, self.patience)?;
        self.note(outgoing, outcome);
        *pushing = None;
        Ok(())
    }

    /// Remembers the places that an outcome tells.
    fn note(&self, outgoing: &Outgoing, outcome: Outcome) {
        let (cursor, place) = match outcome {
            Outcome::Committed(last) => (outgoing.end, Place::after(last)),
            Outcome::Fenced(last) => (outgoing.from, Place::after(last)),
            Outcome::Ahead(last) => {
                let reason = "its clock is more than 10 s ahead of that of the log".to_owned();
                self.copies.counts.note_void(last, reason);
                (outgoing.from, Place::after(last))
            }
            Outcome::Conflict => return,
        };
        self.copies.counts.read.fetch_max(place.read, std::sync::atomic::Ordering::Relaxed);
        self.state().places.put(cursor, place);
    }

    /// Returns the frames that came after a cursor, before those of this node. If it lost again and again, it reserves the next
    /// turn.
    fn news(&self, from: Cursor) -> Result<Vec<u8>> {
        let mut spool = Spool::new(MemoryDirectory::new().again(), "news".to_owned(), 0);
        let lost = self.turns.lost();
        let mut next = self.read(from, &mut spool)?.next;
        // Those who write without a pause leave little time between two messages, so it takes some tries.
        let until =
            SystemClock.elapsed() + if lost < CONFLICTS { Duration::ZERO } else { RESERVED };
        while SystemClock.elapsed() < until {
            let place = self.place_of(next)?;
            if place.is_inside || self.turns.is_reserved(place) {
                break;
            }
            let sequence = place.tail + 1;
            self.turns.sending(sequence..=sequence);
            let fence = fence(sequence, next);
            if let Ok(Appended::Committed(_)) = self.copies.log.append(place.tail, vec![fence]) {
                self.state().places.put(next, Place::after(sequence));
                break;
            }
            self.turns.sending(NONE);
            next = self.read(next, &mut spool)?.next;
        }
        let mut news = Vec::new();
        let copied = spool.pieces(|_, piece| {
            news.extend_from_slice(piece);
            Ok(())
        });
        copied.map_err(|error| Error::io("can't read what was spooled", error))?;
        Ok(news)
    }

    /// Appends frames once, and settles the outcome.
    fn send(&self, pushing: &mut Option<Outgoing>, mut outgoing: Outgoing) -> Result<Outcome> {
        let sent = outgoing.send(&self.copies, self.patience);
        match &sent {
            Ok(outcome) => self.note(&outgoing, *outcome),
            Err(error) if error.kind() == ErrorKind::UnknownOutcome => *pushing = Some(outgoing),
            Err(_) => {}
        }
        sent
    }

    /// Returns the error that nothing was sent, since something else may be on its way.
    fn unsettled(&self, earlier: &Error) -> Error {
        let what = format!("nothing was sent, since an append before it isn't settled: {earlier}");
        self.error(ErrorKind::Unreachable, &what)
    }

    /// Appends frames until it is known what became of them, or that it can't be known.
    ///
    /// # Errors
    /// None of them is in the log by this, and none will be.
    fn push_once(&self, from: Cursor, frames: &Spool) -> Result<Pushed> {
        let contents = count_frames(frames)?;
        let end = Cursor { txid: from.txid + contents.transactions, chain: contents.chain };
        let mut pushing = self.pushing();
        let begun = SystemClock.elapsed();
        loop {
            match self.settle(&mut pushing) {
                Err(error) if error.kind() == ErrorKind::UnknownOutcome => {
                    let is_same = pushing.as_ref().is_none_or(|earlier| earlier.may_bring(frames));
                    return Ok(match is_same {
                        true => Pushed::Unknown(error),
                        false => Pushed::NotSent(self.unsettled(&error)),
                    });
                }
                settled => settled?,
            }
            // It was settled by now that an earlier push of the same frames has arrived.
            if self.state().places.get(end).is_some() {
                return Ok(Pushed::Committed);
            }
            let place = self.patience.until_reached(begun, || self.place_of(from))?;
            if place.is_inside {
                return Ok(Pushed::Conflict(None));
            }
            // A fence that came after the transaction had begun leaves its beginning as it was.
            if self.turns.is_reserved(place) {
                let what = "another node has reserved the next turn: nothing was sent";
                return Ok(Pushed::NotSent(self.error(ErrorKind::Conflict, what)));
            }
            let outgoing = self.patience.until_reached(begun, || {
                Outgoing::of(&self.copies, place.tail, from, end, frames)
            })?;
            self.turns.sending(outgoing.sequences());
            let sent = SystemClock.elapsed();
            match self.send(&mut pushing, outgoing) {
                Ok(Outcome::Committed(_)) => {
                    self.turns.sent(SystemClock.elapsed().saturating_sub(sent));
                    return Ok(Pushed::Committed);
                }
                Ok(Outcome::Conflict) => return Ok(Pushed::Conflict(self.news(from).ok())),
                Ok(Outcome::Fenced(_)) => {}
                Ok(Outcome::Ahead(last)) => {
                    let what = format!(
                        "the clock here is more than 10 s ahead of that of the log's servers: message {last} doesn't \
                         count, and nothing was changed; set the clock"
                    );
                    return Err(self.error(ErrorKind::Invalid, &what));
                }
                Err(error) if error.kind() == ErrorKind::UnknownOutcome => {
                    return Ok(Pushed::Unknown(error));
                }
                Err(error) => return Err(error),
            }
            if SystemClock.elapsed().saturating_sub(begun) >= self.patience.deadline {
                return Err(self.error(
                    ErrorKind::Unreachable,
                    "the transaction was lost on the way again and again; it isn't in the log",
                ));
            }
        }
    }
}

impl Connection for SharedLog {
    fn name(&self) -> String {
        self.copies.log.name()
    }

    fn describe(&self) -> Result<Description> {
        self.patience.until_reached(SystemClock.elapsed(), || {
            let Description { id, first, .. } = match &self.archive {
                Some(archive) if self.copies.log.extent()?.first > 1 => archive.describe()?,
                _ => beginning_of(&self.first()?.payload())?.0,
            };
            Ok(Description { id, first, end: finding::end(&self.copies)? })
        })
    }

    fn pull(&self, after: Option<Cursor>, wait: Duration, into: &mut Spool) -> Result<Pulled> {
        let begun = SystemClock.elapsed();
        let Some(after) = after else {
            return self.patience.until_reached(begun, || self.begin(into));
        };
        loop {
            let read = match self.read(after, into) {
                Err(error) => return self.read_archive(after, error, into),
                Ok(read) => read,
            };
            let passed = SystemClock.elapsed().saturating_sub(begun);
            if read.counted > 0 || passed >= wait {
                return Ok(Pulled { next: read.next, is_seal: false });
            }
            let tail = self.place_of(after)?.tail;
            self.copies.log.wait(tail, wait.saturating_sub(passed));
        }
    }

    fn push(&self, from: Cursor, frames: &Spool, _lease: Option<u64>) -> Result<Pushed> {
        match self.push_once(from, frames) {
            Err(error) if error.kind() == ErrorKind::Unreachable => Ok(Pushed::NotSent(error)),
            pushed => pushed,
        }
    }

    fn yield_to_others(&self, at: Cursor) -> bool {
        let Some(place) = self.state().places.get(at) else { return false };
        let wait = self.turns.wait(place);
        if wait.is_zero() {
            return false;
        }
        let begun = SystemClock.elapsed();
        self.copies.log.wait(place.tail, wait);
        let in_vain = SystemClock.elapsed().saturating_sub(begun) >= wait;
        self.turns.waited(place, in_vain);
        !in_vain
    }

    fn lock(&self, _lasting: Duration, _ticket: Option<u64>) -> Result<Granted> {
        Err(self.error(
            ErrorKind::Unsupported,
            "a shared log has no leases: transactions run again after conflicts",
        ))
    }

    fn unlock(&self, _ticket: u64) -> Result<()> {
        Ok(())
    }

    fn chains(&self, txids: &[Txid]) -> Result<Vec<Option<u64>>> {
        self.settle(&mut self.pushing())?;
        txids.iter().map(|&txid| finding::chain_of(&self.copies, txid)).collect()
    }

    fn origin(&self) -> Origin {
        Origin::Logged
    }

    fn figures(&self) -> Result<Vec<Figure>> {
        let status = self.status()?;
        let figure = |name, help, value| Figure { name, help, value };
        Ok(vec![
            figure(LAG, "Messages of the log that this node hasn't judged.", status.lag()),
            figure("log_void_total", "Messages that don't count, for any node.", status.void),
            figure(
                "log_skipped_total",
                "Fences, and parts of transactions before which others came.",
                status.skipped,
            ),
            figure("log_repaired_total", "Messages read from another replica.", status.repaired),
            figure("log_archived_total", "Times the archive was read.", status.archived),
            figure("log_unknown_total", "Appends that got no answer.", status.unknown),
        ])
    }

    fn refused(&self, after: Cursor, next: Cursor, error: &Error) -> Result<bool> {
        let place = self.place_of(after)?;
        let mut spool = Spool::new(MemoryDirectory::new().again(), "refused".to_owned(), 0);
        let read = reading::read(&self.copies, after, place, u64::MAX, &mut spool)?;
        if read.counted != 1 {
            return Ok(false);
        }
        if read.next != next {
            // One of several: they come again one by one.
            let last = self.copies.log.extent()?.last;
            let mut state = self.state();
            state.single_to = state.single_to.max(last);
            return Ok(true);
        }
        let last = *read.sequences.end();
        for sequence in read.sequences {
            let Found::Whole(whole) = self.copies.fetch(sequence)? else { return Ok(false) };
            self.copies.settled(&whole.message, &error.to_string())?;
        }
        self.copies.counts.note_void(last, error.to_string());
        self.state().places.put(after, Place::after(last));
        Ok(true)
    }
}

/// Returns facts of a journal that begins with a header, and its start.
pub(super) fn beginning_of(header: &[u8]) -> Result<(Description, Cursor)> {
    let directory = MemoryDirectory::new();
    let mut spool = Spool::new(directory.again(), "spool".to_owned(), 0);
    let appended = spool.append(header);
    appended.map_err(|error| Error::io("can't spool a header", error))?;
    let start = begin_replica(&directory, "header", &mut spool)?;
    let database = Options::new().open_in(directory.again(), "header", Arc::new(SystemClock))?;
    Ok((Local::new(database).description()?, start))
}
