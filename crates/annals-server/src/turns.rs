//! Turns for clients whose pushes come too late again and again.
//!
//! Pushes are optimistic: whoever is fast wins. A client that lost several times reserves the next turn: for a moment only its
//! next push is judged. Pushes that come meanwhile stand in line, first come first served, and each of them has a turn in
//! its place. So under contention a transaction is refused once, and runs twice.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use annals::storage::{Clock as _, SystemClock};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// After so many conflicts in a row a client reserves a turn.
pub(crate) const CONFLICTS: u32 = 3;
/// How long a turn lasts: a client pulls, runs its transaction again and pushes it.
const LONGEST: Duration = Duration::from_millis(250);

/// The turn of a database, if one is reserved, and the line of those that wait for it.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    reserved: Mutex<Option<Reserved>>,
    ended: Notify,
    /// Its waiters are served in their order.
    line: tokio::sync::Mutex<()>,
    in_line: AtomicUsize,
}

#[derive(Clone, Copy, Debug)]
struct Reserved {
    ticket: u64,
    end: Instant,
}

/// A push that may be judged now. Its turn ends with it, unless it was [kept](Self::keep).
#[derive(Debug)]
pub(crate) struct Turn<'t> {
    turns: &'t Turns,
    /// `None` while nobody stands in line.
    ticket: Option<u64>,
}

/// Somebody who stands in line.
struct InLine<'t>(&'t AtomicUsize);

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Turns {
    fn reserved(&self) -> MutexGuard<'_, Option<Reserved>> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a push may be judged: that with the ticket of the turn at once, others in line after it.
    pub(crate) async fn come(&self, ticket: Option<u64>) -> Turn<'_> {
        if let Some(reserved) = *self.reserved() {
            if ticket == Some(reserved.ticket) {
                return Turn { turns: self, ticket };
            }
        } else if self.in_line.load(Ordering::Relaxed) == 0 {
            return Turn { turns: self, ticket: None };
        }
        self.in_line.fetch_add(1, Ordering::Relaxed);
        let _in_line = InLine(&self.in_line);
        let _first = self.line.lock().await;
        loop {
            let ended = self.ended.notified();
            let end = match *self.reserved() {
                Some(reserved) if reserved.end > Instant::now() => reserved.end,
                _ => break,
            };
            // Late is as good as told.
            let _ = timeout_at(end, ended).await;
        }
        Turn { turns: self, ticket: Some(self.set()) }
    }

    fn set(&self) -> u64 {
        let ticket = SystemClock.random();
        *self.reserved() = Some(Reserved { ticket, end: Instant::now() + LONGEST });
        ticket
    }
}

impl Turn<'_> {
    /// Keeps the turn for the next push of a client that came too late after so many conflicts in a row; returns the ticket
    /// for it.
    pub(crate) fn keep(mut self, conflicts: u32) -> Option<u64> {
        let is_free = self.turns.reserved().is_none();
        let may = self.ticket.is_some() || (conflicts >= CONFLICTS && is_free);
        self.ticket = None;
        may.then(|| self.turns.set())
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut reserved = self.turns.reserved();
        if self.ticket.is_some() && reserved.map(|it| it.ticket) == self.ticket {
            *reserved = None;
            drop(reserved);
            self.turns.ended.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_turn_is_for_one_and_ends() {
        let turns = Turns::default();
        assert_eq!(
            turns.come(None).await.keep(CONFLICTS - 1),
            None,
            "nobody waits, and it is young"
        );
        let begun = Instant::now();
        let ticket = turns.come(None).await.keep(CONFLICTS);
        assert!(ticket.is_some());
        drop(turns.come(None).await);
        assert_eq!(begun.elapsed(), LONGEST, "nobody came with the ticket");
        drop(turns.come(ticket).await);
        assert_eq!(begun.elapsed(), LONGEST, "an old ticket is none");
    }

    #[tokio::test(start_paused = true)]
    async fn others_stand_in_line() {
        let turns = Turns::default();
        let ticket = turns.come(None).await.keep(CONFLICTS);
        let begun = Instant::now();
        let order = Mutex::new(Vec::new());
        let push = |name: &'static str| {
            let (turns, order) = (&turns, &order);
            async move {
                // The first try is late, the second has the turn.
                let ticket = turns.come(None).await.keep(0);
                assert!(ticket.is_some());
                tokio::time::sleep(Duration::from_millis(1)).await;
                drop(turns.come(ticket).await);
                order.lock().unwrap_or_else(PoisonError::into_inner).push(name);
            }
        };
        tokio::join!(push("a"), push("b"), push("c"), async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            drop(turns.come(ticket).await);
        });
        assert_eq!(
            begun.elapsed(),
            Duration::from_millis(4),
            "each goes on as soon as the one before has pushed"
        );
        assert_eq!(order.into_inner().unwrap_or_default(), ["a", "b", "c"]);
        drop(turns.come(None).await);
        assert_eq!(begun.elapsed(), Duration::from_millis(4), "nobody waits any more");
    }

    #[tokio::test(start_paused = true)]
    async fn who_leaves_the_line_holds_nobody_up() {
        let turns = Turns::default();
        let ticket = turns.come(None).await.keep(CONFLICTS);
        let left = tokio::time::timeout(Duration::from_millis(1), turns.come(None)).await;
        assert!(left.is_err());
        drop(turns.come(ticket).await);
        let begun = Instant::now();
        drop(turns.come(None).await);
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
}
