//! A database on a simulated disk, and what it should hold.

use std::rc::Rc;
use std::sync::Arc;

use annals::reports::BackfillOutcome;
use annals::storage::{Clock, Directory};
use annals::{BackfillMode, Database, Level, Options, Reader, Snapshot, Timestamp, Txid};
use annals_simulated::{Rng, SimulatedClock, SimulatedDisk};

use super::journal::{self, Commit};
use super::model::Model;
use super::statements::{Step, agree};
use super::{NAME, look};
use crate::store_model::Random;

/// How the program ends.
#[derive(Clone, Copy)]
pub(crate) enum End {
    Close,
    Drop,
    /// What was written is with the operating system.
    Kill,
    /// Of what wasn't flushed, anything may be there.
    PowerCut,
}

const ENDS: [End; 4] = [End::Close, End::Drop, End::Kill, End::PowerCut];

pub(crate) struct World {
    pub(super) random: Random,
    pub(crate) disk: SimulatedDisk,
    clock: Arc<SimulatedClock>,
    database: Option<Database>,
    pub(super) committed: Rc<Model>,
    pub(super) commits: Vec<Commit>,
    /// All states from the last durable one on, by the number of commits that they rest on.
    states: Vec<(usize, Rc<Model>)>,
    held: Vec<(Snapshot, Rc<Model>)>,
    /// Schemas that there have been.
    pub(super) schemas: Vec<Rc<Model>>,
    /// The state after each transaction.
    past: Vec<Rc<Model>>,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut world = Self {
            random: Random::new(seed),
            disk: SimulatedDisk::new(seed),
            clock: Arc::new(SimulatedClock::new(seed)),
            database: None,
            committed: Rc::default(),
            commits: Vec::new(),
            states: Vec::new(),
            held: Vec::new(),
            schemas: vec![Rc::default()],
            past: vec![Rc::default()],
        };
        world.open();
        world
    }

    pub(crate) fn database(&self) -> &Database {
        self.database.as_ref().unwrap()
    }

    /// Opens what is on the disk, which is one of the states that may be there.
    pub(crate) fn open(&mut self) {
        let directory: Arc<dyn Directory> = Arc::new(self.disk.clone());
        let clock: Arc<dyn Clock> = Arc::clone(&self.clock) as _;
        // How much of the image stays in memory: all, nothing, a little.
        let memory = *self.random.pick(&[0, 0, 0, 0, 1, 64 << 10]);
        // One key frame for each backfill, at most.
        let spacing = *self.random.pick(&[0, 1000, 1 << 20]);
        let options = Options::new().background(false).memory(memory).key_frame_spacing(spacing);
        let opened = options.open_in(directory, NAME, clock).unwrap();
        let findings = &opened.recovered().findings;
        let of_image = findings.iter().find(|finding| finding.contains("image"));
        assert_eq!(of_image, None, "the image is always good");
        let found = usize::try_from(opened.read().txid().0).unwrap();
        if let Some((_, state)) = self.states.iter().find(|(commits, _)| *commits == found) {
            self.committed = Rc::clone(state);
        }
        let promised = self.states.first().map_or(0, |(commits, _)| *commits);
        assert!(found >= promised, "commit {found} is the last, and {promised} was durable");
        self.commits.truncate(found);
        self.past.truncate(found + 1);
        assert_eq!(self.commits.len(), found);
        self.database = Some(opened);
        self.is_durable();
        self.look(true);
    }

    /// Notes that all that was committed is durable.
    fn is_durable(&mut self) {
        self.states = vec![(self.commits.len(), Rc::clone(&self.committed))];
    }

    /// Compares what is committed.
    pub(super) fn look(&mut self, all: bool) {
        let now = self.database.as_ref().unwrap().read();
        assert_eq!(now.txid(), annals::Txid(self.commits.len() as u64));
        look::snapshot(&now, &self.committed, &mut self.random, all);
    }

    /// Notes a commit.
    pub(super) fn commit(&mut self, mut model: Model, level: Level, time: Option<i64>) {
        model.end_transaction();
        if model.lines.len() != self.committed.lines.len() {
            self.schemas.push(Rc::clone(&self.committed));
        }
        self.committed = Rc::new(model);
        self.past.push(Rc::clone(&self.committed));
        self.commits.push((self.commits.len() as u64 + 1, level, time));
        self.states.push((self.commits.len(), Rc::clone(&self.committed)));
        if level.is_durable() {
            self.is_durable();
        }
    }

    /// Runs a transaction that does anything, and ends in any way.
    pub(crate) fn transaction(&mut self) {
        let database = self.database.take().unwrap();
        let mut model = Model::clone(&self.committed);
        let mut tx = database.begin().unwrap();
        let mut step =
            Step { tx: &mut tx, model: &mut model, random: &mut self.random, wrote: false };
        let mut image_has_all = false;
        for _ in 0..step.random.below(12) {
            step.run();
            if step.random.chance(6) {
                let told = database.backfill(BackfillMode::Passive).unwrap();
                image_has_all |= told.outcome != BackfillOutcome::Postponed;
            }
        }
        let wrote = step.wrote;
        if image_has_all {
            self.is_durable();
        }
        assert_eq!(tx.is_empty(), !wrote);
        look::transaction(&tx, &model, &mut self.random);
        let level = *self.random.pick(&[Level::Soft, Level::Checksummed]);
        tx.set_level(level);
        let time = self.random.chance(20).then(|| self.random.next().cast_signed());
        time.map(Timestamp).into_iter().for_each(|time| tx.set_time(time));
        match self.random.below(30) {
            0 => tx.rollback().unwrap(),
            1 => drop(tx),
            2 => {
                self.disk = self.after_crash();
                drop(tx);
                drop(database);
                return self.open();
            }
            _ => {
                let verdict = if wrote { model.verdict() } else { Ok(()) };
                let before = self.commits.len() as u64;
                let commit = tx.commit();
                if let Ok(commit) = &commit {
                    let expected = (before + u64::from(wrote), level);
                    assert_eq!((commit.txid.0, commit.level), expected);
                }
                agree(commit, verdict);
                match verdict {
                    Ok(()) if wrote => self.commit(model, level, time),
                    Ok(()) if level.is_durable() => self.is_durable(),
                    _ => {}
                }
            }
        }
        self.database = Some(database);
        self.look(false);
    }

    /// Does a few things to another database that has the state of this one, in up to so many transactions. They stay
    /// unknown here.
    pub(crate) fn elsewhere(&mut self, database: &Database, most: u64) {
        let mut model = Model::clone(&self.committed);
        for _ in 0..=self.random.below(most) {
            let mut tx = database.begin().unwrap();
            let mut step =
                Step { tx: &mut tx, model: &mut model, random: &mut self.random, wrote: false };
            (0..=step.random.below(4)).for_each(|_| step.run());
            let verdict = if step.wrote { model.verdict() } else { Ok(()) };
            agree(tx.commit(), verdict);
            if verdict.is_err() {
                return;
            }
            model.end_transaction();
        }
    }

    /// Returns what a kill or a power cut leaves now.
    fn after_crash(&mut self) -> SimulatedDisk {
        let states = self.disk.crash_states();
        match self.random.chance(50) {
            true => states.newest(),
            false => states.random(&mut Rng::new(self.random.next())),
        }
    }

    /// Ends the program in any way, and starts it again.
    pub(super) fn restart(&mut self) {
        let end = *self.random.pick(&ENDS);
        self.end(end);
        self.open();
    }

    /// Ends the program.
    pub(crate) fn end(&mut self, end: End) {
        let database = self.database.take().unwrap();
        match end {
            End::Close => database.close().unwrap(),
            End::Drop => drop(database),
            End::Kill => self.disk = self.disk.crash_states().newest(),
            End::PowerCut => {
                let mut rng = Rng::new(self.random.next());
                self.disk = self.disk.crash_states().random(&mut rng);
            }
        }
        match end {
            End::PowerCut => {}
            // Nothing of what was committed may be missing.
            End::Close | End::Drop | End::Kill => self.is_durable(),
        }
    }

    pub(super) fn checkpoint(&mut self) {
        let (last, database) = (self.commits.len() as u64, self.database.as_ref().unwrap());
        match self.random.below(3) {
            0 => assert_eq!(database.soft_checkpoint().unwrap().txid, annals::Txid(last)),
            1 => database.rest().unwrap(),
            _ => {
                assert_eq!(database.hard_checkpoint().unwrap().txid, annals::Txid(last));
                self.is_durable();
            }
        }
    }

    /// Brings the image forward.
    pub(super) fn backfill(&mut self) {
        let mode = *self.random.pick(&[BackfillMode::Passive, BackfillMode::Full]);
        let told = self.database().backfill(mode).unwrap();
        assert_eq!(told.txid, annals::Txid(self.commits.len() as u64), "{told:?}");
        self.is_durable();
        self.look(false);
    }

    /// Keeps a snapshot, and looks at one that was kept.
    pub(crate) fn hold(&mut self) {
        self.held.push((self.database().read(), Rc::clone(&self.committed)));
        let place = usize::try_from(self.random.below(self.held.len() as u64)).unwrap();
        let (snapshot, model) = &self.held[place];
        look::snapshot(snapshot, model, &mut self.random, false);
        if self.held.len() > 5 {
            self.held.remove(place);
        }
    }

    /// Looks at some moments of the past, through the schema of then and through the present one.
    pub(super) fn past(&mut self) {
        for _ in 0..3 {
            let txid = self.random.below(self.past.len() as u64);
            let then = Rc::clone(&self.past[usize::try_from(txid).unwrap()]);
            let found = self.database().as_it_was(Txid(txid)).unwrap();
            assert_eq!(found.txid(), annals::Txid(txid));
            look::snapshot(&found, &then, &mut self.random, false);
            let through = self.database().at(Txid(txid)).unwrap();
            let mut known: Vec<_> = self.committed.commands.clone();
            known.truncate(then.commands.len());
            assert_eq!(known, then.commands, "the schema of then is how that of now begins");
            look::through(&through, &then, &self.committed);
        }
    }

    /// Opens for reading only beside the writer.
    pub(super) fn read_only(&mut self) {
        let reader = Reader::open(&self.disk, NAME).unwrap();
        assert_eq!(reader.read().point(), self.database().read().point());
        look::snapshot(&reader.read(), &self.committed, &mut self.random, true);
    }

    pub(super) fn replay(&mut self) {
        journal::compare(&self.disk, &self.committed, &self.commits, &mut self.random);
        for (snapshot, model) in &self.held {
            look::snapshot(snapshot, model, &mut self.random, true);
        }
    }
}
