//! Crashes and faults: whatever the disk loses, what was promised is there, and nothing else.
//!
//! `workload` says what is done, in `changes` of the data; `world` does it and keeps the `history` of what was promised,
//! `explore` crashes it everywhere, `judge` looks at the file. A failure names the place, which
//! `ANNALS_TEST_CRASH=place cargo test -p annals crash::` repeats; `ANNALS_TEST_EFFORT=full` tries
//! much more.

mod background;
mod changes;
mod explore;
mod faults;
mod history;
mod judge;
mod mistakes;
mod recovery;
mod workload;
mod world;

use std::io::Write;

use explore::{Effort, Explorer};
use history::Checked;

const DEFAULT: Effort = Effort { few: [64, 8], samples: [16, 4], again: [10, 200], faults: 2 };
const FULL: Effort = Effort { few: [1024, 64], samples: [128, 16], again: [100, 1000], faults: 1 };

fn is_full() -> bool {
    std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full")
}

/// Explores workloads, and says how much that was.
fn explore(
    what: &str,
    kind: &str,
    (seeds, full_seeds): (u64, u64),
    how: impl Fn(&Explorer, &str) -> Checked,
) {
    let explorer = Explorer::new(if is_full() { FULL } else { DEFAULT });
    let seeds = if is_full() { full_seeds } else { seeds };
    for seed in 0..seeds {
        let explored = how(&explorer, &format!("{kind}-{seed}"));
        if let Err(text) = explored {
            let effort = if is_full() { "ANNALS_TEST_EFFORT=full " } else { "" };
            let place = text.split(':').next().unwrap_or_default();
            panic!("{text}\nrepeat it with {effort}ANNALS_TEST_CRASH='{place}'");
        }
    }
    // Past the test harness, which hides what tests that pass print.
    let mut output = std::io::stderr();
    writeln!(output, "{what}: {} crash states in {seeds} workloads", explorer.states()).unwrap();
}

#[test]
fn power_cut_at_every_operation() {
    explore("power cuts", "mixed", (80, 300), Explorer::power);
}

#[test]
fn process_killed_at_every_operation() {
    explore("kills", "mixed", (40, 120), Explorer::kill);
}

#[test]
fn power_cut_in_long_transactions() {
    let effort = |explorer: &Explorer, workload: &str| {
        let lower = |number: u64| if is_full() { number } else { number / 4 };
        let samples = explorer.effort.samples.map(lower);
        let few = [4; 2];
        let faults = if is_full() { 3 } else { 12 };
        let light = Explorer::new(Effort { samples, few, again: [1, 30], faults });
        light.power(workload)?;
        light.kill(workload)?;
        // These are dear: every run of them writes megabytes.
        if is_full() || workload.ends_with("-0") {
            light.faults(workload)?;
        }
        explorer.add(&light);
        Ok(())
    };
    explore("long transactions", "streaming", (4, 8), effort);
}

#[test]
fn every_operation_fails_in_every_way() {
    explore("faults", "mixed", (20, 200), Explorer::faults);
}
