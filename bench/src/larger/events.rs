//! The events: the same in every run.

use crate::engines::Failure;

/// Events of one user within this many microseconds of each other are of one session.
pub(super) const GAP: i64 = 30 * 60 * 1_000_000;
/// The time of the first event, in microseconds since 1970.
const BEGIN: i64 = 1_700_000_000_000_000;
const HOUR: i64 = 3_600_000_000;

/// How many kinds there are.
pub(super) const KINDS: usize = 5;
/// Out of eleven, how many events are of each kind: those up to this place.
const SHARES: [u8; 11] = [0, 0, 0, 0, 0, 1, 1, 1, 2, 3, 4];

/// An event.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) time: i64,
    pub(super) user: u32,
    pub(super) kind: u8,
    pub(super) payload: String,
    pub(super) value: f64,
}

/// A day of the events, from its first microsecond up to the first after it.
pub(super) const fn day() -> (i64, i64) {
    let from = BEGIN + 4 * HOUR;
    (from, from + 24 * HOUR)
}

/// Makes them (xorshift), in the order of their times.
pub(super) struct Events {
    count: u64,
    next: u64,
    seed: u64,
    time: i64,
}

impl Events {
    pub(super) const fn new(count: u64) -> Self {
        Self { count, next: 0, seed: 88_172_645_463_325_252, time: BEGIN }
    }

    /// Returns a random number below `limit`, of the bits from `shift` on.
    const fn below(&self, shift: u32, limit: u64) -> u64 {
        (self.seed >> shift) % limit
    }
}

impl Events {
    /// Hands them out in transactions of 50,000.
    pub(super) fn batches(
        mut self,
        mut add: impl FnMut(&[Event]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        loop {
            let batch: Vec<_> = self.by_ref().take(50_000).collect();
            if batch.is_empty() {
                return Ok(());
            }
            add(&batch)?;
        }
    }
}

impl Iterator for Events {
    type Item = Event;

    #[allow(clippy::cast_precision_loss, reason = "the numbers are far below 2^52")]
    fn next(&mut self) -> Option<Event> {
        let number = self.next;
        if number == self.count {
            return None;
        }
        self.next += 1;
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.time += i64::try_from(self.below(0, 1_000_000)).ok()?;
        let place = self.below(16, 1_000_000);
        let (page, ms) = (self.below(30, 5000), self.below(33, 900));
        Some(Event {
            time: self.time,
            // Of 100,000 users some come far more often.
            user: u32::try_from(place * place / 10_000_000).ok()?,
            kind: *SHARES.get(usize::try_from(self.below(40, 11)).ok()?)?,
            payload: format!(r#"{{"n":{number},"page":"/p/{page}","ms":{ms}}}"#),
            value: self.below(24, 1_000_000) as f64 / 100.0,
        })
    }
}
