//! A replica: a database whose journal holds only what another has accepted.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use annals::internals::{Origin, Proposal, end_of, follow, hold, locate, propose, spool, take};
use annals::{
    Cursor, Database, Error, ErrorKind, Level, Options, Result, Snapshot, Transaction, Txid,
};
use annals_storage::sync::lock;
use annals_storage::{Access, Clock as _, Directory, MemoryDirectory, Spool, SystemClock};

use crate::frames::{Source, begin_replica, continue_segment};
use crate::outcome::{LONGEST_PAUSE, Patience, Settled, Tries, settle};
use crate::outgoing::{Push, Pushing, advised};
use crate::{Connection, IntoConnection};

/// A local copy of a journal, which is read without the network; what it writes the other side must accept.
///
/// Its file holds only what the other side has accepted. A transaction on its way is seen by nobody, and is appended,
/// as the bytes that were accepted, when the other side has it on permanent storage. After a crash there is nothing to
/// cut off: what is missing is pulled.
///
/// It is `Send` and `Sync`. Reads never wait for the network or for a writer.
#[derive(Debug)]
pub struct Replica {
    database: Database,
    connection: Arc<dyn Connection>,
    pub(crate) patience: Patience,
    /// Held while frames are pulled, so that they are fetched once; not while news is waited for.
    pulling: Mutex<()>,
    /// Why it lacks what the other side has.
    behind: Mutex<Option<String>>,
    pub(crate) files: Files,
}

/// The file of a replica.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) directory: Arc<dyn Directory>,
    pub(crate) name: String,
    /// The options for what is committed offline.
    pub(crate) options: Options,
    /// False for a file that can't continue in another segment.
    takes_seals: bool,
}

/// The report of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The number of the transaction.
    pub txid: Txid,
    /// The chain after it.
    pub chain: u64,
    /// How often it was run: more than once after conflicts with others.
    pub runs: u32,
}

impl Replica {
    /// Opens the replica in a file, or begins it there with all kept history; then pulls what is missing. If the other
    /// side can't be reached, an existing replica is opened as it is, and can be read.
    ///
    /// `to` is a connection, or a URL such as `http://HOST:PORT/v1/NAME`: see [`IntoConnection`].
    ///
    /// # Errors
    /// Those of the URL, of opening a database, and of [`pull`](Self::pull). `Diverged`: the file is of another journal, or has
    /// transactions that the other side doesn't have.
    pub fn connect(to: impl IntoConnection, path: impl AsRef<Path>) -> Result<Self> {
        Self::connect_with(to, path, &Options::new(), Patience::default())
    }

    /// Does what [`connect`](Self::connect) does, with options of the database and of the replica.
    ///
    /// # Errors
    /// As there.
    pub fn connect_with(
        to: impl IntoConnection,
        path: impl AsRef<Path>,
        options: &Options,
        patience: Patience,
    ) -> Result<Self> {
        let (directory, name) = locate(path.as_ref())?;
        Self::connect_in(to.into_connection()?, directory, &name, options, patience)
    }

    /// Does what [`connect_with`](Self::connect_with) does, in any directory.
    ///
    /// # Errors
    /// As there.
    pub fn connect_in(
        connection: Arc<dyn Connection>,
        directory: Arc<dyn Directory>,
        name: &str,
        options: &Options,
        patience: Patience,
    ) -> Result<Self> {
        let (begun, is_new) = (SystemClock.elapsed(), !exists(&*directory, name)?);
        if is_new {
            begin(&*connection, &directory, name)?;
        }
        let files = Files {
            directory: directory.again(),
            name: name.to_owned(),
            options: options.clone(),
            takes_seals: true,
        };
        // The other side has it on permanent storage.
        let options = options.clone().level(Level::Soft);
        let database = options.open_in(directory, name, Arc::new(SystemClock))?;
        follow(&database, &connection.name());
        let (pulling, behind) = Default::default();
        let replica = Self { database, connection, patience, pulling, behind, files };
        match replica.pull() {
            Err(error) if error.kind() == ErrorKind::Unreachable && is_new => {
                replica.pull_before(begun)?;
            }
            Err(error) if error.kind() == ErrorKind::Unreachable => {}
            pulled => drop(pulled?),
        }
        // An error is that of whoever needs it.
        let _ = replica.note_arrived();
        Ok(replica)
    }

    /// Makes a replica of an open database, whose file is for a moment only.
    pub(crate) fn over(database: Database, connection: Arc<dyn Connection>) -> Self {
        let files = Files {
            directory: MemoryDirectory::new().again(),
            name: String::new(),
            options: Options::new(),
            takes_seals: false,
        };
        let (patience, pulling, behind) = Default::default();
        Self { database, connection, patience, pulling, behind, files }
    }

    /// Returns the connection to the other side.
    #[must_use]
    pub fn connection(&self) -> &dyn Connection {
        &*self.connection
    }

    /// Returns a snapshot of the last transaction that is here.
    #[must_use]
    pub fn read(&self) -> Snapshot {
        self.database.read()
    }

    /// Returns the database, for all that reads. Writing through it is an error that names [`transaction`](Self::transaction).
    #[must_use]
    pub const fn database(&self) -> &Database {
        &self.database
    }

    /// Returns the cursor of the last transaction that is here.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        self.database.read().point().into()
    }

    /// Fetches all transactions that the other side has by now; returns how many those are. Reads don't wait
    /// meanwhile, and see each batch as soon as it is here.
    ///
    /// Cost: each frame is verified and applied; nothing is flushed.
    ///
    /// # Errors
    /// `Diverged`, `Forgotten`; those of the connection; `Invalid`: something else than transactions was sent.
    pub fn pull(&self) -> Result<u64> {
        self.pull_for(Duration::ZERO)
    }

    /// Does what [`pull`](Self::pull) does; if there is nothing new, it waits for that, up to `wait`.
    ///
    /// # Errors
    /// As there.
    pub fn pull_for(&self, wait: Duration) -> Result<u64> {
        let pulled = self.pull_all(wait).map_err(|error| match error.kind() {
            ErrorKind::Diverged if self.connection.origin() == Origin::History => {
                advised(error, &*self.connection, &Source::new(self.database.clone()))
            }
            _ => error,
        });
        self.set_behind(pulled.as_ref().err().map(ToString::to_string));
        pulled
    }

    fn pull_all(&self, wait: Duration) -> Result<u64> {
        let before = self.cursor().txid;
        let mut bytes = spool(&self.database);
        // Writers pull, too: nothing that they need is held while news is waited for.
        if wait.is_zero() || self.pull_batch(wait, &mut bytes)? {
            let _alone = lock(&self.pulling);
            while self.pull_batch(Duration::ZERO, &mut bytes)? {}
        }
        Ok(self.cursor().txid.0 - before.0)
    }

    /// Returns why this replica lacks transactions that the other side has, or may have: the last pull failed, or
    /// what was accepted there could not be written here. `None` after a pull that found its end.
    #[must_use]
    pub fn behind(&self) -> Option<String> {
        lock(&self.behind).clone()
    }

    fn set_behind(&self, reason: Option<String>) {
        *lock(&self.behind) = reason;
    }

    /// Fetches a batch into `bytes`, whatever they are; returns true if there was one.
    fn pull_batch(&self, wait: Duration, bytes: &mut Spool) -> Result<bool> {
        let after = self.cursor();
        bytes.clear();
        let pulled = self.connection.pull(Some(after), wait, bytes)?;
        if bytes.begin() == bytes.end() {
            return Ok(false);
        }
        if pulled.is_seal && !self.files.takes_seals {
            let message = format!(
                "{}: continued in another file after transaction {}: clone it again, and apply the changes there",
                self.connection.name(),
                after.txid
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        if pulled.is_seal {
            return continue_segment(&self.database, bytes).map(|_| true);
        }
        let transaction = self.database.begin()?;
        if end_of(&transaction) != after {
            // A transaction of this replica was accepted meanwhile.
            return Ok(true);
        }
        match take(transaction, bytes, self.connection.origin()) {
            Ok(proposal) => proposal.accept().map(|_| true),
            Err(error)
                if self.is_judgement(&error)
                    && self.connection.refused(after, pulled.next, &error)? =>
            {
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    /// True if an error says of frames that they can't be history, for whoever reads them; not if something here failed.
    fn is_judgement(&self, error: &Error) -> bool {
        match error.kind() {
            ErrorKind::Invalid
            | ErrorKind::Unique
            | ErrorKind::Reference
            | ErrorKind::NotFound
            | ErrorKind::InUse => true,
            ErrorKind::Corrupt => self.database.image_damage().is_empty(),
            _ => false,
        }
    }

    /// Runs `change` in a transaction, and asks the other side to accept it. Returns once the other side has it on
    /// permanent storage, and it is visible here. If another transaction came first, that is pulled, and `change` runs
    /// again on the new state, until the deadline of [`Patience`].
    ///
    /// After any answer but success the other side is asked what is at the place of the transaction: `change` runs again only
    /// if another is there.
    ///
    /// A transaction that was accepted is committed, even if it can't be written here, as on a full disk: then it is returned
    /// as such, and isn't visible here until it is pulled; [`behind`](Self::behind) says so.
    ///
    /// # Errors
    /// That of `change`, and those of a commit there: nothing was changed. `Conflict`: others came first again
    /// and again. `UnknownOutcome`: the other side can't be asked; [`pull`](Self::pull) shows later whether it is
    /// there. Those of the connection.
    pub fn transaction<T>(
        &self,
        mut change: impl FnMut(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<(T, Accepted)> {
        let mut work = by_value(|mut transaction| Ok((change(&mut transaction)?, transaction)));
        self.run(&mut work, None)
    }

    /// Does what [`transaction`](Self::transaction) does, with work that gets the transaction itself.
    pub(crate) fn run<T>(
        &self,
        work: &mut impl for<'db> FnMut(Transaction<'db>) -> Result<(T, Transaction<'db>)>,
        lease: Option<u64>,
    ) -> Result<(T, Accepted)> {
        let begun = SystemClock.elapsed();
        let mut runs = 0;
        loop {
            runs += 1;
            self.yield_to_others(begun);
            let mut transaction = self.database.begin()?;
            hold(&mut transaction)?;
            let (value, transaction) = work(transaction)?;
            let from = end_of(&transaction);
            let Some(proposal) = propose(transaction)? else {
                let Cursor { txid, chain } = from;
                return Ok((value, Accepted { txid, chain, runs }));
            };
            match self.propose_to(proposal, begun, lease)? {
                Ok(Cursor { txid, chain }) => return Ok((value, Accepted { txid, chain, runs })),
                Err(_) if self.is_over(begun) => {
                    let message = format!(
                        "other transactions came first {runs} times within {:?}; nothing was changed: try again \
                         later",
                        self.patience.deadline
                    );
                    return Err(Error::new(ErrorKind::Conflict, message));
                }
                Err(news) => self.take_or_pull(from, news.as_deref(), begun)?,
            }
        }
    }

    /// Does what [`pull`](Self::pull) does; while the other side can't be reached it tries again, until the deadline of
    /// [`Patience`].
    ///
    /// # Errors
    /// As there.
    pub fn catch_up(&self) -> Result<()> {
        self.pull_before(SystemClock.elapsed())
    }

    /// Fetches what came first; while the other side can't be reached it tries again, until the deadline of a transaction that
    /// was begun then.
    pub(crate) fn pull_before(&self, begun: Duration) -> Result<()> {
        self.patience.until_reached(begun, || self.pull()).map(drop)
    }

    /// Lets others come first whose turn it is: before a transaction is run.
    pub(crate) fn yield_to_others(&self, begun: Duration) {
        while self.connection.yield_to_others(self.cursor()) && !self.is_over(begun) {
            if self.pull_before(begun).is_err() {
                // The push finds out what is wrong.
                return;
            }
        }
    }

    /// Takes frames that came after a cursor, and fetches what else came first.
    pub(crate) fn take_or_pull(
        &self,
        from: Cursor,
        news: Option<&[u8]>,
        begun: Duration,
    ) -> Result<()> {
        // If they can't be taken, a pull says why.
        match news.is_some_and(|frames| self.take_news(from, frames).unwrap_or(false)) {
            true => Ok(()),
            false => self.pull_before(begun),
        }
    }

    /// Takes frames that came after a cursor; returns false if something was pulled meanwhile.
    fn take_news(&self, from: Cursor, frames: &[u8]) -> Result<bool> {
        let transaction = self.database.begin()?;
        if end_of(&transaction) != from {
            return Ok(false);
        }
        let mut bytes = spool(&self.database);
        bytes.append(frames).map_err(|error| Error::io("can't spool what was sent", error))?;
        take(transaction, &mut bytes, self.connection.origin())?.accept()?;
        Ok(true)
    }

    /// Pushes a proposal; the inner error is a conflict. The same frames may be pushed again and again: they become history
    /// once, or never.
    pub(crate) fn propose_to(
        &self,
        proposal: Proposal<'_>,
        begun: Duration,
        lease: Option<u64>,
    ) -> Result<std::result::Result<Cursor, Option<Vec<u8>>>> {
        let Some(frames) = proposal.frames() else { return Ok(Err(None)) };
        let (from, end) = (proposal.from(), proposal.end());
        let (is_patient, advice) = (true, "pull later to see whether it is there");
        let push = Push { from, end, frames, lease, is_patient, advice };
        let mut pushing = Pushing::new(&*self.connection, push)?;
        let mut tries = Tries::since(begun, self.patience, LONGEST_PAUSE);
        Ok(match settle(&mut pushing, &mut tries)? {
            Settled::Done(()) => Ok(self.keep(proposal)),
            Settled::Conflict(news) => Err(news),
            Settled::NotSent(error) if error.kind() == ErrorKind::Conflict => Err(None),
            Settled::NotSent(error) => return Err(error),
        })
    }

    /// Appends here what the other side has accepted. That is history, whatever comes of this: an error would deny it.
    fn keep(&self, proposal: Proposal<'_>) -> Cursor {
        let end = proposal.end();
        let behind = proposal.accept().err().map(|error| {
            format!(
                "{} has accepted transaction {} (chain {:016x}), which is committed, but it isn't here yet: {error}; once \
                 that is mended, it is pulled",
                self.connection.name(),
                end.txid,
                end.chain
            )
        });
        self.set_behind(behind);
        end
    }

    pub(crate) fn is_over(&self, begun: Duration) -> bool {
        SystemClock.elapsed().saturating_sub(begun) >= self.patience.deadline
    }

    /// Closes the file properly.
    ///
    /// # Errors
    /// `Io`.
    pub fn close(self) -> Result<()> {
        self.database.close()
    }
}

/// Says of a closure that it takes transactions of any lifetime, which the compiler doesn't find out.
pub(crate) const fn by_value<T, F>(work: F) -> F
where
    F: for<'db> FnMut(Transaction<'db>) -> Result<(T, Transaction<'db>)>,
{
    work
}

/// Creates the file of a replica, with the first transactions.
pub(crate) fn begin(
    connection: &dyn Connection,
    directory: &Arc<dyn Directory>,
    name: &str,
) -> Result<()> {
    let random = SystemClock.random();
    let spool = format!("{name}-spool-{random:016x}");
    let mut bytes = Spool::new(Arc::clone(directory), spool, 0);
    connection.pull(None, Duration::ZERO, &mut bytes)?;
    begin_replica(&**directory, name, &mut bytes).map(drop)
}

pub(crate) fn exists(directory: &dyn Directory, name: &str) -> Result<bool> {
    match directory.open(name, Access::Read) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io(format!("{}: can't open it", directory.display(name)), error)),
    }
}
