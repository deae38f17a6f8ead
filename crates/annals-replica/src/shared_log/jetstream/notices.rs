//! Notices of messages: that they are there, and when the stream has taken them.
//!
//! A stream that republishes sends the headers of each message to all that listen, once it is stored. Its time stamp decides
//! whether a transaction counts; so a writer doesn't need to read its message back.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::HeaderMap;
use tokio::sync::Notify;

use super::api;

/// So many are remembered.
const REMEMBERED: usize = 64;
/// How long a notice is waited for once the message is acknowledged: both are sent together.
const PATIENCE: Duration = Duration::from_millis(5);

/// The notices that came last.
#[derive(Debug, Default)]
pub(super) struct Notices {
    /// Sequences and times.
    last: Mutex<VecDeque<(u64, i64)>>,
    /// Wakes those that wait.
    pub(super) news: Notify,
}

impl Notices {
    fn last(&self) -> MutexGuard<'_, VecDeque<(u64, i64)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one.
    pub(super) fn take(&self, headers: Option<&HeaderMap>) {
        if let Some(stamp) = headers.and_then(api::stamp) {
            let mut last = self.last();
            if last.len() == REMEMBERED {
                last.pop_front();
            }
            last.push_back(stamp);
        }
        self.news.notify_waiters();
    }

    /// Forgets the messages after a sequence: they are of a stream that was there before this one.
    pub(super) fn forget(&self, after: u64) {
        self.last().retain(|(sequence, _)| *sequence <= after);
    }

    /// Returns the time of a message that is stored, as far as it is known in a moment.
    pub(super) async fn time_of(&self, sequence: u64) -> Option<i64> {
        let known = || self.last().iter().rev().find(|it| it.0 == sequence).map(|it| it.1);
        let wait = async {
            loop {
                let news = self.news.notified();
                if let Some(time) = known() {
                    return time;
                }
                news.await;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.ok()
    }
}
