//! Work for a request that may wait for a disk or a lock, or take long: never on the threads that serve connections.
//!
//! It has a place, which belongs to the work and not to the connection, and a deadline. It ends when nobody waits for its
//! answer any more. Long work has threads of a lower priority.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use annals::internals::read_while;
use annals::storage::{Clock as _, SystemClock};
use annals_replica::Local;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;

use crate::answer::{Answer, CANCELLED, Refusal};
use crate::blocking;
use crate::means::{Held, Kind};
use crate::rights::{Allowed, Right};
use crate::state::now;

/// How long work may take.
const LONGEST: Duration = Duration::from_secs(30);

/// Work that is being done: it asks this now and then whether to go on, and for the memory of its answer.
#[derive(Debug)]
pub(crate) struct Work {
    right: Right,
    gone: Arc<AtomicBool>,
    deadline: Duration,
    held: Held,
}

/// One who waits for work. Dropping this ends it.
#[derive(Debug)]
pub(crate) struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Work {
    /// Begins work that has some memory, and returns one who waits for it.
    fn begin(right: &Right, held: Held) -> (Self, Waiting) {
        let gone = Arc::new(AtomicBool::new(false));
        let waiting = Waiting(Arc::clone(&gone));
        let deadline = SystemClock.elapsed() + LONGEST;
        (Self { right: right.clone(), gone, deadline, held }, waiting)
    }

    /// Does it; returns its result, and the memory that it has taken. What it reads of the past ends with it.
    fn run<T>(mut self, work: impl FnOnce(&mut Self) -> Answer<T>) -> Answer<(T, Held)> {
        let (gone, deadline) = (Arc::clone(&self.gone), self.deadline);
        let is_wanted = move || !gone.load(Ordering::Relaxed) && SystemClock.elapsed() <= deadline;
        match read_while(is_wanted, || work(&mut self)) {
            Ok(done) => Ok((done, self.held)),
            // It says which of the two it was.
            Err(refusal) if refusal.error == CANCELLED => {
                Err(self.check().err().unwrap_or(refusal))
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// Fails if nobody waits for it any more, or if it takes too long.
    pub(crate) fn check(&self) -> Answer<()> {
        let (error, message) = match () {
            () if self.gone.load(Ordering::Relaxed) => {
                ("gone", "nobody waits for the answer".to_owned())
            }
            () if SystemClock.elapsed() > self.deadline => {
                ("time_limit", format!("this takes longer than {LONGEST:?}: ask for less"))
            }
            () => return Ok(()),
        };
        Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, error, message))
    }

    /// Does what [`check`](Self::check) does, and makes sure that there is memory for an answer of so many bytes in all.
    pub(crate) fn cover(&mut self, bytes: usize) -> Answer<()> {
        self.check()?;
        let Self { right, held, .. } = self;
        right.shared().means.cover(right, held, bytes as u64)
    }

    /// Returns how many bytes of rows work of the kind `Rows` may keep beside its answer.
    pub(crate) fn room(&self) -> usize {
        self.right.shared().means.room()
    }

    /// Returns what is true as soon as nobody waits for it any more.
    #[cfg(feature = "sql")]
    pub(crate) fn gone(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.gone)
    }
}

impl Allowed {
    /// Runs work in a place of its kind; returns its result, and the memory that it has taken.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        kind: Kind,
        work: impl FnOnce(&mut Work) -> Answer<T> + Send + 'static,
    ) -> Answer<(T, Held)> {
        let held = self.shared().means.hold_for(self.right(), kind).await?;
        self.run_with(held, kind, work).await
    }

    /// Runs work that has some memory, in the same way.
    pub(crate) async fn run_with<T: Send + 'static>(
        &self,
        held: Held,
        kind: Kind,
        work: impl FnOnce(&mut Work) -> Answer<T> + Send + 'static,
    ) -> Answer<(T, Held)> {
        let place = self.shared().means.place(self.right(), kind).await?;
        let (asking, waiting) = Work::begin(self.right(), held);
        let local = Arc::clone(&self.local);
        let run = move || {
            let _place = place;
            asking.run(work).map_err(|refusal| unless_unreadable(&local, refusal))
        };
        let done = match kind {
            Kind::Quick => blocking::run(run).await,
            _ => self.shared().long.run(run).await,
        };
        drop(waiting);
        done
    }

    /// Runs work that writes JSON.
    pub(crate) async fn text(
        &self,
        kind: Kind,
        work: impl FnOnce(&mut Work) -> Answer<String> + Send + 'static,
    ) -> Answer {
        self.text_of("application/json", kind, work).await
    }

    /// Runs work that writes a text of some type.
    pub(crate) async fn text_of(
        &self,
        of: &'static str,
        kind: Kind,
        work: impl FnOnce(&mut Work) -> Answer<String> + Send + 'static,
    ) -> Answer {
        let done = self.run(kind, move |asking| {
            let text = work(asking)?;
            asking.cover(text.len())?;
            Ok(text)
        });
        let (text, held) = done.await?;
        Ok(held.answer(of, text.into_bytes()))
    }

    /// Runs work whose result is written as JSON.
    pub(crate) async fn value<T: Serialize + Send + 'static>(
        &self,
        kind: Kind,
        work: impl FnOnce(&mut Work) -> Answer<T> + Send + 'static,
    ) -> Answer<Response> {
        let write = move |asking: &mut Work| {
            let value = work(asking)?;
            serde_json::to_string(&value).map_err(|error| {
                annals::Error::invalid(format!("the answer isn't JSON: {error}")).into()
            })
        };
        self.text(kind, write).await
    }
}

/// Returns the refusal of work. Of a file that others write it is that the file can't be read any more, if so: then it says
/// nothing of what was asked for that this isn't there, or was forgotten.
fn unless_unreadable(local: &Local, refusal: Refusal) -> Refusal {
    let is_of_absence = matches!(refusal.status, StatusCode::NOT_FOUND | StatusCode::GONE);
    if !is_of_absence || local.reader().is_none() {
        return refusal;
    }
    now(local).err().unwrap_or(refusal)
}

#[cfg(test)]
mod tests {
    use annals::{Command, Database};

    use super::*;
    use crate::rights::Need;
    use crate::shared::Shared;

    #[test]
    fn reading_the_past_ends_with_the_work() {
        let database = Database::in_memory().unwrap();
        for name in ["a", "b"] {
            let create = Command::CreateTable { name: name.to_owned() };
            database.write(|tx| tx.apply_command(&create)).unwrap();
        }
        let right = Right::of(&Arc::new(Shared::default()), Need::Nothing, "", None).unwrap();
        let read = |work: Work| {
            let done = work.run(|_| {
                let all: annals::Result<Vec<_>> = database.changes(..)?.collect();
                Ok(all?.len())
            });
            done.map(|(count, _)| count).map_err(|refusal| refusal.error)
        };
        let begin = || Work::begin(&right, Held::default());
        let (work, waiting) = begin();
        assert_eq!(read(work).unwrap(), 2);
        drop(waiting);
        let (work, waiting) = begin();
        drop(waiting);
        assert_eq!(read(work).unwrap_err(), "gone");
        let (mut late, _waiting) = begin();
        late.deadline = Duration::ZERO;
        assert_eq!(read(late).unwrap_err(), "time_limit");
    }
}
