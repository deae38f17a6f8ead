//! A connection to a database that this process has open: from a file, or in memory.

use std::sync::Arc;
use std::time::Duration;

use annals::internals::{Origin, end_of, settle, take};
use annals::{
    Blame, Commit, Cursor, Database, Error, ErrorKind, History, Moment, Reader, Result, RowId,
    Snapshot, Subscription, TableNumber, Transaction, Txid,
};
use annals_storage::Spool;

use crate::connection::BATCH;
use crate::frames::{Batch, Source, continue_segment, count_frames};
use crate::lease::Leases;
use crate::node::{Answer, Node};
use crate::{Accepted, Connection, Description, Figure, Granted, Pulled, Pushed, Replica};

/// Another handle of an open database, or of a file that is open for reading, as a connection: for tests, and under a
/// server.
#[derive(Debug)]
pub struct Local {
    source: Source,
    of: Of,
    /// What keeps the database up to date, if it only follows another.
    follower: Option<Arc<Replica>>,
    leases: Leases,
}

/// What it reads.
#[derive(Debug)]
enum Of {
    Database(Database),
    /// A replica: another side must accept all that is written.
    Node(Arc<Node>),
    /// A file that other programs may write.
    Reader(Reader),
}

impl Local {
    /// Connects to an open database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        let source = Source::new(database.clone());
        Self { source, of: Of::Database(database), follower: None, leases: Leases::default() }
    }

    /// Connects to a replica that is only read here.
    #[must_use]
    pub fn of_follower(replica: Arc<Replica>) -> Self {
        Self { follower: Some(Arc::clone(&replica)), ..Self::new(replica.database().clone()) }
    }

    /// Connects to a replica: what is pushed is passed on to the side that it follows.
    #[must_use]
    pub fn of_node(node: Arc<Node>) -> Self {
        let source = Source::new(node.replica().database().clone());
        Self { source, of: Of::Node(node), follower: None, leases: Leases::default() }
    }

    /// Runs `work` in a transaction, and returns once it is on permanent storage; of a replica, at the side that it follows:
    /// then it may run several times. With the ticket of a lease if another might have one.
    ///
    /// # Errors
    /// That of `work`; those of a commit; `Conflict`: another has a lease.
    pub fn commit<T, E>(
        &self,
        lease: Option<u64>,
        mut work: impl for<'db> FnMut(Transaction<'db>) -> std::result::Result<(T, Transaction<'db>), E>
        + Send
        + 'static,
    ) -> std::result::Result<(T, Accepted), E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        if let Of::Node(node) = &self.of {
            return node.commit(work);
        }
        let transaction = self.database()?.begin()?;
        self.leases.check(lease)?;
        let (value, transaction) = work(transaction)?;
        let Commit { txid, chain, .. } = transaction.commit()?;
        Ok((value, Accepted { txid, chain, runs: 1 }))
    }

    /// Returns figures of the side that a replica follows; of anything else, none.
    ///
    /// # Errors
    /// Those of [`Connection::figures`].
    pub fn figures(&self) -> Result<Vec<Figure>> {
        match &self.of {
            Of::Node(node) => node.replica().connection().figures(),
            Of::Database(_) | Of::Reader(_) => Ok(Vec::new()),
        }
    }

    /// Returns why a replica lacks what the side that it follows has: see [`Replica::behind`](crate::Replica::behind); of
    /// anything else, `None`.
    #[must_use]
    pub fn behind(&self) -> Option<String> {
        match &self.of {
            Of::Node(node) => node.replica().behind(),
            Of::Database(_) | Of::Reader(_) => self.follower.as_ref()?.behind(),
        }
    }

    /// Fetches what the side has that a replica follows; of anything else, nothing.
    ///
    /// # Errors
    /// Those of [`Replica::pull`](crate::Replica::pull).
    pub fn catch_up(&self) -> Result<()> {
        match &self.of {
            Of::Node(node) => node.replica().pull().map(drop),
            Of::Database(_) | Of::Reader(_) => Ok(()),
        }
    }

    /// Connects to a file that is open for reading: nothing can be pushed. Other programs may write it meanwhile.
    #[must_use]
    pub fn of_reader(reader: Reader) -> Self {
        let source = Source::of_reader(reader.clone());
        Self { source, of: Of::Reader(reader), follower: None, leases: Leases::default() }
    }

    /// Returns the reader of its frames.
    #[must_use]
    pub const fn source(&self) -> &Source {
        &self.source
    }

    /// Returns the database, to write it, or for its figures.
    ///
    /// # Errors
    /// `Unsupported`: the file is open for reading only.
    pub fn database(&self) -> Result<&Database> {
        match &self.of {
            Of::Database(database) => Ok(database),
            Of::Node(node) => Ok(node.replica().database()),
            Of::Reader(_) => {
                let message = format!("{}: is open for reading only here", self.source.name());
                Err(Error::new(ErrorKind::Unsupported, message))
            }
        }
    }

    /// Returns the file, if it is open for reading only.
    #[must_use]
    pub const fn reader(&self) -> Option<&Reader> {
        match &self.of {
            Of::Database(_) | Of::Node(_) => None,
            Of::Reader(reader) => Some(reader),
        }
    }

    /// Returns the last committed state that is known here. Never waits.
    #[must_use]
    pub fn read(&self) -> Snapshot {
        match &self.of {
            Of::Database(database) => database.read(),
            Of::Node(node) => node.replica().database().read(),
            Of::Reader(reader) => reader.read(),
        }
    }

    /// Returns the last committed state; of a file that others write, with what they have committed by now, which is
    /// read from it.
    ///
    /// # Errors
    /// Those of [`Reader::pull`].
    pub fn refresh(&self) -> Result<Snapshot> {
        match &self.of {
            Of::Database(database) => Ok(database.read()),
            Of::Node(node) => Ok(node.replica().read()),
            Of::Reader(reader) => reader.pull(),
        }
    }

    /// Returns the state at a moment: see [`Database::at`].
    ///
    /// # Errors
    /// As there.
    pub fn at(&self, moment: impl Into<Moment>) -> Result<Snapshot> {
        match &self.of {
            Of::Database(database) => database.at(moment),
            Of::Node(node) => node.replica().database().at(moment),
            Of::Reader(reader) => pulled(reader)?.at(moment),
        }
    }

    /// Returns the state at a moment, with the schema of that time: see [`Database::as_it_was`].
    ///
    /// # Errors
    /// As there.
    pub fn as_it_was(&self, moment: impl Into<Moment>) -> Result<Snapshot> {
        match &self.of {
            Of::Database(database) => database.as_it_was(moment),
            Of::Node(node) => node.replica().database().as_it_was(moment),
            Of::Reader(reader) => pulled(reader)?.as_it_was(moment),
        }
    }

    /// Returns the transaction of a moment: see [`Database::txid_of`].
    ///
    /// # Errors
    /// As there.
    pub fn txid_of(&self, moment: impl Into<Moment>) -> Result<Txid> {
        match &self.of {
            Of::Database(database) => database.txid_of(moment),
            Of::Node(node) => node.replica().database().txid_of(moment),
            Of::Reader(reader) => pulled(reader)?.txid_of(moment),
        }
    }

    /// Returns the versions of a row: see [`Database::history_of`].
    ///
    /// # Errors
    /// As there.
    pub fn history_of(&self, table: TableNumber, row: RowId) -> Result<History> {
        match &self.of {
            Of::Database(database) => database.history_of(table, row),
            Of::Node(node) => node.replica().database().history_of(table, row),
            Of::Reader(reader) => pulled(reader)?.history_of(table, row),
        }
    }

    /// Returns since when the fields of a row have their values: see [`Database::blame`].
    ///
    /// # Errors
    /// As there.
    pub fn blame(&self, table: TableNumber, row: RowId) -> Result<Vec<Blame>> {
        match &self.of {
            Of::Database(database) => database.blame(table, row),
            Of::Node(node) => node.replica().database().blame(table, row),
            Of::Reader(reader) => pulled(reader)?.blame(table, row),
        }
    }

    /// Follows commits from a transaction on: see [`Database::subscribe_from`].
    ///
    /// # Errors
    /// As there.
    pub fn subscribe_from(&self, first: Txid) -> Result<Subscription> {
        match &self.of {
            Of::Database(database) => database.subscribe_from(first),
            Of::Node(node) => node.replica().database().subscribe_from(first),
            Of::Reader(reader) => pulled(reader)?.subscribe_from(first),
        }
    }

    /// Returns transactions after a cursor, as they are in the files: see [`Connection::pull`].
    ///
    /// # Errors
    /// As there.
    pub fn batch(&self, after: Option<Cursor>) -> Result<Batch> {
        self.batch_into(after, |_| None)
    }

    /// Does what [`batch`](Self::batch) does, and keeps the bytes if `room` returns a buffer for so many.
    ///
    /// # Errors
    /// As there.
    pub fn batch_into(
        &self,
        after: Option<Cursor>,
        room: impl FnOnce(usize) -> Option<Vec<u8>>,
    ) -> Result<Batch> {
        self.source.after_into(after, BATCH, room)
    }

    /// Fails if another than the holder of the ticket has a lease. The caller has begun a transaction.
    ///
    /// # Errors
    /// `Conflict`, which names its end.
    pub fn check_lease(&self, ticket: Option<u64>) -> Result<()> {
        self.leases.check(ticket)
    }

    /// Makes frames history, if the journal ends at `from`. Nothing is believed: they are verified, decoded and applied
    /// before anything is written.
    ///
    /// The answers are judged in this order: frames that aren't whole are an error; frames that are there already,
    /// whatever `from` says; a cursor that isn't in this history is an error; so is a lease of another; one that isn't its end
    /// is a conflict; then frames that don't apply are an error.
    ///
    /// # Errors
    /// `Invalid`, `Unique`, `Reference`, `Refused` and others: they can't become history; `Diverged`: `from` isn't in
    /// this history; `Io`, `UnknownOutcome`.
    pub fn accept(&self, from: Cursor, frames: &mut Spool, lease: Option<u64>) -> Result<Answer> {
        let contents = count_frames(frames)?;
        let end = Cursor { txid: from.txid + contents.transactions, chain: contents.chain };
        if self.source.has(end)? {
            return Ok(Answer::AlreadyThere);
        }
        if let (Of::Node(node), false) = (&self.of, self.source.has(from)?) {
            node.replica().pull()?;
        }
        if !self.source.has(from)? {
            let message = format!(
                "the histories differ: transaction {} is another one here, or isn't here",
                from.txid
            );
            return Err(Error::new(ErrorKind::Diverged, message));
        }
        if let Of::Node(node) = &self.of {
            return node.accept(from, frames);
        }
        let transaction = self.database()?.begin()?;
        // Nothing is written meanwhile.
        self.leases.check(lease)?;
        if end_of(&transaction) != from {
            // What came first may be these frames: a client sent them before, and they aren't flushed yet.
            drop(transaction);
            settle(self.database()?)?;
            return Ok(match self.source.has(end)? {
                true => Answer::AlreadyThere,
                false => Answer::Conflict,
            });
        }
        take(transaction, frames, Origin::Proposed)?.accept()?;
        Ok(Answer::Committed)
    }

    /// Returns facts of the journal.
    ///
    /// # Errors
    /// `Io`, `Closed`.
    pub fn description(&self) -> Result<Description> {
        let end = self.source.end()?;
        let facts = self.source.facts()?;
        Ok(Description { id: facts.id, end, first: facts.first })
    }
}

/// Loads what others have committed: what is asked for may be new.
fn pulled(reader: &Reader) -> Result<&Reader> {
    reader.pull().map(|_| reader)
}

impl Connection for Local {
    fn name(&self) -> String {
        self.source.name()
    }

    fn describe(&self) -> Result<Description> {
        self.source.check_usable()?;
        self.description()
    }

    fn pull(&self, after: Option<Cursor>, wait: Duration, into: &mut Spool) -> Result<Pulled> {
        let mut batch = self.batch(after)?;
        if let (true, Some(after)) = (batch.is_empty(), after) {
            self.source.wait(after.txid, wait);
            batch = self.batch(Some(after))?;
        }
        batch.copy_to(into)?;
        Ok(Pulled { next: batch.next, is_seal: batch.is_seal })
    }

    fn push(&self, from: Cursor, frames: &Spool, lease: Option<u64>) -> Result<Pushed> {
        let io = |error| Error::io("can't copy the spooled frames", error);
        let mut frames = frames.without(0).map_err(io)?;
        match self.accept(from, &mut frames, lease) {
            Ok(Answer::Committed | Answer::AlreadyThere) => Ok(Pushed::Committed),
            Ok(Answer::Conflict) => Ok(Pushed::Conflict(None)),
            Err(error) if error.kind() == ErrorKind::UnknownOutcome => Ok(Pushed::Unknown(error)),
            Err(error) => Err(error),
        }
    }

    fn push_seal(&self, from: Cursor, bytes: &Spool) -> Result<Pushed> {
        if self.source.end()? != from {
            return Ok(Pushed::Conflict(None));
        }
        let io = |error| Error::io("can't copy the spooled frames", error);
        continue_segment(self.database()?, &mut bytes.without(0).map_err(io)?)?;
        Ok(Pushed::Committed)
    }

    fn lock(&self, lasting: Duration, ticket: Option<u64>) -> Result<Granted> {
        if let Of::Node(_) = &self.of {
            let message =
                "a node of a shared log has no leases: its transactions run again after conflicts";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        // A transaction that is under way ends first.
        let _transaction = self.database()?.begin()?;
        self.leases.lock(lasting, ticket)
    }

    fn unlock(&self, ticket: u64) -> Result<()> {
        self.leases.unlock(ticket);
        Ok(())
    }

    fn chains(&self, txids: &[Txid]) -> Result<Vec<Option<u64>>> {
        txids.iter().map(|&txid| self.source.chain(txid)).collect()
    }
}
