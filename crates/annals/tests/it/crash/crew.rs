//! Several handles of one file in shared mode, each in a process of its own, and readers of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use annals::storage::Directory;
use annals::{BackfillMode, Database, ErrorKind, Options, Reader, Snapshot};
use annals_simulated::{SimulatedDisk, is_power_off};
use annals_tools::inspect_in;

use super::history::{Checked, History, State, is_off};
use super::judge;
use super::workload::Step;
use super::world::{End, Errors, NAME, Sharing, Stop, World};

/// One thing that one of several processes does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Opens the database if this process hasn't, and does that.
    Step(Step),
    /// Brings in what the others did.
    Pull,
    /// Closes, if it is open.
    Close,
}

/// A process that may write.
struct Process {
    disk: SimulatedDisk,
    database: Option<Database>,
    /// The last transaction that it showed.
    seen: usize,
    is_poisoned: bool,
}

/// A process that only reads.
struct Watcher {
    reader: Option<Reader>,
    hard_only: bool,
    seen: usize,
}

/// Something that was shown.
type Shown = (u64, State);

/// All processes but the one that acts: what they do, they can also do while that does something.
#[derive(Default)]
struct Others {
    processes: Vec<Process>,
    watchers: Vec<Watcher>,
    /// The processes, then the watchers, with what they were shown meanwhile.
    shown: Vec<(usize, Shown)>,
    /// True if the one that acts has the turn.
    is_taken: bool,
    /// What was wrong in the midst of something.
    broken: Option<String>,
}

/// The processes, with the history of what was promised to any of them.
pub(super) struct Crew {
    /// The disk as no process sees it.
    pub(super) disk: SimulatedDisk,
    world: World,
    errors: Errors,
    others: Arc<Mutex<Others>>,
}

fn lock(others: &Mutex<Others>) -> MutexGuard<'_, Others> {
    others.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Others {
    /// Lets everybody look at what there is, and see that nobody else may write.
    fn interrupt(&mut self, disk: &SimulatedDisk) {
        for number in 0..self.processes.len() {
            let Some(database) = &self.processes[number].database else { continue };
            let begun = database.begin().map(drop);
            let is_right = match &begun {
                Ok(()) => !self.is_taken,
                Err(error) => {
                    matches!(error.kind(), ErrorKind::Busy | ErrorKind::Poisoned)
                }
            };
            if !is_right {
                let text = format!("process {number} tried to begin in another's turn: {begun:?}");
                self.broken.get_or_insert(text);
            }
        }
        if let Err(text) = self.look(disk, true) {
            self.broken.get_or_insert(text);
        }
    }

    /// Lets all readers bring in what there is, and the writers too, if they are to.
    fn look(&mut self, disk: &SimulatedDisk, with_writers: bool) -> Checked {
        for (number, process) in self.processes.iter().enumerate() {
            let Some(database) = process.database.as_ref().filter(|_| with_writers) else {
                continue;
            };
            if let Some(shown) = shown(disk, database.pull())? {
                self.shown.push((number, shown));
            }
        }
        for (number, watcher) in self.watchers.iter_mut().enumerate() {
            if watcher.reader.is_none() {
                let options = Options::new().shared(true).hard_only(watcher.hard_only);
                match options.open_read_only_in(disk, NAME) {
                    Ok(reader) => watcher.reader = Some(reader),
                    Err(error) if error.kind() == ErrorKind::NotFound => continue,
                    Err(error) if is_power_off(&error) => continue,
                    Err(error) => return Err(format!("opening a reader: {error:?}")),
                }
            }
            let Some(reader) = &watcher.reader else { continue };
            if let Some(shown) = shown(disk, reader.pull())? {
                self.shown.push((self.processes.len() + number, shown));
            }
        }
        Ok(())
    }
}

/// Returns what somebody was shown; none if the power is off.
fn shown(disk: &SimulatedDisk, pulled: annals::Result<Snapshot>) -> Checked<Option<Shown>> {
    let shown = pulled.and_then(|snapshot| Ok((snapshot.txid().0, State::of(&snapshot)?)));
    match shown {
        Ok(shown) => Ok(Some(shown)),
        Err(error) if is_off(disk, &error) => Ok(None),
        Err(error) => Err(format!("pulling: {error:?}")),
    }
}

impl Crew {
    pub(super) fn new(disk: SimulatedDisk, processes: usize, seed: u64, errors: Errors) -> Self {
        let world = World::new(disk.clone(), seed, History::new(), errors);
        let process = || {
            let disk = disk.process();
            Process { disk, database: None, seen: 0, is_poisoned: false }
        };
        let watcher = |hard_only| Watcher { reader: None, hard_only, seen: 0 };
        let others = Others {
            processes: std::iter::repeat_with(process).take(processes).collect(),
            watchers: vec![watcher(false), watcher(true)],
            ..Others::default()
        };
        Self { disk, world, errors, others: Arc::new(Mutex::new(others)) }
    }

    pub(super) const fn history(&self) -> &History {
        &self.world.history
    }

    /// Lets the others look, and try to write, right before an operation.
    pub(super) fn interrupt_at(&self, operation: u64) {
        let others = Arc::downgrade(&self.others);
        let watching = self.disk.process();
        self.disk.interrupt_at(operation, move || {
            if let Some(others) = others.upgrade() {
                lock(&others).interrupt(&watching);
            }
        });
    }

    /// Does all that; those that are killed on the way are replaced when it is their turn.
    pub(super) fn run(&mut self, acts: &[(usize, Act)]) -> Checked<End> {
        for (number, (who, act)) in acts.iter().enumerate() {
            let context = |text| format!("act {number}, {act:?} by {who}: {text}");
            let end = self.act(*who, *act).map_err(context)?;
            if end == End::Died {
                return Ok(End::Died);
            }
        }
        Ok(End::Finished)
    }

    /// Lets one process do something. Only without power that is the end.
    fn act(&mut self, who: usize, act: Act) -> Checked<End> {
        self.begin(who);
        let done = self.carry_out(act);
        let is_poisoned = self.world.sharing.is_some_and(|sharing| sharing.poisoned);
        let database = self.world.database.take();
        let mut others = lock(&self.others);
        others.is_taken = false;
        let process = &mut others.processes[who];
        process.is_poisoned = is_poisoned;
        // Also where the operation failed of which nobody is told.
        let is_dead = self.world.disk.list().is_err();
        if is_dead {
            // Its files go before it can do anything more.
            drop(others);
            drop(database);
            let mut others = lock(&self.others);
            others.processes[who].disk = self.disk.process();
            others.processes[who].seen = 0;
        } else {
            process.database = database;
            drop(others);
        }
        self.check()?;
        match done {
            Err(Stop::Broken(text)) => Err(text),
            _ if self.disk.is_off() => Ok(End::Died),
            // A writer that brings in what there is sees more of it than one that only begins.
            Err(Stop::Died) => self.look(self.disk.operations().is_multiple_of(2)),
            Ok(()) => {
                let had_turn = matches!(act, Act::Step(step) if takes_the_turn(step));
                if had_turn && self.errors == Errors::Fatal {
                    self.nothing_follows()?;
                }
                // The writers wait until it is their turn.
                self.look(false)
            }
        }
    }

    /// Puts a process in the place of the one that acts.
    fn begin(&mut self, who: usize) {
        let mut others = lock(&self.others);
        let process = &mut others.processes[who];
        self.world.disk = process.disk.clone();
        self.world.database = process.database.take();
        let poisoned = std::mem::take(&mut process.is_poisoned);
        let joins = others.processes.iter().any(|process| process.database.is_some());
        self.world.sharing = Some(Sharing { joins, poisoned: false });
        drop(others);
        if poisoned {
            self.world.database = None;
        }
    }

    fn carry_out(&mut self, act: Act) -> Result<(), Stop> {
        if act == Act::Close {
            return self.close();
        }
        if self.world.database.is_none() {
            self.world.open(self.world.history.acknowledged())?;
            // Whoever opens has the turn, so what isn't there now will never be.
        }
        match act {
            Act::Step(step @ Step::RestartBehind { .. }) => {
                // Nobody reads what is older then, but for those who are killed, or killed on the way.
                self.world.step(Step::Backfill(BackfillMode::Full))?;
                if let Some(broken) = lock(&self.others).look(&self.disk, true).err() {
                    return Err(Stop::Broken(broken));
                }
                self.world.step(step)
            }
            Act::Step(step) => {
                lock(&self.others).is_taken = takes_the_turn(step);
                self.world.step(step)
            }
            Act::Pull => {
                let pulled = self.world.database().pull().map(drop);
                self.world.shrug("pulling", pulled)
            }
            Act::Close => Ok(()),
        }
    }

    /// Closes; the last one to do so leaves the journal closed.
    fn close(&mut self) -> Result<(), Stop> {
        let Some(database) = self.world.database.take() else { return Ok(()) };
        let closed = database.close();
        if closed.is_ok() && !self.disk.is_off() {
            let inspection = inspect_in(&Options::new(), &self.disk, NAME)
                .map_err(|error| format!("inspecting what was closed: {error:?}"))?;
            self.world.history.settled(inspection.end.txid.0)?;
            self.world.history.harden();
            let is_last = self.world.sharing.is_some_and(|sharing| !sharing.joins);
            if is_last {
                self.world.history.hard = inspection.end.txid.0;
                judge::closed(&self.disk)?;
            } else if inspection.holder().is_none() {
                return Err(Stop::Broken("closed, though others have it open".to_owned()));
            }
        }
        self.world.shrug("closing", closed)
    }

    /// Lets everybody look at what there is.
    fn look(&mut self, with_writers: bool) -> Checked<End> {
        let looked = lock(&self.others).look(&self.disk, with_writers);
        looked?;
        self.check()?;
        Ok(if self.disk.is_off() { End::Died } else { End::Finished })
    }

    /// Checks what was shown to anybody: a state that was, and nothing that was shown to him is gone.
    fn check(&mut self) -> Checked {
        let mut others = lock(&self.others);
        let Others { processes, watchers, shown, broken, .. } = &mut *others;
        let count = processes.len();
        for (who, (txid, state)) in shown.drain(..) {
            let (seen, hard_only) = match who.checked_sub(count) {
                None => (&mut processes[who].seen, false),
                Some(number) => {
                    let Watcher { seen, hard_only, .. } = &mut watchers[number];
                    (seen, *hard_only)
                }
            };
            let checked = self.world.history.shown(txid, state, *seen);
            *seen = checked.map_err(|text| match hard_only {
                false => format!("handle {who} {text}"),
                true => format!("the hard reader {text}"),
            })?;
            if hard_only {
                self.world.history.shown_as_hard(*seen);
            }
        }
        broken.take().map_or(Ok(()), Err)
    }

    /// Checks that nothing is left of those that were interrupted, once another one had the turn.
    fn nothing_follows(&self) -> Checked {
        let inspection = inspect_in(&Options::new(), &self.disk, NAME)
            .map_err(|error| format!("inspecting: {error:?}"))?;
        let tail = (inspection.tail, inspection.uncommitted_frames, inspection.left_out_count);
        match inspection.damage {
            None if tail == (None, 0, 0) => Ok(()),
            damage => Err(format!("left behind: {tail:?}, {damage:?}")),
        }
    }
}

/// True if a process has the turn during all of a step.
const fn takes_the_turn(step: Step) -> bool {
    matches!(
        step,
        Step::Define(_)
            | Step::Write { .. }
            | Step::RollBack { .. }
            | Step::Parts { .. }
            | Step::StreamParts(_)
            | Step::Sized { .. }
            | Step::Stream(_)
            | Step::StreamBack
    )
}
