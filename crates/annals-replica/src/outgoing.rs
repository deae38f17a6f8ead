//! Pushing a journal that was written elsewhere: offline, or on another machine.

use annals::internals::locate;
use annals::{Cursor, Error, ErrorKind, Options, Result, Txid};
use annals_storage::{Clock as _, Directory, Spool, SystemClock};
use std::path::Path;

use crate::connection::BATCH;
use crate::frames::{Source, transaction_ends};
use crate::outcome::{Answer, Attempt, LONGEST_PAUSE, Seen, Settled, Tries, settle};
use crate::{Connection, Patience, Pushed};

/// The report of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// How many transactions the other side has accepted.
    pub transactions: u64,
    /// Its end now.
    pub end: Cursor,
}

/// Asks the other side to accept all transactions of a journal that it doesn't have. Its own end must be in the
/// journal: it may be an older backup of it. Transactions arrive in order, each wholly or not at all; after an error
/// those that arrived stay, and pushing again continues there.
///
/// Only hard commits are sent. Others may write the journal meanwhile.
///
/// # Errors
/// `Diverged`, which names the last common transaction: each side has transactions that the other doesn't have, and
/// nothing was changed. `Unsupported`: the journal continues in a segment that the other side doesn't have: only
/// the owner of a history begins segments. `Conflict`: others write there meanwhile; those of
/// [`Connection::push`], of opening the journal, and of the connection.
pub fn push(connection: &dyn Connection, journal: &Path) -> Result<Sent> {
    let source = Source::of_reader(Options::new().hard_only(true).open_read_only(journal)?);
    let (directory, name) = locate(journal)?;
    let patience = Patience::default();
    let way = Way { connection, directory: &*directory, name: &name, patience };
    if let Some(sent) = send_after(&way, &source)? {
        return Ok(sent);
    }
    let (end, own) = (connection.describe()?.end, source.end()?);
    if connection.chains(&[own.txid])? == [Some(own.chain)] {
        // It is an older copy, without transactions of its own.
        return Ok(Sent { transactions: 0, end });
    }
    Err(diverged(connection, &source, end))
}

/// Where to send, and where what is on its way is kept.
pub(crate) struct Way<'w> {
    pub(crate) connection: &'w dyn Connection,
    pub(crate) directory: &'w dyn Directory,
    pub(crate) name: &'w str,
    pub(crate) patience: Patience,
}

/// Sends all transactions that the other side doesn't have; `None` if it has others.
pub(crate) fn send_after(way: &Way<'_>, source: &Source) -> Result<Option<Sent>> {
    let end = way.connection.describe()?.end;
    if !source.has(end)? {
        return Ok(None);
    }
    let mut sent = Sent { transactions: 0, end };
    let is_all = send_batches(way, source, &mut sent).map_err(|error| match sent.transactions {
        0 => error,
        _ => error.within(format!(
            "{} has accepted all up to transaction {}; then",
            way.connection.name(),
            sent.end.txid
        )),
    })?;
    Ok(is_all.then_some(sent))
}

/// Sends what follows, and notes what was accepted; returns false if others came first.
fn send_batches(way: &Way<'_>, source: &Source, sent: &mut Sent) -> Result<bool> {
    let Way { connection, directory, name, .. } = *way;
    loop {
        let batch = source.after(Some(sent.end), BATCH)?;
        if batch.is_empty() {
            return Ok(true);
        }
        if batch.is_seal {
            let message = format!(
                "{}: continues in another segment after transaction {}, and {} doesn't: only the owner of a history \
                 restarts it; clone it from there again, and apply the later changes",
                source.name(),
                sent.end.txid,
                connection.name()
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let random = SystemClock.random();
        let mut frames = Spool::new(directory.again(), format!("{name}-spool-{random:016x}"), 0);
        batch.copy_to(&mut frames)?;
        if !send(way, sent.end, batch.next, &frames)? {
            return Ok(false);
        }
        sent.transactions += batch.transactions;
        sent.end = batch.next;
    }
}

/// Pushes frames until it is known that they are there; returns false if they can't be, since others came first.
fn send(way: &Way<'_>, from: Cursor, end: Cursor, frames: &Spool) -> Result<bool> {
    let (lease, is_patient, advice) = (None, false, "push again to see");
    let push = Push { from, end, frames, lease, is_patient, advice };
    let mut pushing = Pushing::new(way.connection, push)?;
    let mut tries = Tries::new(way.patience, LONGEST_PAUSE);
    loop {
        match settle(&mut pushing, &mut tries)? {
            Settled::Done(()) => return Ok(true),
            Settled::Conflict(_) => return Ok(false),
            // The turn of another ends, perhaps without anything in it.
            Settled::NotSent(_) if tries.again() => {}
            Settled::NotSent(error) => return Err(error),
        }
    }
}

/// Frames to be pushed.
#[derive(Debug)]
pub(crate) struct Push<'p> {
    pub(crate) from: Cursor,
    pub(crate) end: Cursor,
    pub(crate) frames: &'p Spool,
    pub(crate) lease: Option<u64>,
    /// True if the end of another's lease is waited for.
    pub(crate) is_patient: bool,
    /// What to do if the outcome isn't known.
    pub(crate) advice: &'static str,
}

/// A push as an attempt. Its place is that of its first transaction in the history; the same frames may be pushed again and
/// again.
#[derive(Debug)]
pub(crate) struct Pushing<'p> {
    connection: &'p dyn Connection,
    push: Push<'p>,
    /// The chains after its transactions.
    chains: Vec<u64>,
    /// The frames that came first, as the other side says.
    news: Option<Vec<u8>>,
}

impl<'p> Pushing<'p> {
    pub(crate) fn new(connection: &'p dyn Connection, push: Push<'p>) -> Result<Self> {
        let ends = transaction_ends(push.frames, push.frames.begin())?.unwrap_or_default();
        let chains = ends.iter().map(|end| end.chain).collect();
        Ok(Self { connection, push, chains, news: None })
    }

    /// Compares what is at the place, the chains after the first transactions there, with those that were pushed.
    fn compare(&self, first: Option<u64>, last: Option<u64>) -> Result<Option<bool>> {
        if last == Some(self.push.end.chain) {
            return Ok(Some(true));
        }
        match first {
            None => Ok(None),
            Some(chain) if self.chains.first() != Some(&chain) => Ok(Some(false)),
            // The other side crashed in the middle of them.
            Some(_) => {
                Err(Error::new(ErrorKind::UnknownOutcome, "only the first of them are there"))
            }
        }
    }
}

impl Attempt for Pushing<'_> {
    type Done = ();
    type Other = Option<Vec<u8>>;

    fn send(&mut self) -> Answer<()> {
        let Push { from, frames, lease, .. } = self.push;
        self.news = None;
        match self.connection.push(from, frames, lease) {
            Ok(Pushed::Committed) => Answer::Done(()),
            Ok(Pushed::Conflict(news)) => {
                self.news = news;
                let what = format!("{}: says that others came first", self.connection.name());
                Answer::Unproven(Error::new(ErrorKind::Conflict, what))
            }
            Ok(Pushed::NotSent(error)) => Answer::NotSent(error),
            Ok(Pushed::Unknown(error)) => Answer::Unproven(error),
            Err(error) if error.kind() == ErrorKind::UnknownOutcome => Answer::Unproven(error),
            Err(error) => Answer::Refused(error),
        }
    }

    fn look(&mut self) -> Result<Seen<(), Option<Vec<u8>>>> {
        if let Some(news) = self.news.take() {
            let ends = transaction_ends(&&*news, 0)?.unwrap_or_default();
            let chain = |place: usize| ends.get(place).map(|end| end.chain);
            match self.compare(chain(0), chain(self.chains.len().saturating_sub(1)))? {
                Some(true) => return Ok(Seen::Mine(())),
                Some(false) => return Ok(Seen::Another(Some(news))),
                None => {}
            }
        }
        let (first, last) = (self.push.from.txid + 1, self.push.end.txid);
        let chains = self.connection.chains(&[first, last])?;
        let chain = |place: usize| chains.get(place).copied().flatten();
        Ok(match self.compare(chain(0), chain(1))? {
            Some(true) => Seen::Mine(()),
            Some(false) => Seen::Another(None),
            // The journal may continue in another segment since: after that, nothing follows the cursor any more.
            None => {
                let (from, end) = (self.push.from, self.connection.describe()?.end);
                match end.txid == from.txid && end != from {
                    true => Seen::Another(None),
                    false => Seen::Nothing,
                }
            }
        })
    }

    fn is_passing(&self, refusal: &Error) -> bool {
        self.push.is_patient && refusal.kind() == ErrorKind::Conflict
    }

    fn unknown(&self, heard: &Error) -> Error {
        let (name, Cursor { txid, chain }) = (self.connection.name(), self.push.end);
        let message = format!(
            "whether {name} has accepted transaction {txid} (chain {chain:016x}) is not known: {heard}; {}",
            self.push.advice
        );
        Error::new(ErrorKind::UnknownOutcome, message)
    }
}

/// Returns the error that two histories differ, with the last transaction that they have in common.
fn diverged(connection: &dyn Connection, source: &Source, end: Cursor) -> Error {
    let name = source.name();
    let theirs = |txid| Ok(connection.chains(&[txid])?.first().copied().flatten());
    match last_common(&theirs, source, Txid(0), end.txid) {
        Ok(common) => Error::new(
            ErrorKind::Diverged,
            format!(
                "{name} and {} differ after transaction {common}; nothing was changed: rebase the later changes of \
                 {name}, or clone it again, and apply them there",
                connection.name()
            ),
        ),
        Err(error) => error,
    }
}

/// Adds to the error that the other side doesn't have the end of a history what its user does then.
pub(crate) fn advised(error: Error, connection: &dyn Connection, source: &Source) -> Error {
    match lacking(connection, source) {
        Ok(Some(count)) => error.advising(format_args!(
            "it lacks the last {count} transaction{} of {}, as an older backup does: `annals push FILE URL` sends them \
             again",
            if count == 1 { "" } else { "s" },
            source.name()
        )),
        _ => error.advising(
            "transactions that only this file has are made again there by `annals push FILE URL --rebase`; then clone it \
             again",
        ),
    }
}

/// Returns how many transactions the other side lacks; `None` if it has others.
fn lacking(connection: &dyn Connection, source: &Source) -> Result<Option<u64>> {
    let end = connection.describe()?.end;
    let is_before = source.has(end)?;
    Ok(is_before.then_some(source.end()?.txid.0.saturating_sub(end.txid.0)))
}

/// Finds the last transaction that two histories have in common, by bisection; `low` is known to be. `theirs` returns
/// the chain after a transaction on the other side, whose last one is `end`.
pub(crate) fn last_common(
    theirs: &dyn Fn(Txid) -> Result<Option<u64>>,
    source: &Source,
    low: Txid,
    end: Txid,
) -> Result<Txid> {
    let (mut low, mut high) = (low, end.min(source.end()?.txid) + 1);
    while low + 1 < high {
        let middle = Txid(low.0 + (high.0 - low.0) / 2);
        let theirs = theirs(middle)?;
        let ours = source.chain(middle)?;
        // What one side has forgotten says nothing: the histories are the same there, if they are later.
        match theirs.zip(ours).is_none_or(|(theirs, ours)| theirs == ours) {
            true => low = middle,
            false => high = middle,
        }
    }
    Ok(low)
}
