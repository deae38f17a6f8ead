//! Threads that commit at once through one handle, and look at once at what they were promised.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use annals::storage::{Clock, Directory, FileDirectory, MemoryDirectory, SystemClock};
use annals::{Database, Error, ErrorKind, Level, Options, Pending};
use annals_simulated::Rng;

use super::effort;
use super::ledger::{NOBODY, Seen, audit, schema, totals, write};
use super::yielding::{Yielding, YieldingClock};

/// One database, and what was acknowledged by anybody.
pub(super) struct Crowd {
    pub(super) database: Database,
    /// The newest acknowledged transaction.
    acknowledged: AtomicU64,
    /// The newest one that is acknowledged at a level that a power cut doesn't touch.
    pub(super) durable: AtomicU64,
}

/// How a thread ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcome {
    pub(super) acknowledged: u64,
    /// How many commits have an outcome that isn't known.
    pub(super) unknown: u64,
    pub(super) poisoned: bool,
}

impl Crowd {
    pub(super) fn new(database: Database) -> Self {
        Self { database, acknowledged: AtomicU64::new(0), durable: AtomicU64::new(0) }
    }

    /// Lets so many threads do so many steps each, while one looks on.
    pub(super) fn run(&self, threads: u64, steps: u64, seed: u64) -> Vec<Outcome> {
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let watcher = scope.spawn(|| self.watch(&ended));
            let workers: Vec<_> = (0..threads)
                .map(|writer| {
                    let rng = Rng::new(seed * 100 + writer);
                    let worker = Worker { crowd: self, writer, rng, seen: 0, number: 0 };
                    scope.spawn(move || worker.run(steps))
                })
                .collect();
            let outcomes: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
            ended.store(true, Ordering::Relaxed);
            watcher.join().unwrap();
            outcomes.into_iter().map(Result::unwrap).collect()
        })
    }

    /// Looks all the while: what was seen stays, and nothing is seen without all before it.
    fn watch(&self, ended: &AtomicBool) {
        let mut before = Seen::default();
        while !ended.load(Ordering::Relaxed) {
            let promised = self.acknowledged.load(Ordering::SeqCst);
            let seen = audit(&self.database.read());
            assert!(seen.txid >= promised, "{promised} is acknowledged, {} is shown", seen.txid);
            seen.follows(&before);
            before = seen;
            std::thread::yield_now();
        }
    }
}

struct Worker<'a> {
    crowd: &'a Crowd,
    writer: u64,
    rng: Rng,
    seen: u64,
    number: u64,
}

impl<'a> Worker<'a> {
    fn run(mut self, steps: u64) -> Outcome {
        let mut outcome = Outcome::default();
        for _ in 0..steps {
            if let Err(error) = self.step(&mut outcome) {
                match error.kind() {
                    // The commit was taken back: its number is free.
                    ErrorKind::Io => {}
                    ErrorKind::Poisoned => {
                        outcome.poisoned = true;
                        break;
                    }
                    _ => panic!("{error:?}"),
                }
            }
        }
        outcome
    }

    fn step(&mut self, outcome: &mut Outcome) -> annals::Result<()> {
        match self.rng.below(10) {
            0 => {
                let mut transaction = self.crowd.database.begin()?;
                write(&mut transaction, NOBODY, 0, 2, 0)?;
                drop(transaction);
            }
            1 => {
                // Nothing of its own, but what it saw must not be taken back.
                let mut transaction = self.crowd.database.begin()?;
                let level = self.level();
                transaction.set_level(level);
                let shown = totals(transaction.view()).1;
                transaction.commit()?;
                self.look(shown + 1);
            }
            2 | 3 => {
                let count = 2 + self.rng.below(3);
                let mut pending = Vec::new();
                for _ in 0..count {
                    match self.submit() {
                        Ok(submitted) => pending.push(submitted),
                        Err(error) => {
                            self.wait(pending, outcome);
                            return Err(error);
                        }
                    }
                }
                if self.rng.percent(30) {
                    pending.reverse();
                }
                if self.rng.percent(20) {
                    pending.pop(); // somebody else has to acknowledge it
                }
                self.wait(pending, outcome);
            }
            _ => {
                let pending = self.submit()?;
                self.wait(vec![pending], outcome);
            }
        }
        Ok(())
    }

    fn submit(&mut self) -> annals::Result<(u64, Pending<'a>)> {
        let mut transaction = self.crowd.database.begin()?;
        let level = self.level();
        transaction.set_level(level);
        let parts = 1 + self.rng.below(3);
        write(&mut transaction, self.writer, self.number, parts, 0)?;
        let txid = totals(transaction.view()).1 + 1;
        let pending = transaction.submit()?;
        self.number += 1;
        Ok((txid, pending))
    }

    fn wait(&mut self, pending: Vec<(u64, Pending<'a>)>, outcome: &mut Outcome) {
        for (txid, pending) in pending {
            match pending.wait() {
                Ok(commit) => {
                    assert_eq!(
                        commit.txid,
                        annals::Txid(txid),
                        "what was counted is what was numbered"
                    );
                    self.look(txid);
                    let crowd = self.crowd;
                    crowd.acknowledged.fetch_max(txid, Ordering::SeqCst);
                    if commit.level.is_durable() {
                        crowd.durable.fetch_max(txid, Ordering::SeqCst);
                    }
                    outcome.acknowledged += 1;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::UnknownOutcome, "{error}");
                    assert!(error.to_string().contains(&format!("transaction {txid} ")), "{error}");
                    outcome.unknown += 1;
                }
            }
        }
    }

    /// What was acknowledged is visible at once, and nothing is gone that was.
    fn look(&mut self, acknowledged: u64) {
        let others = self.crowd.acknowledged.load(Ordering::SeqCst);
        let snapshot = self.crowd.database.read();
        let (_, transactions) = totals(&snapshot);
        assert_eq!(transactions + 1, snapshot.txid().0);
        let least = acknowledged.max(others).max(self.seen);
        assert!(
            snapshot.txid() >= annals::Txid(least),
            "{least} was seen or promised, not {}",
            snapshot.txid()
        );
        self.seen = snapshot.txid().0;
    }

    fn level(&mut self) -> Level {
        Level::ALL[self.rng.index(4)]
    }
}

/// Opens a database of ledgers.
pub(super) fn open(
    directory: Arc<dyn Directory>,
    clock: Arc<dyn Clock>,
    background: bool,
) -> annals::Result<Database> {
    let database = Options::new().background(background).open_in(directory, "crowd", clock)?;
    database.upgrade(&schema(), &mut |custom, _| {
        Err(Error::invalid(format!("no custom function {}", custom.name)))
    })?;
    Ok(database)
}

fn all_is_acknowledged(crowd: Crowd, outcomes: &[Outcome]) -> Seen {
    assert!(outcomes.iter().all(|outcome| outcome.unknown == 0 && !outcome.poisoned));
    crowd.database.soft_checkpoint().unwrap();
    let seen = audit(&crowd.database.read());
    assert!(seen.of.values().sum::<u64>() >= outcomes.iter().map(|o| o.acknowledged).sum());
    crowd.database.close().unwrap();
    seen
}

#[test]
fn what_is_acknowledged_is_seen_at_once_by_all_threads() {
    let folder = tempfile::tempdir().unwrap();
    let directory: Arc<dyn Directory> = Arc::new(FileDirectory::new(folder.path()));
    let clock = || Arc::new(SystemClock);
    let crowd = Crowd::new(open(Arc::clone(&directory), clock(), true).unwrap());
    let outcomes = crowd.run(6, effort(60, 2000), 1);
    let seen = all_is_acknowledged(crowd, &outcomes);
    let database = open(directory, clock(), false).unwrap();
    assert!(!database.recovered().unclean);
    assert_eq!(audit(&database.read()), seen);
}

#[test]
fn threads_take_turns_in_many_ways() {
    for seed in 0..effort(60, 3000) {
        let directory: Arc<dyn Directory> =
            Arc::new(Yielding::yielding(Arc::new(MemoryDirectory::new()), seed));
        let clock = || Arc::new(YieldingClock::new(seed));
        let crowd =
            Crowd::new(open(Arc::clone(&directory), clock(), seed.is_multiple_of(4)).unwrap());
        let outcomes = crowd.run(2 + seed % 4, 12, seed);
        let seen = all_is_acknowledged(crowd, &outcomes);
        let database = open(directory, clock(), false).unwrap();
        assert_eq!(audit(&database.read()), seen, "seed {seed}");
    }
}
