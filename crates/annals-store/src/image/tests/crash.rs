//! The power goes off at every operation: opening returns the previous root or the new one, whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::life::{HEIGHTS, draw};
use super::world::{Held, IDENTITY, NAME, World, after, change, object};
use crate::image::catalog::Kind;
use crate::image::check::check;
use crate::image::file::Image;
use crate::image::miniature::{Changes, content};
use crate::image::open::{Opened, Usable};
use crate::image::roots::VERIFY_AT_MOST;
use crate::image::walk::read_catalog;
use annals_simulated::{Fault, Rng, SimulatedClock, SimulatedDisk};
use annals_storage::{Access, Directory, SystemClock};

/// The steps, and the contents after each; nothing at first.
struct Script {
    heights: Vec<(u8, Kind)>,
    steps: Vec<BTreeMap<usize, Changes>>,
    models: Vec<Option<Held>>,
    /// True if the image has key frames, and is copied with them, without gaps, before every other step.
    compacts: bool,
}

impl Script {
    fn new(heights: &[(u8, Kind)], steps: Vec<BTreeMap<usize, Changes>>) -> Self {
        let mut models = vec![None];
        let mut model = vec![BTreeMap::new(); heights.len()];
        for step in &steps {
            model = after(&model, step);
            models.push(Some(model.clone()));
        }
        Self { heights: heights.to_vec(), steps, models, compacts: false }
    }

    /// Does the steps from what is on the disk on; returns how many were done in all.
    fn run(&self, disk: &SimulatedDisk) -> usize {
        let directory: Arc<dyn Directory> = Arc::new(disk.clone());
        let Ok(opened) = Image::open(&directory, NAME, &IDENTITY, Access::Write) else { return 0 };
        let (mut world, done) = match opened {
            Opened::Missing => match World::create(directory, &self.heights) {
                Ok(world) => (World { keeps_frames: self.compacts, ..world }, 0),
                Err(_) => return 0,
            },
            Opened::Usable(usable) => {
                let done = usize::try_from(usable.root.point.txid.0).unwrap();
                let model = self.models[done].clone().unwrap();
                let (image, catalog, root) = (usable.image, usable.catalog, Some(usable.root));
                let keeps_frames = self.compacts;
                (World { directory, image, catalog, model, root, keeps_frames }, done)
            }
            Opened::SetAside(aside) => panic!("{aside:?}"),
        };
        for (step, txid) in self.steps.iter().zip(1..).skip(done) {
            if self.compacts && txid % 2 == 0 && !compact(&mut world) {
                return usize::try_from(txid).unwrap() - 1;
            }
            if world.advance(txid, step, None).is_err() {
                return usize::try_from(txid).unwrap() - 1;
            }
        }
        self.steps.len()
    }

    /// Opens the image after a crash; returns how many steps are in it, all of them whole.
    fn judge(&self, disk: &SimulatedDisk) -> usize {
        let directory: Arc<dyn Directory> = Arc::new(disk.clone());
        let opened = Image::open(&directory, NAME, &IDENTITY, Access::Write).unwrap();
        let found = match &opened {
            Opened::Missing => None,
            Opened::Usable(usable) => {
                let txid = usize::try_from(usable.root.point.txid.0).unwrap();
                assert_eq!(usable.catalog.metadata, (txid as u64).to_le_bytes());
                let held = content(&usable.image, &usable.catalog).unwrap();
                assert_eq!(Some(&held), self.models[txid].as_ref(), "root {txid}");
                self.judge_frames(usable);
                assert_eq!(check(&directory, NAME, &SystemClock).unwrap().problem, None);
                Some(txid)
            }
            Opened::SetAside(aside) => panic!("{aside:?}"),
        };
        found.unwrap_or(0)
    }

    /// All key frames of an image hold what there was, and those of a copy are as many as before.
    fn judge_frames(&self, usable: &Usable) {
        let frames = usable.image.frames_of(&usable.root);
        let expected = if self.compacts { usable.root.point.txid.0 - 1 } else { 0 };
        assert_eq!(frames.len() as u64, expected);
        for (frame, txid) in frames.iter().zip(1..) {
            let catalog = read_catalog(&usable.image, frame).unwrap();
            let held = content(&usable.image, &catalog).unwrap();
            let model = self.models[usize::try_from(txid).unwrap()].clone();
            assert_eq!((frame.point.txid.0, Some(held)), (txid, model));
        }
    }

    /// Crashes at every operation after the first ones; returns how many states were judged.
    fn explore(&self, begin: &SimulatedDisk, again: bool) -> usize {
        let mut judged = 0;
        for operation in begin.operations().. {
            let disk = begin.fork();
            disk.crash_at(operation);
            let done = self.run(&disk);
            let states = disk.crash_states();
            let mut rng = Rng::new(operation);
            let few = states.count().is_some_and(|count| count <= 128);
            let some = (0..40 * effort()).map(|_| states.random(&mut rng)).collect::<Vec<_>>();
            let ends = [states.oldest(), states.newest(), states.all_but_last()];
            let all: Vec<_> =
                if few { states.every().collect() } else { ends.into_iter().chain(some).collect() };
            for (number, state) in all.into_iter().enumerate() {
                let found = self.judge(&state);
                assert!(
                    found == done || found == done + 1,
                    "operation {operation}, state {number}: root {found} behind {done} steps\n{}",
                    disk.transcript()
                );
                judged += 1;
                // The opened image continues, and survives another crash.
                if again && number % (400 / effort()) == 0 {
                    judged += self.explore(&state, false);
                }
                assert_eq!(self.run(&state), self.steps.len());
                assert_eq!(self.judge(&state), self.steps.len());
            }
            if !disk.is_off() {
                assert_eq!(done, self.steps.len());
                break;
            }
        }
        judged
    }
}

/// Copies an image without gaps, and continues with that; returns whether it could.
fn compact(world: &mut World) -> bool {
    let frames = world.image.frames_of(&world.root.unwrap());
    if world.image.compact(&frames, &SimulatedClock::new(5)).is_err() {
        return false;
    }
    let opened = Image::open(&world.directory, NAME, &IDENTITY, Access::Write);
    let Ok(Opened::Usable(usable)) = opened else { return false };
    assert_eq!(usable.root.point, world.root.unwrap().point);
    (world.image, world.root, world.catalog) = (usable.image, Some(usable.root), usable.catalog);
    true
}

/// Returns how much more is tried: `ANNALS_TEST_EFFORT=full`.
fn effort() -> usize {
    let full = std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full");
    if full { 10 } else { 1 }
}

fn new_disk() -> SimulatedDisk {
    SimulatedDisk::new(7)
}

#[test]
fn a_crash_while_it_is_copied_leaves_either_image() {
    let page = |number, seed| (0, number, Some(object(600, seed)));
    let steps =
        [vec![page(1, 1), page(2, 2)], vec![page(1, 3)], vec![(0, 2, None)], vec![page(3, 7)]];
    let steps = steps.iter().map(|step| change(step)).collect();
    let script = Script { compacts: true, ..Script::new(&HEIGHTS, steps) };
    let judged = script.explore(&new_disk(), true);
    assert!(judged > 1000, "{judged}");
}

#[test]
fn a_crash_leaves_the_old_root_or_the_new_one() {
    let page = |number, seed| (0, number, Some(object(600, seed)));
    let steps = [
        vec![page(1, 1), page(2, 2)],
        vec![page(1, 3), (1, 77, Some(object(1000, 4)))],
        vec![(0, 2, None), page(3, 5)],
        vec![page(1, 6)],
        vec![page(3, 7)],
    ];
    let script = Script::new(&HEIGHTS, steps.iter().map(|step| change(step)).collect());
    let judged = script.explore(&new_disk(), true);
    assert!(judged > 2000, "{judged}");
}

#[test]
fn a_crash_in_random_backfills_leaves_the_old_root_or_the_new_one() {
    for seed in 0..2 * effort() as u64 {
        let mut rng = Rng::new(seed);
        let steps = (0..5).map(|_| draw(&mut rng, 5)).collect();
        let judged = Script::new(&HEIGHTS, steps).explore(&new_disk(), false);
        assert!(judged > 500, "{judged}");
    }
}

/// A backfill that wrote much is verified only where there is no other root.
#[test]
fn a_large_backfill_whose_second_copy_is_lost_costs_that_backfill_at_most() {
    let large = usize::try_from(VERIFY_AT_MOST).unwrap() + 1;
    let steps = [
        vec![(3, 0, Some(object(600, 1)))],
        vec![(3, 0, Some(vec![7; large]))],
        vec![(0, 0, Some(object(600, 3)))],
    ];
    let script = Script::new(&HEIGHTS, steps.iter().map(|step| change(step)).collect());
    // The first root was published with 9 operations.
    for operation in 9.. {
        let disk = new_disk();
        disk.crash_at(operation);
        let done = script.run(&disk);
        let states = disk.crash_states();
        let random = states.random(&mut Rng::new(operation));
        for state in [states.oldest(), states.newest(), states.all_but_last(), random] {
            let found = script.judge(&state);
            assert!(
                found == done || found == done + 1 || done == 2 && found == 1,
                "{found} {done}"
            );
        }
        if !disk.is_off() {
            break;
        }
    }
}

/// A process is killed, another continues from the page cache, and the power goes off then.
#[test]
fn what_a_killed_process_left_unflushed_is_flushed_before_anything_rests_on_it() {
    let page = |number, seed| (0, number, Some(object(600, seed)));
    let steps = (1..5).map(|seed| change(&[page(seed % 2, seed), (3, 0, Some(object(9, seed)))]));
    let script = Script::new(&HEIGHTS, steps.collect());
    let whole = new_disk();
    assert_eq!(script.run(&whole), 4);
    for killed in 0..whole.operations() {
        let disk = new_disk();
        disk.kill_at(killed, Fault::Io);
        let acknowledged = script.run(&disk.process());
        let shown = script.judge(&disk.fork());
        for operation in killed + 1.. {
            let disk = disk.fork();
            disk.crash_at(operation);
            let done = script.run(&disk);
            // The root that the second process found was not acknowledged before it published more.
            let kept = if done > shown { done } else { acknowledged };
            let states = disk.crash_states();
            let mut rng = Rng::new(operation);
            let ends = [states.oldest(), states.newest(), states.all_but_last()];
            for state in ends.into_iter().chain((0..15).map(|_| states.random(&mut rng))) {
                let found = script.judge(&state);
                assert!(found >= kept, "{found} behind {kept}");
            }
            if !disk.is_off() {
                break;
            }
        }
    }
}
