//! Cells and bits, against a model.

use super::bits::PAGE_BITS;
use super::*;
use crate::pages::paged::Counted;
use crate::pages::testing::TestImage;

#[test]
fn published_cells_stay_and_fresh_ones_are_written_in_place() {
    let mut epoch = Epoch::first();
    let mut cells = Cells::<8>::default();
    (0..3000_usize)
        .for_each(|slot| cells.set(slot, (slot as u64).to_le_bytes(), epoch.fresh()).unwrap());
    epoch.advance();
    let published = cells.clone();
    cells.set(3000, [9; 8], epoch.fresh()).unwrap();
    assert_eq!(published.memory(Counted::All), cells.memory(Counted::All));
    cells.set(5, [7; 8], epoch.seen()).unwrap();
    assert_eq!((published.get(5).unwrap(), cells.get(5).unwrap()), (5_u64.to_le_bytes(), [7; 8]));
    assert_eq!(
        (cells.get(2999).unwrap(), cells.get(3000).unwrap()),
        (2999_u64.to_le_bytes(), [9; 8])
    );
    assert_eq!(*cells.slice(5, 1, 2).unwrap(), [7, 7]);
}

#[test]
fn a_few_cells_take_no_page_and_move_into_the_first() {
    let mut epoch = Epoch::first();
    let (mut cells, mut bits) = (Cells::<4>::default(), Bits::default());
    let mut kept = Vec::new();
    for slot in 0..700_usize {
        kept.push((cells.clone(), bits.clone()));
        epoch.advance();
        cells.set(slot, [u8::try_from(slot % 7).unwrap(); 4], epoch.fresh()).unwrap();
        bits.set(slot, slot % 7 == 1, epoch.fresh()).unwrap();
        assert!(slot > 30 || cells.memory(Counted::All) + bits.memory(Counted::All) < 200);
        assert!(slot > 250 || cells.memory(Counted::All) < 1200);
    }
    kept.push((cells.clone(), bits.clone()));
    // Miri takes minutes for all of them.
    let step = if cfg!(miri) { 50 } else { 1 };
    for (len, (cells, bits)) in kept.iter().enumerate().step_by(step) {
        for slot in 0..len {
            let cell = u8::try_from(slot % 7).unwrap();
            assert_eq!(cells.get(slot).unwrap(), [cell; 4], "{slot} of {len}");
            assert_eq!(bits.get(slot).unwrap(), cell == 1, "{slot} of {len}");
        }
    }
    let filled = Cells::filled([9; 16], 64);
    assert_eq!(
        (filled.get(63).unwrap(), filled.get(64).unwrap(), filled.slice(3, 2, 2).unwrap()),
        ([9; 16], [0; 16], Cow::Borrowed(&[9, 9][..]))
    );
    let (mut zeros, mut unset) = (Cells::<16>::default(), Bits::default());
    for slot in [0, 5, 40_000] {
        zeros.set(slot, [0; 16], epoch.fresh()).unwrap();
        unset.set(slot, false, epoch.fresh()).unwrap();
    }
    assert_eq!(zeros.memory(Counted::All) + unset.memory(Counted::All), 0);
    zeros.set(5000, [1; 16], epoch.fresh()).unwrap();
    zeros.set(1, [2; 16], epoch.fresh()).unwrap();
    assert_eq!(
        (zeros.get(1).unwrap(), zeros.get(5000).unwrap(), zeros.get(0).unwrap()),
        ([2; 16], [1; 16], [0; 16])
    );
    let mut ones = Bits::ones(10);
    ones.set(9, false, epoch.seen()).unwrap();
    ones.set(5000, true, epoch.fresh()).unwrap();
    assert_eq!(
        (ones.count(0, 10).unwrap(), ones.get(9).unwrap(), ones.get(5000).unwrap()),
        (9, false, true)
    );
}

#[test]
fn filled_cells_take_no_memory_until_they_differ() {
    let epoch = Epoch::first();
    let mut cells = Cells::filled([1, 2, 3, 4], 100_000);
    assert!(cells.memory(Counted::All) < PAGE);
    cells.set(99_999, [5; 4], epoch.fresh()).unwrap();
    assert_eq!((cells.get(99_998).unwrap(), cells.get(99_999).unwrap()), ([1, 2, 3, 4], [5; 4]));
    assert_eq!(cells.get(3).unwrap(), [1, 2, 3, 4]);
}

#[test]
fn bits_are_found_and_counted() {
    let epoch = Epoch::first();
    let mut bits = Bits::default();
    for slot in [3, 64, 200, PAGE_BITS + 1] {
        bits.set(slot, true, epoch.fresh()).unwrap();
    }
    assert_eq!(bits.first(4, 1000).unwrap(), Some(64));
    assert_eq!(bits.first(65, 200).unwrap(), None);
    assert_eq!(bits.first(201, PAGE_BITS * 2).unwrap(), Some(PAGE_BITS + 1));
    assert_eq!(bits.last(0, 200).unwrap(), Some(64));
    assert_eq!(bits.last(0, 201).unwrap(), Some(200));
    assert_eq!(bits.last(65, 200).unwrap(), None);
    assert_eq!(bits.last(0, 3).unwrap(), None);
    assert_eq!(bits.count(3, 198).unwrap(), 3);
    assert_eq!(bits.count(4, 60).unwrap(), 0);
    bits.set(64, false, epoch.fresh()).unwrap();
    assert!(!bits.get(64).unwrap() && bits.get(200).unwrap() && Bits::ones(10).get(9).unwrap());
}

/// Runs against the same done cell by cell, with clones that must stay unchanged.
#[test]
fn runs_are_as_if_written_cell_by_cell() {
    let mut epoch = Epoch::first();
    let each = PAGE / 8;
    // First, length, contents: nothing for zeros.
    let whole = [
        (0, 5, 1),
        (3, 10, 2),
        (0, 20, 0),
        (0, 9, 3),
        (0, each, 0), // a whole page, in the place of which there are a few cells
        (each - 3, 6, 3),
        (each, each, 4),
        (1, 30, 5),
        (each * 3 - 1, each + 2, 6),
        (each * 3, each, 0),
        (each * 3 + 7, 9, 0),
        (each, each, 7),
        (2, 2, 0),
        (each * 5, each * 2, 0),
    ];
    let (mut runs, mut singles) = (Cells::<8>::default(), Cells::<8>::default());
    let (mut bits, mut single_bits) = (Bits::default(), Bits::default());
    let mut kept = Vec::new();
    for (round, (first, len, what)) in whole.into_iter().enumerate() {
        let cells: Vec<u8> =
            (0..len * 8).map(|at| u8::try_from(at % 50).unwrap().wrapping_mul(what)).collect();
        if what == 0 {
            runs.zero(first, len, epoch.seen()).unwrap();
        } else {
            runs.write(first, &cells, epoch.seen()).unwrap();
        }
        bits.set_run(first, len, what % 2 == 1, epoch.seen()).unwrap();
        for (slot, cell) in (first..).zip(cells.as_chunks().0) {
            singles.set(slot, *cell, epoch.seen()).unwrap();
            single_bits.set(slot, what % 2 == 1, epoch.seen()).unwrap();
        }
        if round % 3 > 0 {
            kept.push((runs.clone(), singles.clone(), bits.clone(), single_bits.clone()));
            epoch.advance();
        }
    }
    kept.push((runs, singles, bits, single_bits));
    for (runs, singles, bits, single_bits) in &kept {
        let (mut slot, end) = (0, if cfg!(miri) { each / 8 } else { each * 7 });
        while slot < end {
            let run = runs.run(slot, end - slot).unwrap();
            assert!(run.as_ptr().addr() % 8 == 0 || slot < SMALL[1] / 8);
            for (slot, cell) in (slot..).zip(run.as_chunks::<8>().0) {
                assert_eq!(*cell, singles.get(slot).unwrap(), "{slot}");
            }
            slot += run.len() / 8;
        }
        assert!(
            (0..end / 64 + 1)
                .all(|word| bits.word(word).unwrap() == single_bits.word(word).unwrap())
        );
        let clear = (0..end).find(|&slot| !bits.get(slot).unwrap());
        assert_eq!(bits.first_clear(0, end).unwrap(), clear);
    }
    let runs = &kept.last().unwrap().0;
    assert!(runs.pages.is_missing(3).unwrap() && !runs.pages.is_missing(4).unwrap());
}

#[test]
fn pages_that_are_taken_away_during_the_first_backfill_stay_away() {
    let (image, pager) = TestImage::new(u64::MAX, true);
    let mut epoch = Epoch::first();
    let each = PAGE / 8;
    let mut cells = Cells::<8>::default();
    (0..each * 2).for_each(|slot| cells.set(slot, [7; 8], epoch.fresh()).unwrap());
    let published = cells.clone();
    epoch.advance();
    cells.zero(0, each * 2, epoch.seen()).unwrap();
    let blanks = Blanks { from: each * 2 - 1, gap: (0, 0) };
    cells.rebase(&image.save(&pager, |out| published.save(out, &blanks)));
    assert_eq!((cells.get(0).unwrap(), cells.get(each).unwrap()), ([0; 8], [0; 8]));
    // Nothing is left of them in the next one.
    epoch.advance();
    let saved = image.save(&pager, |out| cells.save(out, &Blanks::NONE));
    assert_eq!((saved.roots[0].stored, image.live()), (None, 0));
}

/// A backfill's copy of a page that is removed meanwhile doesn't cover the few cells after it.
#[test]
fn a_page_taken_away_during_a_backfill_leaves_room_for_a_few_cells() {
    let (image, pager) = TestImage::new(1 << 20, true);
    let mut epoch = Epoch::first();
    let mut cells = Cells::<8>::default();
    cells.write(0, &[7; PAGE], epoch.fresh()).unwrap();
    epoch.advance();
    let saved = image.save(&pager, |out| cells.save(out, &Blanks::NONE));
    cells.zero(0, PAGE / 8, epoch.seen()).unwrap();
    cells.set(5, [9; 8], epoch.seen()).unwrap();
    epoch.advance();
    cells.rebase(&saved);
    let read = |cells: &Cells<8>| [4, 5, 6].map(|slot| cells.get(slot).unwrap());
    assert_eq!(read(&cells), [[0; 8], [9; 8], [0; 8]]);
    cells.set(6, [3; 8], epoch.seen()).unwrap();
    assert_eq!(read(&cells), [[0; 8], [9; 8], [3; 8]]);
}

/// Once the image is larger than the budget, pages stored by a backfill don't stay in memory.
#[test]
fn what_was_stored_is_let_go_of() {
    let (image, pager) = TestImage::new(1 << 20, true);
    let mut epoch = Epoch::first();
    let mut cells = Cells::<8>::default();
    cells.write(0, &[7; PAGE], epoch.fresh()).unwrap();
    epoch.advance();
    let mut saved = image.save(&pager, |out| cells.save(out, &Blanks::NONE));
    pager.set_keeps(false);
    let mut kept = cells.clone();
    kept.rebase(&saved);
    assert!(kept.stays(0).unwrap(), "the base has it");
    saved.unload();
    cells.rebase(&saved);
    assert!(!cells.stays(0).unwrap());
    assert_eq!(cells.get(0).unwrap(), [7; 8]);
}

/// The page that was last changed is found without a walk. It must not be, once another one is there.
#[test]
fn a_page_that_was_changed_last_is_forgotten_when_it_is_replaced() {
    let (image, pager) = TestImage::new(1 << 20, true);
    let mut epoch = Epoch::first();
    let each = PAGE / 8;
    let mut cells = Cells::<8>::default();
    cells.set(each + 5, [7; 8], epoch.fresh()).unwrap();
    cells.zero(each, each, epoch.seen()).unwrap();
    cells.set(each + 6, [8; 8], epoch.fresh()).unwrap();
    assert_eq!([5, 6].map(|slot| cells.get(each + slot).unwrap()), [[0; 8], [8; 8]]);

    epoch.advance();
    let saved = image.save(&pager, |out| {
        cells.save(out, &Blanks { from: each + 7, gap: (0, 0) });
    });
    cells.rebase(&saved);
    cells.set(each + 7, [9; 8], epoch.fresh()).unwrap();
    assert_eq!([6, 7].map(|slot| cells.get(each + slot).unwrap()), [[8; 8], [9; 8]]);
}

/// One page of zeros is used for all places where one of an image was removed.
#[test]
fn what_is_written_where_a_page_was_taken_away_is_seen_there_alone() {
    let (image, pager) = TestImage::new(1 << 20, true);
    let mut epoch = Epoch::first();
    let each = PAGE / 8;
    let mut arrays = [(); 2].map(|()| {
        let mut cells = Cells::<8>::default();
        cells.write(0, &[7; PAGE], epoch.fresh()).unwrap();
        cells
    });
    epoch.advance();
    for cells in &mut arrays {
        let saved = image.save(&pager, |out| cells.save(out, &Blanks::NONE));
        cells.rebase(&saved);
        cells.zero(0, each, epoch.seen()).unwrap();
    }
    let [one, other] = &mut arrays;
    one.set(3, [9; 8], epoch.fresh()).unwrap();
    one.set(each - 1, [9; 8], epoch.fresh()).unwrap();
    assert_eq!((one.get(3).unwrap(), one.get(4).unwrap()), ([9; 8], [0; 8]));
    assert_eq!([3, each - 1].map(|slot| other.get(slot).unwrap()), [[0; 8]; 2]);
}
