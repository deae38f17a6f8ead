//! Numbers of at most 32 bits, each in as many bits as the longest of them has.
//!
//! They are words of the least size, 8, 16 or 32 bits, that holds one. There are as many *lanes* as it takes that a
//! word has a bit for each number of its lane: number `i` is the one number `i / lanes` of lane `i % lanes`. The words
//! of a lane have its numbers bit after bit, the lowest first; word `k` of lane `l` is number `k * lanes + l` of all.
//!
//! So numbers beside each other begin at the same bit of words beside each other, and the compiler restores many with
//! one instruction.

/// The most bits of a number.
pub(super) const MOST_BITS: usize = 32;

/// Returns how many bits a word has.
const fn word_bits(bits: usize) -> usize {
    match bits {
        0..=8 => 8,
        9..=16 => 16,
        _ => 32,
    }
}

/// Returns how many lanes there are.
const fn lanes(count: usize, bits: usize) -> usize {
    count.div_ceil(word_bits(bits))
}

/// Returns how many bytes so many numbers of so many bits take.
pub(super) const fn packed_len(count: usize, bits: usize) -> usize {
    lanes(count, bits) * bits * word_bits(bits) / 8
}

/// Returns how many bits a number has.
pub(super) const fn bits_of(number: u64) -> usize {
    (u64::BITS - number.leading_zeros()) as usize
}

/// Appends numbers, which have no more than so many bits.
pub(super) fn pack(numbers: impl ExactSizeIterator<Item = u64>, bits: usize, out: &mut Vec<u8>) {
    let (word_bits, lanes) = (word_bits(bits), lanes(numbers.len(), bits));
    let mut words = vec![0_u64; lanes * (bits + 1)]; // one more, into which nothing is written
    for (i, number) in numbers.enumerate() {
        let begin = i / lanes * bits;
        let at = begin / word_bits * lanes + i % lanes;
        let shifted = number << (begin % word_bits);
        for (at, part) in [(at, shifted), (at + lanes, shifted >> word_bits)] {
            words.get_mut(at).into_iter().for_each(|word| *word |= part);
        }
    }
    for word in words.iter().take(lanes * bits) {
        out.extend(word.to_le_bytes().iter().take(word_bits / 8));
    }
}

/// Defines a function that restores numbers from words of one size as numbers of another, each more by `least`.
macro_rules! unpacking {
    ($name:ident, $word:ty, $out:ty) => {
        fn $name(
            packed: &[u8],
            bits: usize,
            least: $out,
            out: &mut [[u8; size_of::<$out>()]],
        ) -> Option<()> {
            const WORD: usize = <$word>::BITS as usize;
            let (words, _) = packed.as_chunks::<{ size_of::<$word>() }>();
            let lanes = lanes(out.len(), bits).max(1);
            let mask = <$word>::MAX >> (WORD - bits);
            for (number, out) in out.chunks_mut(lanes).enumerate() {
                let (at, shift) = (number * bits / WORD * lanes, number * bits % WORD);
                let low = words.get(at..at + out.len())?;
                if shift + bits <= WORD {
                    for (out, low) in out.iter_mut().zip(low) {
                        let number = (<$word>::from_le_bytes(*low) >> shift) & mask;
                        *out = least.wrapping_add(<$out>::from(number)).to_le_bytes();
                    }
                } else {
                    let high = words.get(at + lanes..at + lanes + out.len())?;
                    for ((out, low), high) in out.iter_mut().zip(low).zip(high) {
                        let low = <$word>::from_le_bytes(*low) >> shift;
                        let high = <$word>::from_le_bytes(*high) << (WORD - shift);
                        let number = (low | high) & mask;
                        *out = least.wrapping_add(<$out>::from(number)).to_le_bytes();
                    }
                }
            }
            Some(())
        }
    };
}

unpacking!(bytes_to_one, u8, u8);
unpacking!(bytes_to_two, u8, u16);
unpacking!(bytes_to_four, u8, u32);
unpacking!(bytes_to_eight, u8, u64);
unpacking!(halves_to_two, u16, u16);
unpacking!(halves_to_four, u16, u32);
unpacking!(halves_to_eight, u16, u64);
unpacking!(words_to_four, u32, u32);
unpacking!(words_to_eight, u32, u64);

/// Defines a function that restores numbers of one size.
macro_rules! restoring {
    ($(#[$doc:meta])* $name:ident, $out:ty, $($most:literal => $from:ident),+) => {
        $(#[$doc])*
        pub(super) fn $name(
            packed: &[u8],
            bits: usize,
            least: $out,
            out: &mut [[u8; size_of::<$out>()]],
        ) -> Option<()> {
            match bits {
                0 => {
                    out.fill(least.to_le_bytes());
                    Some(())
                }
                $(..=$most => $from(packed, bits, least, out),)+
                _ => None,
            }
        }
    };
}

restoring!(
    /// Restores numbers of 1 byte.
    ones, u8, 8 => bytes_to_one
);
restoring!(
    /// Restores numbers of 2 bytes.
    twos, u16, 8 => bytes_to_two, 16 => halves_to_two
);
restoring!(
    /// Restores numbers of 4 bytes.
    fours, u32, 8 => bytes_to_four, 16 => halves_to_four, 32 => words_to_four
);
restoring!(
    /// Restores numbers of 8 bytes.
    eights, u64, 8 => bytes_to_eight, 16 => halves_to_eight, 32 => words_to_eight
);

#[cfg(test)]
mod tests {
    use super::*;
    use annals_simulated::Rng;

    #[test]
    fn numbers_of_any_size_come_back() {
        let mut rng = Rng::new(3);
        for bits in 0..=MOST_BITS {
            for count in [1, 2, 7, 8, 9, 31, 32, 33, 100, 400, 2048] {
                let below = 1_u64 << bits;
                let numbers: Vec<u64> = (0..count).map(|_| rng.below(below)).collect();
                let mut packed = Vec::new();
                pack(numbers.iter().copied(), bits, &mut packed);
                assert_eq!(packed.len(), packed_len(count, bits), "{count} of {bits}");
                let least = rng.number();
                let mut out = vec![[7; 8]; count];
                eights(&packed, bits, least, &mut out).unwrap();
                let found: Vec<_> =
                    out.iter().map(|it| u64::from_le_bytes(*it).wrapping_sub(least)).collect();
                assert_eq!(found, numbers, "{count} of {bits}");
                let mut out = vec![[7; 4]; count];
                fours(&packed, bits, 5, &mut out).unwrap();
                for (out, number) in out.iter().zip(&numbers) {
                    let number = u32::try_from(*number).unwrap();
                    assert_eq!(u32::from_le_bytes(*out), number.wrapping_add(5));
                }
            }
        }
    }

    #[test]
    fn few_numbers_take_few_bytes() {
        assert_eq!(packed_len(400, 5), 250);
        assert_eq!(packed_len(2048, 31), 2048 * 31 / 8);
        assert_eq!(packed_len(33, 20), 2 * 20 * 4);
        assert_eq!(packed_len(1000, 0), 0);
    }

    #[test]
    fn too_few_bytes_are_no_numbers() {
        let mut out = vec![[0; 8]; 100];
        assert!(eights(&[1; 99], 8, 0, &mut out).is_none());
        assert!(eights(&[1; 999], 33, 0, &mut out).is_none());
    }
}
