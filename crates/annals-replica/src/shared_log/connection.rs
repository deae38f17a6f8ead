//! A log as a connection of replicas.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use annals::internals::{Origin, Source, begin_replica_in, count_frames};
use annals::{Cursor, Error, ErrorKind, Options, Result, Txid};
use annals_storage::{Clock as _, Directory as _, MemoryDirectory, Spool, SystemClock};

use super::copies::{Copies, Found, Whole};
use super::finding;
use super::jetstream::{Access, JetStream};
use super::log::{Extent, Log};
use super::message::Kind;
use super::place::{Place, Places};
use super::reading::{self, Read};
use super::status::{Counts, Status};
use super::trimming::{self, Trimmed};
use super::writing::{Outcome, Outgoing};
use crate::{Connection, Description, Figure, Granted, LAG, Local, Patience, Pulled, Pushed, Sent};

/// A journal in a log that many machines share: each of them is a replica that reads it and appends to it.
///
/// It believes nothing that it reads: see the chapter on shared logs in the guide, and `docs/shared-log.md` for the rules.
#[derive(Debug)]
pub struct SharedLog {
    copies: Copies,
    archive: Option<Arc<dyn Connection>>,
    patience: Patience,
    state: Mutex<State>,
    /// Held while messages are appended: one node has one append on its way.
    pushing: Mutex<Option<Outgoing>>,
}

#[derive(Debug, Default)]
struct State {
    places: Places,
    /// What was pulled last.
    sent: Option<Passed>,
    /// Messages up to this sequence are passed on one by one, since one of them doesn't apply.
    single_to: u64,
}

/// What was pulled last.
#[derive(Debug)]
struct Passed {
    after: Cursor,
    counted: u64,
    sequences: std::ops::RangeInclusive<u64>,
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
        let (state, pushing) = (Mutex::default(), Mutex::default());
        Self { copies, archive: None, patience: Patience::default(), state, pushing }
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

    fn state(&self) -> MutexGuard<'_, State> {
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
        let (counted, sequences) = (read.counted, read.sequences.clone());
        state.sent = (counted > 0).then_some(Passed { after, counted, sequences });
        Ok(read)
    }

    /// Reads from the archive what the log doesn't have any more, or has lost.
    fn read_archive(&self, after: Cursor, error: Error, into: &mut Spool) -> Result<Pulled> {
        let is_gone = matches!(error.kind(), ErrorKind::Forgotten | ErrorKind::Corrupt);
        let Some(archive) = self.archive.as_ref().filter(|_| is_gone) else { return Err(error) };
        into.truncate(into.begin());
        self.state().sent = None;
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

    /// Checks that the archive, which has something, is of the journal in the log.
    fn check_archive(&self, archive: &dyn Connection, extent: Extent) -> Result<()> {
        let what = match extent.first {
            _ if extent.last == 0 => {
                "it is empty, and its archive isn't: restore that, and fill the log with `annals log create --from`"
            }
            1 if archive.describe()?.id != beginning_of(&self.first()?.payload())?.0.id => {
                "its archive is of another journal"
            }
            _ => return Ok(()),
        };
        Err(self.error(ErrorKind::Diverged, &format!("{what} ({})", archive.name())))
    }

    /// Begins a replica: from the archive, if there is one; else from the log, whose first message this node appends if there
    /// is none.
    fn begin(&self, into: &mut Spool) -> Result<Pulled> {
        let extent = self.copies.log.extent()?;
        if let Some(archive) = &self.archive {
            match archive.pull(None, Duration::ZERO, into) {
                Ok(pulled) if into.begin() < into.end() => {
                    let extent = self.copies.proven_extent(1)?;
                    return self.check_archive(&**archive, extent).map(|()| pulled);
                }
                Err(error) if extent.first > 1 => return Err(error),
                // Nothing is there yet, or it can't be reached; and the log has all.
                Ok(_) | Err(_) => into.truncate(into.begin()),
            }
        }
        if extent.first > 1 {
            let what =
                "its first messages were removed: begin from the archive (--log-archive URL)";
            return Err(self.error(ErrorKind::Forgotten, what));
        }
        let first = loop {
            match self.find_beginning()? {
                Beginning::There(first) => break first,
                Beginning::After(fence) => self.append_new(fence)?,
            }
        };
        let appended = into.append(&first.payload());
        appended.map_err(|error| Error::io("can't spool what was pulled", error))?;
        self.state().places.put(first.head.end, Place::after(first.head.sequence));
        Ok(Pulled { next: first.head.end, is_seal: false })
    }

    /// Finds the message that has the header of the journal. Only fences are before it: those of nodes whose own one was
    /// lost on the way.
    fn find_beginning(&self) -> Result<Beginning> {
        let last = self.copies.log.extent()?.last;
        for sequence in 1..=last {
            match self.copies.fetch(sequence)? {
                Found::Whole(it) if it.head.kind == Kind::Beginning => {
                    return Ok(Beginning::There(it));
                }
                Found::Whole(it) if it.head.kind == Kind::Fence => {}
                _ => {
                    let what = "doesn't begin with the beginning of a journal: something else uses this log";
                    return Err(self.error(ErrorKind::NotAJournal, what));
                }
            }
        }
        Ok(Beginning::After(last))
    }

    /// Returns the message that has the header of the journal.
    fn first(&self) -> Result<Whole> {
        match self.find_beginning()? {
            Beginning::There(first) => Ok(first),
            Beginning::After(_) => Err(self.error(ErrorKind::NotFound, "is empty")),
        }
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

    /// Fills an empty log with the history of a file, which others may read meanwhile.
    ///
    /// # Errors
    /// `InUse`: the log isn't empty; `Unsupported`: the file has several segments, or begins with a state; those of
    /// [`push`](crate::push()).
    pub fn begin_with(&self, journal: &Path) -> Result<Sent> {
        let begun = SystemClock.elapsed();
        let beginning = self.patience.until_reached(begun, || self.find_beginning())?;
        let Beginning::After(fence) = beginning else {
            return Err(self.error(ErrorKind::InUse, "isn't empty: a log holds one journal"));
        };
        let reader = Options::new().hard_only(true).open_read_only(journal)?;
        let header = Source::of_reader(reader).after(None, 0)?.header;
        let (_, start) = beginning_of(&header).map_err(|error| {
            let what =
                format!("{}: a log begins with a journal's first transaction", journal.display());
            Error::new(
                ErrorKind::Unsupported,
                format!("{what}: {error}; `annals pack` makes such a file"),
            )
        })?;
        self.append_beginning(fence, start, &header)?;
        if self.patience.until_reached(begun, || self.first())?.head.end != start {
            return Err(self.error(ErrorKind::InUse, "another node has begun a journal there"));
        }
        crate::push(self, journal)
    }

    /// Appends the header of a new journal after a fence, or after 0.
    fn append_new(&self, fence: u64) -> Result<()> {
        let directory = MemoryDirectory::new().again();
        let new = Options::new().open_in(directory, "new", Arc::new(SystemClock))?;
        let batch = Local::new(new).batch(None)?;
        self.append_beginning(fence, batch.next, &batch.header)
    }

    /// Appends the header of a journal, if nothing follows the fence. Which journal the log begins with then, a look tells.
    fn append_beginning(&self, mut fence: u64, start: Cursor, header: &[u8]) -> Result<()> {
        let mut pushing = self.pushing();
        self.settle(&mut pushing)?;
        loop {
            let mut outgoing = Outgoing::beginning(fence, start, header);
            match outgoing.send(&self.copies, self.patience)? {
                Outcome::Committed(_) | Outcome::Conflict | Outcome::Ahead(_) => return Ok(()),
                // It was lost on the way.
                Outcome::Fenced(after) => fence = after,
            }
        }
    }

    fn error(&self, kind: ErrorKind, what: &str) -> Error {
        Error::new(kind, format!("{}: {what}", self.copies.log.name()))
    }

    fn pushing(&self) -> MutexGuard<'_, Option<Outgoing>> {
        self.pushing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Settles the append whose outcome is unknown, if there is one.
    fn settle(&self, pushing: &mut Option<Outgoing>) -> Result<()> {
        let Some(outgoing) = pushing else { return Ok(()) };
        let cause = self.error(ErrorKind::UnknownOutcome, "an earlier append got no answer");
        let outcome = outgoing.settle(&self.copies, self.patience, &cause)?;
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
}

/// Returns facts of a journal that begins with a header, and its start.
fn beginning_of(header: &[u8]) -> Result<(Description, Cursor)> {
    let directory = MemoryDirectory::new();
    let mut spool = Spool::new(directory.again(), "spool".to_owned(), 0);
    let appended = spool.append(header);
    appended.map_err(|error| Error::io("can't spool a header", error))?;
    let start = begin_replica_in(&directory, "header", &SystemClock, &mut spool)?;
    let database = Options::new().open_in(directory.again(), "header", Arc::new(SystemClock))?;
    Ok((Local::new(database).description()?, start))
}

/// The message that has the header of the journal.
enum Beginning {
    There(Whole),
    /// It isn't there: the log has only fences, the last of which is this message; 0 where it has none.
    After(u64),
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
        let contents = count_frames(frames)?;
        let end = Cursor { txid: from.txid + contents.transactions, chain: contents.chain };
        let mut pushing = self.pushing();
        let begun = SystemClock.elapsed();
        loop {
            match self.settle(&mut pushing) {
                Err(error) if error.kind() == ErrorKind::UnknownOutcome => {
                    return Ok(Pushed::Unknown(error));
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
            let outgoing = self.patience.until_reached(begun, || {
                Outgoing::of(&self.copies, place.tail, from, end, frames)
            })?;
            match self.send(&mut pushing, outgoing) {
                Ok(Outcome::Committed(_)) => return Ok(Pushed::Committed),
                Ok(Outcome::Conflict) => return Ok(Pushed::Conflict(None)),
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

    fn refused(&self, after: Cursor, error: &Error) -> Result<bool> {
        let mut state = self.state();
        let Some(sent) = state.sent.take().filter(|sent| sent.after == after) else {
            return Ok(false);
        };
        let last = *sent.sequences.end();
        if sent.counted > 1 {
            // One of them: they come again one by one.
            state.single_to = last;
            return Ok(true);
        }
        drop(state);
        for sequence in sent.sequences {
            let Found::Whole(whole) = self.copies.fetch(sequence)? else { return Ok(false) };
            if !self.copies.is_settled(&whole.message)? {
                return Ok(false);
            }
        }
        self.copies.counts.note_void(last, error.to_string());
        self.state().places.put(after, Place::after(last));
        Ok(true)
    }
}
