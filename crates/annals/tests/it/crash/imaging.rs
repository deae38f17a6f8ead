//! The image in a world: backfills between, within and after transactions, and snapshots that are kept
//! while they continue.

use annals::journal::format::hash;
use annals::reports::BackfillOutcome;
use annals::{BackfillMode, Backfilled, Database, Error, ErrorKind, Level, Snapshot};

use super::changes::write;
use super::history::State;
use super::world::{Errors, Stop, World};

/// How many snapshots are kept at most.
const KEPT: usize = 3;

/// What a world knows of its image.
#[derive(Debug)]
pub(super) struct Imaging {
    /// How much of it is kept in memory, in bytes; 0: all.
    pub(super) memory: u64,
    /// How much of the journal lies between two key frames at least, in bytes; 0: one for each backfill.
    pub(super) spacing: u64,
    /// The last transaction that this handle's image had.
    txid: u64,
    kept: Vec<(Snapshot, State)>,
}

impl Imaging {
    /// Returns what there is to know of the image of a new handle, if the workload of this place has one.
    pub(super) fn of(place: &str) -> Option<Self> {
        let hash = hash(place.as_bytes());
        let memory = [0, 1, 64 << 10][usize::try_from(hash % 3).unwrap()];
        // Where space is counted there are none.
        let spacing = if place == "imaged-" { u64::MAX } else { hash >> 8 & 1 << 20 };
        let has_one =
            ["imaged-", "truncating-", "sharedimage-"].iter().any(|of| place.starts_with(of));
        has_one.then_some(Self { memory, spacing, txid: 0, kept: Vec::new() })
    }

    /// Lets go of the snapshots that are kept.
    pub(super) fn let_go(&mut self) {
        self.kept.clear();
    }

    /// Forgets what the handle before knew.
    pub(super) fn forget(&mut self) {
        self.txid = 0;
        self.kept.clear();
    }
}

impl World {
    /// Brings the image forward. Gives the error if the journal is what failed.
    pub(super) fn backfill(
        &mut self,
        database: &Database,
        mode: BackfillMode,
    ) -> Result<annals::Result<()>, Stop> {
        let told = database.backfill(mode);
        // Among others, one that fails may be so early that nothing was brought in of what they committed.
        if told.is_ok() || self.sharing.is_none() {
            self.history.see(database)?;
        }
        let done = match told {
            Ok(done) => done,
            Err(error) if self.errors == Errors::Fatal || !is_of_image(&error) => {
                return Ok(Err(error));
            }
            Err(error) if self.is_off(&error) => return Ok(Err(error)),
            Err(error) => {
                self.failed(&error)?;
                return match database.begin().map(drop) {
                    Err(error) if error.kind() == ErrorKind::Poisoned => {
                        Err(Stop::Broken(format!("a failed backfill did harm: {error:?}")))
                    }
                    begun => Ok(begun),
                };
            }
        };
        let newest = database.read().txid();
        // Another process may have the turn, for which a passive one doesn't wait.
        let rests =
            newest == annals::Txid(self.history.submitted() as u64) && self.sharing.is_none();
        let is_behind = done.txid != newest || done.outcome == BackfillOutcome::Postponed;
        if is_behind && (mode == BackfillMode::Full || rests) {
            return Err(Stop::Broken(format!("transaction {newest} is published: {done:?}")));
        }
        self.advanced(&done)?;
        self.kept_stay().map(Ok)
    }

    /// Brings the image forward while a transaction is open, again and again.
    pub(super) fn backfilling(&mut self, rows: u64, level: Option<Level>) -> Result<(), Stop> {
        let Self { database, rng, .. } = self;
        let (mut after, mut told) = (None, Vec::new());
        let mut run = || -> annals::Result<()> {
            let database = database.as_ref().unwrap();
            let mut tx = database.begin()?;
            for _ in 0..1 + rng.below(3) {
                told.push(database.backfill(BackfillMode::Passive));
                write(&mut tx, rng, rows)?;
                told.push(database.backfill(BackfillMode::Passive));
            }
            let Some(level) = level else { return tx.rollback() };
            tx.set_level(level);
            after = Some(State::of_transaction(&tx)?);
            tx.commit().map(drop)
        };
        let done = run();
        told.into_iter().try_for_each(|told| self.told(told))?;
        self.settle(done, after, level)
    }

    /// Brings the image forward while a transaction is open.
    pub(super) fn backfill_within(&mut self, database: &Database) -> Result<(), Stop> {
        let told = database.backfill(BackfillMode::Passive);
        self.history.see(database)?;
        self.told(told)
    }

    /// Takes the answer to a backfill; whoever continues meets what was fatal, or is the journal's.
    fn told(&mut self, told: annals::Result<Backfilled>) -> Result<(), Stop> {
        match told {
            Ok(done) => self.advanced(&done),
            Err(error) if self.errors == Errors::Fatal || self.is_off(&error) => Ok(()),
            Err(error) => self.failed(&error),
        }
    }

    /// Notes what a backfill did: it only goes forward, and what it has is durable.
    pub(super) fn advanced(&mut self, done: &Backfilled) -> Result<(), Stop> {
        let Some(imaging) = &mut self.imaging else { return Ok(()) };
        if done.txid < annals::Txid(imaging.txid) {
            return Err(Stop::Broken(format!("back from transaction {}: {done:?}", imaging.txid)));
        }
        imaging.txid = done.txid.0;
        if done.outcome == BackfillOutcome::Advanced {
            self.history.harden_up_to(usize::try_from(done.txid.0).unwrap())?;
        }
        Ok(())
    }

    /// Checks how a backfill failed.
    fn failed(&self, error: &Error) -> Result<(), Stop> {
        match error.kind() {
            ErrorKind::Io | ErrorKind::Poisoned => Ok(()),
            // What was read wrongly once when the database was opened.
            ErrorKind::Corrupt if self.is_misread() => Ok(()),
            _ => Err(Stop::Broken(format!("a backfill: an error of the wrong kind: {error:?}"))),
        }
    }

    /// Keeps a snapshot, and looks at those that are kept.
    pub(super) fn hold(&mut self) -> Result<(), Stop> {
        let kept = (self.database().read(), self.history.newest());
        let Some(imaging) = &mut self.imaging else { return Ok(()) };
        imaging.kept.push(kept);
        let first = imaging.kept.len().saturating_sub(KEPT);
        imaging.kept.drain(..first);
        self.kept_stay()
    }

    /// Checks that what is kept shows what it did, whatever was backfilled since.
    fn kept_stay(&self) -> Result<(), Stop> {
        for (snapshot, state) in self.imaging.iter().flat_map(|imaging| &imaging.kept) {
            let look = || State::of(snapshot).and_then(|state| snapshot.check().map(|()| state));
            let found = match look() {
                Err(_) if self.is_misread() => look(),
                found => found,
            };
            let text = match found {
                Ok(found) if found == *state => continue,
                Err(error) if self.is_off(&error) => return Err(Stop::Died),
                Ok(_) => format!("a snapshot of transaction {} has changed", snapshot.txid()),
                Err(error) => format!("a snapshot of {} is gone: {error:?}", snapshot.txid()),
            };
            return Err(Stop::Broken(text));
        }
        Ok(())
    }
}

/// True if it was the image that failed, and not the journal.
fn is_of_image(error: &Error) -> bool {
    error.to_string().contains("the image wasn't brought forward")
}
