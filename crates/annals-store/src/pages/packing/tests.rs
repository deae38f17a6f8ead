//! Packed pages against the pages themselves.
#![allow(
    clippy::indexing_slicing,
    clippy::big_endian_bytes,
    reason = "a test that indexes wrongly fails, as it should; keys are in the order of their bytes"
)]

use super::*;
use annals_simulated::Rng;

fn restored(packing: Packing, packed: &[u8], form: Packed) -> Result<[u8; PAGE]> {
    let mut page = [0; PAGE];
    let stored = Stored { packed: form, ..Stored::default() };
    packing.unpack(&stored, packed, &mut page).map(|()| page)
}

/// Returns a page of numbers of `width` bytes, of which each differs from the first by less than `2^bits`.
fn numbers(rng: &mut Rng, width: usize, bits: usize, len: usize) -> Vec<u8> {
    let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
    // Its highest byte is small, so that no sum is too large unless all bits differ.
    let first = rng.number() & (u64::MAX >> (64 - 8 * width) >> 2) | 1 << (8 * width - 3);
    let cells = (0..len.div_ceil(width)).flat_map(|_| {
        let cell = first.wrapping_add(rng.number() & mask).to_le_bytes();
        cell.into_iter().take(width)
    });
    let mut page: Vec<u8> = cells.take(len).collect();
    // The zeros at the end of a page aren't passed on.
    let last = page.last_mut().unwrap();
    *last = (*last).max(1);
    page
}

#[test]
fn numbers_come_back() {
    let mut rng = Rng::new(11);
    let mut packed_pages = 0;
    for _ in 0..sized(3000) {
        let width = 1 << rng.index(4);
        let bits = 1 + rng.index(8 * width);
        let len = if rng.percent(50) { PAGE } else { 1 + rng.index(PAGE) };
        let page = numbers(&mut rng, width, bits, len);
        let Some((packed, form)) = Packing::Cells(width).pack(&page) else { continue };
        packed_pages += usize::from(form == Packed::Bits);
        assert!(units(packed.len()) * 2 <= units(len), "{} of {len}", packed.len());
        let found = restored(Packing::Cells(width), &packed, form).unwrap();
        assert!(found[..len] == page[..] && found[len..].iter().all(|&byte| byte == 0));
    }
    assert!(packed_pages > sized(300), "{packed_pages}");
}

#[test]
fn numbers_are_packed_where_that_saves_half() {
    let mut rng = Rng::new(12);
    for (width, bits, is_packed) in
        [(8, 30, true), (8, 33, false), (4, 14, true), (4, 17, false), (2, 6, true), (2, 9, false)]
    {
        // The range of all is less than a bit more.
        let page = numbers(&mut rng, width, bits, PAGE);
        let found = Packing::Cells(width).pack(&page);
        assert_eq!(found.is_some(), is_packed, "{bits} bits of {width} bytes");
        assert!(found.is_none_or(|(packed, _)| units(packed.len()) == 2));
    }
    // Numbers that repeat take less as an LZ4 block.
    let page: Vec<u8> =
        (0..2048_u64).flat_map(|i| (i / 700 * 1_000_000_000).to_le_bytes()).collect();
    let (packed, form) = Packing::Cells(8).pack(&page).unwrap();
    assert_eq!((form, units(packed.len())), (Packed::Lz4, 1));
}

#[test]
fn bytes_that_are_no_numbers_are_an_error_and_never_a_panic() {
    let mut rng = Rng::new(13);
    let mut refused = 0;
    for _ in 0..sized(3000) {
        let width = 1 << rng.index(4);
        let page = numbers(&mut rng, width, 2 * width, PAGE);
        let (mut packed, form) = Packing::Cells(width).pack(&page).unwrap();
        let at = if rng.percent(50) { rng.index(16) } else { rng.index(packed.len()) };
        packed[at] = rng.number().to_le_bytes()[0];
        if rng.percent(30) {
            packed.truncate(rng.index(packed.len()));
        }
        let other = Packing::Cells(1 << rng.index(4));
        refused += usize::from(restored(other, &packed, form).is_err());
    }
    assert!(refused > sized(300), "{refused}");
    assert!(restored(Packing::Bytes, &[0; 16], Packed::Bits).is_err());
}

/// Returns how many tries there are: fewer where each instruction is interpreted.
fn sized(tries: usize) -> usize {
    if cfg!(miri) { tries / 100 } else { tries }
}

#[test]
fn rows_come_back() {
    let mut rng = Rng::new(14);
    for _ in 0..sized(1000) {
        let (width, count) = (1 + rng.index(40), 1 + rng.index(600));
        let count = count.min((PAGE - 8) / width);
        // Each byte differs in some bits, or in none.
        let masks: Vec<u8> = (0..width)
            .map(|_| if rng.percent(50) { 0 } else { rng.number().to_le_bytes()[0] })
            .collect();
        let mut first = vec![0; width];
        rng.fill(&mut first);
        let rows: Vec<u8> = (0..count * width)
            .map(|at| first[at % width] ^ (masks[at % width] & rng.number().to_le_bytes()[0]))
            .collect();
        let packed = rows::pack(&rows, width).unwrap();
        let mut out = vec![0; PAGE];
        rows::unpack(&packed.bytes, packed.columns, width, count, &mut out).unwrap();
        let found: Vec<u8> = out.rchunks_exact(width).take(count).flatten().copied().collect();
        assert!(found == rows, "{count} rows of {width}");
    }
}

#[test]
fn rows_of_consecutive_numbers_take_little() {
    // A user, a time, and a row: in order of the time.
    let row = |i: u64| {
        let (user, time) = (7_u32, (1_700_000_000_000_000 + i * 500_001) ^ 1 << 63);
        [&user.to_be_bytes()[..], &time.to_be_bytes(), &i.to_be_bytes()].concat()
    };
    let rows: Vec<u8> = (1_000_000..1_000_500).flat_map(row).collect();
    let packed = rows::pack(&rows, 20).unwrap();
    assert!(packed.bytes.len() < 500 * 5, "{}", packed.bytes.len());
}
