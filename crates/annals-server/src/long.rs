//! Threads for long work, of a lower priority: who asks for a row doesn't wait until those who ask for much have had their
//! part of the processor.
//!
//! Invariants
//! 1. There are no more threads than work that was under way at a time, which places bound. Each ends when no work came
//!    for a while, and when the server has ended.
//! 2. A panic ends the work, and not its thread.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use annals::storage::lower_priority;
use axum::http::StatusCode;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::answer::{Answer, Refusal};
use crate::blocking::failed;

/// How long a thread waits for work.
const IDLE: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// Threads for long work.
#[derive(Debug, Default)]
pub(crate) struct Long(Arc<Inner>);

#[derive(Default)]
struct Inner {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    /// The threads that wait for a job, or have just been told of one.
    waiting: usize,
    is_over: bool,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Queue { jobs, waiting, .. } = &*self.queue();
        write!(f, "{} jobs, {waiting} threads that wait", jobs.len())
    }
}

impl Drop for Long {
    fn drop(&mut self) {
        self.0.queue().is_over = true;
        self.0.changed.notify_all();
    }
}

impl Long {
    /// Runs something on such a thread. It goes on if its answer isn't waited for any more.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Answer<T> + Send + 'static,
    ) -> Answer<T> {
        let (done, answer) = oneshot::channel();
        let runtime = Handle::current();
        let run = move || {
            // What the work has may need the runtime when it is dropped.
            let _runtime = runtime.enter();
            let answered = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(failed()));
            // Nobody may wait for it any more.
            let _ = done.send(answered);
        };
        self.begin(Box::new(run));
        answer.await.unwrap_or_else(|_| {
            let message = "the system gives this server no more threads: try again in a moment";
            Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message))
        })
    }

    /// Begins something on such a thread. It is dropped if there can be none.
    pub(crate) fn begin(&self, job: Job) {
        let mut queue = self.0.queue();
        queue.jobs.push_back(job);
        if queue.waiting >= queue.jobs.len() {
            drop(queue);
            return self.0.changed.notify_one();
        }
        drop(queue);
        let inner = Arc::clone(&self.0);
        let begun = Builder::new().name("annals-long".to_owned()).spawn(move || inner.work());
        if begun.is_err() {
            // One that waits gets no answer.
            let refused = self.0.queue().jobs.pop_back();
            drop(refused);
        }
    }
}

impl Inner {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what comes.
    fn work(&self) {
        lower_priority();
        while let Some(job) = self.next() {
            job();
        }
    }

    /// Waits for a job; `None` if none came for a while, or the server has ended.
    fn next(&self) -> Option<Job> {
        let mut queue = self.queue();
        queue.waiting += 1;
        let is_idle = |queue: &mut Queue| queue.jobs.is_empty() && !queue.is_over;
        let waited = self.changed.wait_timeout_while(queue, IDLE, is_idle);
        queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        queue.waiting -= 1;
        queue.jobs.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Barrier;
    use std::thread::{ThreadId, current};

    use super::*;

    async fn thread(long: &Long) -> ThreadId {
        long.run(|| Ok(current().id())).await.unwrap()
    }

    #[tokio::test]
    async fn threads_are_used_again_also_after_a_panic() {
        let long = Long::default();
        let first = thread(&long).await;
        assert_ne!(first, current().id());
        let panicked: Answer<()> = long.run(|| panic!("the work is wrong")).await;
        assert_eq!(panicked.unwrap_err().error, "internal");
        let used: BTreeSet<_> =
            [thread(&long).await, thread(&long).await].map(|it| format!("{it:?}")).into();
        // That which has just answered may not wait yet.
        assert!(used.contains(&format!("{first:?}")) || used.len() == 1, "{first:?}: {used:?}");
    }

    #[tokio::test]
    async fn works_do_not_wait_for_each_other() {
        let long = Long::default();
        let barrier = Arc::new(Barrier::new(3));
        let meet = || {
            let barrier = Arc::clone(&barrier);
            long.run(move || Ok(barrier.wait().is_leader()))
        };
        for _ in 0..20 {
            let met = tokio::join!(meet(), meet(), meet());
            let leaders = [met.0, met.1, met.2].into_iter().filter(|it| *it.as_ref().unwrap());
            assert_eq!(leaders.count(), 1);
        }
    }

    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn they_have_a_lower_priority() {
        let priority = || {
            let status = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            let (_, after) = status.rsplit_once(") ").unwrap();
            after.split(' ').nth(16).unwrap().parse::<i32>().unwrap()
        };
        let long = Long::default().run(move || Ok(priority())).await.unwrap();
        assert!(long > priority(), "{long}");
    }
}
