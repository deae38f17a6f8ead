//! Hints: copies of some heads of a node, side by side after its first numbers.
//!
//! A binary search over the slots of a node reads half a dozen distant ones, one after another, and each may be a
//! cache miss. Hints limit the search to a few slots: two cache lines of hints, then two of slots, and the processor
//! loads each pair in parallel.
//!
//! Invariant: where [`step`] assigns a slot to a hint, the hint is the head of that slot; elsewhere it is all ones.

use super::{HEADER, SLOT, get16, get32};
use crate::pages::page::PAGE;

/// The number of hints of a node: with the fields before them they fill two cache lines.
pub(super) const HINTS: usize = 28;

/// Where they begin.
pub(super) const BEGIN: usize = 16;

const _: () = assert!(BEGIN + 4 * HINTS == HEADER, "slots follow the hints");
const _: () = assert!(HEADER == 128, "as many slots as have a hint lie in whole cache lines");

/// Returns the distance of slots that have a hint, as a power of two. Slots whose number is a multiple of that have
/// one, except the first slot.
#[inline]
pub(super) fn step(count: usize) -> u32 {
    let last = count.saturating_sub(1);
    let bits = usize::BITS - last.leading_zeros();
    let least = bits.saturating_sub(HINTS.ilog2() + 1);
    if last >> least > HINTS { least + 1 } else { least }
}

/// Finds the slots among which the first one is whose head is at least `head`, or which it is after: the first, and
/// the one after the last.
#[inline]
pub(super) fn among(bytes: &[u8; PAGE], count: usize, head: u32) -> (usize, usize) {
    let step = step(count);
    let (hints, _) = bytes[BEGIN..HEADER].as_chunks::<4>();
    // Without a branch for each, and so that the compiler takes several at once.
    let block: u32 = hints.iter().map(|hint| u32::from(u32::from_le_bytes(*hint) < head)).sum();
    let block = block as usize;
    ((block << step).min(count), ((block + 1) << step).min(count))
}

/// Returns which hint a node of `count` entries has.
#[inline]
fn hint(bytes: &[u8; PAGE], count: usize, number: usize) -> u32 {
    let slot = (number + 1) << step(count);
    if slot < count { get32(bytes, HEADER + slot * SLOT) } else { u32::MAX }
}

/// Rewrites the hints of slots from `first` on, in a node that had `before` entries until one was inserted or
/// removed.
#[inline]
pub(super) fn renew(bytes: &mut [u8; PAGE], before: usize, first: usize) {
    let count = get16(bytes, 2);
    let step = step(count);
    if step != self::step(before) {
        return write(bytes);
    }
    // After the last slot, present or former, they are all ones.
    let end = count.max(before).saturating_sub(1) >> step;
    for number in first.saturating_sub(1) >> step..end {
        put(bytes, count, number);
    }
}

/// Writes all hints.
pub(super) fn write(bytes: &mut [u8; PAGE]) {
    let count = get16(bytes, 2);
    (0..HINTS).for_each(|number| put(bytes, count, number));
}

#[inline]
fn put(bytes: &mut [u8; PAGE], count: usize, number: usize) {
    let (at, head) = (BEGIN + number * 4, hint(bytes, count, number));
    bytes[at..at + 4].copy_from_slice(&head.to_le_bytes());
}

/// Clears the hints of a node without entries.
pub(super) fn clear(bytes: &mut [u8; PAGE]) {
    bytes[BEGIN..HEADER].fill(u8::MAX);
}

/// True if the invariant holds.
pub(super) fn are_right(bytes: &[u8; PAGE]) -> bool {
    let count = get16(bytes, 2);
    (0..HINTS).all(|number| get32(bytes, BEGIN + number * 4) == hint(bytes, count, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_is_the_least_with_which_there_are_enough_hints() {
        for count in 0..PAGE / SLOT {
            let last = count.saturating_sub(1);
            let least = (0..).find(|step| last >> step <= HINTS).unwrap();
            assert_eq!(step(count), least, "{count} entries");
        }
    }
}
