//! A database as a connection of SQLite reads it: one snapshot a statement, and one from BEGIN to COMMIT.
//!
//! Invariants
//! 1. All cursors that are open at the same time read the same snapshot. SQLite keeps a statement's cursors open up to
//!    its end.
//! 2. A snapshot is released when the last cursor is closed, unless a transaction keeps it.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use annals::internals::check_origin;
use annals::{
    Database, Error, ErrorKind, Moment, Reader, Result, Snapshot, TableNumber, Timestamp, Txid,
    Value,
};

use crate::differences::{Differences, Found};
use crate::host::{Fault, Form, Transactional};
use crate::shape::Shape;
use crate::transient::{Places, Transients};

/// So many bytes of rows that differ are kept at once, about.
const DIFFERENCE: usize = 16 << 20;
/// How many past states are kept for the rest of a statement.
const PASTS: usize = 8;

/// What is read.
#[derive(Clone, Debug)]
pub enum Source {
    /// A database that this program has open.
    Database(Database),
    /// A file that is opened for reading: each statement sees what others have committed.
    Reader(Arc<Reader>),
}

impl From<Database> for Source {
    fn from(database: Database) -> Self {
        Self::Database(database)
    }
}

impl From<Reader> for Source {
    fn from(reader: Reader) -> Self {
        Self::Reader(Arc::new(reader))
    }
}

impl Source {
    /// Returns the state of now.
    fn now(&self) -> Result<Snapshot> {
        match self {
            Self::Database(database) => {
                let now = database.read();
                check_origin(&now)?;
                Ok(now)
            }
            Self::Reader(reader) => match reader.pull() {
                // All before it was loaded, and opening has said so.
                Err(error) if error.kind() == ErrorKind::Unapplied => Ok(reader.read()),
                pulled => pulled,
            },
        }
    }

    fn past(&self, txid: Txid, through: Through) -> Result<Snapshot> {
        match (self, through) {
            (Self::Database(database), Through::Present) => database.at(txid),
            (Self::Database(database), Through::Then) => database.as_it_was(txid),
            (Self::Reader(reader), Through::Present) => reader.at(txid),
            (Self::Reader(reader), Through::Then) => reader.as_it_was(txid),
        }
    }
}

/// The schema through which a past state is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Through {
    /// The present one.
    Present,
    /// The one of that time.
    Then,
}

/// A database, and the snapshot that statements of one connection read.
#[derive(Debug)]
pub(crate) struct Session {
    source: Source,
    state: Mutex<State>,
    /// The statement by which the end of a transaction is noticed.
    ending: OnceLock<String>,
    /// How many bytes the indexes take that a statement makes for itself.
    most: usize,
}

#[derive(Debug, Default)]
struct State {
    snapshot: Option<Snapshot>,
    /// How many cursors are open.
    cursors: usize,
    /// True if a transaction keeps the snapshot.
    is_kept: bool,
    /// True if the end of the transaction will be noticed.
    is_watched: bool,
    /// Past states that the statement has asked for.
    pasts: Vec<(Through, Snapshot)>,
    /// Indexes that the statement has made.
    transients: Transients,
    /// Differences that it has asked for.
    differences: Differences,
}

impl Session {
    /// Makes a session; `most` is how many bytes the indexes take that a statement makes for itself.
    pub(crate) fn new(source: Source, most: usize) -> Self {
        Self { source, state: Mutex::default(), ending: OnceLock::new(), most }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is whole after each step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the statement by which the end of a transaction is noticed.
    pub(crate) fn ends_by(&self, statement: String) {
        // It stays the same when the tables are made again.
        let _ = self.ending.set(statement);
    }

    /// Returns the snapshot of the statement that runs, for a moment; `is_alone` if it is in no transaction.
    pub(crate) fn snapshot(&self, is_alone: bool) -> Result<Snapshot> {
        self.state().current(&self.source, is_alone)
    }

    /// Returns a snapshot to plan with: that of the statement that runs, or the last one that was loaded.
    pub(crate) fn glance(&self) -> Snapshot {
        self.state().snapshot.clone().unwrap_or_else(|| match &self.source {
            Source::Database(database) => database.read(),
            Source::Reader(reader) => reader.read(),
        })
    }

    /// Returns the snapshot of the statement that runs, up to the end of the view.
    pub(crate) fn enter(self: &Arc<Self>, is_alone: bool) -> Result<Sight> {
        let mut state = self.state();
        let snapshot = state.current(&self.source, is_alone)?;
        state.cursors += 1;
        Ok(Sight { session: Arc::clone(self), snapshot })
    }

    /// Ends what a transaction has kept.
    pub(crate) fn release(&self) {
        let mut state = self.state();
        (state.is_kept, state.is_watched) = (false, false);
        if state.cursors == 0 {
            state.forget();
        }
    }
}

impl Transactional for Session {
    fn ending(&self) -> Option<String> {
        let is_known = std::mem::replace(&mut self.state().is_watched, true);
        if is_known { None } else { self.ending.get().cloned() }
    }

    fn ended(&self) {
        self.release();
    }
}

impl State {
    /// Releases what was kept for a statement.
    fn forget(&mut self) {
        (self.snapshot, self.pasts) = (None, Vec::new());
        (self.transients, self.differences) = (Transients::default(), Differences::default());
    }

    fn current(&mut self, source: &Source, is_alone: bool) -> Result<Snapshot> {
        let stays = self.cursors > 0 || (self.is_kept && !is_alone);
        let snapshot = match self.snapshot.take().filter(|_| stays) {
            Some(snapshot) => snapshot,
            None => {
                self.forget();
                source.now()?
            }
        };
        self.is_kept = !is_alone;
        self.is_watched &= self.is_kept;
        self.snapshot = Some(snapshot.clone());
        Ok(snapshot)
    }
}

/// The snapshot of a statement, as long as one of its cursors is open.
#[derive(Debug)]
pub(crate) struct Sight {
    session: Arc<Session>,
    pub(crate) snapshot: Snapshot,
}

impl Drop for Sight {
    fn drop(&mut self) {
        let mut state = self.session.state();
        state.cursors -= 1;
        if state.cursors == 0 && !state.is_kept {
            state.forget();
        }
    }
}

impl Sight {
    /// Returns the state at a moment; `None` for null.
    pub(crate) fn at(&self, moment: &Form<'_>, through: Through) -> Result<Option<Snapshot>> {
        let Some(txid) = self.txid_of(moment)? else { return Ok(None) };
        if txid == self.snapshot.txid() {
            return Ok(Some(self.snapshot.clone()));
        }
        let is_it = |(it, past): &&(Through, Snapshot)| *it == through && past.txid() == txid;
        if let Some((_, past)) = self.session.state().pasts.iter().find(is_it) {
            return Ok(Some(past.clone()));
        }
        let past = self.session.source.past(txid, through)?;
        let mut state = self.session.state();
        if state.pasts.len() == PASTS {
            state.pasts.remove(0);
        }
        state.pasts.push((through, past.clone()));
        Ok(Some(past))
    }

    /// Searches for the rows that may have some values in columns without an index; `None`: any row may.
    pub(crate) fn find(
        &self,
        snapshot: &Snapshot,
        shape: &Shape,
        columns: &[usize],
        values: &[Value],
    ) -> std::result::Result<Option<Places>, Fault> {
        let values: Vec<_> = values.iter().map(Value::as_ref).collect();
        let most = self.session.most;
        self.session.state().transients.find(snapshot, shape, columns, &values, most)
    }

    /// Returns the rows of a table that differ between two moments.
    pub(crate) fn differing(
        &self,
        table: TableNumber,
        moments: [Txid; 2],
    ) -> std::result::Result<Found, Fault> {
        let most = self.session.most.min(DIFFERENCE);
        self.session.state().differences.find(&self.snapshot, (table, moments), most)
    }

    /// Returns the number of the transaction at whose end a moment is: a number, a time, or the text of a moment;
    /// `None` for null.
    pub(crate) fn txid_of(&self, moment: &Form<'_>) -> Result<Option<Txid>> {
        let moment = match moment {
            Form::Null => return Ok(None),
            Form::Integer(number) => match u64::try_from(*number) {
                Ok(number) => Moment::Txid(Txid(number)),
                Err(_) => return Err(wrong(&number.to_string())),
            },
            Form::Text(text) => match (text.parse::<Moment>(), text.parse::<Timestamp>()) {
                (Ok(moment), _) => moment,
                (_, Ok(time)) => Moment::Time(time),
                _ => return Err(wrong(text)),
            },
            Form::Real(number) => return Err(wrong(&number.to_string())),
            Form::Blob(_) => return Err(wrong("a blob")),
        };
        self.snapshot.txid_of(moment).map(Some)
    }
}

fn wrong(text: &str) -> Error {
    Error::invalid(format!(
        "{text} is no moment: write the number of a transaction, 'time:2024-02-29T12:00:00Z' or 'comment:TEXT'"
    ))
}
