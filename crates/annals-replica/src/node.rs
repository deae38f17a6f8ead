//! A node: a replica whose transactions come from many threads, which share pushes to the other side.
//!
//! While a group of transactions is pushed, others queue. Then the thread whose transaction is first in the queue leads
//! the next group. It runs all queued transactions one after the other, each as a transaction of its own, and pushes
//! them together. The queue chooses the leader: if the threads raced for a lock, the thread that was just served would
//! win it, with its next transaction alone.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use annals::internals::{Origin, end_of, extend, hold, propose, take};
use annals::{Cursor, Error, ErrorKind, Result, Transaction};
use annals_storage::sync::lock;
use annals_storage::{Clock as _, Spool, SystemClock};

use crate::{Accepted, Replica};

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

/// A group isn't made larger once it has so many bytes.
const MOST_BYTES: u64 = 256 << 10;
/// The most transactions of a group.
const MOST: usize = 1000;
/// A group waits for the threads of the last groups, at most for the time of a push divided by this. So they share a
/// push again, instead of taking turns.
const PART: u32 = 8;
/// The longest such wait.
const LONGEST: Duration = Duration::from_millis(1);

/// A replica that many threads write: the transactions that come while others are on their way share a push, as commits
/// share a flush.
#[derive(Debug)]
pub struct Node {
    replica: Replica,
    queue: Mutex<Queue>,
    /// Told when a transaction was queued.
    queued: Condvar,
    /// Held by the thread that runs transactions, its own and those of others, or takes pushed ones.
    leading: Mutex<()>,
}

#[derive(Debug, Default)]
struct Queue {
    jobs: Vec<Box<dyn Job>>,
    /// True if a thread runs a group, or is told to. If it isn't, nothing is queued.
    is_led: bool,
    /// How many transactions may come together again, and how long they are waited for.
    expected: (usize, Duration),
}

/// What a thread that waits is told.
enum Told<T, E> {
    /// It is to run what is queued, its own transaction first.
    Lead,
    Done(std::result::Result<(T, Accepted), E>),
}

/// A transaction that waits for its turn.
trait Job: Send + std::fmt::Debug {
    /// Runs it. `None`: it failed, and keeps its error.
    fn run<'db>(&mut self, transaction: Transaction<'db>) -> Option<Transaction<'db>>;

    /// Lets the thread that waits for it run what is queued; returns false if none waits.
    fn lead(&self) -> bool;

    /// Wakes the thread that waits for it, with what came of it.
    fn finish(self: Box<Self>, result: Result<Accepted>);
}

struct JobOf<T, E, W> {
    work: W,
    value: Option<std::result::Result<T, E>>,
    to: Sender<Told<T, E>>,
}

impl<T, E, W> std::fmt::Debug for JobOf<T, E, W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JobOf")
    }
}

impl<T, E, W> Job for JobOf<T, E, W>
where
    T: Send,
    E: From<Error> + Send,
    W: for<'db> FnMut(Transaction<'db>) -> std::result::Result<(T, Transaction<'db>), E> + Send,
{
    fn run<'db>(&mut self, transaction: Transaction<'db>) -> Option<Transaction<'db>> {
        match (self.work)(transaction) {
            Ok((value, transaction)) => {
                self.value = Some(Ok(value));
                Some(transaction)
            }
            Err(error) => {
                self.value = Some(Err(error));
                None
            }
        }
    }

    fn lead(&self) -> bool {
        self.to.send(Told::Lead).is_ok()
    }

    fn finish(self: Box<Self>, result: Result<Accepted>) {
        let told = match (result, self.value) {
            (_, Some(Err(error))) => Err(error),
            (Ok(accepted), Some(Ok(value))) => Ok((value, accepted)),
            (Ok(_), None) => Err(ended().into()),
            (Err(error), _) => Err(error.into()),
        };
        // This fails only if its thread no longer waits: it has panicked.
        let _ = self.to.send(Told::Done(told));
    }
}

fn ended() -> Error {
    Error::new(
        ErrorKind::Aborted,
        "a transaction that ran together with this one panicked: try again",
    )
}

/// The outcome of a group.
enum Ran {
    /// Its first transactions are history: one for each of these cursors, which follow them. The others run again.
    Accepted(Vec<Cursor>),
    /// The transaction at this index has failed; the others run again.
    Failed(usize, Option<Error>),
    /// Other transactions came first, after the cursor; with their frames if the answer has them.
    Conflict(Cursor, Option<Vec<u8>>),
}

impl Node {
    /// Creates a node from a replica.
    #[must_use]
    pub fn new(replica: Replica) -> Self {
        let (queue, queued, leading) = Default::default();
        Self { replica, queue, queued, leading }
    }

    /// Returns the replica.
    #[must_use]
    pub const fn replica(&self) -> &Replica {
        &self.replica
    }

    /// Runs `work` in a transaction that the other side must accept, as [`Replica::transaction`] does; together with those
    /// of other threads. It may run again, and on another thread.
    ///
    /// # Errors
    /// That of `work`; those of [`Replica::transaction`], but `Busy` where others came first again and again.
    /// `Aborted`: a transaction that ran together with it panicked.
    pub fn commit<T, E>(
        &self,
        work: impl for<'db> FnMut(Transaction<'db>) -> std::result::Result<(T, Transaction<'db>), E>
        + Send
        + 'static,
    ) -> std::result::Result<(T, Accepted), E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (to, told) = channel();
        let job = Box::new(JobOf { work, value: None, to });
        let mut queue = lock(&self.queue);
        if !queue.is_led {
            queue.is_led = job.lead();
        }
        queue.jobs.push(job);
        drop(queue);
        self.queued.notify_one();
        self.wait(&told)
    }

    /// Waits until a transaction was run, by this thread or another.
    fn wait<T, E: From<Error>>(
        &self,
        told: &Receiver<Told<T, E>>,
    ) -> std::result::Result<(T, Accepted), E> {
        loop {
            match told.recv() {
                Ok(Told::Lead) => self.lead(),
                Ok(Told::Done(done)) => return done,
                Err(_) => return Err(ended().into()),
            }
        }
    }

    /// Runs what is queued.
    fn lead(&self) {
        // Also if a transaction panics; after the lock was released.
        let _next = Next(&self.queue);
        let _leading = lock(&self.leading);
        self.run_all();
    }

    /// Waits a moment for those whose transactions went together before.
    fn gather(&self) {
        let queue = lock(&self.queue);
        let (count, most) = queue.expected;
        let is_less = |queue: &mut Queue| queue.jobs.len() < count;
        // With fewer of them it goes on as well.
        drop(self.queued.wait_timeout_while(queue, most, is_less));
    }

    /// Notes how many transactions became history together, and how long that took.
    fn note_group(&self, count: usize, took: Duration) {
        let mut queue = lock(&self.queue);
        queue.expected = (count + queue.jobs.len(), LONGEST.min(took / PART));
    }

    /// Takes what is queued along with some transactions.
    fn take_queued(&self, jobs: &mut Vec<Box<dyn Job>>) {
        let mut queue = lock(&self.queue);
        let count = queue.jobs.len().min(MOST.saturating_sub(jobs.len()));
        jobs.extend(queue.jobs.drain(..count));
    }

    /// Runs the transactions that are queued until each is history, or has failed.
    fn run_all(&self) {
        let (begun, mut runs, mut jobs) = (SystemClock.elapsed(), 0, Vec::new());
        self.replica.yield_to_others(begun);
        self.gather();
        self.take_queued(&mut jobs);
        let mut most = jobs.len();
        while !jobs.is_empty() {
            runs += 1;
            most = most.clamp(1, jobs.len());
            let sent = SystemClock.elapsed();
            let ran = self.run_group(jobs.get_mut(..most).unwrap_or_default(), begun);
            match ran {
                Ok(Ran::Accepted(ends)) => {
                    self.note_group(ends.len(), SystemClock.elapsed().saturating_sub(sent));
                    for (job, Cursor { txid, chain }) in jobs.drain(..ends.len()).zip(ends) {
                        job.finish(Ok(Accepted { txid, chain, runs }));
                    }
                    most = jobs.len();
                }
                Ok(Ran::Failed(place, error)) => {
                    jobs.remove(place).finish(Err(error.unwrap_or_else(ended)));
                    // Those before it have run well, and go first.
                    most = if place > 0 { place } else { jobs.len() };
                }
                Ok(Ran::Conflict(..)) if self.replica.is_over(begun) => {
                    let message = format!(
                        "other transactions came first {runs} times; nothing was changed: try again later"
                    );
                    return fail(jobs, &Error::new(ErrorKind::Busy, message));
                }
                Ok(Ran::Conflict(from, news)) => {
                    if let Err(error) = self.replica.take_or_pull(from, news.as_deref(), begun) {
                        return fail(jobs, &error);
                    }
                    self.replica.yield_to_others(begun);
                    // Those that came meanwhile need no turn of their own.
                    self.take_queued(&mut jobs);
                    most = jobs.len();
                }
                Err(error) => return fail(jobs, &error),
            }
        }
    }

    /// Runs transactions one after the other, and pushes them together.
    fn run_group(&self, jobs: &mut [Box<dyn Job>], begun: Duration) -> Result<Ran> {
        let mut transaction = self.replica.database().begin()?;
        hold(&mut transaction)?;
        let mut ends = Vec::new();
        let count = jobs.len();
        for (place, job) in jobs.iter_mut().enumerate() {
            let Some(after) = job.run(transaction) else { return Ok(Ran::Failed(place, None)) };
            let before = end_of(&after);
            let proposal = match propose(after) {
                Ok(Some(proposal)) => proposal,
                // Nothing changes: it has seen the state here.
                Ok(None) => return Ok(Ran::Accepted(vec![before])),
                Err(error) => return Ok(Ran::Failed(place, Some(error))),
            };
            ends.push(proposal.end());
            let len = proposal.frames().map_or(0, |frames| frames.end() - frames.begin());
            if place + 1 == count || len >= MOST_BYTES {
                let from = proposal.from();
                return Ok(match self.replica.propose_to(proposal, begun, None)? {
                    Ok(_) => Ran::Accepted(ends),
                    Err(news) => Ran::Conflict(from, news),
                });
            }
            transaction = extend(proposal);
        }
        Ok(Ran::Accepted(ends))
    }

    /// Asks the other side to accept frames that were pushed here: they follow `from`.
    ///
    /// # Errors
    /// As those of [`Local::accept`](crate::Local::accept), once it is known that `from` is in this history; those of a push.
    pub(crate) fn accept(&self, from: Cursor, frames: &mut Spool) -> Result<Answer> {
        let _leading = lock(&self.leading);
        let transaction = self.replica.database().begin()?;
        if end_of(&transaction) != from {
            return Ok(Answer::Conflict);
        }
        let proposal = take(transaction, frames, Origin::Proposed)?;
        if self.replica.propose_to(proposal, SystemClock.elapsed(), None)?.is_ok() {
            return Ok(Answer::Committed);
        }
        self.replica.pull()?;
        Ok(Answer::Conflict)
    }
}

/// Lets the next thread lead, if one waits, when it is dropped.
struct Next<'n>(&'n Mutex<Queue>);

impl Drop for Next<'_> {
    fn drop(&mut self) {
        let mut queue = lock(self.0);
        queue.is_led = queue.jobs.iter().any(|job| job.lead());
    }
}

/// Ends transactions with an error.
fn fail(jobs: Vec<Box<dyn Job>>, error: &Error) {
    for job in jobs {
        job.finish(Err(error.again()));
    }
}
