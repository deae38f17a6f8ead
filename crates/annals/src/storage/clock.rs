//! The clock and the randomness of the machine.

#![allow(clippy::disallowed_methods, reason = "this is where time comes in")]

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::Clock;

/// The clock of the machine.
///
/// Its random numbers come from the standard library's hasher, whose keys the operating system
/// seeds once for each thread. They tell two attempts apart; they are no secrets. That needs
/// neither unsafe code nor a dependency and works on every platform. The time, the process and a
/// count are mixed in, since a forked child inherits the keys.
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
        static CALLS: AtomicU64 = AtomicU64::new(0);
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_i64(self.now());
        hasher.write_u32(std::process::id());
        hasher.write_u64(CALLS.fetch_add(1, Ordering::Relaxed));
        hasher.finish()
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
