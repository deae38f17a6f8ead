//! Subscriptions as streams, for async programs.
//!
//! Reading the journal may block, so it is done in a thread of tokio's for that. It never waits there for a commit: a
//! commit of this process wakes the stream's task, and a file that others write is looked at every 10 ms.

use std::future::{Future as _, poll_fn};
use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Sleep, sleep};

use crate::db::past::time::subscription::{INTERVAL, Subscription, Wake};
use crate::db::write::changed::Changed;
use crate::debug::brief;
use crate::{Error, Result};

/// New commits from some transaction on, as a stream: see [`Subscription::into_stream`].
#[must_use = "a stream does nothing unless it is polled"]
pub struct SubscriptionStream(StreamState);

brief!(SubscriptionStream, "SubscriptionStream", "is_over": |it| matches!(it.0, StreamState::Over));

/// The result of reading, and the subscription, which goes with the thread that reads.
type Tried = (Box<Subscription>, Result<Option<Changed>>);

enum StreamState {
    Idle(Box<Subscription>),
    Reading(JoinHandle<Tried>),
    Waiting(Box<Subscription>, Pin<Box<Sleep>>),
    Over,
}

impl Subscription {
    /// Returns the same commits as a stream, which must be polled in a runtime of tokio with its timer.
    ///
    /// It waits in no thread, and reads the journal in a thread for blocking work. Dropping it, or a future that waits
    /// for its next transaction, is safe at any time: nothing was lost for another subscription, and a stream that is
    /// kept continues with the same transaction.
    pub fn into_stream(self) -> SubscriptionStream {
        SubscriptionStream(StreamState::Idle(Box::new(self)))
    }

    /// Waits until there may be another transaction, or none will follow, in no thread; it must be awaited in a runtime of
    /// tokio with its timer. Dropping the future is safe at any time.
    ///
    /// A program that chooses itself in which thread it reads calls [`try_next`](Self::try_next) there, and this when that
    /// returns `None`.
    pub async fn news(&mut self) {
        let by_polling = poll_fn(|cx| match self.wake(cx.waker()) {
            Wake::AtOnce => Poll::Ready(false),
            Wake::ByPolling => Poll::Ready(true),
            Wake::ByCommit => Poll::Pending,
        });
        if by_polling.await {
            sleep(INTERVAL).await;
        }
    }
}

impl futures_core::Stream for SubscriptionStream {
    type Item = Result<Changed>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match std::mem::replace(&mut self.0, StreamState::Over) {
                StreamState::Over => return Poll::Ready(None),
                StreamState::Idle(mut subscription) => {
                    if let Some(changed) = subscription.take_ready() {
                        self.0 = StreamState::Idle(subscription);
                        return Poll::Ready(Some(Ok(changed)));
                    }
                    let Ok(runtime) = Handle::try_current() else {
                        let message = "a stream of commits must be polled in a runtime of tokio";
                        return Poll::Ready(Some(Err(Error::invalid(message))));
                    };
                    self.0 = StreamState::Reading(runtime.spawn_blocking(move || {
                        let tried = subscription.try_next();
                        (subscription, tried)
                    }));
                }
                StreamState::Waiting(subscription, mut timer) => {
                    if timer.as_mut().poll(cx).is_pending() {
                        self.0 = StreamState::Waiting(subscription, timer);
                        return Poll::Pending;
                    }
                    self.0 = StreamState::Idle(subscription);
                }
                StreamState::Reading(mut reading) => {
                    let Poll::Ready(done) = Pin::new(&mut reading).poll(cx) else {
                        self.0 = StreamState::Reading(reading);
                        return Poll::Pending;
                    };
                    let (mut subscription, tried) = match done.map_err(JoinError::try_into_panic) {
                        Ok(done) => done,
                        Err(Ok(panic)) => resume_unwind(panic),
                        Err(Err(_)) => return Poll::Ready(None), // the runtime is shut down
                    };
                    match tried {
                        Err(error) => return Poll::Ready(Some(Err(error))),
                        Ok(Some(changed)) => {
                            self.0 = StreamState::Idle(subscription);
                            return Poll::Ready(Some(Ok(changed)));
                        }
                        Ok(None) if subscription.is_over() => return Poll::Ready(None),
                        Ok(None) => match subscription.wake(cx.waker()) {
                            Wake::AtOnce => self.0 = StreamState::Idle(subscription),
                            Wake::ByPolling => {
                                self.0 =
                                    StreamState::Waiting(subscription, Box::pin(sleep(INTERVAL)));
                            }
                            Wake::ByCommit => {
                                self.0 = StreamState::Idle(subscription);
                                return Poll::Pending;
                            }
                        },
                    }
                }
            }
        }
    }
}
