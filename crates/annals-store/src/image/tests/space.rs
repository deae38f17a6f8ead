//! Space is allocated only where no old object is needed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::life::{HEIGHTS, draw};
use super::world::{World, after, change, object, open};
use crate::image::catalog::Catalog;
use crate::image::miniature::content;
use crate::image::space::Space;
use annals_simulated::Rng;
use annals_storage::{Directory, MemoryDirectory};

/// The space that a handle tracks equals the result of a walk.
fn compare_with_a_walk(world: &World) {
    let carried = world.image.space(None).unwrap();
    let other = open(&world.directory);
    let found = other.image.space(None).unwrap();
    let (carried, found): (&Space, &Space) = (carried.space().unwrap(), found.space().unwrap());
    assert_eq!(carried.live(), found.live());
    assert_eq!(carried.used(), found.used());
    let free: u64 = carried.free().map(|(_, len)| len).sum();
    assert_eq!(free + carried.used_bytes(), carried.used_end());
    assert_eq!(carried.end(), world.root.unwrap().end);
}

#[test]
fn what_is_carried_along_is_what_a_walk_finds() {
    let mut rng = Rng::new(8);
    for _ in 0..10 {
        let mut world = World::create(Arc::new(MemoryDirectory::new()), &HEIGHTS).unwrap();
        for txid in 1..20 {
            let count = rng.index(10);
            world.advance(txid, &draw(&mut rng, count), None).unwrap();
            compare_with_a_walk(&world);
            if rng.percent(30) {
                // An abandoned backfill leaves nothing.
                let mut draft = world.image.space(None).unwrap();
                draft.allocate(50_000);
                world.root.iter().for_each(|root| draft.release(&root.catalog));
                drop(draft);
                compare_with_a_walk(&world);
            }
        }
    }
}

/// Pinned roots, also those of other processes, continue to hold what they held.
#[test]
fn what_a_pin_reaches_stays() {
    let mut rng = Rng::new(3);
    for _ in 0..20 {
        let mut world = World::create(Arc::new(MemoryDirectory::new()), &HEIGHTS).unwrap();
        let mut pins: VecDeque<(u64, Catalog, _)> = VecDeque::new();
        for txid in 1..40 {
            let pinned: Vec<_> = pins.iter().map(|(number, _, _)| *number).collect();
            let count = rng.index(10);
            world.advance(txid, &draw(&mut rng, count), pinned.iter().copied()).unwrap();
            world.check();
            for (_, catalog, model) in &pins {
                assert_eq!(content(&world.image, catalog).unwrap(), *model);
            }
            match rng.index(4) {
                0 => {
                    let number = world.root.unwrap().number;
                    pins.push_back((number, world.catalog.clone(), world.model.clone()));
                }
                1 if !pins.is_empty() => drop(pins.remove(rng.index(pins.len()))),
                1 => {}
                2 => world.reopen(), // knows nothing of the roots that are only pinned
                _ => {
                    world.image.shrink(pinned).unwrap();
                    for (_, catalog, model) in &pins {
                        assert_eq!(content(&world.image, catalog).unwrap(), *model);
                    }
                }
            }
        }
    }
}

#[test]
fn a_large_backfill_is_one_ascending_sequence_for_each_size() {
    let mut world = World::create(Arc::new(MemoryDirectory::new()), &HEIGHTS).unwrap();
    let mut rng = Rng::new(4);
    for txid in 1..10 {
        world.advance(txid, &draw(&mut rng, 30), None).unwrap();
    }
    let mut draft = world.image.space(None).unwrap();
    let mut last = [0; 4];
    for _ in 0..200 {
        let len = u32::try_from(1 + rng.index(20_000)).unwrap();
        let place = draft.allocate(len);
        let last = &mut last[len.div_ceil(4096).min(4) as usize - 1];
        assert!(place >= *last, "{place} behind {last}");
        *last = place + u64::from(len);
    }
}

#[test]
fn a_row_that_is_updated_for_ever_takes_no_more_space() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let mut world = World::create(directory, &HEIGHTS).unwrap();
    for txid in 1..200 {
        world.advance(txid, &change(&[(0, 3, Some(object(16384, txid)))]), None).unwrap();
    }
    // Three times a page, its node and the catalog: two roots, and the one being written.
    assert!(world.image.len().unwrap() <= 12288 + 3 * 6 * 4096);
    assert!(world.image.shrink(None).is_ok());
    world.check();
    assert_eq!(after(&world.model, &BTreeMap::new()), world.model);
}

/// What many backfills have freed is used again, whatever the sizes of the objects.
#[test]
fn the_file_stays_as_small_as_what_is_used() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let mut world = World::create(directory, &HEIGHTS).unwrap();
    let mut rng = Rng::new(21);
    let mut most = 0;
    for txid in 1..120 {
        let changes: Vec<_> = (0..40)
            .map(|_| {
                let (array, number) = (rng.index(2), rng.index(64) as u64);
                let len = if array == 0 { 16384 } else { 1 + rng.index(4096) };
                (array, number, Some(object(len, txid)))
            })
            .collect();
        world.advance(txid, &change(&changes), None).unwrap();
        let draft = world.image.space(None).unwrap();
        let space = draft.space().unwrap();
        most = most.max(space.used_bytes());
        drop(draft);
        let len = world.image.len().unwrap();
        assert!(len * 4 <= most * 5, "{len} bytes for {most} in use, after {txid} backfills");
    }
    world.check();
}
