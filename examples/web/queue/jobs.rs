//! Jobs, and what may happen to them.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use annals::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::db::job::State;
use crate::db::{self, job};

/// After so many attempts a job isn't tried again.
const MOST_ATTEMPTS: u32 = 3;

/// A job that a worker holds. It answers for this attempt, and for no later one.
#[derive(Serialize)]
pub(crate) struct Claim {
    pub(crate) id: u64,
    pub(crate) attempt: u32,
    pub(crate) payload: Box<RawValue>,
}

/// A job as a transaction left it.
#[derive(Debug, Serialize)]
pub(crate) struct Version {
    pub(crate) time: String,
    pub(crate) state: String,
    pub(crate) attempts: u32,
    pub(crate) worker: Option<String>,
    pub(crate) reason: Option<String>,
}

/// The attempt is over: its lease expired, or it was finished already.
#[derive(Debug)]
pub(crate) struct TooLate;

impl fmt::Display for TooLate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this attempt is over")
    }
}

impl std::error::Error for TooLate {}

pub(crate) struct Queue(db::Database);

impl Queue {
    pub(crate) const fn new(db: db::Database) -> Self {
        Self(db)
    }

    pub(crate) fn add(&self, priority: i32, payload: &str) -> annals::Result<u64> {
        let new = job::New { state: State::Ready, priority, payload, ..Default::default() };
        Ok(self.0.write(|tx| Ok(tx.insert(new)?))?.as_u64())
    }

    /// Hands the worker the ready job with the highest priority, of these the oldest.
    pub(crate) fn claim(&self, worker: &str, lease: Duration) -> annals::Result<Option<Claim>> {
        self.0.write(|tx| {
            let now = Timestamp::now();
            let expired = tx.job().by_lease().range(..=now).ids();
            for id in expired.collect::<annals::Result<Vec<_>>>()? {
                give_back(tx, id, "the lease expired")?;
            }
            let Some(next) = tx.job().by_state().with_state(State::Ready).next().transpose()?
            else {
                return Ok(None);
            };
            let (id, attempt, payload) =
                (next.id(), next.attempts() + 1, next.payload().to_owned());
            let payload = RawValue::from_string(payload)?;
            tx.edit(id)?
                .set_state(State::Running)?
                .set_attempts(attempt)?
                .set_worker(worker)?
                .set_leased_until(now.saturating_add(lease))?;
            Ok(Some(Claim { id: id.as_u64(), attempt, payload }))
        })
    }

    pub(crate) fn finish(&self, id: u64, attempt: u32) -> annals::Result<()> {
        self.0.write(|tx| {
            let id = held(tx, id, attempt)?;
            tx.edit(id)?.set_state(State::Done)?.set_leased_until(None)?;
            Ok(())
        })
    }

    pub(crate) fn fail(&self, id: u64, attempt: u32, reason: &str) -> annals::Result<()> {
        self.0.write(|tx| {
            let id = held(tx, id, attempt)?;
            Ok(give_back(tx, id, reason)?)
        })
    }

    /// The number of jobs in each state.
    pub(crate) fn stats(&self) -> BTreeMap<String, usize> {
        let now = self.0.read();
        let count =
            |state: State| (state.to_string(), now.job().by_state().with_state(state).count());
        [State::Ready, State::Running, State::Done, State::Failed].map(count).into()
    }

    /// What happened to a job: its versions in the journal.
    pub(crate) fn history(&self, id: u64) -> annals::Result<Vec<Version>> {
        let id = self.0.read().job().require(job::Id::from_u64(id))?.id();
        let mut versions = Vec::new();
        for version in self.0.history_of(id)? {
            let version = version?;
            versions.extend(version.change.after.map(|job| Version {
                time: version.time.to_string(),
                state: job.state.to_string(),
                attempts: job.attempts,
                worker: job.worker,
                reason: job.reason,
            }));
        }
        Ok(versions)
    }
}

/// Checks that the attempt still goes on.
fn held(tx: &db::Transaction<'_>, id: u64, attempt: u32) -> Result<job::Id, annals::Abort> {
    let job = tx.job().require(job::Id::from_u64(id))?;
    if job.state() != State::Running || job.attempts() != attempt {
        return Err(TooLate.into());
    }
    Ok(job.id())
}

/// Makes a job ready for the next attempt, if it has one left.
fn give_back(tx: &mut db::Transaction<'_>, id: job::Id, reason: &str) -> annals::Result<()> {
    let state =
        if tx.job().require(id)?.attempts() < MOST_ATTEMPTS { State::Ready } else { State::Failed };
    tx.edit(id)?.set_state(state)?.set_leased_until(None)?.set_reason(reason)?;
    Ok(())
}
