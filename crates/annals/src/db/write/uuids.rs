//! New UUIDs of version 7, by the clock and the randomness of the database.

use annals_schema::Uuid;

use crate::storage::Clock;

/// Bits after the milliseconds: a part of a millisecond, and random ones.
const BITS_OF_TIME: u32 = 12;
const RANDOM_BITS: u32 = 62;

/// Makes UUIDs, each greater than the one before.
///
/// They are the methods 3 and 2 of RFC 9562, section 6.2. The bits after the milliseconds are the microseconds, in steps of
/// 1/4096 ms; the others are random. If that isn't greater than the last one, because the clock stands still or went back, the
/// last one is increased by a random number of 32 bits.
#[derive(Debug, Default)]
pub(in crate::db) struct NewUuids {
    /// Milliseconds and the bits after them, without those of version and variant.
    last: u128,
}

impl NewUuids {
    pub(in crate::db) fn next(&mut self, clock: &dyn Clock) -> Uuid {
        let micros = u128::try_from(clock.now()).unwrap_or_default(); // 0 before 1970
        // Microseconds times 4096 / 1000: whole milliseconds, and a part of one.
        let time = (micros << BITS_OF_TIME) / 1000;
        let random = clock.random();
        let drawn = time << RANDOM_BITS | u128::from(random >> (u64::BITS - RANDOM_BITS));
        self.last = drawn.max(self.last + 1 + u128::from(random >> 32));
        // It has the last 48 bits, which are enough until the year 10889.
        let millisecond = self.last >> (BITS_OF_TIME + RANDOM_BITS);
        Uuid::v7(u64::try_from(millisecond).unwrap_or_default(), self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
    use std::time::Duration;

    /// A clock that shows what it is set to, and draws small numbers and large ones in turn.
    #[derive(Debug, Default)]
    struct SetClock {
        micros: AtomicI64,
        drawn: AtomicU64,
    }

    impl Clock for SetClock {
        fn now(&self) -> i64 {
            self.micros.load(Ordering::Relaxed)
        }

        fn elapsed(&self) -> Duration {
            Duration::ZERO
        }

        fn pause(&self, _time: Duration) {}

        fn random(&self) -> u64 {
            let drawn = self.drawn.fetch_add(1, Ordering::Relaxed);
            if drawn.is_multiple_of(3) { u64::MAX - drawn } else { drawn }
        }
    }

    fn number(uuid: Uuid) -> u128 {
        uuid.to_string()
            .replace('-', "")
            .chars()
            .fold(0, |number, digit| number << 4 | u128::from(digit.to_digit(16).unwrap()))
    }

    #[test]
    fn they_increase_while_the_clock_stands_still_or_goes_back() {
        let (clock, mut uuids) = (SetClock::default(), NewUuids::default());
        let mut last = Uuid::NEW_V7;
        let times =
            [-5, 0, 1, 999, 1000, 1_645_557_742_000_000, 7, i64::MIN, 1_645_557_742_000_001];
        for micros in times.into_iter().flat_map(|micros| [micros; 500]) {
            clock.micros.store(micros, Ordering::Relaxed);
            let next = uuids.next(&clock);
            assert!(next > last, "{next} isn't after {last}");
            assert_eq!((number(next) >> 76 & 0xf, number(next) >> 62 & 0b11), (7, 0b10), "{next}");
            last = next;
        }
    }

    #[test]
    fn they_have_the_time_and_random_bits() {
        let (clock, mut uuids) = (SetClock::default(), NewUuids::default());
        for micros in [1_645_557_742_000_000, 1_645_557_742_000_500, 1_645_557_742_000_999] {
            clock.micros.store(micros, Ordering::Relaxed);
            clock.drawn.store(0, Ordering::Relaxed);
            let made = number(uuids.next(&clock));
            assert_eq!(made >> 80, 0x017f_22e2_79b0, "milliseconds");
            let part = u128::from(micros.unsigned_abs() % 1000) * 4096 / 1000;
            assert_eq!(made >> 64 & 0xfff, part, "a part of the millisecond");
            assert_eq!(made & (u128::MAX >> 66), u128::MAX >> 66, "random bits");
        }
        // Where the clock stands still, the next one can't be guessed from the last.
        let before = number(uuids.next(&clock));
        clock.drawn.store(0, Ordering::Relaxed);
        let step = number(uuids.next(&clock)) - before;
        assert_eq!(step, u128::from(u32::MAX) + 1);
    }
}
