//! A synchronous backup: another journal that has every transaction before it is acknowledged here.
//!
//! ```text
//! a transaction ─► written and flushed here ─► pushed to the backup, flushed there ─► acknowledged, and seen here
//! ```
//!
//! Invariants
//! 1. What this side acknowledged, or lets anybody see, is in the backup. (After a crash of this side its file may have
//!    more: that is sent before anything is acknowledged again.)
//! 2. The backup is never ahead of this side.
//! 3. While the backup can't be reached, commits wait. Nobody is told that they failed, since they may arrive later.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use annals::internals::{Witness, confirm_by, locate};
use annals::storage::{Clock as _, SystemClock};
use annals::{Cursor, Database, Error, ErrorKind, Options, Result, Snapshot};
use annals_storage::{Directory, Spool};

use crate::connection::BATCH;
use crate::frames::{Known, Source};
use crate::replica::{begin, exists};
use crate::{Connection, Local, Pushed};

/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How often an idle backup is looked at.
const IDLE: Duration = Duration::from_secs(2);

/// A synchronous backup of a database: commits are acknowledged only when it has them on permanent storage.
#[derive(Debug)]
pub struct Backup {
    connection: Arc<dyn Connection>,
    /// The directory for spools.
    directory: Arc<dyn Directory>,
    name: String,
    /// The places of the journal that were found.
    places: Arc<Known>,
    /// The end of the backup as it is known, while frames are sent to it; `None`: it must be asked.
    end: Mutex<Option<Cursor>>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Why it doesn't have all, and since when; `None`: it does.
    problem: Option<Problem>,
    is_confirming: bool,
    is_over: bool,
}

#[derive(Clone, Debug)]
struct Problem {
    message: String,
    since: Duration,
}

impl Backup {
    /// Lets a database have a backup over a connection, which must be a copy of its journal: its commits are
    /// acknowledged only when the backup has them, until [`end`](Self::end). A thread sends what the backup lacks.
    ///
    /// # Errors
    /// `Invalid`: the database is in memory under a name that isn't one; `Io`: no thread can be started.
    pub fn start(
        database: &Database,
        path: impl AsRef<Path>,
        connection: Arc<dyn Connection>,
    ) -> Result<Arc<Self>> {
        let (directory, name) = locate(path.as_ref())?;
        let problem = Problem {
            message: format!("{}: has not been reached yet", connection.name()),
            since: SystemClock.elapsed(),
        };
        let state =
            Mutex::new(State { problem: Some(problem), is_confirming: false, is_over: false });
        let (places, end, changed) = (Arc::default(), Mutex::default(), Condvar::new());
        let backup = Arc::new(Self { connection, directory, name, places, end, state, changed });
        confirm_by(database, Arc::clone(&backup) as Arc<dyn Witness>);
        let (following, source) = (Arc::clone(&backup), Source::new(database.clone()));
        std::thread::Builder::new()
            .name("annals-backup".to_owned())
            .spawn(move || following.follow(&source))
            .map_err(|error| Error::io("cannot start a thread", error))?;
        Ok(backup)
    }

    /// Returns a connection to a file as the backup of a database: it is created if it isn't there.
    ///
    /// # Errors
    /// Those of opening a database.
    pub fn file(database: &Database, path: impl AsRef<Path>) -> Result<(Database, Local)> {
        let (directory, name) = locate(path.as_ref())?;
        if !exists(&*directory, &name)? {
            begin(&Local::new(database.clone()), &directory, &name)?;
        }
        let backup = Options::new().open_in(directory, &name, Arc::new(SystemClock))?;
        Ok((backup.clone(), Local::new(backup)))
    }

    /// Returns its name in messages.
    #[must_use]
    pub fn name(&self) -> String {
        self.connection.name()
    }

    /// Returns why it doesn't have all that is here, and for how long that has been so; `None` if it has.
    #[must_use]
    pub fn problem(&self) -> Option<(String, Duration)> {
        let now = SystemClock.elapsed();
        let problem = self.state().problem.clone()?;
        Some((problem.message, now.saturating_sub(problem.since)))
    }

    /// Waits until it has all that is here, up to `timeout`; returns the problem if it hasn't.
    ///
    /// # Errors
    /// `Unreachable`, with the last problem.
    pub fn wait(&self, timeout: Duration) -> Result<()> {
        let state = self.state();
        let waited = self
            .changed
            .wait_timeout_while(state, timeout, |state| state.problem.is_some() && !state.is_over)
            .unwrap_or_else(PoisonError::into_inner);
        match &waited.0.problem {
            None => Ok(()),
            Some(problem) => Err(Error::new(ErrorKind::Unreachable, problem.message.clone())),
        }
    }

    /// Ends it: commits that wait for the backup have an unknown outcome, and no further ones are possible until the
    /// database is opened again.
    pub fn end(&self) {
        self.state().is_over = true;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what the backup lacks, again and again: what was here before the first commit, and seals.
    fn follow(&self, source: &Source) {
        loop {
            let pause = {
                let mut known = self.known();
                // The source shows only what is acknowledged, and the backup may have more by now.
                let is_confirming = self.state().is_confirming;
                match is_confirming {
                    true => LONGEST_PAUSE,
                    false => match self.send(&mut known, source) {
                        Err(error) if error.kind() == ErrorKind::Closed => return,
                        Err(_) => LONGEST_PAUSE,
                        Ok(()) => IDLE,
                    },
                }
            };
            if self.pause(pause) {
                return;
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, Option<Cursor>> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pauses; returns true if it is over.
    fn pause(&self, pause: Duration) -> bool {
        let state = self.state();
        let waited = self.changed.wait_timeout_while(state, pause, |state| !state.is_over);
        waited.unwrap_or_else(PoisonError::into_inner).0.is_over
    }

    /// Sends all up to the end of a source that the backup lacks, and notes the outcome.
    fn send(&self, known: &mut Option<Cursor>, source: &Source) -> Result<()> {
        let sent = self.send_from(known, source);
        let mut state = self.state();
        match &sent {
            Ok(()) => state.problem = None,
            Err(error) => {
                *known = None;
                let since = state.problem.as_ref().map(|it| it.since);
                let since = since.unwrap_or_else(|| SystemClock.elapsed());
                state.problem = Some(Problem { message: error.to_string(), since });
            }
        }
        self.changed.notify_all();
        sent
    }

    fn send_from(&self, known: &mut Option<Cursor>, source: &Source) -> Result<()> {
        let here = source.end()?;
        let mut end = match *known {
            // It has what is not acknowledged yet.
            Some(end) if end.txid > here.txid => return Ok(()),
            Some(end) if end != here => end,
            // Of an idle one this finds out whether it is still there.
            _ => self.ask(source, here)?,
        };
        loop {
            *known = Some(end);
            let batch = source.after(Some(end), BATCH)?;
            if batch.is_empty() {
                return Ok(());
            }
            let random = SystemClock.random();
            let spool = format!("{}-spool-{random:016x}", self.name);
            let mut frames = Spool::new(self.directory.again(), spool, 0);
            batch.copy_to(&mut frames)?;
            let pushed = match batch.is_seal {
                true => self.connection.push_seal(end, &frames)?,
                false => self.connection.push(end, &frames, None)?,
            };
            match pushed {
                Pushed::Committed => end = batch.next,
                Pushed::Conflict(_) => return Err(self.foreign()),
                Pushed::NotSent(error) | Pushed::Unknown(error) => return Err(error),
            }
        }
    }

    /// Asks the backup for its end, which must be in this history, whose end is `here`.
    fn ask(&self, source: &Source, here: Cursor) -> Result<Cursor> {
        let description = self.connection.describe()?;
        if description.id != source.facts()?.id {
            let message = format!(
                "{}: is another database, and no backup of this one: begin with a copy, by `annals clone`",
                self.connection.name()
            );
            return Err(Error::new(ErrorKind::Diverged, message));
        }
        if description.end.txid <= here.txid && source.has(description.end)? {
            return Ok(description.end);
        }
        if source.erased_since(description.end)?.is_some() {
            let message = format!(
                "{}: values were erased from this database since: remove the backup, which still has them, and begin \
                 again with a copy",
                self.connection.name()
            );
            return Err(Error::new(ErrorKind::Forgotten, message));
        }
        Err(self.foreign())
    }

    fn foreign(&self) -> Error {
        let message = format!(
            "{}: has transactions that this database doesn't have: somebody else writes there, or this file is older; \
             a backup takes transactions from here only",
            self.connection.name()
        );
        Error::new(ErrorKind::Diverged, message)
    }
}

/// A commit waits for the backup.
struct Confirming<'b>(&'b Backup);

impl<'b> Confirming<'b> {
    fn begin(backup: &'b Backup) -> Self {
        backup.state().is_confirming = true;
        Self(backup)
    }
}

impl Drop for Confirming<'_> {
    fn drop(&mut self) {
        self.0.state().is_confirming = false;
    }
}

impl Witness for Backup {
    fn confirm(&self, written: &Snapshot) -> Result<()> {
        let source = Source::of_written(written, &self.places);
        let mut pause = Duration::from_millis(20);
        let _confirming = Confirming::begin(self);
        loop {
            let sent = self.send(&mut self.known(), &source);
            let Err(error) = sent else { return Ok(()) };
            if self.pause(pause) {
                let message = format!("the server ended while it waited for its backup: {error}");
                return Err(Error::new(ErrorKind::Unreachable, message));
            }
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }
}
