//! A database on a simulated disk, with the history of what it promised.

use std::sync::Arc;
use std::time::Duration;

use annals::storage::{Clock, Directory};
use annals::{Database, Error, ErrorKind, Level, Options, Transaction};
use annals_simulated::{Rng, SimulatedClock, SimulatedDisk, is_power_off};

use super::changes::{define, erase, parts, stream, write, write_sized};
use super::history::{Checked, History, State, is_off};
use super::imaging::Imaging;
use super::workload::Step;

pub(super) const NAME: &str = "journal";

/// How often a program tries to open a database on a disk with faults: longer than any of them
/// lasts.
const PATIENCE: u64 = 40;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// All steps were done.
    Finished,
    /// The power went off, or the process was killed.
    Died,
}

/// What an error means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Errors {
    /// The end: of the power, or of the process.
    Fatal,
    /// A fault of the disk, after which the program continues.
    Faults,
    /// A read that went wrong once, after which the program continues.
    Misreads,
}

/// A step that ended the run, or broke a promise.
pub(super) enum Stop {
    Died,
    Broken(String),
}

impl From<String> for Stop {
    fn from(text: String) -> Self {
        Self::Broken(text)
    }
}

/// How a handle is, in shared mode.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sharing {
    /// True if others have the file open.
    pub(super) joins: bool,
    /// True if an error was the last thing that the handle could give.
    pub(super) poisoned: bool,
}

pub(super) struct World {
    pub(super) disk: SimulatedDisk,
    clock: Arc<SimulatedClock>,
    pub(super) database: Option<Database>,
    pub(super) history: History,
    pub(super) errors: Errors,
    /// True if each commit gets sectors of its own.
    pub(super) padded: bool,
    /// True if the background thread runs.
    pub(super) background: bool,
    /// How it shares the file with others, if it does.
    pub(super) sharing: Option<Sharing>,
    /// What is known of its image, if it has one.
    pub(super) imaging: Option<Imaging>,
    pub(super) rng: Rng,
}

impl World {
    pub(super) fn new(disk: SimulatedDisk, seed: u64, history: History, errors: Errors) -> Self {
        let clock = Arc::new(SimulatedClock::new(seed));
        let rng = Rng::new(seed);
        Self {
            disk,
            clock,
            database: None,
            history,
            errors,
            padded: false,
            background: false,
            sharing: None,
            imaging: None,
            rng,
        }
    }

    /// Opens the database, whatever it holds.
    pub(super) fn try_open(&self) -> annals::Result<Database> {
        let directory: Arc<dyn Directory> = Arc::new(self.disk.clone());
        let clock: Arc<dyn Clock> = Arc::clone(&self.clock) as _;
        let options = Options::new().background(self.background);
        let options = if self.padded { options.sector_padding(4096) } else { options };
        let options = match &self.imaging {
            Some(imaging) => options.memory(imaging.memory).key_frame_spacing(imaging.spacing),
            None => options,
        };
        let options = match self.sharing {
            Some(_) => options.shared(true).lock_timeout(Duration::from_millis(5)),
            None => options,
        };
        options.open_in(directory, NAME, clock)
    }

    /// Opens the database; all since `at_least` must be there.
    pub(super) fn open(&mut self, at_least: usize) -> Result<(), Stop> {
        self.imaging.iter_mut().for_each(Imaging::forget);
        self.database = None;
        let mut opened = self.try_open();
        for _ in 0..PATIENCE {
            match &opened {
                Err(error) if self.errors != Errors::Fatal && !is_power_off(error) => {
                    // A journal without a transaction goes if its name can't be kept.
                    self.history.opened &= self.history.acknowledged() > 0;
                    opened = self.try_open();
                }
                _ => break,
            }
        }
        let database = opened.map_err(|error| self.stop("opening", &error))?;
        let before = self.history.clone();
        let opened = match self.history.opened(&self.disk, &database, at_least) {
            _ if self.sharing.is_some_and(|sharing| sharing.joins) => {
                self.history = before;
                self.history.joined(&self.disk, &database, at_least)
            }
            Err(_) if self.errors == Errors::Misreads => {
                self.history = before;
                self.history.opened(&self.disk, &database, at_least)
            }
            opened => opened,
        };
        opened?;
        self.database = Some(database);
        Ok(())
    }

    /// Does all steps, from the first opening on.
    pub(super) fn run(&mut self, steps: &[Step]) -> Checked<End> {
        let mut all = || {
            self.open(0)?;
            steps.iter().try_for_each(|step| self.step(*step))
        };
        match all() {
            Ok(()) => Ok(End::Finished),
            Err(Stop::Died) => Ok(End::Died),
            Err(Stop::Broken(text)) => Err(text),
        }
    }

    pub(super) fn step(&mut self, step: Step) -> Result<(), Stop> {
        let done = self.take(step);
        // Also where the power went off: somebody may have seen it before. (Of several handles each may
        // be at another place.)
        if let Some(database) = self.database.as_ref().filter(|_| self.sharing.is_none()) {
            self.history.see(database)?;
        }
        done
    }

    fn take(&mut self, step: Step) -> Result<(), Stop> {
        match step {
            Step::Define(level) => self.transaction(Some(level), define),
            Step::Write { rows, level } => {
                self.transaction(Some(level), |tx, rng| write(tx, rng, rows))
            }
            Step::RollBack { rows } => self.transaction(None, |tx, rng| write(tx, rng, rows)),
            Step::Parts { rows, level } => self
                .transaction(Some(level), |tx, rng| parts(tx, rng, |tx, rng| write(tx, rng, rows))),
            Step::Sized { bytes, level } => {
                self.transaction(Some(level), |tx, rng| write_sized(tx, rng, bytes))
            }
            Step::Erase(level) => self.transaction(Some(level), erase),
            Step::Backfill(mode) => {
                let database = self.database.take().unwrap();
                let told = self.backfill(&database, mode);
                self.database = Some(database);
                self.shrug("a backfill", told?)
            }
            Step::Backfilling { rows, level } => self.backfilling(rows, level),
            Step::RestartBehind { forget } => self.restart_behind(forget),
            Step::Hold => self.hold(),
            Step::Pipeline(commits) => self.pipeline(commits),
            Step::Upgrade => self.upgrade(),
            Step::Stream(level) => self.transaction(Some(level), stream),
            Step::StreamBack => self.transaction(None, stream),
            Step::StreamParts(level) => {
                self.transaction(Some(level), |tx, rng| parts(tx, rng, stream))
            }
            Step::Empty(level) => self.transaction(Some(level), |_, _| Ok(())),
            Step::Restart(older) => self.restart(older),
            Step::Rest => {
                let rested = self.database().rest();
                self.shrug("resting", rested)
            }
            Step::SoftCheckpoint => {
                let told = self.database().soft_checkpoint().map(drop);
                self.shrug("a soft checkpoint", told)
            }
            Step::HardCheckpoint => {
                let reached = self.database().hard_checkpoint();
                if let Ok(point) = reached {
                    self.see_all()?;
                    self.history.hard = point.txid.0;
                    self.history.harden();
                }
                self.shrug("a hard checkpoint", reached.map(drop))
            }
            Step::Reopen => {
                let end = self.database().read().txid().0;
                let closed = self.database.take().unwrap().close();
                if closed.is_ok() {
                    self.history.hard = end;
                    self.history.close();
                }
                self.shrug("closing", closed)?;
                self.open(self.history.acknowledged())
            }
        }
    }

    /// Notes what can be seen of a handle that knows of everything.
    pub(super) fn see_all(&mut self) -> Checked {
        let database = self.database.as_ref().unwrap();
        match self.sharing {
            Some(_) => self.history.settled(database.read().txid().0),
            None => self.history.see(database),
        }
    }

    pub(super) fn database(&self) -> &Database {
        self.database.as_ref().unwrap()
    }

    /// Returns what an error means: the end, or a broken promise.
    pub(super) fn stop(&self, doing: &str, error: &Error) -> Stop {
        if self.is_off(error) || (self.errors == Errors::Fatal && is_fault(error)) {
            return Stop::Died;
        }
        Stop::Broken(format!("{doing}: {error:?}"))
    }

    /// True if an error is that there is no power.
    pub(super) fn is_off(&self, error: &Error) -> bool {
        is_off(&self.disk, error)
    }

    /// Takes an error for a fault that is of no consequence, unless errors are fatal.
    pub(super) fn shrug(&mut self, doing: &str, result: annals::Result<()>) -> Result<(), Stop> {
        match result {
            Ok(()) => Ok(()),
            Err(error) if self.errors != Errors::Fatal && !self.is_off(&error) => {
                self.go_on(doing, &error)
            }
            Err(error) => Err(self.stop(doing, &error)),
        }
    }

    /// Goes on after a fault: nothing acknowledged is gone; a poisoned handle is opened again.
    fn go_on(&mut self, doing: &str, error: &Error) -> Result<(), Stop> {
        let is_right = match error.kind() {
            ErrorKind::Io | ErrorKind::UnknownOutcome | ErrorKind::Poisoned => true,
            kind => kind == ErrorKind::Corrupt && self.errors == Errors::Misreads,
        };
        if !is_right {
            return Err(Stop::Broken(format!("{doing}: an error of the wrong kind: {error:?}")));
        }
        self.shows_the_newest()?;
        let Some(database) = &self.database else { return Ok(()) };
        let usable = database.begin().map(drop);
        let unknown = error.kind() == ErrorKind::UnknownOutcome;
        match usable {
            Ok(()) if unknown => Err(Stop::Broken("an unknown outcome didn't poison".to_owned())),
            Ok(()) => Ok(()),
            Err(error) if is_power_off(&error) => Err(Stop::Died),
            Err(error) if error.kind() == ErrorKind::Poisoned => self.replace(),
            Err(error) => {
                // The remains of a transaction could not be cut. The fault is over now.
                let again = self.database().begin().map(drop);
                match again {
                    Ok(()) => Ok(()),
                    Err(again) if again.kind() == ErrorKind::Poisoned => self.replace(),
                    Err(again) => Err(self.stop(&format!("beginning after {error}"), &again)),
                }
            }
        }
    }

    /// Opens the database again, whose handle is done for; of several handles the others continue first.
    fn replace(&mut self) -> Result<(), Stop> {
        match &mut self.sharing {
            Some(sharing) => sharing.poisoned = true,
            None => self.open(self.history.acknowledged())?,
        }
        Ok(())
    }

    /// Runs a transaction, which is rolled back if there is no level.
    fn transaction(
        &mut self,
        level: Option<Level>,
        change: impl Fn(&mut Transaction<'_>, &mut Rng) -> annals::Result<()>,
    ) -> Result<(), Stop> {
        let Self { database, rng, history, sharing, .. } = self;
        let (mut after, mut found) = (None, Ok(()));
        let mut run = || -> annals::Result<()> {
            let database = database.as_ref().unwrap();
            let mut tx = database.begin()?;
            if sharing.is_some() {
                found = history.settled(database.read().txid().0);
            }
            change(&mut tx, rng)?;
            let Some(level) = level else { return tx.rollback() };
            tx.set_level(level);
            if !tx.is_empty() {
                after = Some(State::of_transaction(&tx)?);
            }
            tx.commit().map(drop)
        };
        let done = run();
        found?;
        self.settle(done, after, level)
    }

    /// Notes what a transaction came to. `after` is the state after it, if it changed anything.
    pub(super) fn settle(
        &mut self,
        done: annals::Result<()>,
        after: Option<State>,
        level: Option<Level>,
    ) -> Result<(), Stop> {
        match (done, after, level) {
            (Ok(()), Some(after), Some(level)) => self.history.commit(after, level),
            (Ok(()), _, Some(level)) if level.flushes() => {
                self.see_all()?;
                self.history.harden();
            }
            (Ok(()), ..) => {}
            (Err(error), after, level) => {
                if let Some((after, level)) = after.zip(level).filter(|_| self.is_open(&error)) {
                    self.history.submit(after, level);
                }
                self.shrug("a transaction", Err(error))?;
            }
        }
        self.shows_the_newest()
    }

    pub(super) fn is_misread(&self) -> bool {
        self.errors == Errors::Misreads
    }

    /// True if a commit that failed in this way may be there.
    pub(super) fn is_open(&self, error: &Error) -> bool {
        let unknown = error.kind() == ErrorKind::UnknownOutcome;
        unknown || self.errors == Errors::Fatal || is_power_off(error)
    }

    /// Checks that what is read now is the newest state.
    pub(super) fn shows_the_newest(&mut self) -> Result<(), Stop> {
        let Some(database) = self.database.as_ref().filter(|_| self.sharing.is_none()) else {
            return Ok(());
        };
        self.history.see(database)?;
        let now = database.read();
        match self.history.shows_the_newest(&self.disk, &now) {
            // A read may go wrong once; what is on the disk, and in memory, doesn't.
            Err(_) if self.errors == Errors::Misreads => {
                self.history.shows_the_newest(&self.disk, &now)
            }
            shown => shown,
        }
        .map_err(Stop::Broken)
    }
}

/// True if an error comes from a fault of the disk, by its words or as its consequence.
fn is_fault(error: &Error) -> bool {
    error.to_string().contains("(simulated)")
}
