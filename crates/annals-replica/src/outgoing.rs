//! Pushing a journal that was written elsewhere: offline, or on another machine.

use std::path::Path;
use std::time::Duration;

use annals::internals::{Source, locate};
use annals::{Cursor, Error, ErrorKind, Options, Result, Txid};
use annals_storage::{Clock as _, Directory, Spool, SystemClock};

use crate::local::BATCH;
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
/// journal. Transactions arrive in order, each wholly or not at all; after an error those that arrived stay, and
/// pushing again continues there.
///
/// Only hard commits are sent. Others may write the journal meanwhile.
///
/// # Errors
/// `Diverged`, which names the last common transaction: the other side has transactions that the journal doesn't have,
/// and nothing was changed. `Unsupported`: the journal continues in a segment that the other side doesn't have: only
/// the owner of a history begins segments. `Conflict`: others write there meanwhile; those of
/// [`Connection::push`], of opening the journal, and of the connection.
pub fn push(connection: &dyn Connection, journal: &Path) -> Result<Sent> {
    let source = Source::of_reader(Options::new().hard_only(true).open_read_only(journal)?);
    let (directory, name) = locate(journal)?;
    let way = Way { connection, directory: &*directory, name: &name };
    match send_after(&way, &source)? {
        Some(sent) => Ok(sent),
        None => Err(diverged(connection, &source, connection.describe()?.end)),
    }
}

/// Where to send, and where what is on its way is kept.
pub(crate) struct Way<'w> {
    pub(crate) connection: &'w dyn Connection,
    pub(crate) directory: &'w dyn Directory,
    pub(crate) name: &'w str,
}

/// Sends all transactions that the other side doesn't have; `None` if it has others.
pub(crate) fn send_after(way: &Way<'_>, source: &Source) -> Result<Option<Sent>> {
    let Way { connection, directory, name } = *way;
    let mut end = connection.describe()?.end;
    if !source.has(end)? {
        return Ok(None);
    }
    let mut transactions = 0;
    loop {
        let batch = source.after(Some(end), BATCH)?;
        if batch.is_empty() {
            return Ok(Some(Sent { transactions, end }));
        }
        if batch.is_seal {
            let message = format!(
                "{}: continues in another segment after transaction {}, and {} doesn't: only the owner of a history \
                 restarts it; clone it from there again, and apply the later changes",
                source.name(),
                end.txid,
                connection.name()
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let random = SystemClock.random();
        let mut frames = Spool::new(directory.again(), format!("{name}-spool-{random:016x}"), 0);
        batch.copy_to(&mut frames)?;
        if !send(connection, end, batch.next, &frames)? {
            return Ok(None);
        }
        transactions += batch.transactions;
        end = batch.next;
    }
}

/// Pushes frames until it is known that they are there; returns false if they can't be, since others came first.
fn send(connection: &dyn Connection, from: Cursor, next: Cursor, frames: &Spool) -> Result<bool> {
    let Patience { deadline, mut pause } = Patience::default();
    let begun = SystemClock.elapsed();
    loop {
        let cause = match connection.push(from, frames, None)? {
            Pushed::Committed => return Ok(true),
            Pushed::Conflict(_) => return Ok(false),
            Pushed::Unknown(error) => error,
        };
        let chains = connection.chains(&[next.txid]);
        if chains.is_ok_and(|chains| chains.first() == Some(&Some(next.chain))) {
            return Ok(true);
        }
        if SystemClock.elapsed().saturating_sub(begun) >= deadline {
            let message = format!(
                "{}: whether transaction {} arrived is not known: {cause}; push again to see",
                connection.name(),
                next.txid
            );
            return Err(Error::new(ErrorKind::UnknownOutcome, message));
        }
        SystemClock.pause(pause);
        pause = Duration::from_secs(5).min(pause * 2);
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
