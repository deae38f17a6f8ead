//! Strings of all lengths, against a model.

use super::*;
use crate::pages::paged::Counted;
use crate::pages::testing::{TestImage, load};

fn value(slot: usize, round: usize) -> Vec<u8> {
    let len = match (slot + round) % 7 {
        0 => 0,
        1 => 12,
        2 => 13,
        3 => 500,
        4 => LONGEST,
        5 => LONGEST + 1,
        _ => 100,
    };
    (0..len).map(|i| b'a' + u8::try_from((i + slot * 3 + round) % 26).unwrap()).collect()
}

fn replace(strings: &mut Strings, slot: usize, value: &[u8], epoch: &Epoch) {
    strings.clear(slot, epoch).unwrap();
    strings.insert(slot, value, epoch.seen()).unwrap();
}

#[test]
fn values_of_all_lengths_survive_rewriting() {
    let mut epoch = Epoch::first();
    let mut strings = Strings::filled(b"", 0);
    let (count, rounds) = if cfg!(miri) { (40, 3) } else { (300, 12) };
    for slot in 0..count {
        strings.insert(slot, &value(slot, 0), epoch.fresh()).unwrap();
    }
    let mut kept = Vec::new();
    for round in 1..rounds {
        epoch.advance();
        kept.push(strings.clone());
        (0..count).for_each(|s| replace(&mut strings, s, &value(s, round), &epoch));
    }
    kept.push(strings.clone());
    for (round, kept) in kept.iter().enumerate() {
        (0..count)
            .for_each(|s| assert_eq!(kept.get(s).unwrap(), value(s, round), "{s} in {round}"));
    }
    let live: usize = (0..count).map(|slot| value(slot, rounds - 1).len() + HEAD).sum();
    assert!(
        strings.memory(Counted::All) < live * 3 + 10 * PAGE,
        "{} for {live}",
        strings.memory(Counted::All)
    );
    (0..count).for_each(|slot| strings.clear(slot, &epoch).unwrap());
    assert!(strings.memory(Counted::All) < 10 * PAGE);
}

#[test]
fn a_rolled_back_append_is_never_seen() {
    let mut epoch = Epoch::first();
    let mut strings = Strings::filled(b"a long default value", 2);
    strings.insert(2, &[b'x'; 40], epoch.fresh()).unwrap();
    let published = strings.clone();
    epoch.advance();
    strings.insert(3, &[b'y'; 60], epoch.fresh()).unwrap();
    strings = published.clone();
    epoch.advance();
    strings.insert(3, &[b'z'; 20], epoch.fresh()).unwrap();
    assert_eq!(*strings.get(2).unwrap(), [b'x'; 40]);
    assert_eq!(*strings.get(3).unwrap(), [b'z'; 20]);
    assert_eq!(*published.get(2).unwrap(), [b'x'; 40]);
    assert_eq!(strings.get_str(1).unwrap(), "a long default value");
    replace(&mut strings, 1, b"other", &epoch);
    strings.move_cell(2, 7, epoch.fresh()).unwrap();
    assert_eq!(*strings.get(0).unwrap(), *b"a long default value");
    assert_eq!(*strings.get(1).unwrap(), *b"other");
    assert_eq!((*strings.get(7).unwrap()), [b'x'; 40]);
    assert!(strings.get(2).unwrap().is_empty());
}

#[test]
fn what_was_rolled_back_behind_a_full_page_is_not_moved() {
    let mut epoch = Epoch::first();
    let mut strings = Strings::filled(b"", 0);
    // After the cells that are copied whole with each transaction.
    let (first, count) = (100, 130);
    (first..count).for_each(|slot| strings.insert(slot, &[b'x'; 600], epoch.fresh()).unwrap());
    assert!((100..LONGEST).contains(&(PAGE - strings.tail_used)), "{}", strings.tail_used);
    let published = strings.clone();
    epoch.advance();
    strings.insert(count, &[b'y'; 60], epoch.fresh()).unwrap();
    strings = published.clone();
    epoch.advance();
    let left = strings.cells.get(count).unwrap();
    strings.insert(count + 1, &[b'z'; LONGEST], epoch.fresh()).unwrap(); // begins another page
    (first..count).for_each(|slot| strings.clear(slot, &epoch).unwrap());
    assert_eq!(strings.cells.get(count).unwrap(), left);
    assert_eq!(*strings.get(count + 1).unwrap(), [b'z'; LONGEST]);
    assert_eq!(*published.get(first).unwrap(), [b'x'; 600]);
}

/// Runs rounds of changes. After each the published strings are saved, and the next one continues from the loaded
/// ones, or from the same strings over their new base.
#[test]
fn values_of_all_lengths_survive_being_saved() {
    for keeps in [true, false] {
        let (image, pager) = TestImage::new(100_000, keeps);
        let mut epoch = Epoch::first();
        let mut strings = Strings::filled(b"a long default value", 40);
        let mut model = vec![b"a long default value".to_vec(); 40];
        let mut views = Vec::new();
        for round in 0..if cfg!(miri) { 2 } else { 9 } {
            for slot in (round..model.len()).step_by(3) {
                model[slot] = value(slot, round);
                replace(&mut strings, slot, &model[slot], &epoch);
            }
            append(&mut strings, &mut model, round, &epoch);
            epoch.advance();
            views.push((strings.clone(), model.clone()));
            // The writer is further already when the view is saved.
            append(&mut strings, &mut model, round + 1, &epoch);
            let (view, then) = views.last().unwrap();
            let blanks = Blanks { from: then.len(), gap: (0, 0) };
            let saved = image.save(&pager, |out| view.save(out, &blanks));
            let loaded = load(&saved, &pager, Strings::load).unwrap();
            look(&loaded, then);
            if round % 2 == 0 {
                strings.rebase(&saved);
                strings.rebase(&saved);
            } else {
                (strings, model) = (loaded, then.clone());
                epoch.advance();
            }
            look(&strings, &model);
        }
        views.iter().for_each(|(strings, model)| look(strings, model));
        (0..model.len()).for_each(|slot| strings.clear(slot, &epoch).unwrap());
        assert!((0..model.len()).all(|slot| strings.get(slot).unwrap().len() <= INLINE));
    }
}

fn append(strings: &mut Strings, model: &mut Vec<Vec<u8>>, round: usize, epoch: &Epoch) {
    for slot in model.len()..model.len() + 60 {
        model.push(value(slot, round));
        strings.insert(slot, &model[slot], epoch.fresh()).unwrap();
    }
}

fn look(strings: &Strings, model: &[Vec<u8>]) {
    for (slot, value) in model.iter().enumerate() {
        assert_eq!(*strings.get(slot).unwrap(), **value, "slot {slot}");
        assert_eq!(strings.get_str(slot).unwrap().as_bytes(), value, "slot {slot}");
    }
}

/// Returns strings that were loaded, with some values in their heap and some apart.
fn loaded(changed: impl FnOnce(&mut Vec<u8>)) -> crate::Result<Strings> {
    let epoch = Epoch::first();
    let mut strings = Strings::filled(b"", 0);
    (0..40).for_each(|slot| strings.insert(slot, &value(slot, 0), epoch.fresh()).unwrap());
    (0..40).step_by(5).for_each(|slot| strings.clear(slot, &epoch).unwrap());
    let (image, pager) = TestImage::new(1 << 20, true);
    let blanks = Blanks { from: 40, gap: (0, 0) };
    let mut saved = image.save(&pager, |out| strings.save(out, &blanks));
    changed(&mut saved.metadata);
    load(&saved, &pager, Strings::load)
}

/// Does with each value whatever can be done; errors are welcome, panics are not.
fn use_all(strings: &Strings) {
    let mut epoch = Epoch::first();
    epoch.advance();
    // Miri takes a second for a slot.
    for slot in (0..42).step_by(if cfg!(miri) { 20 } else { 1 }) {
        let _ = (strings.get(slot), strings.get_str(slot));
        let mut changed = strings.clone();
        let _ = changed.move_cell(slot, 50, epoch.fresh()).and_then(|()| changed.clear(50, &epoch));
        let _ = (41..90).try_for_each(|slot| changed.insert(slot, &[7; 900], epoch.fresh()));
        let _ = (0..90).rev().try_for_each(|slot| changed.clear(slot, &epoch));
    }
}

#[test]
fn cells_that_nobody_wrote_lead_to_errors() {
    let strings = loaded(|_| {}).unwrap();
    let mut epoch = Epoch::first();
    let mut numbers = vec![0, 1, 12, 13, 500, 16_384, 65_000, PINNED, LARGE];
    if cfg!(miri) {
        numbers = vec![1, 16_384, LARGE];
    }
    let mut errors = 0;
    for &len in &numbers {
        for number in [0, 1, 2, 9, u32::MAX - 1, u32::MAX] {
            for &offset in &numbers {
                epoch.advance();
                let mut crafted = strings.clone();
                let mut cell = cell_to(&[0xff; 13], number, offset);
                cell[..4].copy_from_slice(&len.to_le_bytes());
                crafted.cells.set(0, cell, epoch.seen()).unwrap();
                errors += usize::from(crafted.get(0).is_err());
                // The cell has bytes that are no text.
                assert!(!(1..=12).contains(&len) || crafted.get_str(0).is_err());
                use_all(&crafted);
            }
        }
    }
    assert!(errors > if cfg!(miri) { 10 } else { 200 }, "{errors}");
}

#[test]
fn bytes_changed_in_what_was_saved_of_strings_are_not_believed() {
    let mut len = 0;
    use_all(&loaded(|metadata| len = metadata.len()).unwrap());
    let mut refused = 0;
    let (step, bytes): (usize, &[u8]) =
        if cfg!(miri) { (len / 9, &[0xff]) } else { (1, &[0, 1, 0x7f, 0xff]) };
    for at in (0..len).step_by(step) {
        for &byte in bytes {
            match loaded(|metadata| metadata[at] = byte) {
                Ok(strings) if at < 8 => use_all(&strings),
                Ok(_) => {}
                Err(_) => refused += 1,
            }
        }
    }
    assert!(cfg!(miri) || refused > 5);
}

/// Their heap has no page, and no long value: only the cells are from the image.
#[test]
fn short_texts_of_an_image_are_looked_at() {
    let epoch = Epoch::first();
    let mut strings = Strings::filled(b"", 0);
    (0..3000).for_each(|slot| strings.insert(slot, b"short", epoch.fresh()).unwrap());
    let (image, pager) = TestImage::new(1 << 20, true);
    let blanks = Blanks { from: 3000, gap: (0, 0) };
    let saved = image.save(&pager, |out| strings.save(out, &blanks));
    image.craft_bytes(b"short", b"sho\xfft");
    let loaded = load(&saved, &pager, Strings::load).unwrap();
    assert!(loaded.get_str(2000).unwrap_err().to_string().contains("UTF-8"));
    assert_eq!(*loaded.get(2000).unwrap(), *b"sho\xfft");
}
