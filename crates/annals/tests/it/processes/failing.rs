//! A disk that fails under threads that commit at once.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use annals::storage::Directory;
use annals::storage::simulated::{Fault, Rng, SimulatedDisk};
use annals::{Database, ErrorKind, Level};

use super::crowd::{Crowd, Outcome, open};
use super::effort;
use super::ledger::{Seen, audit};
use super::yielding::{Yielding, YieldingClock};

fn open_on(disk: &SimulatedDisk, seed: u64, background: bool) -> annals::Result<Database> {
    let directory: Arc<dyn Directory> = Arc::new(Yielding::new(Arc::new(disk.clone()), seed));
    open(directory, Arc::new(YieldingClock::new(seed)), background)
}

/// Lets an operation fail while threads commit; gives how the threads ended.
fn run(seed: u64, fault: Fault) -> Vec<Outcome> {
    let disk = SimulatedDisk::new(seed);
    let mut rng = Rng::new(seed);
    let crowd = Crowd::new(open_on(&disk, seed, seed.is_multiple_of(3)).unwrap());
    disk.fail_at(disk.operations() + 10 + rng.below(60), fault);
    let outcomes = crowd.run(2 + seed % 4, 10, seed);

    let shown = audit(&crowd.database.read());
    let is_poisoned = outcomes.iter().any(|outcome| outcome.poisoned || outcome.unknown > 0);
    if is_poisoned {
        // Reads go on, without what isn't known. Nothing is written any more.
        let error = crowd.database.begin().map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
        let error = crowd.database.write(|tx| tx.comment("more")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
        assert!(error.to_string().contains("reopen"), "{error}");
        assert_eq!(crowd.database.hard_checkpoint().unwrap_err().kind(), ErrorKind::Poisoned);
        assert_eq!(audit(&crowd.database.read()), shown);
    }
    let durable = crowd.durable.load(Ordering::SeqCst);
    for _ in 0..4 {
        let after = disk.crash_states().random(&mut rng);
        let seen = reopened(&after, seed);
        assert!(seen.txid >= durable, "{durable} is durable, {} is there: seed {seed}", seen.txid);
    }
    let Crowd { database, .. } = crowd;
    let closed = database.close();
    assert_eq!(closed.is_err(), is_poisoned, "{closed:?}");
    disk.clear_plan();
    reopened(&disk, seed).follows(&shown);
    outcomes
}

/// Opens again, commits at each level, and gives what was there before.
fn reopened(disk: &SimulatedDisk, seed: u64) -> Seen {
    let database = open_on(disk, seed, false).unwrap();
    let seen = audit(&database.read());
    let writer = 1000;
    for (number, level) in (0..).zip(Level::ALL) {
        let mut transaction = database.begin().unwrap();
        transaction.set_level(level);
        super::ledger::write(&mut transaction, writer, number, 2, 0).unwrap();
        transaction.commit().unwrap();
    }
    assert_eq!(audit(&database.read()).of(writer), 4);
    database.close().unwrap();
    seen
}

#[test]
fn a_flush_that_fails_under_many_leaves_what_was_acknowledged() {
    let (mut unknown, mut acknowledged) = (0, 0);
    for seed in 0..effort(80, 4000) {
        let outcomes = run(seed, Fault::FlushLoses);
        unknown += outcomes.iter().map(|outcome| outcome.unknown).sum::<u64>();
        acknowledged += outcomes.iter().map(|outcome| outcome.acknowledged).sum::<u64>();
    }
    assert!(unknown > 10 && acknowledged > 100, "{unknown} unknown, {acknowledged} acknowledged");
}

#[test]
fn a_write_that_fails_under_many_takes_back_its_own_transaction_alone() {
    for seed in 0..effort(40, 2000) {
        let faults = [Fault::Io, Fault::NoSpace, Fault::ShortWrite { bytes: 100 }];
        run(seed, faults[usize::try_from(seed % 3).unwrap()]);
    }
}
