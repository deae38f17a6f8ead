//! The clock and the randomness of the machine.

#![allow(clippy::disallowed_methods, reason = "this is where time comes in")]

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::Clock;

/// The clock of the machine.
///
/// Its random numbers are the operating system's. A thread requests several at once, since a frame needs one each and
/// a system call would cost as much as the frame.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> i64 {
        let now = SystemTime::now();
        match now.duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_micros()).unwrap_or(i64::MAX),
            // A machine whose clock was never set may live before 1970.
            Err(before) => {
                i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |micros| -micros)
            }
        }
    }

    /// Counts from the first call in this process.
    fn elapsed(&self) -> Duration {
        static FIRST: OnceLock<Instant> = OnceLock::new();
        FIRST.get_or_init(Instant::now).elapsed()
    }

    fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn random(&self) -> u64 {
        DRAWN.with_borrow_mut(|drawn| {
            if drawn.is_empty() {
                draw(drawn);
            }
            drawn.pop().unwrap_or_default()
        })
    }
}

/// How many random numbers a thread asks the operating system for at once.
const DRAWN_AT_ONCE: usize = 32;

thread_local!(static DRAWN: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) });

/// Draws random numbers.
fn draw(drawn: &mut Vec<u64>) {
    let mut bytes = [0; DRAWN_AT_ONCE * 8];
    match getrandom::fill(&mut bytes) {
        Ok(()) => drawn.extend(bytes.as_chunks().0.iter().map(|&chunk| u64::from_le_bytes(chunk))),
        // A system without randomness still seeds the hasher of the standard library once.
        Err(_) => drawn.push(RandomState::new().hash_one(SystemClock.now())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn time_is_of_this_century() {
        let year = 365 * 24 * 3600 * 1_000_000_i64;
        assert!((50 * year..130 * year).contains(&SystemClock.now()));
    }

    #[test]
    fn elapsed_time_goes_on_and_never_back() {
        let before = SystemClock.elapsed();
        std::thread::sleep(Duration::from_millis(2));
        let passed = SystemClock.elapsed() - before;
        assert!((Duration::from_millis(2)..Duration::from_secs(60)).contains(&passed));
        let times: Vec<_> = (0..1000).map(|_| SystemClock.elapsed()).collect();
        assert!(times.is_sorted());
    }

    #[test]
    fn random_numbers_differ_also_between_threads() {
        let draw = || (0..1000).map(|_| SystemClock.random()).collect::<Vec<_>>();
        let other = std::thread::spawn(draw);
        let mut seen: HashSet<u64> = draw().into_iter().collect();
        seen.extend(other.join().unwrap());
        assert_eq!(seen.len(), 2000);
        let ones: u32 = seen.iter().map(|number| number.count_ones()).sum();
        assert!((60_000..68_000).contains(&ones), "{ones} of 128,000 bits are set");
    }
}
