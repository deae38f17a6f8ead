//! Cells and bits, against what was written.

use super::bits::PAGE_BITS;
use super::*;

#[test]
fn published_cells_stay_and_fresh_ones_are_written_in_place() {
    let mut epoch = Epoch::first();
    let mut cells = Cells::<8>::default();
    (0..3000_usize).for_each(|slot| cells.set(slot, (slot as u64).to_le_bytes(), true, &epoch));
    epoch.advance();
    let published = cells.clone();
    cells.set(3000, [9; 8], true, &epoch);
    assert_eq!(published.memory(), cells.memory());
    cells.set(5, [7; 8], false, &epoch);
    assert_eq!((published.get(5), cells.get(5)), (5_u64.to_le_bytes(), [7; 8]));
    assert_eq!((cells.get(2999), cells.get(3000)), (2999_u64.to_le_bytes(), [9; 8]));
    assert_eq!(cells.slice(5, 1, 2), [7, 7]);
}

#[test]
fn a_few_cells_take_no_page_and_move_into_the_first() {
    let mut epoch = Epoch::first();
    let (mut cells, mut bits) = (Cells::<4>::default(), Bits::default());
    let mut kept = Vec::new();
    for slot in 0..700_usize {
        kept.push((cells.clone(), bits.clone()));
        epoch.advance();
        cells.set(slot, [u8::try_from(slot % 7).unwrap(); 4], true, &epoch);
        bits.set(slot, slot % 7 == 1, true, &epoch);
        assert!(slot > 30 || cells.memory() + bits.memory() < 200);
        assert!(slot > 250 || cells.memory() < 1200);
    }
    kept.push((cells.clone(), bits.clone()));
    for (len, (cells, bits)) in kept.iter().enumerate() {
        for slot in 0..len {
            let cell = u8::try_from(slot % 7).unwrap();
            assert_eq!(cells.get(slot), [cell; 4], "{slot} of {len}");
            assert_eq!(bits.get(slot), cell == 1, "{slot} of {len}");
        }
    }
    let filled = Cells::filled([9; 16], 64);
    assert_eq!(
        (filled.get(63), filled.get(64), filled.slice(3, 2, 2)),
        ([9; 16], [0; 16], &[9, 9][..])
    );
    let (mut zeros, mut unset) = (Cells::<16>::default(), Bits::default());
    for slot in [0, 5, 40_000] {
        zeros.set(slot, [0; 16], true, &epoch);
        unset.set(slot, false, true, &epoch);
    }
    assert_eq!(zeros.memory() + unset.memory(), 0);
    zeros.set(5000, [1; 16], true, &epoch);
    zeros.set(1, [2; 16], true, &epoch);
    assert_eq!((zeros.get(1), zeros.get(5000), zeros.get(0)), ([2; 16], [1; 16], [0; 16]));
    let mut ones = Bits::ones(10);
    ones.set(9, false, false, &epoch);
    ones.set(5000, true, true, &epoch);
    assert_eq!((ones.count(0, 10), ones.get(9), ones.get(5000)), (9, false, true));
}

#[test]
fn filled_cells_take_no_memory_until_they_differ() {
    let epoch = Epoch::first();
    let mut cells = Cells::filled([1, 2, 3, 4], 100_000);
    assert!(cells.memory() < PAGE);
    cells.set(99_999, [5; 4], true, &epoch);
    assert_eq!((cells.get(99_998), cells.get(99_999)), ([1, 2, 3, 4], [5; 4]));
    assert_eq!(cells.get(3), [1, 2, 3, 4]);
}

#[test]
fn bits_are_found_and_counted() {
    let epoch = Epoch::first();
    let mut bits = Bits::default();
    for slot in [3, 64, 200, PAGE_BITS + 1] {
        bits.set(slot, true, true, &epoch);
    }
    assert_eq!(bits.first(4, 1000), Some(64));
    assert_eq!(bits.first(65, 200), None);
    assert_eq!(bits.first(201, PAGE_BITS * 2), Some(PAGE_BITS + 1));
    assert_eq!(bits.last(0, 200), Some(64));
    assert_eq!(bits.last(0, 201), Some(200));
    assert_eq!(bits.last(65, 200), None);
    assert_eq!(bits.last(0, 3), None);
    assert_eq!(bits.count(3, 198), 3);
    assert_eq!(bits.count(4, 60), 0);
    bits.set(64, false, true, &epoch);
    assert!(!bits.get(64) && bits.get(200) && Bits::ones(10).get(9));
}
