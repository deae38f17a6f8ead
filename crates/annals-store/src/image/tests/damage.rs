//! Every byte of a small image is flipped: it is found, or harmless.

use std::sync::Arc;

use super::life::HEIGHTS;
use super::world::{IDENTITY, NAME, World, change, object};
use crate::image::check::{check, pin_roots};
use crate::image::file::Image;
use crate::image::format::{IMAGE_HEADER_LEN, ROOT_AT, ROOT_COPY_AT, ROOT_LEN};
use crate::image::miniature::content;
use crate::image::open::Opened;
use crate::image::roots::Slot;
use annals_storage::{Access, Directory, MemoryDirectory, Storage, SystemClock};

fn bytes_of(storage: &dyn Storage) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(storage.len().unwrap()).unwrap()];
    storage.read_at(0, &mut bytes).unwrap();
    bytes
}

/// Returns the part of the file that a byte is in, if anything depends on it.
fn part(world: &World, at: u64) -> Option<&'static str> {
    let copies = ROOT_AT.iter().flat_map(|block| ROOT_COPY_AT.map(|copy| block + copy));
    if copies.into_iter().any(|copy| (copy..copy + ROOT_LEN as u64).contains(&at)) {
        return Some("root");
    }
    if at < IMAGE_HEADER_LEN as u64 {
        return Some("header");
    }
    // Walking finds the reached parts; here it is enough that it isn't the zeros after them.
    (at >= 12288 && world.image.len().unwrap() > at).then_some("object")
}

#[test]
fn every_flip_is_found_or_harmless() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let mut world = World::create(Arc::clone(&directory), &HEIGHTS).unwrap();
    let page = |number, seed| (0, number, Some(object(300, seed)));
    world.advance(1, &change(&[page(1, 1), (2, 5, Some(object(5000, 2)))]), None).unwrap();
    let before = world.model.clone();
    world.advance(2, &change(&[page(1, 3), page(9, 4)]), None).unwrap();
    let file = directory.open(NAME, Access::Write).unwrap();
    let good = bytes_of(&*file);
    let report = check(&directory, NAME, &SystemClock).unwrap();
    let (mut found, mut copies, mut harmless) = (0, 0, 0);
    for (at, byte) in (0..).zip(&good) {
        file.write_at(at, &[byte ^ 1 << (at % 8)]).unwrap();
        let damaged = check(&directory, NAME, &SystemClock).unwrap();
        match (&damaged.problem, damaged.slots == report.slots) {
            (Some(problem), _) => {
                assert!(problem.contains("damaged"), "{at}: {problem}");
                assert_ne!(part(&world, at), None, "{at}: {problem}");
                found += 1;
            }
            (None, false) => {
                assert_eq!(part(&world, at), Some("root"));
                assert!(damaged.slots.unwrap().iter().any(|slot| !matches!(slot, Slot::Whole(_))));
                copies += 1;
            }
            (None, true) => {
                assert_eq!(damaged, report, "{at}");
                harmless += 1;
            }
        }
        // Whatever a check reports: an image that opens has one of the two states, or returns an
        // error.
        match Image::open(&directory, NAME, &IDENTITY, Access::Read).unwrap() {
            Opened::Usable(usable) => match content(&usable.image, &usable.catalog) {
                Ok(held) => assert!(held == world.model || held == before, "{at}"),
                Err(_) => assert!(damaged.problem.is_some(), "{at}"),
            },
            Opened::SetAside(_) => assert!(damaged.problem.is_some(), "{at}"),
            Opened::Missing => panic!("{at}"),
        }
        file.write_at(at, &[*byte]).unwrap();
    }
    // All verified parts are included, every byte of both roots' copies, and the header.
    assert_eq!(found, report.bytes + IMAGE_HEADER_LEN as u64);
    assert_eq!(copies, 4 * ROOT_LEN as u64);
    assert_eq!(found + copies + harmless, good.len() as u64);
    assert_eq!(check(&directory, NAME, &SystemClock).unwrap(), report);
}

#[test]
fn a_file_that_was_cut_is_found() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let mut world = World::create(Arc::clone(&directory), &HEIGHTS).unwrap();
    for txid in 1..4 {
        world.advance(txid, &change(&[(0, 1, Some(object(300, txid)))]), None).unwrap();
    }
    let file = directory.open(NAME, Access::Write).unwrap();
    let good = bytes_of(&*file);
    for len in (0..good.len()).step_by(509) {
        file.set_len(len as u64).unwrap();
        let report = check(&directory, NAME, &SystemClock).unwrap();
        assert!(report.problem.is_some(), "{len}: {report:?}");
        match Image::open(&directory, NAME, &IDENTITY, Access::Read).unwrap() {
            Opened::SetAside(aside) => assert!(aside.reason.contains("damaged"), "{aside:?}"),
            // All objects of the previous root are intact.
            Opened::Usable(usable) => {
                assert!(usable.root.number == 2 && usable.root.end <= len as u64)
            }
            Opened::Missing => panic!("{len}"),
        }
        file.write_at(0, &good).unwrap();
    }
}

#[test]
fn whoever_checks_pins_both_roots() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let mut world = World::create(directory, &HEIGHTS).unwrap();
    for txid in 1..4 {
        world.advance(txid, &change(&[(0, txid, Some(object(5000, txid)))]), []).unwrap();
    }
    let (roots, pins) = pin_roots(&world.image, &SystemClock).unwrap();
    let mut numbers: Vec<_> = pins.iter().map(|pin| pin.number).collect();
    numbers.sort_unstable();
    assert_eq!((numbers, roots.last_number()), (vec![2, 3], 3));
    assert_eq!(world.image.pinned(0..u64::MAX, 9).unwrap(), [2, 3]);
    drop(pins);
    assert_eq!(world.image.pinned(0..u64::MAX, 9).unwrap(), []);
}

#[test]
fn a_copy_has_no_gaps_and_no_damage() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let mut world = World::create(directory, &HEIGHTS).unwrap();
    for txid in 1..60 {
        let gone = (txid > 9).then(|| (0, txid - 9, None));
        let changes: Vec<_> =
            gone.into_iter().chain([(0, txid, Some(object(9000, txid)))]).collect();
        world.advance(txid, &change(&changes), []).unwrap();
    }
    let (before, old_root) = (world.image.len().unwrap(), world.root.unwrap());
    let bytes = bytes_of(&*world.image.storage);
    let len = world.image.compact(&[], &SystemClock).unwrap();
    assert!(len < before, "{len} of {before}");
    assert_eq!(bytes_of(&*world.image.storage), bytes, "whoever has the old one reads on");
    world.reopen();
    let root = world.root.unwrap();
    assert_eq!((root.point, root.number), (old_root.point, old_root.number + 1));
    assert_eq!((root.end, world.image.len().unwrap()), (len, len));
    world.check();
    assert_eq!(check(&world.directory, NAME, &SystemClock).unwrap().free, 0);
    world.advance(60, &change(&[(0, 60, Some(object(9000, 60)))]), []).unwrap();
    world.check();

    // A damaged page isn't copied, and the existing file stays.
    let stored = world.catalog.arrays[0].root.unwrap();
    world.image.storage.write_at(stored.place, &[0xff; 8]).unwrap();
    let error = world.image.compact(&[], &SystemClock).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Corrupt);
    assert_eq!(world.directory.list().unwrap(), [NAME]);
}
