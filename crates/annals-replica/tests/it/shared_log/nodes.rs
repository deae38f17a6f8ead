//! Several nodes over a simulated log with all faults: what they were told happened, once, in an order that all could have seen.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use annals::ErrorKind;
use annals_replica::Node;
use annals_simulated::Rng;
use annals_storage::{Clock as _, SystemClock};

use super::linear::{Told, What, is_linearizable};
use super::simulated::{Faults, Simulated};
use super::{Member, add, additions, create, full};

const NODES: u64 = 3;
const ADDITIONS: u64 = 10;
const BAD: Faults = Faults { lost: 12, stale: 12, leaderless: 10, late: 25, silent: 3 };

fn work(node: u64, log: &Simulated, told: &Told, seed: u64) {
    let mut rng = Rng::new(seed ^ (node << 32));
    let mut member = retry(|| Member::join(Arc::new(log.clone())));
    for number in 0..ADDITIONS {
        let tag = format!("{node} {number}");
        let call = told.call();
        match member.replica.transaction(|tx| add(tx, &tag)) {
            Ok((before, _)) => {
                told.note(call, What::Add(before));
                told.acknowledged.lock().unwrap().insert(tag);
            }
            Err(error) if error.kind() == ErrorKind::UnknownOutcome => {
                told.note(call, What::AddUnknown);
            }
            // Nothing was changed.
            Err(error) => assert!(is_passing(&error), "{error}"),
        }
        if rng.percent(30) {
            let call = told.call();
            if member.replica.pull().is_ok() {
                told.note(call, What::Read(additions(&member.replica.read()).0));
            }
        }
        if rng.percent(15) {
            member = retry_with(member, log);
        }
    }
}

/// True if an error is one of a bad moment, in which nothing is changed.
fn is_passing(error: &annals::Error) -> bool {
    matches!(error.kind(), ErrorKind::Unreachable | ErrorKind::Conflict | ErrorKind::Corrupt)
}

fn retry<T>(mut work: impl FnMut() -> annals::Result<T>) -> T {
    loop {
        match work() {
            Ok(done) => return done,
            Err(error) => assert!(is_passing(&error), "{error}"),
        }
    }
}

fn retry_with(member: Member, log: &Simulated) -> Member {
    let directory = member.directory.clone();
    drop(member);
    retry(|| Member::open(directory.clone(), Arc::new(log.clone())))
}

/// Elects leaders, damages replicas, and appends garbage, until it is told to end.
fn disturb(log: &Simulated, seed: u64, ends: &AtomicBool) {
    let mut rng = Rng::new(seed);
    while !ends.load(Ordering::SeqCst) {
        match rng.below(6) {
            0 => log.elect(rng.index(3)),
            1 => log.damage(rng.index(3), 20),
            2 => drop(log.poison(rng.number().to_le_bytes().repeat(rng.index(40) + 1))),
            // What was there before, once more.
            3 => {
                let messages = log.messages();
                if let Some(message) = messages.get(rng.index(messages.len())) {
                    log.poison(message.bytes.clone());
                }
            }
            4 => log.set_ahead(3_600_000_000 * i64::from(rng.percent(50))),
            _ => {}
        }
        SystemClock.pause(std::time::Duration::from_millis(rng.below(4)));
    }
}

fn run(seed: u64) {
    let log = Simulated::new(seed, Faults::default());
    let first = Member::join(Arc::new(log.clone())).expect("a node");
    first.replica.transaction(create).expect("the schema");
    log.set_faults(BAD);
    let (told, ends) = (Told::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let disturbing = scope.spawn(|| disturb(&log, seed, &ends));
        let nodes: Vec<_> = (0..NODES)
            .map(|node| {
                scope.spawn({
                    let (log, told) = (&log, &told);
                    move || work(node, log, told, seed)
                })
            })
            .collect();
        let worked: Vec<_> = nodes.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        ends.store(true, Ordering::SeqCst);
        disturbing.join().expect("no panic");
        worked.into_iter().for_each(|it| it.expect("no panic"));
    });
    log.set_faults(Faults::default());
    // Garbage that is damaged at the leader is judged once that is repaired.
    log.damage(0, 0);
    // One that was there all the time, and one that begins now.
    first.replica.pull().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let late = Member::join(Arc::new(log.clone())).expect("a node");
    assert_eq!(first.cursor(), late.cursor(), "seed {seed}");
    let (count, tags) = additions(&late.replica.read());
    assert_eq!((count, &tags), (tags.len() as u64, &additions(&first.replica.read()).1));
    let there: BTreeSet<String> = tags.iter().cloned().collect();
    assert_eq!(there.len(), tags.len(), "seed {seed}: nothing is there twice");
    let acknowledged = told.acknowledged.into_inner().unwrap();
    assert!(
        acknowledged.is_subset(&there),
        "seed {seed}: lost {:?}",
        acknowledged.difference(&there)
    );
    let operations = told.operations.into_inner().unwrap();
    assert!(is_linearizable(&operations), "seed {seed}: {operations:#?}");
    let status = late.log.status().expect("a status");
    assert_eq!(status.lag(), 0, "{status:?}");
}

#[test]
fn nodes_of_a_bad_log_agree_and_lose_nothing() {
    // One after the other: nodes must be faster than what disturbs them.
    for seed in 0..if full() { 200 } else { 6 } {
        run(seed);
    }
}

#[test]
fn a_transaction_that_panics_stops_no_other_for_long() {
    let log = Simulated::new(1, Faults::default());
    let member = Member::join(Arc::new(log.clone())).expect("a node");
    member.replica.transaction(create).expect("the schema");
    let node = Node::new(member.replica);
    log.set_round_trip(std::time::Duration::from_millis(2));
    let insert = |tag: String, panics: bool| {
        node.commit(move |mut tx| {
            assert!(!panics, "as it should");
            Ok::<_, annals::Error>((add(&mut tx, &tag)?, tx))
        })
    };
    let acknowledged: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|thread| {
                scope.spawn(move || {
                    let run = |number| {
                        let tag = format!("{thread} {number}");
                        let one = || insert(tag, number % 10 == 5 && thread % 4 == 0);
                        // Whoever leads meets the panic; the others are told that there was one.
                        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(one)) {
                            Ok(Err(error)) => {
                                assert_eq!(error.kind(), ErrorKind::Aborted, "{error}");
                                0
                            }
                            Ok(Ok(_)) => 1,
                            Err(_) => 0,
                        }
                    };
                    (0..30).map(run).sum::<usize>()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no other panic")).sum()
    });
    insert("after all".to_owned(), false).expect("an addition");
    let (count, tags) = additions(&node.replica().read());
    assert!(tags.len() > acknowledged && acknowledged > 30, "{count} {acknowledged}");
    assert_eq!(tags.len() as u64, count);
}

#[test]
fn transactions_of_many_threads_share_messages() {
    let log = Simulated::new(1, Faults::default());
    let member = Member::join(Arc::new(log.clone())).expect("a node");
    member.replica.transaction(create).expect("the schema");
    let node = Node::new(member.replica);
    // Meanwhile the other threads queue.
    log.set_round_trip(std::time::Duration::from_millis(5));
    let before = log.messages().len();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let node = &node;
            scope.spawn(move || {
                for number in 0..40 {
                    let tag = format!("{thread} {number}");
                    let done = node.commit(move |mut tx| {
                        // Every tenth fails, and changes nothing.
                        let tag = if number % 10 == 9 { "counter" } else { &tag };
                        Ok::<_, annals::Error>((add(&mut tx, tag)?, tx))
                    });
                    match done {
                        Ok((before, accepted)) => assert_eq!(accepted.txid.0, before + 2),
                        Err(error) => {
                            assert_eq!(
                                (error.kind(), number % 10),
                                (ErrorKind::Unique, 9),
                                "{error}"
                            );
                        }
                    }
                }
            });
        }
    });
    let (count, tags) = additions(&node.replica().read());
    assert_eq!((count, tags.len()), (8 * 36, 8 * 36));
    let messages = log.messages().len() - before;
    assert!(messages < 8 * 36 / 2, "{messages} messages for 288 transactions of 8 threads");
    log.set_round_trip(std::time::Duration::ZERO);
    let other = Member::join(Arc::new(log)).expect("a node");
    assert_eq!(other.cursor(), node.replica().cursor());
}
