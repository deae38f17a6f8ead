//! Rows of the same width without the bits that all of them share.
//!
//! Bytes beside each other that aren't the same in all rows are a *column*: a big-endian number of at most 8 bytes. The
//! *base* is a row that has the least number of each column. The rows are its sums with a difference for each column:
//!
//! | bytes | meaning |
//! |---|---|
//! | the width | the base |
//! | 2, for each column | the column's end, in bytes from the beginning of a row |
//! | 2, for each column | how many bits a difference has: from 1 to 32 |
//! | | the differences of each column, as [`bits`] |
//!
//! A difference of more bits is two columns, of which one ends 4 bytes before the other.

use super::bits;

/// The number of bytes that say what a column is.
const COLUMN: usize = 4;

/// The most bytes of a column.
const MOST: usize = 8;

/// A column of some rows.
struct Column {
    begin: usize,
    end: usize,
    least: u64,
    /// How many bits a difference has.
    bits: usize,
}

/// Packed rows: how many columns there are, and the rest.
pub(crate) struct PackedRows {
    /// How many columns there are.
    pub(crate) columns: usize,
    /// The bytes.
    pub(crate) bytes: Vec<u8>,
}

/// Returns the big-endian number in some bytes, at most 8.
#[expect(clippy::big_endian_bytes, reason = "keys are in the order of their bytes")]
fn number(bytes: &[u8]) -> u64 {
    match bytes.last_chunk::<MOST>() {
        Some(eight) => u64::from_be_bytes(*eight),
        None => bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)),
    }
}

/// Returns the runs of bytes that aren't the same in all rows, none longer than a number.
fn runs(rows: &[u8], width: usize) -> Vec<(usize, usize)> {
    let Some(first) = rows.get(..width) else { return Vec::new() };
    let mut differ = vec![0_u8; width];
    for row in rows.chunks_exact(width) {
        for ((differ, byte), first) in differ.iter_mut().zip(row).zip(first) {
            *differ |= byte ^ first;
        }
    }
    let mut runs: Vec<(usize, usize)> = Vec::new();
    // From the end, where the numbers of fixed size are.
    for at in (0..width).rev().filter(|at| differ.get(*at).is_some_and(|differ| *differ != 0)) {
        match runs.last_mut() {
            Some((begin, end)) if *begin == at + 1 && *end - at <= MOST => *begin = at,
            _ => runs.push((at, at + 1)),
        }
    }
    runs
}

/// Packs rows of a width, which is at least 1.
pub(crate) fn pack(rows: &[u8], width: usize) -> Option<PackedRows> {
    let mut base = rows.get(..width)?.to_vec();
    let mut columns = Vec::new();
    for (begin, end) in runs(rows, width) {
        let numbers = rows.chunks_exact(width).filter_map(|row| row.get(begin..end)).map(number);
        let (least, most) =
            numbers.fold((u64::MAX, 0), |(least, most), it| (least.min(it), most.max(it)));
        write_number(base.get_mut(begin..end)?, least);
        columns.push(Column { begin, end, least, bits: bits::bits_of(most - least) });
    }
    let (mut bytes, mut heads, mut parts) = (base, Vec::new(), Vec::new());
    for column in &columns {
        let Column { begin, end, least, bits } = *column;
        let differences = || {
            let row = |row: &[u8]| row.get(begin..end).map_or(0, |it| number(it) - least);
            rows.chunks_exact(width).map(row)
        };
        let low = bits.min(bits::MOST_BITS);
        put_column(end, low, &mut heads)?;
        bits::pack(differences().map(|it| it & (u64::MAX >> (64 - low))), low, &mut parts);
        if bits > low {
            put_column(end - 4, bits - low, &mut heads)?;
            bits::pack(differences().map(|it| it >> low), bits - low, &mut parts);
        }
    }
    let columns = heads.len() / COLUMN;
    bytes.extend(heads);
    bytes.extend(parts);
    Some(PackedRows { columns, bytes })
}

fn put_column(end: usize, bits: usize, heads: &mut Vec<u8>) -> Option<()> {
    for number in [end, bits] {
        heads.extend(u16::try_from(number).ok()?.to_le_bytes());
    }
    Some(())
}

#[expect(clippy::big_endian_bytes, reason = "keys are in the order of their bytes")]
fn write_number(bytes: &mut [u8], number: u64) {
    for (to, from) in bytes.iter_mut().rev().zip(number.to_be_bytes().iter().rev()) {
        *to = *from;
    }
}

/// Restores `count` rows of a width, from the end of `out` backwards: each row begins where the one before it in
/// their order ends. Before the last of them there must be 8 bytes more. `None` if the bytes are no such rows.
pub(crate) fn unpack(
    packed: &[u8],
    columns: usize,
    width: usize,
    count: usize,
    out: &mut [u8],
) -> Option<()> {
    let (base, packed) = packed.split_at_checked(width)?;
    let (heads, mut packed) = packed.split_at_checked(columns * COLUMN)?;
    let end = out.len();
    if count == 0 || width == 0 || end < count * width + MOST {
        return None;
    }
    // The base is copied to all rows, which doubles them with each step.
    out.get_mut(end - width..)?.copy_from_slice(base);
    let mut done = 1;
    while done < count {
        let more = done.min(count - done);
        out.copy_within(end - more * width..end, end - (done + more) * width);
        done += more;
    }
    let mut differences = vec![[0; 4]; count];
    for head in heads.as_chunks::<COLUMN>().0 {
        let [low, high, bits, zero] = *head;
        let (column_end, bits) = (usize::from(u16::from_le_bytes([low, high])), usize::from(bits));
        if column_end == 0 || column_end > width || bits == 0 || bits > bits::MOST_BITS || zero != 0
        {
            return None;
        }
        let (own, rest) = packed.split_at_checked(bits::packed_len(count, bits))?;
        packed = rest;
        bits::fours(own, bits, 0, &mut differences)?;
        add(&differences, out, width, column_end)?;
    }
    packed.is_empty().then_some(())
}

/// Adds a difference to each row, in the number that ends at a place of it.
#[expect(clippy::big_endian_bytes, reason = "keys are in the order of their bytes")]
fn add(differences: &[[u8; 4]], out: &mut [u8], width: usize, column_end: usize) -> Option<()> {
    let mut at = out.len() - width + column_end - MOST;
    for difference in differences {
        let eight = out.get_mut(at..at + MOST)?.first_chunk_mut::<MOST>()?;
        let difference = u64::from(u32::from_le_bytes(*difference));
        *eight = u64::from_be_bytes(*eight).wrapping_add(difference).to_be_bytes();
        at = at.wrapping_sub(width);
    }
    Some(())
}
