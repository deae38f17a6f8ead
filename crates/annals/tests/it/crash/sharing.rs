//! Several processes with one file: one of them is killed at each operation and the others continue, or
//! the power goes off, or an operation fails.

use annals::BackfillMode;
use annals::journal::format::hash;
use annals_simulated::{Fault, Rng, SimulatedDisk};

use super::crew::{Act, Crew};
use super::explore::{Explorer, Make};
use super::history::Checked;
use super::workload::{Step, level, older};
use super::world::{End, Errors};

/// What one of the processes does, and which.
type Acts = Vec<(usize, Act)>;

/// How the operation fails at which a process is killed: it was not issued, or it came through in part.
const LAST: [Fault; 2] = [Fault::Io, Fault::ShortWrite { bytes: 520 }];

/// What an operation does when nobody is killed, and the power goes off some operations later.
const FAULTS: [Fault; 3] = [Fault::FlushLoses, Fault::ShortWrite { bytes: 600 }, Fault::NoSpace];

const NEVER: u64 = u64::MAX / 2;

/// Returns a workload of two or three processes that take turns.
fn acts(workload: &str) -> (usize, Acts) {
    let (_, seed) = workload.split_once('-').unwrap();
    let mut rng = Rng::new(seed.parse().unwrap());
    let count = 2 + rng.index(2);
    let is_long = is_long(workload);
    let mut acts = vec![(0, Act::Step(Step::Define(level(&mut rng, 50))))];
    for _ in 0..if is_long { 5 } else { 10 } {
        let who = rng.index(count);
        let step = if is_long && rng.percent(40) {
            let level = level(&mut rng, 50);
            match rng.below(10) {
                0..4 => Step::StreamBack,
                4..7 => Step::StreamParts(level),
                _ => Step::Stream(level),
            }
        } else {
            step(&mut rng, workload)
        };
        let act = match rng.below(20) {
            0 | 1 => Act::Pull,
            2 | 3 => Act::Close,
            _ => Act::Step(step),
        };
        acts.push((who, act));
    }
    (count, acts)
}

fn step(rng: &mut Rng, workload: &str) -> Step {
    let level = level(rng, 40);
    if workload.starts_with("sharedrestart") && rng.percent(30) {
        return Step::Restart(older(rng));
    }
    if workload.starts_with("sharedimage") && rng.percent(45) {
        return match rng.below(10) {
            0..4 => Step::Backfill(BackfillMode::Full),
            4..6 => Step::Backfill(BackfillMode::Passive),
            6..9 => Step::RestartBehind { forget: false },
            _ => Step::RestartBehind { forget: true },
        };
    }
    match rng.below(16) {
        0 => Step::Empty(level),
        1 => Step::RollBack { rows: 1 + rng.below(3) },
        2 => Step::Parts { rows: 1 + rng.below(2), level },
        3 => Step::Rest,
        4 => Step::SoftCheckpoint,
        5 | 6 => Step::HardCheckpoint,
        7 => Step::Define(level),
        8 => Step::Sized { bytes: 30_000 + rng.index(60_000), level },
        _ => Step::Write { rows: 1 + rng.below(4), level },
    }
}

/// Runs a workload on a new disk for which something is planned.
fn run(workload: &str, errors: Errors, plan: impl FnOnce(&Crew)) -> Checked<(Crew, End)> {
    let (count, acts) = acts(workload);
    let seed = hash(workload.as_bytes());
    let mut crew = Crew::new(SimulatedDisk::new(seed), count, seed, errors);
    plan(&crew);
    match crew.run(&acts) {
        Ok(end) => Ok((crew, end)),
        Err(text) => Err(format!("{text}\nafter\n{}", crew.disk.transcript())),
    }
}

/// Returns how many operations a workload has when nothing goes wrong.
fn count(workload: &str) -> Checked<u64> {
    let (crew, end) = run(workload, Errors::Fatal, |_| ())?;
    assert_eq!(end, End::Finished, "nothing went wrong");
    Ok(crew.disk.operations())
}

/// True if a workload writes megabytes, so that every run is dear.
fn is_long(workload: &str) -> bool {
    workload.starts_with("sharedlong-")
}

impl Explorer {
    /// Lets everything happen that may happen to several processes.
    pub(super) fn shared(&self, workload: &str) -> Checked {
        self.turns(workload)?;
        self.shared_power(workload)?;
        self.killed(workload)?;
        self.shared_faults(workload)
    }

    /// Lets all others look, and try to write, right before operations.
    pub(super) fn turns(&self, workload: &str) -> Checked {
        for operation in self.places(workload, count(workload)?).rev() {
            let place = format!("{workload}/turn@{operation}");
            self.crew(&place, Errors::Fatal, |crew| crew.interrupt_at(operation))?;
        }
        Ok(())
    }

    /// Cuts the power at the operations.
    pub(super) fn shared_power(&self, workload: &str) -> Checked {
        for operation in self.places(workload, count(workload)?).rev() {
            let place = format!("{workload}/power@{operation}");
            self.crew(&place, Errors::Fatal, |crew| crew.disk.crash_at(operation))?;
        }
        Ok(())
    }

    /// Kills the process whose operation it is, at the operations; the others continue, and a new one
    /// takes its place. In the end, or some operations later, the power goes off.
    pub(super) fn killed(&self, workload: &str) -> Checked {
        for operation in self.places(workload, count(workload)?).rev() {
            for (kind, fault) in LAST.into_iter().enumerate() {
                for &later in if is_long(workload) { &[5, NEVER][..] } else { &[2, 5, 9, NEVER] } {
                    let place = format!("{workload}/killed@{operation}-{kind}/power@{later}");
                    self.crew(&place, Errors::Fatal, |crew| {
                        crew.disk.kill_at(operation, fault);
                        crew.disk.crash_at(operation + later);
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Lets operations fail; the others continue, and then the power goes off.
    pub(super) fn shared_faults(&self, workload: &str) -> Checked {
        let total = count(workload)?;
        for operation in (0..total).filter(|at| (at + total) % self.effort.faults == 0) {
            for (kind, fault) in FAULTS.into_iter().enumerate() {
                for later in [1, 2, 3, 4, 6, 8, 12, 20, NEVER] {
                    let place = format!("{workload}/fault@{operation}-{kind}/power@{later}");
                    self.crew(&place, Errors::Faults, |crew| {
                        crew.disk.fail_at(operation, fault);
                        crew.disk.crash_at(operation + later);
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Runs a workload; judges what is there when all processes have died, and what a power cut leaves.
    fn crew(&self, place: &str, errors: Errors, plan: impl FnOnce(&Crew)) -> Checked {
        if !self.is_wanted(place) {
            return Ok(());
        }
        let workload = place.split('/').next().unwrap_or_default();
        let (crew, end) = run(workload, errors, plan).map_err(|text| format!("{place}: {text}"))?;
        let (disk, history) = (&crew.disk, crew.history());
        let explored = || {
            if end == End::Finished {
                let make: Make<'_> = &|| disk.fork();
                self.state(&format!("{place}/end"), make, history, history.acknowledged())?;
            }
            self.every_state(place, &disk.crash_states(), history, 1)
        };
        explored().map_err(|text| format!("{text}\nafter\n{}", disk.transcript()))
    }
}

/// What is to be crashed happens: others who read what is older could always be in the way.
#[test]
fn several_bring_the_image_forward_and_restart_the_journal_behind_it() {
    let (mut images, mut kept, mut forgotten) = (0, 0, 0);
    for seed in 0..12 {
        let (crew, end) = run(&format!("sharedimage-{seed}"), Errors::Fatal, |_| ()).unwrap();
        assert_eq!(end, End::Finished);
        let done = crew.disk.transcript();
        let count = |what: &str| done.lines().filter(|line| line.starts_with(what)).count();
        // First copies of roots.
        images += count("write journal-image 4608") + count("write journal-image 8704");
        kept += count("link journal journal-segment");
        forgotten += count("remove journal-segment");
    }
    assert!(images > 10 && kept > 5 && forgotten > 0, "{images}, {kept}, {forgotten}");
}
