//! The background thread at work while the power goes off.
//!
//! Alone among these tests this one depends on how threads take turns: what it finds may need some
//! tries to be found again.

use annals::Level;
use annals_simulated::{Rng, SimulatedDisk};

use super::DEFAULT;
use super::explore::Explorer;
use super::history::History;
use super::workload::Step;
use super::world::{Errors, Stop, World};

#[test]
fn the_background_thread_keeps_all_promises() {
    let explorer = Explorer::new(DEFAULT);
    for seed in 0..8 {
        let disk = SimulatedDisk::new(seed);
        let mut rng = Rng::new(seed);
        disk.crash_at(300 + rng.below(900));
        let mut world = World::new(disk, seed, History::new(), Errors::Fatal);
        world.background = true;
        let mut run = || -> Result<(), Stop> {
            world.open(0)?;
            loop {
                let level = if rng.percent(70) { Level::Soft } else { Level::Checksummed };
                world.step(match rng.below(40) {
                    0 => Step::Empty(level),
                    1 => Step::RollBack { rows: 3 },
                    _ => Step::Write { rows: 1 + rng.below(3), level },
                })?;
            }
        };
        if let Err(Stop::Broken(text)) = run() {
            panic!("seed {seed}: {text}");
        }
        world.database = None;
        let explored = explorer.every_state(
            &format!("background-{seed}"),
            &world.disk.crash_states(),
            &world.history,
            1,
        );
        assert_eq!(explored, Ok(()));
    }
}
