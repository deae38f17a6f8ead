//! What a writer does that may be killed at any moment: commits of all levels and lengths, alone and in
//! groups, and rollbacks. It says what it submits and what is acknowledged.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use annals::reports::Older;
use annals::{BackfillMode, Database, Level, Options};
use annals_simulated::Rng;

use super::child::{self, Child};
use super::ledger::{NOBODY, audit, schema, write};

/// So long may a turn take to come, on any machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(100);

/// Opens, and commits with several threads until it is killed or told to end.
#[test]
fn child_that_commits() {
    let Some(job) = child::job() else { return };
    let [path, mode, first, threads, seed] = job.as_slice() else { panic!("{job:?}") };
    let [first, threads, seed]: [u64; 3] =
        [first, threads, seed].map(|number| number.parse().unwrap());
    let options = Options::new().shared(mode.starts_with("shared")).lock_timeout(PATIENCE);
    let (restarts, backfills) = (mode.contains("restart"), mode.ends_with("image"));
    let database = options.open_schema(path, &schema()).unwrap();
    audit(&database.read());
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in first..first + threads {
            let (database, ended) = (&database, &ended);
            scope.spawn(move || {
                let rng = Rng::new(seed.wrapping_mul(1000) + writer);
                let mut work = Work { database, writer, number: 0, rng, restarts, backfills };
                while !ended.load(Ordering::Relaxed) {
                    work.step().unwrap();
                }
            });
        }
        child::wait_for_the_parent();
        ended.store(true, Ordering::Relaxed);
    });
    database.close().unwrap();
}

/// What one thread does.
struct Work<'db> {
    database: &'db Database,
    writer: u64,
    number: u64,
    rng: Rng,
    /// True if it lets the journal continue in new segments.
    restarts: bool,
    /// True if it brings the image forward, too.
    backfills: bool,
}

impl Work<'_> {
    /// Commits, rolls back, or submits several and waits for all.
    fn step(&mut self) -> annals::Result<()> {
        if self.restarts && self.rng.percent(20) {
            let older = [Older::Kept, Older::NotNeeded, Older::Forgotten][self.rng.index(3)];
            return self.database.restart(older, PATIENCE).map(drop);
        }
        match self.rng.below(10) {
            8 | 9 if self.backfills => {
                let modes = [BackfillMode::Passive, BackfillMode::Full];
                self.database.backfill(modes[self.rng.index(2)]).map(drop)
            }
            0 => {
                let mut transaction = self.database.begin()?;
                write(&mut transaction, NOBODY, 0, 2, self.bulk())?;
                transaction.rollback()
            }
            1 | 2 => {
                let count = 2 + self.rng.below(4);
                self.commit(count)
            }
            _ => self.commit(1),
        }
    }

    fn commit(&mut self, count: u64) -> annals::Result<()> {
        let first = self.number;
        let mut pending = Vec::new();
        for _ in 0..count {
            let (number, parts, bulk) = (self.number, 1 + self.rng.below(4), self.bulk());
            let mut transaction = self.database.begin()?;
            transaction.set_level(Level::ALL[usize::try_from(self.rng.below(4)).unwrap()]);
            write(&mut transaction, self.writer, number, parts, bulk)?;
            child::say(&format!("submitted {} {number}", self.writer));
            pending.push(transaction.submit()?);
            self.number += 1;
        }
        for (number, pending) in (first..).zip(pending) {
            pending.wait()?;
            child::say(&format!("acknowledged {} {number}", self.writer));
        }
        Ok(())
    }

    /// Returns how long a transaction is: few are several frames long.
    fn bulk(&mut self) -> usize {
        if self.rng.percent(4) { 2_500_000 } else { 0 }
    }
}

/// Starts a child that commits (alone, or `shared`; as `shared image` it brings the image forward, too, as
/// `shared restart` it lets the journal continue in new segments, and as `shared restart image` it does both)
/// with so many threads, of which the first is writer number `first`.
pub(super) fn start(path: &Path, mode: &str, first: u64, threads: u64, seed: u64) -> Child {
    let [first, threads, seed] = [first, threads, seed].map(|number| number.to_string());
    let job = [path.to_str().unwrap(), mode, &first, &threads, &seed];
    Child::start("processes::work::child_that_commits", &job)
}
