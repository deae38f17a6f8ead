//! A page of numbers, each as its difference to the least one.
//!
//! | offset | bytes | meaning |
//! |---|---|---|
//! | 0 | 1 | the size of a number, in bytes: 1, 2, 4 or 8 |
//! | 1 | 1 | how many bits a difference has |
//! | 2 | 2 | how many numbers there are; zeros follow them |
//! | 4 | 4 | zeros |
//! | 8 | 8 | the least number |
//! | 16 | | the differences, as [`bits`] |

use super::bits;
use crate::arena::PAGE;

/// The number of bytes before the differences.
const HEAD: usize = 16;

/// A number of fewer than 8 bytes.
fn number(bytes: &[u8]) -> u64 {
    let mut eight = [0; 8];
    eight.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    u64::from_le_bytes(eight)
}

/// Returns the least and the greatest number of a size.
fn range<const W: usize>(page: &[u8]) -> Option<(u64, u64)> {
    let (cells, rest) = page.as_chunks::<W>();
    let numbers = cells.iter().map(|cell| number(cell));
    let last = (!rest.is_empty()).then(|| number(rest));
    let mut numbers = numbers.chain(last);
    let first = numbers.next()?;
    Some(numbers.fold((first, first), |(least, most), it| (least.min(it), most.max(it))))
}

/// Packs the bytes of a page of numbers; zeros follow them. `None` unless that takes at most so many bytes.
pub(super) fn pack(page: &[u8], width: usize, most_bytes: usize) -> Option<Vec<u8>> {
    let (least, most) = match width {
        1 => range::<1>(page),
        2 => range::<2>(page),
        4 => range::<4>(page),
        8 => range::<8>(page),
        _ => None,
    }?;
    let (bits, count) = (bits::bits_of(most - least), page.len().div_ceil(width));
    let len = HEAD + bits::packed_len(count, bits);
    if bits > bits::MOST_BITS || len > most_bytes {
        return None;
    }
    let mut out = Vec::with_capacity(len);
    out.extend([u8::try_from(width).ok()?, u8::try_from(bits).ok()?]);
    out.extend(u16::try_from(count).ok()?.to_le_bytes());
    out.extend([0; 4]);
    out.extend(least.to_le_bytes());
    bits::pack(page.chunks(width).map(|cell| number(cell) - least), bits, &mut out);
    Some(out)
}

/// Restores a page of numbers of a size in a page of zeros; `None` if the bytes are none.
pub(super) fn unpack(packed: &[u8], width: usize, page: &mut [u8; PAGE]) -> Option<()> {
    let (head, packed) = packed.split_first_chunk::<HEAD>()?;
    let [size, bits, low, high, 0, 0, 0, 0, least @ ..] = *head else { return None };
    let (bits, count) = (usize::from(bits), usize::from(u16::from_le_bytes([low, high])));
    let least = u64::from_le_bytes(least);
    if usize::from(size) != width || count == 0 || packed.len() != bits::packed_len(count, bits) {
        return None;
    }
    match width {
        1 => bits::ones(
            packed,
            bits,
            least.try_into().ok()?,
            page.as_chunks_mut().0.get_mut(..count)?,
        ),
        2 => bits::twos(
            packed,
            bits,
            least.try_into().ok()?,
            page.as_chunks_mut().0.get_mut(..count)?,
        ),
        4 => bits::fours(
            packed,
            bits,
            least.try_into().ok()?,
            page.as_chunks_mut().0.get_mut(..count)?,
        ),
        8 => bits::eights(packed, bits, least, page.as_chunks_mut().0.get_mut(..count)?),
        _ => None,
    }
}
