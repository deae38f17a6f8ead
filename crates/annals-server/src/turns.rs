//! A turn for a client whose pushes come too late again and again: for a moment only its next push is judged.
//!
//! Pushes are optimistic: whoever is fast wins. A client that lost several times reserves the next turn. Others wait
//! until it has pushed, or until the turn ends without it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use annals::storage::{Clock as _, SystemClock};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// After so many conflicts in a row a client reserves a turn.
pub(crate) const CONFLICTS: u32 = 3;
/// How long a turn lasts: a client pulls, runs its transaction again and pushes it.
const LONGEST: Duration = Duration::from_millis(250);

/// The turn of a database, if one is reserved.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    reserved: Mutex<Option<Turn>>,
    ended: Notify,
}

#[derive(Clone, Copy, Debug)]
struct Turn {
    ticket: u64,
    end: Instant,
}

impl Turns {
    fn reserved(&self) -> MutexGuard<'_, Option<Turn>> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other client has a turn; ends that of the sender, whose ticket this is.
    pub(crate) async fn wait(&self, ticket: Option<u64>) {
        loop {
            let ended = self.ended.notified();
            let end = {
                let mut reserved = self.reserved();
                let Some(turn) = *reserved else { return };
                if ticket == Some(turn.ticket) || turn.end <= Instant::now() {
                    *reserved = None;
                    self.ended.notify_waiters();
                    return;
                }
                turn.end
            };
            // Late is as good as told.
            let _ = timeout_at(end, ended).await;
        }
    }

    /// Reserves the next turn, unless another client has it; returns the ticket.
    pub(crate) fn reserve(&self) -> Option<u64> {
        let mut reserved = self.reserved();
        let now = Instant::now();
        if reserved.is_some_and(|turn| turn.end > now) {
            return None;
        }
        let ticket = SystemClock.random();
        *reserved = Some(Turn { ticket, end: now + LONGEST });
        Some(ticket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_turn_is_for_one_and_ends() {
        let turns = Turns::default();
        turns.wait(None).await;
        let ticket = turns.reserve();
        assert!(ticket.is_some() && turns.reserve().is_none());
        let begun = Instant::now();
        turns.wait(None).await;
        assert_eq!(begun.elapsed(), LONGEST, "nobody came");

        let ticket = turns.reserve();
        let (mine, others) = tokio::join!(turns.wait(ticket), async {
            turns.wait(None).await;
            begun.elapsed()
        });
        assert_eq!(((), others), (mine, LONGEST), "others go on as soon as it came");
    }
}
