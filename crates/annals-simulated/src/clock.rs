//! A clock that a seed determines.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::Rng;
use annals_storage::Clock;

/// When simulated time begins: 2020-09-13T12:26:40Z, in microseconds.
const BEGINNING: i64 = 1_600_000_000_000_000;

/// The time that passes at each query of the waiting time.
const WAIT_STEP: Duration = Duration::from_micros(500);

/// A clock that advances by up to a millisecond at each query, depending on the seed.
#[derive(Debug)]
pub struct SimulatedClock {
    state: Mutex<ClockState>,
}

#[derive(Debug)]
struct ClockState {
    now: i64,
    elapsed: Duration,
    rng: Rng,
}

impl SimulatedClock {
    /// Makes a clock; the same seed gives the same times and random numbers.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            state: Mutex::new(ClockState {
                now: BEGINNING,
                elapsed: Duration::ZERO,
                rng: Rng::new(seed),
            }),
        }
    }

    /// Sets the time, in microseconds since 1970-01-01T00:00:00Z, also back.
    pub fn set(&self, now: i64) {
        self.state().now = now;
    }

    /// Advances the clock by that many microseconds; a negative number sets it back.
    pub fn advance(&self, micros: i64) {
        self.state().pass(micros);
    }

    fn state(&self) -> MutexGuard<'_, ClockState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClockState {
    fn pass(&mut self, micros: i64) {
        self.now = self.now.saturating_add(micros);
        let forwards = Duration::from_micros(u64::try_from(micros).unwrap_or(0));
        self.elapsed = self.elapsed.saturating_add(forwards);
    }

    fn step(&mut self) {
        let step = 1 + i64::try_from(self.rng.below(1000)).unwrap_or(0);
        self.pass(step);
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> i64 {
        let mut state = self.state();
        state.step();
        state.now
    }

    fn elapsed(&self) -> Duration {
        // Separate from the time of day, which must not depend on the number of waits.
        let mut state = self.state();
        state.elapsed = state.elapsed.saturating_add(WAIT_STEP);
        state.elapsed
    }

    fn pause(&self, time: Duration) {
        let mut state = self.state();
        state.elapsed = state.elapsed.saturating_add(time);
    }

    fn random(&self) -> u64 {
        self.state().rng.number()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_determines_the_times() {
        let times = |seed| {
            let clock = SimulatedClock::new(seed);
            (0..10).map(|_| (clock.now(), clock.random())).collect::<Vec<_>>()
        };
        assert_eq!(times(3), times(3));
        assert_ne!(times(3), times(4));
        assert!(times(3).windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn time_can_be_set_and_let_pass() {
        let clock = SimulatedClock::new(1);
        clock.set(0);
        clock.advance(5_000_000);
        assert!((5_000_001..=5_001_000).contains(&clock.now()));
        let before = clock.elapsed();
        clock.set(0);
        clock.advance(-7);
        clock.advance(3_000_000);
        let passed = clock.elapsed() - before;
        let three = Duration::from_secs(3);
        assert!((three..three + Duration::from_millis(1)).contains(&passed), "{passed:?}");
    }
}
