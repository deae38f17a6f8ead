//! A connection to a database that this process has open: from a file, or in memory.

use std::time::Duration;

use annals::internals::{
    Batch, Origin, Source, continue_segment, count_frames, end_of, settle, take,
};
use annals::{Cursor, Database, Error, ErrorKind, Result, Txid};
use annals_storage::Spool;

use crate::{Connection, Description, Pulled, Pushed};

/// So many bytes of transactions are passed on at once, if one has no more.
pub const BATCH: u64 = 8 << 20;

/// Another handle of an open database, as a connection: for tests, and under a server.
#[derive(Debug)]
pub struct Local {
    source: Source,
    database: Database,
}

/// The answers to a push that a server distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The frames are history now.
    Committed,
    /// They were already.
    AlreadyThere,
    /// The journal has the cursor before them, but doesn't end there.
    Conflict,
}

impl Local {
    /// Connects to an open database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { source: Source::new(database.clone()), database }
    }

    /// Returns the reader of its frames.
    #[must_use]
    pub const fn source(&self) -> &Source {
        &self.source
    }

    /// Returns the database.
    #[must_use]
    pub const fn database(&self) -> &Database {
        &self.database
    }

    /// Returns transactions after a cursor, as they are in the files: see [`Connection::pull`].
    ///
    /// # Errors
    /// As there.
    pub fn batch(&self, after: Option<Cursor>) -> Result<Batch> {
        self.source.after(after, BATCH)
    }

    /// Makes frames history, if the journal ends at `from`. Nothing is believed: they are verified, decoded and applied
    /// before anything is written.
    ///
    /// The answers are judged in this order: frames that aren't whole are an error; frames that are there already,
    /// whatever `from` says; a cursor that isn't in this history is an error; one that isn't its end is a conflict; then
    /// frames that don't apply are an error.
    ///
    /// # Errors
    /// `Invalid`, `Unique`, `Reference`, `Refused` and others: they can't become history; `Diverged`: `from` isn't in
    /// this history; `Io`, `UnknownOutcome`.
    pub fn accept(&self, from: Cursor, frames: &mut Spool) -> Result<Answer> {
        let contents = count_frames(frames)?;
        let end = Cursor { txid: from.txid + contents.transactions, chain: contents.chain };
        if self.source.has(end)? {
            return Ok(Answer::AlreadyThere);
        }
        if !self.source.has(from)? {
            let message = format!(
                "the histories differ: transaction {} is another one here, or isn't here",
                from.txid
            );
            return Err(Error::new(ErrorKind::Diverged, message));
        }
        let transaction = self.database().begin()?;
        // Nothing is written meanwhile.
        if end_of(&transaction) != from {
            // What came first may be these frames: a client sent them before, and they aren't flushed yet.
            drop(transaction);
            settle(self.database())?;
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

impl Connection for Local {
    fn name(&self) -> String {
        self.source.name()
    }

    fn describe(&self) -> Result<Description> {
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

    fn push(&self, from: Cursor, frames: &Spool) -> Result<Pushed> {
        let io = |error| Error::io("can't copy the spooled frames", error);
        let mut frames = frames.without(0).map_err(io)?;
        match self.accept(from, &mut frames) {
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
        continue_segment(&self.database, &mut bytes.without(0).map_err(io)?)?;
        Ok(Pushed::Committed)
    }

    fn chains(&self, txids: &[Txid]) -> Result<Vec<Option<u64>>> {
        txids.iter().map(|&txid| self.source.chain(txid)).collect()
    }
}
