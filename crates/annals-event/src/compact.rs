//! Compact integers: unsigned 64-bit numbers in 1 to 9 bytes, little-endian.
//!
//! The number of trailing zero bits of the first byte, plus one, is the length, so that a reader
//! needs no loop: 7 bits a byte up to 8 bytes; a first byte of 0 means that 8 whole bytes follow.
//! (The idea is that of prefix varints, as in UTF-8 and in SQLite 4's integers.)

use crate::Error;

/// Why bytes are no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub(crate) &'static str);

impl From<Malformed> for Error {
    fn from(malformed: Malformed) -> Self {
        Self::corrupt(format!("the journal holds an event that makes no sense: {}", malformed.0))
    }
}

/// Appends `value` in as few bytes as it needs.
#[inline]
pub fn put(out: &mut Vec<u8>, value: u64) {
    if value < 1 << 7 {
        out.push(low_byte(value << 1 | 1));
        return;
    }
    let bits = 64 - value.leading_zeros();
    let len = bits.div_ceil(7);
    if len > 8 {
        out.push(0);
        out.extend_from_slice(&value.to_le_bytes());
        return;
    }
    let word = (value << len) | (1 << (len - 1));
    // All 8 bytes are one store; the surplus is removed again.
    let end = out.len() + len as usize;
    out.extend_from_slice(&word.to_le_bytes());
    out.truncate(end);
}

/// Appends a signed number, small absolute values in few bytes (zigzag).
#[inline]
pub(crate) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(out, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

/// Takes a number off the front of `input`.
#[inline]
pub fn take(input: &mut &[u8]) -> Result<u64, Malformed> {
    let (&first, rest) = input.split_first().ok_or(Malformed("the event ends in a number"))?;
    if first & 1 == 1 {
        *input = rest;
        return Ok(u64::from(first >> 1));
    }
    if let Some(word) = input.first_chunk::<8>().filter(|_| first != 0) {
        // All 8 bytes are one load; the surplus is shifted out.
        let len = first.trailing_zeros() + 1;
        *input = input.get(len as usize..).unwrap_or_default();
        let unused = 64 - 8 * len;
        return Ok(u64::from_le_bytes(*word) << unused >> (unused + len));
    }
    if first == 0 {
        let (bytes, rest) =
            rest.split_first_chunk::<8>().ok_or(Malformed("the event ends in a number"))?;
        *input = rest;
        return Ok(u64::from_le_bytes(*bytes));
    }
    let len = first.trailing_zeros() as usize + 1;
    let (bytes, rest) =
        input.split_at_checked(len).ok_or(Malformed("the event ends in a number"))?;
    *input = rest;
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(bytes) {
        *to = *from;
    }
    Ok(u64::from_le_bytes(word) >> len)
}

/// Takes a signed number off the front of `input`.
#[inline]
pub(crate) fn take_signed(input: &mut &[u8]) -> Result<i64, Malformed> {
    let word = take(input)?;
    Ok((word >> 1).cast_signed() ^ -(word & 1).cast_signed())
}

/// The lowest 8 bits.
#[inline]
const fn low_byte(value: u64) -> u8 {
    value.to_le_bytes()[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_comes_back() {
        let mut numbers = vec![0, 1, 127, 128, 300, u64::MAX, u64::MAX - 1];
        for bit in 0..64 {
            numbers.extend([1u64 << bit, (1u64 << bit) - 1, (1u64 << bit) + 1]);
        }
        for number in numbers {
            let mut out = Vec::new();
            put(&mut out, number);
            let bits = (64 - number.leading_zeros()).max(1) as usize;
            assert_eq!(out.len(), if bits > 56 { 9 } else { bits.div_ceil(7) }, "{number}");
            let mut input = out.as_slice();
            assert_eq!(take(&mut input).unwrap(), number);
            assert!(input.is_empty());
            for end in 0..out.len() {
                assert!(take(&mut out.get(..end).unwrap()).is_err());
            }
            let signed = number.cast_signed();
            out.clear();
            put_signed(&mut out, signed);
            assert_eq!(take_signed(&mut out.as_slice()).unwrap(), signed);
        }
    }
}
