//! Readers that are cut off because they are too slow: each is counted once.
//!
//! Two sides see that a client doesn't read: the connection, whose bytes don't move, and the answer, whose pieces nobody
//! takes. Both wait equally long, so they see it at about the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Who has counted a connection's client.
const NOBODY: u8 = 0;
const ANSWER: u8 = 1;
const CONNECTION: u8 = 2;

/// What counts the readers of one connection.
#[derive(Debug)]
pub(crate) struct Slow {
    /// Those of the server.
    all: Arc<AtomicU64>,
    counted: AtomicU8,
}

impl Slow {
    pub(crate) const fn new(all: Arc<AtomicU64>) -> Self {
        Self { all, counted: AtomicU8::new(NOBODY) }
    }

    /// Counts the reader of an answer that is cut off. In HTTP/2 a connection has several, as that of a proxy for its clients.
    pub(crate) fn answer(&self) {
        self.count(ANSWER);
    }

    /// Counts the reader of a connection that is cut off, unless that of one of its answers was counted.
    pub(crate) fn connection(&self) {
        self.count(CONNECTION);
    }

    fn count(&self, who: u8) {
        let order = Ordering::Relaxed;
        let before = self.counted.compare_exchange(NOBODY, who, order, order);
        let before = before.unwrap_or_else(|before| before);
        if before == NOBODY || (before, who) == (ANSWER, ANSWER) {
            self.all.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(notes: &[fn(&Slow)]) -> u64 {
        let all = Arc::default();
        let slow = Slow::new(Arc::clone(&all));
        notes.iter().for_each(|note| note(&slow));
        all.load(Ordering::Relaxed)
    }

    #[test]
    fn a_reader_is_counted_once_whoever_sees_it_first() {
        assert_eq!(count(&[Slow::answer, Slow::connection]), 1);
        assert_eq!(count(&[Slow::connection, Slow::answer]), 1);
        assert_eq!(count(&[Slow::connection, Slow::answer, Slow::answer]), 1);
        assert_eq!(count(&[Slow::answer, Slow::answer, Slow::connection]), 2, "two of HTTP/2");
    }
}
