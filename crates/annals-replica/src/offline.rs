//! Changes that a replica makes on its own, in a journal beside its file, until the other side accepts them.

use std::sync::Arc;
use std::time::Duration;

use annals::internals::{LOCAL, PUSHED, Preface, REBASE, end_of};
use annals::{Cursor, Database, Error, ErrorKind, Result, Snapshot, Transaction, Txid};
use annals_storage::{Access, Clock as _, Directory, SystemClock};
use annals_tools::{Rebased as Again, Renumbered, last_made_again, rebase};

use crate::continuation::{begin_continuation, open_continuation, rename_continuation};
use crate::frames::Source;
use crate::outgoing::{Way, last_common, send_after};
use crate::replica::{Files, Replica};
use crate::{Connection, Sent};

/// What was committed without the other side: a database that has the state of the replica when it was begun, and all
/// changes since. It is beside the replica's file, as `NAME-local`.
///
/// It commits as any database does: what was acknowledged is on permanent storage. [`Replica::push`] and
/// [`Replica::rebase`] send it, when it is closed.
#[derive(Debug)]
#[must_use = "what isn't kept is closed at once"]
pub struct Offline {
    database: Database,
    preface: Preface,
}

/// The report of a rebase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebased {
    /// How many transactions the other side has accepted.
    pub transactions: u64,
    /// Its end now.
    pub end: Cursor,
    /// The rows that have other ids now, since others had taken theirs.
    pub renumbered: Vec<Renumbered>,
}

impl Offline {
    /// Returns a snapshot: the state of the replica when this was begun, and all changes since.
    #[must_use]
    pub fn read(&self) -> Snapshot {
        self.database.read()
    }

    /// Runs `change` in a transaction, and commits it here; see [`Database::write`].
    ///
    /// # Errors
    /// As there.
    pub fn write<T>(&self, change: impl FnOnce(&mut Transaction<'_>) -> Result<T>) -> Result<T> {
        self.database.write(change)
    }

    /// Returns the database, for all else.
    #[must_use]
    pub const fn database(&self) -> &Database {
        &self.database
    }

    /// Returns the cursor after which it begins.
    #[must_use]
    pub fn from(&self) -> Cursor {
        self.preface.from.into()
    }

    /// Returns a reader of the frames of a database that has the cursor: of this one, or of the one that it continues.
    /// It finds all places after the cursor without reading what is before it.
    fn source(&self, database: &Database) -> Source {
        Source::new(database.clone()).knowing(self.preface.segment, self.preface.from)
    }

    /// Returns the number of transactions that were committed here.
    #[must_use]
    pub fn transactions(&self) -> u64 {
        self.read().txid().0 - self.from().txid.0
    }

    /// Closes it properly; it stays until it is pushed.
    ///
    /// # Errors
    /// `Io`.
    pub fn close(self) -> Result<()> {
        self.database.close()
    }
}

/// Transactions that the other side may not have.
pub(crate) struct Ours<'o> {
    pub(crate) snapshot: Snapshot,
    pub(crate) source: &'o Source,
    /// A transaction that both have.
    pub(crate) common: Txid,
}

impl Replica {
    /// Opens what was committed here without the other side, or begins it: from now on, or since the last push. It needs no
    /// connection.
    ///
    /// While it is there, the replica itself can be read and pulled as before: it shows what the other side has.
    ///
    /// Cost: the first time the image is brought forward and the journal flushed; then as opening a database.
    ///
    /// # Errors
    /// `Busy`: it is open already; `Forgotten`: the replica doesn't keep the transaction any more after which it begins;
    /// those of opening a database.
    pub fn offline(&self) -> Result<Offline> {
        loop {
            match self.local()? {
                None => {
                    let Files { directory, name, .. } = &self.files;
                    begin_continuation(self.database(), &**directory, name, None, &self.own())?;
                }
                Some(local) if is_unused(&local) && local.from() != self.cursor() => {
                    self.remove(local)?;
                }
                Some(local) => return Ok(local),
            }
        }
    }

    /// Asks the other side to accept what was committed offline: the same transactions, with their times and comments. That
    /// is possible as long as it has no others. Then `NAME-local` is renamed to `NAME-local.pushed-TXID-CHAIN`.
    ///
    /// # Errors
    /// `Conflict`, which names the other side's transaction that came first: [`rebase`](Self::rebase) then. `Busy`: it is
    /// still open. Those of the other side's checks; those of the connection. `UnknownOutcome`: pushing again shows
    /// it. What isn't there stays in `NAME-local`.
    pub fn push(&self) -> Result<Sent> {
        let Some(local) = self.local()? else { return Ok(self.nothing()) };
        if is_unused(&local) {
            return self.remove(local).map(|()| self.nothing());
        }
        let source = local.source(&local.database);
        match self.send(&source)? {
            Some(sent) => self.finish(local, sent.end).map(|()| sent),
            None => {
                let error = self.came_first(&local, &source)?;
                match error {
                    Some(error) => Err(error),
                    // They were made again before, and only the answer was lost.
                    None => self.finish(local, self.cursor()).map(|()| self.nothing()),
                }
            }
        }
    }

    /// Makes the transactions that were committed offline again, by values, after those that the other side has got
    /// meanwhile; and asks it to accept them, all or none. Then `NAME-local` is renamed, as after [`push`](Self::push).
    ///
    /// A field is set if it has the value from before, and a row deleted if it has all of them. A row whose id another has
    /// taken gets a new one, and references to it follow. Each transaction stays one, with its comments, and one more:
    /// `rebased TXID:CHAIN`. Its time is the present, unless the program had set it.
    ///
    /// Cost: reads the transactions since the last common one, of both sides.
    ///
    /// # Errors
    /// `Conflict`: [`Violation::Conflict`](annals::Violation::Conflict) has all changes that can't be made, and nothing was
    /// changed; or others come first again and again. Else as `push`.
    pub fn rebase(&self) -> Result<Rebased> {
        let Some(local) = self.local()? else { return Ok(self.rebased(0, Vec::new())) };
        if is_unused(&local) {
            return self.remove(local).map(|()| self.rebased(0, Vec::new()));
        }
        let source = local.source(&local.database);
        let here = local.source(self.database());
        let begun = SystemClock.elapsed();
        self.pull()?;
        // Nobody came first: they become history as they are.
        let rebased = match source.has(self.cursor())? {
            true => self.send(&source)?.map(|Sent { transactions, end }| Rebased {
                transactions,
                end,
                renumbered: Vec::new(),
            }),
            false => None,
        };
        let rebased = match rebased {
            Some(rebased) => rebased,
            None => {
                let chain = |txid| here.chain(txid);
                let common = last_common(&chain, &source, local.from().txid, self.cursor().txid)?;
                let snapshot = local.database.read();
                self.make_again(&Ours { snapshot, source: &source, common }, begun)?
            }
        };
        self.finish(local, rebased.end).map(|()| rebased)
    }

    /// Makes transactions again until the other side has accepted them.
    pub(crate) fn make_again(&self, ours: &Ours<'_>, begun: Duration) -> Result<Rebased> {
        self.pull_before(begun)?;
        loop {
            let transaction = self.database().begin()?;
            let from = end_of(&transaction);
            if ours.source.has(from)? && from.txid > ours.common {
                // What had been on its way has arrived.
                let ours = Ours { common: from.txid, snapshot: ours.snapshot.clone(), ..*ours };
                drop(transaction);
                return self.make_again(&ours, begun);
            }
            let again = rebase(transaction, &ours.snapshot, ours.common).map_err(|error| {
                error.within(format!("nothing was changed in {}", self.other()))
            })?;
            let Again { proposal, renumbered, transactions } = again;
            let Some(proposal) = proposal else { return Ok(self.rebased(0, renumbered)) };
            match self.propose_to(proposal, begun, None)? {
                Ok(end) => return Ok(Rebased { transactions, end, renumbered }),
                Err(_) if self.is_over(begun) => {
                    let message = format!(
                        "{}: others came first again and again; nothing was changed: try again later",
                        self.other()
                    );
                    return Err(Error::new(ErrorKind::Conflict, message));
                }
                Err(news) => self.take_or_pull(from, news.as_deref(), begun)?,
            }
        }
    }

    /// After a start: if what was committed offline has arrived, and only that wasn't noted, it is.
    pub(crate) fn note_arrived(&self) -> Result<()> {
        let Some(local) = self.local()? else { return Ok(()) };
        if is_unused(&local) {
            return Ok(());
        }
        let end = Cursor::from(local.database.read().point());
        if local.source(self.database()).has(end)? {
            return self.finish(local, end);
        }
        match self.was_made_again(&local)? {
            true => self.finish(local, self.cursor()),
            false => Ok(()),
        }
    }

    fn was_made_again(&self, local: &Offline) -> Result<bool> {
        let from = local.from().txid;
        Ok(from < self.cursor().txid
            && last_made_again(&self.read(), &local.database.read(), from)?)
    }

    /// Sends what the other side doesn't have; `None`: it has other transactions.
    fn send(&self, source: &Source) -> Result<Option<Sent>> {
        let (directory, name) = (&self.files.directory, &self.files.name);
        let (connection, patience) = (self.connection(), self.patience);
        let way = Way { connection, directory: &**directory, name, patience };
        send_after(&way, source)
    }

    /// Returns the error that names the transaction of the other side that came first; `None` if those of others are ours,
    /// made again.
    fn came_first(&self, local: &Offline, source: &Source) -> Result<Option<Error>> {
        self.pull()?;
        if self.was_made_again(local)? {
            return Ok(None);
        }
        let here = local.source(self.database());
        let chain = |txid| here.chain(txid);
        let common = last_common(&chain, source, local.from().txid, self.cursor().txid)?;
        let ours = local.database.read().txid().0 - common.0;
        let first = Txid(common.0 + 1);
        let what = match self.database().changes(first..=first)?.next().transpose()? {
            None => String::new(),
            Some(changed) => {
                let comment = changed.comments.first();
                let comment = comment.map_or_else(String::new, |text| format!(", {text:?}"));
                format!("transaction {first} came first, of {}{comment}; ", changed.time)
            }
        };
        let plural = if ours == 1 { "" } else { "s" };
        let message = format!(
            "{}: {what}{} has {ours} transaction{plural} of its own after transaction {common}, and nothing of them was \
             changed: rebase them",
            self.other(),
            self.files.directory.display(&self.own())
        );
        Ok(Some(Error::new(ErrorKind::Conflict, message)))
    }

    /// Ends a continuation that has arrived: fetches it, and renames its file.
    fn finish(&self, local: Offline, end: Cursor) -> Result<()> {
        let name = |error: Error| {
            let done = format!("{} has accepted all, up to transaction {}", self.other(), end.txid);
            error.within(format!(
                "{done}; only the file here can't be put away, which the next push does"
            ))
        };
        local.database.close().map_err(name)?;
        // It is there: what can't be fetched now is later, and `behind` says why.
        let _ = self.pull();
        let to = format!("{}{PUSHED}{}-{:016x}", self.own(), end.txid, end.chain);
        rename_continuation(&*self.files.directory, &self.own(), &to).map_err(name)
    }

    /// Removes the file of a continuation that has nothing.
    fn remove(&self, local: Offline) -> Result<()> {
        local.database.close()?;
        let own = self.own();
        let shown = self.files.directory.display(&own);
        let removed = self.files.directory.remove(&own);
        let flushed = removed.and_then(|()| self.files.directory.flush());
        flushed.map_err(|error| Error::io(format!("{shown}: can't remove it"), error))
    }

    /// Opens the continuation, if there is one.
    fn local(&self) -> Result<Option<Offline>> {
        let Files { directory, name, options, .. } = &self.files;
        let opened = open_continuation(options, &**directory, name, &self.own())?;
        Ok(opened.map(|(preface, database)| Offline { database, preface }))
    }

    /// Returns the name of the file of offline changes.
    fn own(&self) -> String {
        format!("{}{LOCAL}", self.files.name)
    }

    fn other(&self) -> String {
        self.connection().name()
    }

    fn nothing(&self) -> Sent {
        Sent { transactions: 0, end: self.cursor() }
    }

    fn rebased(&self, transactions: u64, renumbered: Vec<Renumbered>) -> Rebased {
        Rebased { transactions, end: self.cursor(), renumbered }
    }
}

/// True if there is a file of offline changes beside a replica's file.
#[must_use]
pub fn has_offline_changes(path: &std::path::Path) -> bool {
    let located = annals::internals::locate(path);
    located.is_ok_and(|(directory, name)| {
        directory.open(&format!("{name}{LOCAL}"), Access::Read).is_ok()
    })
}

/// True if nothing was committed.
fn is_unused(local: &Offline) -> bool {
    Cursor::from(local.database.read().point()) == local.from()
}

/// Makes the transactions of a journal, which is a copy with changes of its own, again on the other side: see
/// [`Replica::rebase`]. The journal stays as it is. What was made again isn't made again another time.
///
/// If it is the file of a replica, whose other side has another history since it was restored from a backup: what was
/// committed offline follows, and `NAME-local` is renamed as there.
///
/// # Errors
/// As there; `Busy`: another program writes the journal; `Unsupported`: the other side's journal continued in another file
/// since the last common transaction: clone it again, and apply the changes there.
pub fn rebase_journal(
    connection: Arc<dyn Connection>,
    journal: &std::path::Path,
) -> Result<Rebased> {
    let (directory, name) = annals::internals::locate(journal)?;
    let options = annals::Options::new().create(false);
    let database = options.open(journal)?;
    let own = format!("{name}{LOCAL}");
    let local = open_continuation(&options, &*directory, &name, &own)?;
    let ours = local.as_ref().map_or(&database, |(_, local)| local);
    let source = Source::new(ours.clone());
    let theirs = |txid| Ok(connection.chains(&[txid])?.first().copied().flatten());
    let end = connection.describe()?.end;
    let common = last_common(&theirs, &source, Txid(0), end.txid)?;
    let ours = Ours { snapshot: ours.read(), source: &source, common };
    let made = make_again_beside(&database, &directory, &name, connection, &ours)?;
    if let Some((_, local)) = local {
        let to = format!("{own}{PUSHED}{}-{:016x}", made.end.txid, made.end.chain);
        let closed = local.close();
        let renamed = closed.and_then(|()| rename_continuation(&*directory, &own, &to));
        renamed.map_err(|error| {
            let end = made.end.txid;
            let done = format!("the other side has accepted all, up to transaction {end}");
            error.within(format!("{done}; only the file here can't be put away"))
        })?;
    }
    Ok(made)
}

/// Makes transactions again on the other side, in a continuation of `database` after the common one, which goes then.
fn make_again_beside(
    database: &Database,
    directory: &Arc<dyn Directory>,
    name: &str,
    connection: Arc<dyn Connection>,
    ours: &Ours<'_>,
) -> Result<Rebased> {
    let own = format!("{name}{REBASE}{:016x}", SystemClock.random());
    begin_continuation(database, &**directory, name, Some(ours.common), &own)?;
    let options = annals::Options::new().create(false);
    let opened = open_continuation(&options, &**directory, name, &own);
    let made = opened.and_then(|opened| {
        let (_, opened) = opened.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("{own}: was removed meanwhile"))
        })?;
        let replica = Replica::over(opened, connection);
        let made = replica.make_again(ours, SystemClock.elapsed());
        // What isn't written there is nobody's any more.
        let _ = replica.close();
        made
    });
    // What it has is the other side's by now, or nobody's.
    let removed = directory.remove(&own);
    let made = made?;
    removed.map_err(|error| {
        let what = format!(
            "the other side has accepted all, up to transaction {}; only {} can't be removed here",
            made.end.txid,
            directory.display(&own)
        );
        Error::io(what, error)
    })?;
    Ok(made)
}
