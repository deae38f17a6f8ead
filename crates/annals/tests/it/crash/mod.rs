//! Crashes and faults: whatever the disk loses, what was promised is there, and nothing else.
//!
//! `workload` says what is done, in `changes` of the data; `world` does it and keeps the `history` of
//! what was promised, `explore` crashes it everywhere, `judge` looks at the file. A failure names the
//! place, which `ANNALS_TEST_CRASH=place cargo test -p annals crash::` repeats.
//! `ANNALS_TEST_EFFORT=full` tries many times as many states; each test says how many.

mod background;
mod changes;
mod crew;
mod explore;
mod faults;
mod history;
mod images;
mod imaging;
mod judge;
mod mistakes;
mod pipeline;
mod reading;
mod recovery;
mod restarting;
mod sharing;
mod upgrading;
mod workload;
mod world;

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use annals::storage::{Clock, SystemClock};
use explore::{Effort, Explorer};
use history::Checked;

const DEFAULT: Effort = Effort {
    few: [64, 8, 4],
    samples: [16, 4, 2],
    again: [8, 1],
    killed: 150,
    places: 2,
    faults: 5,
    reads: 2,
};
const FULL: Effort = Effort {
    few: [256, 16, 8],
    samples: [48, 8, 3],
    again: [10, 1],
    killed: 300,
    places: 1,
    faults: 1,
    reads: 5,
};

/// For workloads that bring the image forward, whose states are dear.
const DEFAULT_IMAGED: Effort =
    Effort { again: [4, 1], killed: 50, places: 4, faults: 7, ..DEFAULT };

/// For workloads that write megabytes, where every run is dear.
const DEFAULT_LONG: Effort = Effort {
    few: [4, 2, 1],
    samples: [6, 1, 1],
    again: [0, 0],
    killed: 10,
    places: 2,
    faults: 32,
    reads: 0,
};
const FULL_LONG: Effort = Effort {
    few: [16, 4, 2],
    samples: [12, 2, 1],
    again: [3, 1],
    killed: 40,
    places: 1,
    faults: 8,
    reads: 1,
};

fn is_full() -> bool {
    std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full")
}

/// How long a kind may take, if `ANNALS_TEST_MINUTES` says so: no workload begins after that.
fn limit() -> Option<Duration> {
    let minutes = std::env::var("ANNALS_TEST_MINUTES").ok()?;
    Some(Duration::from_secs(60 * minutes.parse::<u64>().expect("a number of minutes")))
}

/// Workloads, and how much of them is explored.
struct Kind {
    /// The first part of their names.
    workloads: &'static str,
    /// How many, by default and with full effort.
    count: [u64; 2],
    effort: [Effort; 2],
}

const SHORT: [Effort; 2] = [DEFAULT, FULL];
const IMAGED: [Effort; 2] = [DEFAULT_IMAGED, FULL];
const LONG: [Effort; 2] = [DEFAULT_LONG, FULL_LONG];

/// Explores workloads on all cores, and says how much that was.
fn explore(what: &str, kind: &Kind, how: impl Fn(&Explorer, &str) -> Checked + Sync) {
    let started = SystemClock.elapsed();
    let full = usize::from(is_full());
    let (next, states, done) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let is_over = || limit().is_some_and(|limit| SystemClock.elapsed() - started > limit);
    let found = Mutex::new(None);
    let work = || {
        while found.lock().unwrap().is_none() {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= kind.count[full] || is_over() {
                break;
            }
            let mut explorer = Explorer::new(kind.effort[full]);
            explorer.shares = kind.workloads.starts_with("shared");
            let explored = how(&explorer, &format!("{}-{seed}", kind.workloads));
            states.fetch_add(explorer.states(), Ordering::Relaxed);
            done.fetch_add(1, Ordering::Relaxed);
            if let Err(text) = explored {
                found.lock().unwrap().get_or_insert(text);
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    if let Some(text) = found.into_inner().unwrap() {
        let effort = if is_full() { "ANNALS_TEST_EFFORT=full " } else { "" };
        let place = text.split(':').next().unwrap_or_default();
        panic!("{text}\nrepeat it with {effort}ANNALS_TEST_CRASH='{place}'");
    }
    let seconds = (SystemClock.elapsed() - started).as_secs();
    let (done, all) = (done.into_inner(), kind.count[full]);
    say(what, states.into_inner(), &format!("{done} of {all} workloads, {seconds} s"));
}

/// Says how many states of one kind there were, and how many of all kinds so far: the last that is
/// said is the sum.
fn say(what: &str, states: u64, more: &str) {
    static SAID: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());
    let mut said = SAID.lock().unwrap();
    *said.entry(what.to_owned()).or_default() += states;
    let (kinds, sum) = (said.len(), said.values().sum::<u64>());
    // Past the test harness, which hides what tests that pass print.
    let mut output = std::io::stderr();
    writeln!(output, "{what}: {states} crash states ({more}); {sum} in {kinds} kinds so far")
        .unwrap();
}

#[test]
fn power_cut_at_every_operation() {
    let kind = Kind { workloads: "mixed", count: [30, 320], effort: SHORT };
    explore("power cuts", &kind, Explorer::power);
}

#[test]
fn process_killed_at_every_operation() {
    let kind = Kind { workloads: "mixed", count: [20, 120], effort: SHORT };
    explore("kills", &kind, Explorer::kill);
}

#[test]
fn every_operation_fails_in_every_way() {
    let kind = Kind { workloads: "mixed", count: [12, 150], effort: SHORT };
    explore("faults", &kind, Explorer::faults);
}

#[test]
fn every_read_goes_wrong() {
    let reads = |effort: Effort| Effort { reads: 200, ..effort };
    let kind = Kind { workloads: "mixed", count: [10, 160], effort: SHORT.map(reads) };
    explore("reads", &kind, Explorer::reads);
}

#[test]
fn power_cut_while_commits_are_pending() {
    let kind = Kind { workloads: "pipelined", count: [8, 80], effort: SHORT };
    explore("pipelined", &kind, all);
}

#[test]
fn power_cut_after_commits_of_each_level() {
    let kind = Kind { workloads: "levels", count: [10, 240], effort: SHORT };
    explore("levels", &kind, all);
}

#[test]
fn power_cut_while_the_file_grows() {
    let kind = Kind { workloads: "growing", count: [10, 90], effort: SHORT };
    explore("growing files", &kind, all);
}

#[test]
fn power_cut_while_the_schema_is_upgraded() {
    let kind = Kind { workloads: "upgrading", count: [10, 90], effort: SHORT };
    explore("upgrades", &kind, all);
}

#[test]
fn power_cut_while_the_journal_restarts() {
    let kind = Kind { workloads: "restarting", count: [8, 90], effort: SHORT };
    explore("restarts", &kind, all);
}

#[test]
fn process_killed_while_several_restart_the_journal() {
    let kind = Kind { workloads: "sharedrestart", count: [3, 40], effort: SHORT };
    explore("several processes, restarts", &kind, Explorer::shared);
}

#[test]
fn process_killed_while_several_bring_the_image_forward() {
    let kind = Kind { workloads: "sharedimage", count: [3, 40], effort: IMAGED };
    explore("several processes, images", &kind, Explorer::shared);
}

#[test]
fn power_cut_while_slots_advance() {
    let kind = Kind { workloads: "slots", count: [3, 6], effort: LONG };
    explore("slots", &kind, all);
}

#[test]
fn power_cut_in_long_transactions() {
    let kind = Kind { workloads: "streaming", count: [4, 4], effort: LONG };
    explore("long transactions", &kind, all);
}

#[test]
fn power_cut_while_the_image_advances() {
    let kind = Kind { workloads: "imaged", count: [5, 120], effort: IMAGED };
    explore("images, power cuts", &kind, Explorer::power);
}

#[test]
fn process_killed_while_the_image_advances() {
    let kind = Kind { workloads: "imaged", count: [4, 60], effort: IMAGED };
    explore("images, kills", &kind, Explorer::kill);
}

#[test]
fn operations_fail_while_the_image_advances() {
    let kind = Kind { workloads: "imaged", count: [2, 60], effort: IMAGED };
    explore("images, faults", &kind, Explorer::faults);
}

#[test]
fn power_cut_while_a_backfill_restarts_the_journal() {
    let kind = Kind { workloads: "truncating", count: [5, 90], effort: IMAGED };
    explore("restarts behind backfills", &kind, all);
}

#[test]
fn reads_go_wrong_while_the_image_advances() {
    let reads = |effort: Effort| Effort { reads: 200, ..effort };
    let kind = Kind { workloads: "imaged", count: [4, 60], effort: IMAGED.map(reads) };
    explore("images, reads", &kind, Explorer::reads);
}

#[test]
fn power_cut_on_a_disk_that_leaves_garbage() {
    let again = |effort: Effort| Effort { again: [0, 0], reads: 0, ..effort };
    let kind = Kind { workloads: "padded", count: [10, 160], effort: SHORT.map(again) };
    explore("garbage, with padding", &kind, Explorer::garbage);
}

#[test]
fn process_killed_while_others_have_the_file_open() {
    let kind = Kind { workloads: "shared", count: [6, 60], effort: SHORT };
    explore("several processes", &kind, Explorer::shared);
}

#[test]
fn process_killed_in_long_transactions_of_several() {
    let [default, full] = LONG;
    let effort = [Effort { places: 8, ..default }, Effort { places: 2, ..full }];
    let kind = Kind { workloads: "sharedlong", count: [2, 4], effort };
    explore("several processes, long", &kind, Explorer::shared);
}

/// Explores a workload in all ways.
fn all(explorer: &Explorer, workload: &str) -> Checked {
    explorer.power(workload)?;
    explorer.kill(workload)?;
    explorer.faults(workload)?;
    explorer.reads(workload)
}
