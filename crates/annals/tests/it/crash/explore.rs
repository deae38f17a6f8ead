//! Exploration: what may be on the disk after a crash is opened, judged, written to, and crashed
//! again.
//!
//! Every state has a *place*, such as `mixed-7/power@23/r5/again@4/e2`: workload and seed, the
//! operation of the crash, the state of the disk (`e`: all are tried, this is number 2; `r`: random,
//! drawn from the place itself), the operation of the crash after that opening began, and so on.
//! `ANNALS_TEST_CRASH=place` repeats just that.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use annals::journal::format::hash;
use annals::storage::Directory;
use annals::{BackfillMode, Level};
use annals_simulated::{CrashStates, Fault, Rng, SimulatedDisk};

use super::history::{Checked, History};
use super::images;
use super::imaging::Imaging;
use super::judge;
use super::workload::{Step, named};
use super::world::{End, Errors, Sharing, Stop, World};

/// How much is explored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    /// Up to so many states all are tried; of more than that, `samples`. The second number of each
    /// is for a crash after a crash, the third for one after two.
    pub(super) few: [u128; 3],
    pub(super) samples: [u64; 3],
    /// In so many of 1000 states the power goes off again at every operation of their opening: of
    /// those after a first crash, and after a second one.
    pub(super) again: [u64; 2],
    /// The same of those after a killed process.
    pub(super) killed: u64,
    /// At one of so many operations the power goes off, or the process is killed. Which ones differs between workloads.
    pub(super) places: u64,
    /// One of so many operations gets each kind of fault.
    pub(super) faults: u64,
    /// In so many of 1000 states each read of their opening goes wrong.
    pub(super) reads: u64,
}

pub(super) struct Explorer {
    pub(super) effort: Effort,
    only: Option<String>,
    /// True if half of the states are opened in shared mode.
    pub(super) shares: bool,
    states: AtomicU64,
    /// The states that were tried, so that none is tried twice.
    seen: Mutex<HashSet<u64>>,
}

/// What goes wrong at an operation.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    /// It fails.
    One(Fault),
    /// The disk is full for so many operations.
    Full(u64),
}

impl Trouble {
    /// Returns how many operations after it the power goes off.
    fn when_power_goes(self) -> &'static [u64] {
        const NEVER: u64 = u64::MAX / 2;
        match self {
            // Opening again must not rely on what is in the page cache alone, at any of its steps.
            Self::One(Fault::FlushLoses) => &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, NEVER],
            _ => &[1, 3, 8, NEVER],
        }
    }

    fn plan(self, disk: &SimulatedDisk, operation: u64) {
        match self {
            Self::One(fault) => disk.fail_at(operation, fault),
            Self::Full(count) => disk.fill_at(operation, count),
        }
    }
}

/// In places they are called by their number.
const TROUBLES: [Trouble; 8] = [
    Trouble::One(Fault::Io),
    Trouble::One(Fault::NoSpace),
    Trouble::One(Fault::FlushLoses),
    Trouble::One(Fault::ShortWrite { bytes: 8 }),
    Trouble::One(Fault::ShortWrite { bytes: 600 }),
    Trouble::One(Fault::SplitWrite { bytes: 100 }),
    Trouble::Full(2),
    Trouble::Full(12),
];

const TROUBLES_OF_OPENING: [Trouble; 4] = [
    Trouble::One(Fault::FlushLoses),
    Trouble::One(Fault::ShortWrite { bytes: 520 }),
    Trouble::One(Fault::NoSpace),
    Trouble::Full(8),
];

/// Makes the disk of one state, as often as it is needed.
pub(super) type Make<'a> = &'a dyn Fn() -> SimulatedDisk;

impl Explorer {
    pub(super) fn new(effort: Effort) -> Self {
        let only = std::env::var("ANNALS_TEST_CRASH").ok().map(|place| place + "/");
        Self { effort, only, shares: false, states: AtomicU64::new(0), seen: Mutex::default() }
    }

    /// Returns how many states were opened.
    pub(super) fn states(&self) -> u64 {
        self.states.load(Ordering::Relaxed)
    }

    /// Counts one more state.
    pub(super) fn count_one(&self) {
        self.states.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the operations of a workload that are tried. The end is one of them.
    pub(super) fn places(
        &self,
        workload: &str,
        end: u64,
    ) -> impl DoubleEndedIterator<Item = u64> + use<> {
        let places = if self.only.is_some() { 1 } else { self.effort.places };
        let first = hash(workload.as_bytes()) % places;
        (0..=end).filter(move |at| at % places == first || *at == end)
    }

    /// Cuts the power at the operations of a workload.
    pub(super) fn power(&self, workload: &str) -> Checked {
        for operation in self.places(workload, count(workload)?) {
            let place = format!("{workload}/power@{operation}");
            if !self.is_wanted(&place) {
                continue;
            }
            let (world, _) = run(workload, Errors::Fatal, |disk| disk.crash_at(operation))
                .map_err(|text| format!("{place}: {text}"))?;
            self.every_state(&place, &world.disk.crash_states(), &world.history, 0)
                .map_err(|text| format!("{text}\nafter\n{}", world.disk.transcript()))?;
        }
        Ok(())
    }

    /// As [`power`](Self::power), on a disk that may leave garbage in each sector that was being written.
    pub(super) fn garbage(&self, workload: &str) -> Checked {
        for operation in self.places(workload, count(workload)?) {
            let place = format!("{workload}/garbage@{operation}");
            if !self.is_wanted(&place) {
                continue;
            }
            let (world, _) = run(workload, Errors::Fatal, |disk| disk.crash_at(operation))
                .map_err(|text| format!("{place}: {text}"))?;
            self.every_state(&place, &world.disk.crash_states_with_garbage(), &world.history, 0)
                .map_err(|text| format!("{text}\nafter\n{}", world.disk.transcript()))?;
        }
        Ok(())
    }

    /// Kills the process at the operations of a workload: what it wrote stays in the page cache,
    /// and all that was acknowledged must be there. Then the power goes off in the next opening.
    pub(super) fn kill(&self, workload: &str) -> Checked {
        for operation in self.places(workload, count(workload)?) {
            let place = format!("{workload}/kill@{operation}");
            if !self.is_wanted(&place) {
                continue;
            }
            let kill = |disk: &SimulatedDisk| disk.fail_from(operation, Fault::Io);
            let (mut world, _) =
                run(workload, Errors::Fatal, kill).map_err(|text| format!("{place}: {text}"))?;
            world.database = None;
            let history = world.history;
            let at_least = history.acknowledged();
            let make: Make<'_> = &|| world.disk.fork();
            let explored = || {
                let Some(operations) = self.state(&place, make, &history, at_least)? else {
                    return Ok(());
                };
                self.reads_of_opening(&place, make, &history, at_least)?;
                if !self.is_chosen(&place, self.effort.killed) {
                    return Ok(());
                }
                self.again(&place, make, &history, (at_least, operations), 1)
            };
            explored().map_err(|text| format!("{text}\nafter\n{}", world.disk.transcript()))?;
        }
        Ok(())
    }

    /// Lets operations of a workload fail in every way; the program continues, and then the power
    /// goes off.
    pub(super) fn faults(&self, workload: &str) -> Checked {
        let total = count(workload)?;
        for operation in (0..total).filter(|at| (at + total) % self.effort.faults == 0) {
            for (kind, trouble) in TROUBLES.into_iter().enumerate() {
                for &later in trouble.when_power_goes() {
                    let place = format!("{workload}/fault@{operation}-{kind}/power@{later}");
                    if !self.is_wanted(&place) {
                        continue;
                    }
                    let plan = |disk: &SimulatedDisk| {
                        trouble.plan(disk, operation);
                        disk.crash_at(operation + later);
                    };
                    let (world, _) = run(workload, Errors::Faults, plan)
                        .map_err(|text| format!("{place}: {text}"))?;
                    self.every_state(&place, &world.disk.crash_states(), &world.history, 1)
                        .map_err(|text| format!("{text}\nafter\n{}", world.disk.transcript()))?;
                }
            }
        }
        Ok(())
    }

    /// Goes through all that a power cut may leave, or a sample of it.
    pub(super) fn every_state(
        &self,
        place: &str,
        states: &CrashStates,
        history: &History,
        depth: usize,
    ) -> Checked {
        let (few, samples) = (self.effort.few[depth], self.effort.samples[depth]);
        let state = |place: String, make: Make<'_>| {
            let Some(operations) = self.state(&place, make, history, history.durable)? else {
                return Ok(());
            };
            self.reads_of_opening(&place, make, history, history.durable)?;
            match self.effort.again.get(depth) {
                Some(share) if self.is_chosen(&place, *share) => {
                    self.again(&place, make, history, (history.durable, operations), depth + 1)
                }
                _ => Ok(()),
            }
        };
        if let Some(count) = states.count().filter(|count| *count <= few) {
            return (0..count).try_for_each(|number| {
                state(format!("{place}/e{number}"), &|| states.state(number))
            });
        }
        (0..samples).try_for_each(|number| {
            let place = format!("{place}/r{number}");
            let make = || match number {
                0 => states.oldest(),
                2 => states.all_but_last(),
                4 => states.newest(),
                _ => states.random(&mut Rng::new(hash(place.as_bytes()))),
            };
            state(place.clone(), &make)
        })
    }

    /// Opens one state, judges it, continues. Gives how many operations there were, up to a few after
    /// the opening; none if this was done already, or isn't wanted.
    pub(super) fn state(
        &self,
        place: &str,
        make: Make<'_>,
        history: &History,
        at_least: usize,
    ) -> Checked<Option<u64>> {
        if !self.is_wanted(place) {
            return Ok(None);
        }
        let disk = make();
        if !self.is_new(&disk, history, at_least) {
            return Ok(None);
        }
        self.count_one();
        let before = disk.operations();
        let looked =
            catch_unwind(AssertUnwindSafe(|| self.look(place, &disk, (history, at_least))));
        let opening = looked
            .unwrap_or_else(|_| Err("panicked".to_owned()))
            .map_err(|text| format!("{place}: {text}\n{}", disk.transcript()))?;
        Ok(Some((disk.operations() - before).min(opening + 8)))
    }

    /// Opens, judges, continues. Gives how many operations the opening took.
    fn look(
        &self,
        place: &str,
        disk: &SimulatedDisk,
        (history, at_least): (&History, usize),
    ) -> Checked<u64> {
        let before = judge::before(disk, history)?;
        let mut world = self.world(place, disk.clone(), history, Errors::Fatal);
        let started = disk.operations();
        let finish = |stop| match stop {
            Stop::Broken(text) => text,
            Stop::Died => "died, though the power is on".to_owned(),
        };
        world.open(at_least).map_err(finish)?;
        let opening = disk.operations() - started;
        judge::opened(disk, &before, world.database())?;
        images::opened(&world)?;
        go_on(&mut world).map_err(|stop| format!("going on: {}", finish(stop)))?;
        Ok(opening)
    }

    /// Returns a world with a disk that a crash left.
    fn world(&self, place: &str, disk: SimulatedDisk, history: &History, errors: Errors) -> World {
        let mut world = World::new(disk, 1, history.clone(), errors);
        let is_shared = self.shares && hash(place.as_bytes()).is_multiple_of(2);
        world.sharing = is_shared.then(Sharing::default);
        world.imaging = Imaging::of(place);
        world
    }

    /// True if this state, with these promises, wasn't tried yet.
    fn is_new(&self, disk: &SimulatedDisk, history: &History, at_least: usize) -> bool {
        let mut key = history.key(at_least);
        // The page cache of a machine whose process was killed holds more than what can be read.
        key.extend(disk.operations().to_le_bytes());
        for name in disk.list().unwrap() {
            key.extend(hash(&disk.content(&name).unwrap()).to_le_bytes());
            key.extend(name.bytes());
        }
        self.seen.lock().unwrap().insert(hash(&key))
    }

    /// Opens the same state again and again; each time the power goes off one operation later, or
    /// that operation fails. This is crash number `depth + 1`.
    pub(super) fn again(
        &self,
        place: &str,
        make: Make<'_>,
        history: &History,
        (at_least, operations): (usize, u64),
        depth: usize,
    ) -> Checked {
        for operation in 0..operations {
            let place = format!("{place}/again@{operation}");
            if !self.is_wanted(&place) {
                continue;
            }
            let disk = make();
            disk.crash_at(disk.operations() + operation);
            let mut world = self.world(&place, disk, history, Errors::Fatal);
            if let Err(Stop::Broken(text)) = world.open(at_least).and_then(|()| go_on(&mut world)) {
                return Err(format!("{place}: {text}"));
            }
            self.every_state(&place, &world.disk.crash_states(), &world.history, depth)?;
        }
        for (kind, trouble) in TROUBLES_OF_OPENING.into_iter().enumerate() {
            for operation in 0..operations {
                let place = format!("{place}/fault@{operation}-{kind}");
                if !self.is_wanted(&place) {
                    continue;
                }
                let disk = make();
                trouble.plan(&disk, disk.operations() + operation);
                let mut world = self.world(&place, disk, history, Errors::Faults);
                let write = Step::Write { rows: 1, level: Level::Soft };
                if let Err(Stop::Broken(text)) =
                    world.open(at_least).and_then(|()| world.step(write))
                {
                    return Err(format!("{place}: {text}"));
                }
                self.every_state(&place, &world.disk.crash_states(), &world.history, depth)?;
            }
        }
        Ok(())
    }

    /// True if something is done at a place that is done only at so many of 1000.
    pub(super) fn is_chosen(&self, place: &str, share: u64) -> bool {
        hash(place.as_bytes()) % 1000 < share || self.only.is_some()
    }

    pub(super) fn is_wanted(&self, place: &str) -> bool {
        let place = format!("{place}/");
        let only = self.only.as_ref();
        only.is_none_or(|only| only.starts_with(&place) || place.starts_with(only.as_str()))
    }
}

/// Runs a workload on a new disk for which something is planned.
pub(super) fn run(
    workload: &str,
    errors: Errors,
    plan: impl FnOnce(&SimulatedDisk),
) -> Checked<(World, End)> {
    let disk = SimulatedDisk::new(hash(workload.as_bytes()));
    plan(&disk);
    let mut world = World::new(disk, hash(workload.as_bytes()), History::new(), errors);
    world.padded = workload.starts_with("padded-");
    world.imaging = Imaging::of(workload);
    let end = catch_unwind(AssertUnwindSafe(|| world.run(&named(workload))));
    match end {
        Ok(end) => Ok((world, end?)),
        Err(_) => Err("panicked".to_owned()),
    }
}

/// Returns how many operations a workload has when nothing goes wrong.
pub(super) fn count(workload: &str) -> Checked<u64> {
    let (world, end) =
        run(workload, Errors::Fatal, |_| ()).map_err(|text| format!("{workload}: {text}"))?;
    assert_eq!(end, End::Finished, "nothing went wrong");
    Ok(world.disk.operations())
}

/// Writes some more, closes and opens.
fn go_on(world: &mut World) -> Result<(), Stop> {
    world.step(Step::Write { rows: 1, level: Level::Soft })?;
    let level = Level::ALL[world.history.acknowledged() % Level::ALL.len()];
    world.step(Step::Write { rows: 2, level })?;
    if world.imaging.is_some() {
        world.step(Step::Backfill(BackfillMode::Full))?;
        world.step(Step::Backfilling { rows: 1, level: Some(level) })?;
        world.step(Step::Backfill(BackfillMode::Passive))?;
    }
    world.step(Step::Rest)?;
    world.step(Step::Reopen)?;
    if world.errors == Errors::Fatal {
        images::opened(world)?;
    }
    judge::closed(&world.disk)
        .and_then(|()| judge::only_zeros_follow(&world.disk, world.database()))
        .map_err(Stop::Broken)
}
