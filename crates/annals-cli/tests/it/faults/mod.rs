//! A shared log of three servers and three nodes, each in a network namespace of its own, under faults of all kinds.
//!
//! Writers note what they are told of each transaction. At the end, what was acknowledged is there once, what was refused
//! isn't, and all nodes have the same history. `ANNALS_TEST_EFFORT=full` runs it, for `ANNALS_FAULTS_SECONDS`. It needs
//! root: the test starts itself again with namespaces of its own, which end with it, and with all that was started in them.

#![allow(clippy::print_stderr, reason = "a long run says how far it is, and its figures")]

mod hurt;
mod ledger;
mod machines;
mod network;
mod verdict;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use annals::storage::{Clock as _, SystemClock};
use annals_replica::shared_log::testing::program;

use hurt::{Fault, Hurt};
use ledger::{Ledger, write};
use machines::World;

/// Set where the test runs in its own namespaces.
const INSIDE: &str = "ANNALS_FAULTS_INSIDE";
/// How long it runs, in seconds.
const SECONDS: &str = "ANNALS_FAULTS_SECONDS";
/// How long it runs if nothing is said.
const DEFAULT_SECONDS: u64 = 240;
/// The servers, and the nodes.
const COUNT: usize = 3;
/// The writers of each node: half of them repeat what got no answer, with an idempotency key.
const WRITERS: usize = 2;
/// So many faults follow one another quickly; then it is quiet for a while.
const VOLLEY: u64 = 4;
/// How long it is quiet after a volley: until all is well again, and then for as long as stalls are looked for.
const QUIET: Duration = Duration::from_secs(19);

fn pause(duration: Duration) {
    SystemClock.pause(duration);
}

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Returns a random number below a limit.
fn below(limit: u64) -> u64 {
    SystemClock.random() % limit
}

/// Returns what is missing here, and how to get it.
fn missing() -> Option<String> {
    let root = Command::new("id").arg("-u").output().ok()?;
    if String::from_utf8_lossy(&root.stdout).trim() != "0" {
        return Some("it needs root, for network namespaces and small disks".to_owned());
    }
    let packages = [
        ("ip", "iproute2"),
        ("iptables", "iptables"),
        ("unshare", "util-linux"),
        ("mount", "mount"),
        ("df", "coreutils"),
    ];
    for (name, package) in packages {
        if Command::new(name).arg("--version").output().is_err() {
            return Some(format!("`{name}` isn't installed: apt-get install {package}"));
        }
    }
    program().err().map(str::to_owned)
}

#[test]
fn nothing_is_lost_while_the_network_machines_and_clocks_fail() {
    let is_full = std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full");
    if !is_full {
        return println!("skipped: ANNALS_TEST_EFFORT=full runs the faults of a shared log");
    }
    if let Some(missing) = missing() {
        return annals_untested::untested(&missing);
    }
    let folder = tempfile::tempdir().unwrap();
    if std::env::var_os(INSIDE).is_some() {
        return run(folder.path());
    }
    // When the first process of its namespace of processes ends, all others there end, too.
    let status = Command::new("unshare")
        .args(["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "faults::nothing_is_lost_while_the_network_machines_and_clocks_fail"])
        .args(["--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        .status()
        .unwrap();
    assert!(status.success(), "what is wrong is printed above");
}

fn run(folder: &Path) {
    let seconds = std::env::var(SECONDS).ok().map(|it| it.parse().expect("a number of seconds"));
    let until = SystemClock.elapsed() + Duration::from_secs(seconds.unwrap_or(DEFAULT_SECONDS));
    let mut world = World::start(folder);
    let (ledger, addresses) = (Ledger::default(), world.addresses());
    let hurts = std::thread::scope(|scope| {
        for number in 0..COUNT * WRITERS {
            let (ledger, addresses) = (&ledger, &addresses);
            scope.spawn(move || write(ledger, addresses, number));
        }
        // If it panics, the writers end all the same.
        let hurting = std::panic::AssertUnwindSafe(|| hurt_until(&mut world, &ledger, until));
        let hurts = std::panic::catch_unwind(hurting);
        ledger.end();
        hurts
    });
    let hurts = hurts.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    verdict::judge(world, &ledger, &hurts);
}

/// Hurts servers, nodes and the network, again and again, each kind as often as the others.
fn hurt_until(world: &mut World, ledger: &Ledger, until: Duration) -> Vec<Hurt> {
    ledger.wait_for_all_nodes();
    let (mut hurts, mut rest) = (Vec::new(), Vec::new());
    while SystemClock.elapsed() < until {
        for place in 0..VOLLEY {
            if rest.is_empty() {
                rest = Fault::all(world);
            }
            let fault = rest.swap_remove(usize::try_from(below(rest.len() as u64)).unwrap());
            hurts.push(fault.hurt(world, ledger, place + 1 == VOLLEY));
            world.revive();
            pause(millis(500 + below(2500)));
        }
        pause(QUIET);
        world.revive();
        let (acknowledged, refused, unknown) = ledger.counts();
        eprintln!(
            "{:6.0} s: {} faults, {acknowledged} acknowledged, {refused} refused, {unknown} unknown",
            SystemClock.elapsed().as_secs_f64(),
            hurts.len()
        );
    }
    hurts
}
