//! Random histories of a whole database against a naive model: every command, every kind of statement,
//! transactions that end in every way, checkpoints, backfills, restarts, kills, power cuts, upgrades in the middle,
//! and programs of another age.
//!
//! The model is written from `docs/schema.md`, not from the code. After each transaction everything is
//! compared: schema, rows, ids, indexes, blobs, dangling references, snapshots that were kept; and now and
//! then the journal is read from its beginning.
//!
//! A history that fails says how to repeat it. `ANNALS_TEST_EFFORT=full` tries many more, and longer ones.

mod blobs;
mod changes;
mod draw;
mod indexes;
mod journal;
mod language;
pub(crate) mod look;
mod model;
mod rules;
mod statements;
mod undo;
mod upgrade;
mod variants;
mod vectors;
pub(crate) mod world;

use self::world::World;

/// The journal's name.
pub(crate) const NAME: &str = "db";

fn run(seed: u64, steps: u64) {
    let mut world = World::new(seed);
    for _ in 0..steps {
        match world.random.below(100) {
            0..66 => world.transaction(),
            66..73 => world.backfill(),
            73..75 => world.checkpoint(),
            75..77 => world.past(),
            77..81 => world.hold(),
            81..87 => world.restart(),
            87..89 => world.read_only(),
            89..96 => world.upgrade(),
            96..98 => world.other_program(),
            _ => world.replay(),
        }
    }
    world.replay();
    assert!(world.commits.len() as u64 > steps / 8, "only {} commits", world.commits.len());
}

/// Returns the seeds: one that is asked for, or all.
fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("ANNALS_TEST_HISTORY") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (1..=count).collect(),
    }
}

#[test]
fn random_histories_agree_with_the_model() {
    let full = std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full");
    for seed in seeds(if full { 400 } else { 15 }) {
        let effort = if full { "ANNALS_TEST_EFFORT=full " } else { "" };
        println!("repeat the last history with {effort}ANNALS_TEST_HISTORY={seed}");
        run(seed, if full { 400 } else { 150 });
    }
}
