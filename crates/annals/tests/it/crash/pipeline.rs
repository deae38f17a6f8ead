//! Commits that are handed in before others are acknowledged, and waited for in any order, or never.

use annals::{BackfillMode, Database, ErrorKind, Level, Pending};
use annals_simulated::{Rng, is_power_off};

use super::changes::write;
use super::history::State;
use super::workload::level;
use super::world::{Stop, World};

/// A commit that was handed in, with its txid and level.
type Submitted<'db> = (usize, Level, Pending<'db>);

impl World {
    /// Hands in up to so many commits; some are waited for, some are not, other things continue between.
    pub(super) fn pipeline(&mut self, commits: u64) -> Result<(), Stop> {
        let database = self.database.take().unwrap();
        let mut waiting = Vec::new();
        let mut done = Ok(());
        for _ in 0..2 * commits {
            done = self.pipelined(&database, &mut waiting);
            if done.is_err() {
                break;
            }
        }
        self.history.see(&database)?;
        // Half of the time nobody waits for what is left.
        if done.is_ok() && self.rng.percent(50) {
            waiting.clear();
        }
        for one in waiting {
            // Unless it was acknowledged before.
            let is_lost = is_unknown(&done) && one.0 > self.history.acknowledged();
            match self.wait(&database, one) {
                Ok(()) if is_lost => {
                    let text = "acknowledged behind an unknown outcome".to_owned();
                    return Err(Stop::Broken(text));
                }
                waited => done = done.and(waited),
            }
        }
        self.database = Some(database);
        match done {
            Ok(()) => self.shows_the_newest(),
            Err(Failed::Stop(stop)) => Err(stop),
            Err(Failed::Error(error)) => self.shrug("a pipeline", Err(error)),
        }
    }

    /// Does one thing while commits are pending.
    fn pipelined<'db>(
        &mut self,
        database: &'db Database,
        waiting: &mut Vec<Submitted<'db>>,
    ) -> Result<(), Failed> {
        let which = self.rng.index(waiting.len());
        match self.rng.below(16) {
            0..3 if !waiting.is_empty() => {
                let one = waiting.swap_remove(which);
                self.wait(database, one)?;
            }
            3 if !waiting.is_empty() => drop(waiting.swap_remove(which)),
            4 => database.rest()?,
            5 => drop(database.soft_checkpoint()?),
            6 => {
                let mut tx = database.begin()?;
                write(&mut tx, &mut self.rng, 1)?;
                tx.rollback()?;
            }
            8 | 9 if self.imaging.is_some() => self.backfill(database, BackfillMode::Passive)??,
            10 if self.imaging.is_some() => self.backfill(database, BackfillMode::Full)??,
            11 if self.imaging.is_some() => {
                let mut tx = database.begin()?;
                self.backfill_within(database)?;
                if !waiting.is_empty() {
                    let one = waiting.swap_remove(which);
                    self.wait(database, one)?;
                }
                write(&mut tx, &mut self.rng, 1)?;
                self.backfill_within(database)?;
                tx.rollback()?;
            }
            7 => {
                let point = database.hard_checkpoint()?;
                self.history.see(database)?;
                self.history.hard = point.txid.0;
                self.history.harden();
            }
            _ => {
                let level = level(&mut self.rng, 40);
                waiting.push(self.submit(database, level)?);
            }
        }
        self.history.see(database)?;
        match self.history.shows_the_newest(&self.disk, &database.read()) {
            Err(_) if self.is_misread() => Ok(()),
            shown => Ok(shown?),
        }
    }

    fn submit<'db>(
        &mut self,
        database: &'db Database,
        level: Level,
    ) -> Result<Submitted<'db>, Failed> {
        let mut after = None;
        let mut submit = |rng: &mut Rng| {
            let mut tx = database.begin()?;
            tx.set_level(level);
            let rows = rng.below(3);
            write(&mut tx, rng, rows)?;
            after = Some(State::of_transaction(&tx)?);
            tx.submit()
        };
        match submit(&mut self.rng) {
            Ok(pending) => {
                self.history.submit(after.unwrap(), level);
                Ok((self.history.submitted(), level, pending))
            }
            Err(error) => {
                if let Some(after) = after.filter(|_| self.is_open(&error)) {
                    self.history.submit(after, level);
                }
                Err(Failed::Error(error))
            }
        }
    }

    fn wait(&mut self, database: &Database, one: Submitted<'_>) -> Result<(), Failed> {
        let (txid, level, pending) = one;
        let commit = pending.wait()?;
        self.history.see(database)?;
        if self.history.acknowledged() < txid {
            return Err(format!("transaction {txid} was acknowledged and can't be seen").into());
        }
        if (commit.txid, commit.level) != (annals::Txid(txid as u64), level) {
            return Err(format!("transaction {txid} was acknowledged as {commit:?}").into());
        }
        Ok(())
    }
}

/// Why a pipeline ended: an error of the database, or a broken promise.
enum Failed {
    Error(annals::Error),
    Stop(Stop),
}

impl From<annals::Error> for Failed {
    fn from(error: annals::Error) -> Self {
        Self::Error(error)
    }
}

impl From<String> for Failed {
    fn from(text: String) -> Self {
        Self::Stop(Stop::Broken(text))
    }
}

impl From<Stop> for Failed {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

/// True if nobody may be told any more that a commit succeeded.
fn is_unknown(done: &Result<(), Failed>) -> bool {
    let Err(Failed::Error(error)) = done else { return false };
    error.kind() == ErrorKind::UnknownOutcome || is_power_off(error)
}
