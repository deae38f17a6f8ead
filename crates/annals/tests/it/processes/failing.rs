//! A disk that fails under threads that commit at once.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use annals::storage::Directory;
use annals::{Database, ErrorKind, Level};
use annals_simulated::{Fault, Rng, SimulatedDisk};

use super::crowd::{Crowd, Outcome, open};
use super::effort;
use super::ledger::{Seen, audit};
use super::yielding::{Yielding, YieldingClock};

fn open_on(disk: &SimulatedDisk, seed: u64, background: bool) -> annals::Result<Database> {
    let directory: Arc<dyn Directory> = Arc::new(Yielding::yielding(Arc::new(disk.clone()), seed));
    open(directory, Arc::new(YieldingClock::new(seed)), background)
}

/// Lets an operation fail while threads commit; returns how the threads ended.
fn run(seed: u64, fault: Fault) -> Vec<Outcome> {
    let disk = SimulatedDisk::new(seed);
    let mut rng = Rng::new(seed);
    let crowd = Crowd::new(open_on(&disk, seed, seed.is_multiple_of(3)).unwrap());
    disk.fail_at(disk.operations() + 10 + rng.below(60), fault);
    let outcomes = crowd.run(2 + seed % 4, 10, seed);
    disk.clear_plan();

    let shown = audit(&crowd.database.read());
    let refused = crowd.database.begin().err();
    let is_met = outcomes.iter().any(|outcome| outcome.poisoned || outcome.unknown > 0);
    assert!(refused.is_some() || !is_met, "it goes on after an unknown outcome");
    if let Some(error) = &refused {
        // Reads continue, without what isn't known. Nothing is written any more.
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
    assert!(closed.is_err() || refused.is_none(), "it was closed as if all were well");
    reopened(&disk, seed).follows(&shown);
    outcomes
}

/// Opens again, commits at each level, and returns what was there before.
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

#[test]
fn a_flush_that_panics_leaves_nobody_waiting() {
    let inner: Arc<dyn Directory> = Arc::new(SimulatedDisk::new(1));
    let directory = Arc::new(Yielding::yielding(Arc::clone(&inner), 1));
    let shared: Arc<dyn Directory> = Arc::clone(&directory) as _;
    let database = open(shared, Arc::new(YieldingClock::new(1)), false).unwrap();
    let submit = |number| {
        let mut transaction = database.begin().unwrap();
        super::ledger::write(&mut transaction, 1, number, 1, 0).unwrap();
        transaction.submit().unwrap()
    };
    let pending = [submit(0), submit(1)];
    directory.at_the_next_flush(|| panic!("as it was told to"));
    let [first, second] = pending;
    let panicked = std::thread::scope(|scope| scope.spawn(|| first.wait()).join());
    assert!(panicked.is_err());
    assert_eq!(second.wait().unwrap_err().kind(), ErrorKind::UnknownOutcome);
    assert_eq!(database.begin().map(drop).unwrap_err().kind(), ErrorKind::Poisoned);
    assert_eq!(audit(&database.read()).of(1), 0);
    drop(database);
    let database = open(inner, Arc::new(YieldingClock::new(1)), false).unwrap();
    assert_eq!(audit(&database.read()).of(1), 2, "they were written");
}

/// A half commit dies in the midst of writing its slot; then an opening dies at each of its operations. What was acknowledged shows all the while.
#[test]
fn half_commits_outlive_the_death_of_the_next_and_of_openings() {
    let disk = SimulatedDisk::new(1);
    let database = open_on(&disk, 1, false).unwrap();
    let commit = |number| {
        let mut transaction = database.begin().unwrap();
        transaction.set_level(Level::Half);
        super::ledger::write(&mut transaction, 1, number, 1, 0).unwrap();
        transaction.commit()
    };
    for number in 0..3 {
        commit(number).unwrap();
    }
    // Its frame is written and flushed; the slot is not.
    disk.fail_from(disk.operations() + 2, Fault::Io);
    assert_eq!(commit(3).unwrap_err().kind(), ErrorKind::UnknownOutcome);
    drop(database);
    for operation in 0.. {
        let after = disk.crash_states().newest();
        after.fail_from(after.operations() + operation, Fault::Io);
        let opened = open_on(&after, 1, false);
        let is_done = opened.is_ok();
        drop(opened);
        after.clear_plan();
        let reader = annals::Options::new().open_read_only_in(&after, "crowd").unwrap();
        let seen = audit(&reader.read()).of(1);
        assert!(seen >= 3, "opening died at its operation {operation}: {seen} are left");
        if is_done {
            assert!(operation > 5, "opening recovers: {operation}");
            return;
        }
    }
}

/// A half commit dies whose frame was written before another's flush had returned.
#[test]
fn half_commits_outlive_the_death_of_one_that_was_written_meanwhile() {
    let submit = |database: &Database, number| {
        let mut transaction = database.begin().unwrap();
        transaction.set_level(Level::Half);
        super::ledger::write(&mut transaction, 1, number, 1, 0).unwrap();
        transaction.submit().map(drop)
    };
    for operation in 0..8 {
        let disk = SimulatedDisk::new(1);
        let directory = Arc::new(Yielding::yielding(Arc::new(disk.clone()), 1));
        let shared: Arc<dyn Directory> = Arc::clone(&directory) as _;
        let database = Arc::new(open(shared, Arc::new(YieldingClock::new(1)), false).unwrap());
        for number in 0..2 {
            submit(&database, number).unwrap();
            if number == 1 {
                let database = Arc::clone(&database);
                directory.at_the_next_flush(move || submit(&database, 2).unwrap());
            }
            // Acknowledges what was written when it began.
            let point = database.soft_checkpoint().unwrap();
            assert_eq!(point.txid, annals::Txid(2 + number));
        }
        disk.fail_from(disk.operations() + operation, Fault::Io);
        let _ = database.soft_checkpoint();
        drop(Arc::into_inner(database).unwrap());
        disk.clear_plan();
        let reader = annals::Options::new().open_read_only_in(&disk, "crowd").unwrap();
        let seen = audit(&reader.read()).of(1);
        assert!(seen >= 2, "it died at operation {operation}: {seen} of the others are left");
    }
}
