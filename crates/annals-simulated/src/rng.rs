//! Small deterministic randomness for simulations.

/// A generator of random numbers (splitmix64): the same seed always gives the same numbers.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Starts from a seed; any is as good as any other.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns 64 random bits.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// Returns a number below `limit`, or 0 if that is 0. (The bias of the remainder is too small to
    /// matter for limits far below 2^64.)
    pub fn below(&mut self, limit: u64) -> u64 {
        self.number().checked_rem(limit).unwrap_or(0)
    }

    /// Returns an index into something of this length, or 0 if it is empty.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or(0)
    }

    /// Returns true in this many of 100 cases.
    pub fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }

    /// Fills a buffer with random bytes.
    pub fn fill(&mut self, buffer: &mut [u8]) {
        for chunk in buffer.chunks_mut(8) {
            let bytes = self.number().to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_splitmix64() {
        // The first numbers of the published algorithm for this seed.
        let mut rng = Rng::new(1_234_567);
        let numbers: Vec<u64> = (0..3).map(|_| rng.number()).collect();
        assert_eq!(
            numbers,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn limits_are_kept() {
        let mut rng = Rng::new(7);
        let drawn: Vec<u64> = (0..1000).map(|_| rng.below(3)).collect();
        for number in 0..3 {
            let share = drawn.iter().filter(|&&other| other == number).count();
            assert!((250..420).contains(&share), "{number} came {share} times");
        }
        assert!(drawn.iter().all(|&number| number < 3));
        assert_eq!((rng.below(0), rng.index(0)), (0, 0));
    }
}
