//! A leader that was replaced refuses what its successor stores: no transaction is there twice, and none is lost.

use std::collections::BTreeMap;
use std::sync::Arc;

use annals::{ErrorKind, FieldNumber, Result, Snapshot, Transaction, ValueRef};
use annals_replica::Node;

use super::simulated::{Faults, Simulated};
use super::{ITEM, Member, full};

/// Creates a table in which a row may be twice.
fn create(tx: &mut Transaction<'_>) -> Result<()> {
    let (name, ty) = ("tag".to_owned(), annals::Type::String);
    tx.apply_command(&annals::Command::CreateTable { name: "item".to_owned() })?;
    tx.apply_command(&annals::Command::AddField {
        table: ITEM,
        name,
        ty,
        nullable: false,
        default: None,
    })
}

/// Returns how often each tag is there.
fn counts(state: &Snapshot) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for row in state.table(ITEM).expect("the table").rows() {
        let tag = row.expect("a row").read::<&str>(FieldNumber(0)).to_owned();
        *counts.entry(tag).or_default() += 1;
    }
    counts
}

/// Inserts rows as two nodes, one of which has several threads; returns the tags that were acknowledged, and those of which
/// nothing is known.
fn insert(log: &Simulated, large: &str) -> (Vec<String>, Vec<String>) {
    let join = |name: &str| {
        let member = Member::join(Arc::new(log.clone())).unwrap_or_else(|e| panic!("{name}: {e}"));
        Node::new(member.replica)
    };
    let (one, two) = (join("one"), join("two"));
    let work = |node: &Node, name: &str| {
        let (mut there, mut unknown) = (Vec::new(), Vec::new());
        for number in 0..12 {
            let tag = format!("{name} {number} {}", if number % 4 == 0 { large } else { "" });
            let row = tag.clone();
            let done = node.commit(move |mut tx| {
                tx.insert(ITEM, &[ValueRef::String(&row)])?;
                Ok::<_, annals::Error>(((), tx))
            });
            match done {
                Ok(_) => there.push(tag),
                Err(error) if error.kind() == ErrorKind::UnknownOutcome => unknown.push(tag),
                Err(error) => panic!("{name} {number}: {error}"),
            }
        }
        (there, unknown)
    };
    std::thread::scope(|scope| {
        let threads = [(&one, "a"), (&two, "b"), (&two, "c")];
        let threads = threads.map(|(node, name)| scope.spawn(move || work(node, name)));
        let (mut there, mut unknown) = (Vec::new(), Vec::new());
        for thread in threads {
            let (a, b) = thread.join().expect("no panic");
            there.extend(a);
            unknown.extend(b);
        }
        (there, unknown)
    })
}

#[test]
fn what_a_stale_leader_refuses_is_there_once_or_never() {
    let large = "x".repeat(20 << 10);
    for seed in 0..if full() { 2000 } else { 60 } {
        let log = Simulated::new(seed, Faults::default());
        let first = Member::join(Arc::new(log.clone())).expect("a node");
        first.replica.transaction(create).expect("the schema");
        let stale = 10 + seed % 5 * 15;
        log.set_faults(Faults { stale, lost: seed % 3 * 10, ..Faults::default() });
        let (there, unknown) = insert(&log, &large);
        log.set_faults(Faults::default());
        first.replica.pull().expect("a pull");
        let counts = counts(&first.replica.read());
        for tag in &there {
            assert_eq!(counts.get(tag), Some(&1), "seed {seed}: {:.9}", tag);
        }
        for tag in &unknown {
            assert!(counts.get(tag).is_none_or(|count| *count == 1), "seed {seed}: {:.9}", tag);
        }
        assert!(counts.len() <= there.len() + unknown.len(), "seed {seed}");
        assert_eq!(first.log.counts().void, 0, "seed {seed}: {:?}", first.log.counts().reasons);
    }
}
