//! What came of it all.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use annals::storage::{Clock as _, SystemClock};

use super::hurt::Hurt;
use super::ledger::{Ledger, Request, Told};
use super::machines::World;
use super::{COUNT, QUIET, millis, pause};
use crate::program::succeed;

/// How soon after a fault something must be acknowledged.
const SOON: Duration = Duration::from_secs(10);
/// The longest that nothing may be acknowledged, or a request may take, while nothing is wrong.
const STALL: Duration = Duration::from_secs(5);
/// The file of a node that comes at the end.
const LATE: &str = "late.annals";
/// How long nodes may take to have all.
const PATIENCE: Duration = Duration::from_secs(60);

/// Prints the figures, and fails if something is lost, there twice, or took too long.
pub(super) fn judge(mut world: World, ledger: &Ledger, hurts: &[Hurt]) {
    world.heal();
    world.revive();
    let ends = same_ends(&world);
    world.nodes.iter_mut().for_each(super::machines::Process::end);
    let mut faults = BTreeMap::<_, u64>::new();
    hurts.iter().for_each(|it| *faults.entry(it.fault).or_default() += 1);
    let (acknowledged, refused, unknown) = ledger.counts();
    eprintln!("{} faults: {faults:?}", hurts.len());
    eprintln!("{acknowledged} acknowledged, {refused} refused, {unknown} unknown");
    for (reason, count) in ledger.refusals.lock().unwrap().iter() {
        eprintln!("  {count:6} {reason}");
    }
    let requests = ledger.requests.lock().unwrap();
    let gaps = gaps(&requests, hurts);
    let longest = gaps.iter().map(|it| it.2).max().unwrap_or_default();
    let stalls: Vec<_> = gaps.into_iter().filter(|it| it.2 > STALL).collect();
    let last_ones = hurts.iter().filter(|it| it.is_last);
    let lives: Vec<_> = last_ones.map(|it| life(&requests, it)).collect();
    eprintln!("stalls over {STALL:?}: {stalls:?}");
    eprintln!("ended by themselves: {:#?}", world.ended);

    let files: Vec<_> = world.nodes.iter().map(|it| it.disk.join("ledger.annals")).collect();
    let (mut wrong, mut worst) = (Vec::new(), Verdict::default());
    for file in files.into_iter().chain([world.folder.join(LATE)]) {
        if file.ends_with(LATE) {
            // One that has seen nothing of all this.
            world.read_log(LATE, "");
        }
        let file = file.display().to_string();
        succeed(&world.folder, &["check", &file], "");
        let counts = rows(&world, &file);
        let verdict = Verdict::of(&counts, ledger);
        eprintln!("{file}: {} rows, {verdict:?}", counts.values().sum::<u64>());
        if verdict != Verdict::default() {
            wrong.push(file);
        }
        worst.add(verdict);
    }
    let Verdict { lost, twice, refused: there } = &worst;
    eprintln!(
        "verdict: {} faults, {acknowledged} acknowledged, {} lost, {} twice, {refused} refused ({} of them there), \
         {unknown} unknown, {} stalls over {STALL:?}, the longest gap {longest:?}, acknowledged again after faults within \
         {:?} at worst, after the last one within {:?}",
        hurts.len(),
        lost.len(),
        twice.len(),
        there.len(),
        stalls.len(),
        // One after which nothing was acknowledged is the worst.
        lives.iter().map(|it| it.unwrap_or(Duration::MAX)).max(),
        lives.last().copied().flatten()
    );
    assert!(wrong.is_empty(), "something is lost, or there twice: {wrong:?}");
    assert!(ends, "the nodes have different histories");
    assert!(stalls.is_empty(), "{stalls:?}");
    assert!(world.ended.is_empty(), "{:#?}", world.ended);
    let last = lives.last().copied().flatten();
    assert!(
        last.is_some_and(|it| it <= SOON),
        "nothing was acknowledged soon after the last fault"
    );
}

/// Waits until all nodes have the same history; false if they don't.
fn same_ends(world: &World) -> bool {
    let until = SystemClock.elapsed() + PATIENCE;
    loop {
        let ends: Vec<_> = world.nodes.iter().map(super::machines::Process::history).collect();
        if ends.iter().all(|it| it.is_some() && *it == ends[0]) {
            eprintln!("all nodes are at {:?}", ends[0]);
            return true;
        }
        if SystemClock.elapsed() > until {
            eprintln!("the nodes are at {ends:?}");
            return false;
        }
        pause(millis(200));
    }
}

/// Returns how often each row is in a file.
fn rows(world: &World, file: &str) -> BTreeMap<String, u64> {
    let dump = succeed(&world.folder, &["dump", file, "--format", "json"], "");
    let dump: serde_json::Value = serde_json::from_str(&dump).unwrap();
    let mut counts = BTreeMap::new();
    for row in dump["op"].as_array().unwrap() {
        *counts.entry(row["k"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    counts
}

/// What is wrong in a file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Verdict {
    /// Acknowledged, and not there.
    lost: BTreeSet<String>,
    /// There more than once.
    twice: BTreeSet<String>,
    /// Refused, and there.
    refused: BTreeSet<String>,
}

impl Verdict {
    fn of(counts: &BTreeMap<String, u64>, ledger: &Ledger) -> Self {
        let mut verdict = Self::default();
        for (name, told) in ledger.transactions.lock().unwrap().iter() {
            let count = counts.get(name).copied().unwrap_or_default();
            if *told == Told::Acknowledged && count == 0 {
                verdict.lost.insert(name.clone());
            } else if *told == Told::Refused && count > 0 {
                verdict.refused.insert(name.clone());
            }
            if count > 1 {
                verdict.twice.insert(name.clone());
            }
        }
        verdict
    }

    fn add(&mut self, other: Self) {
        self.lost.extend(other.lost);
        self.twice.extend(other.twice);
        self.refused.extend(other.refused);
    }
}

/// Returns how long after a fault the first request was acknowledged that was begun then.
fn life(requests: &[Request], hurt: &Hurt) -> Option<Duration> {
    let after =
        requests.iter().filter(|it| it.begun >= hurt.ended && it.told == Told::Acknowledged);
    after.map(|it| it.ended - hurt.ended).min()
}

/// Returns how long requests took, and nothing was acknowledged, while nothing was wrong: nodes, moments and times.
fn gaps(requests: &[Request], hurts: &[Hurt]) -> Vec<(usize, Duration, Duration)> {
    let mut gaps = Vec::new();
    for hurt in hurts.iter().filter(|it| it.is_last) {
        let (begin, end) = (hurt.ended + SOON, hurt.ended + QUIET);
        for node in 0..COUNT {
            let of = requests.iter().filter(|it| it.node == node);
            let within = |it: &&Request| it.begun < end && it.ended > begin;
            let slow = of.clone().filter(within).map(|it| (it.begun.max(begin), it.ended.min(end)));
            // Between two acknowledgements.
            let mut moments: Vec<_> = of
                .filter(|it| it.told == Told::Acknowledged && it.ended > begin && it.ended < end)
                .map(|it| it.ended)
                .chain([begin, end])
                .collect();
            moments.sort_unstable();
            let between = moments.windows(2).map(|pair| (pair[0], pair[1]));
            gaps.extend(slow.chain(between).map(|(from, to)| (node, from, to - from)));
        }
    }
    gaps
}
