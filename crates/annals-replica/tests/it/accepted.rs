//! What the other side has accepted is history, whatever fails here then.

use std::sync::Arc;

use annals::{Cursor, Database, Error, ErrorKind, Options, ValueRef};
use annals_replica::{Accepted, Connection, Local, Node, Patience, Replica};
use annals_simulated::{Fault, SimulatedDisk};
use annals_storage::{Directory as _, MemoryDirectory, SystemClock};

use crate::offline::{ITEM, create, names};

/// Larger than what a spool or a writer keeps back.
const LONG: usize = 100 << 10;

fn origin() -> Database {
    let clock = Arc::new(SystemClock);
    let origin = Options::new().open_in(MemoryDirectory::new().again(), "origin", clock);
    let origin = origin.expect("a database");
    origin.write(create).expect("the schema");
    origin
}

fn end(database: &Database) -> Cursor {
    database.read().point().into()
}

fn connect(origin: &Database, disk: &SimulatedDisk) -> Replica {
    let connection: Arc<dyn Connection> = Arc::new(Local::new(origin.clone()));
    let directory = Arc::new(disk.clone());
    Replica::connect_in(connection, directory, "copy", &Options::new(), Patience::default())
        .expect("a replica")
}

/// Writes through a replica whose disk fails at its `at`th operation; returns false if it has no so many.
fn write(fault: Fault, at: u64, commit: &dyn Fn(&Node, &str) -> Result<Accepted, Error>) -> bool {
    let what = format!("{fault:?} at operation {at}");
    let (origin, disk) = (origin(), SimulatedDisk::new(7));
    let node = Node::new(connect(&origin, &disk));
    let (before, first) = (end(&origin), disk.operations());
    disk.fail_at(first + at, fault);
    let done = commit(&node, &"x".repeat(LONG));
    let is_met = disk.operations() > first + at;
    let replica = node.replica();
    match done {
        Ok(Accepted { txid, chain, .. }) => {
            assert_eq!(Cursor { txid, chain }, end(&origin), "{what}: it is history");
            let is_here = replica.cursor() == end(&origin);
            let behind = replica.behind();
            assert_eq!(is_here, behind.is_none(), "{what}: {behind:?}");
            if let Some(behind) = behind {
                let says =
                    behind.contains("has accepted transaction 2") && behind.contains("committed");
                assert!(says && !behind.contains("rolled back"), "{what}: {behind}");
            }
        }
        Err(error) => {
            assert_eq!(end(&origin), before, "{what}: {error}");
            assert!(error.kind() != ErrorKind::UnknownOutcome, "{what}: {error}");
        }
    }
    disk.clear_plan();
    // After a failed flush or cut only opening it again helps.
    let replica = match replica.pull() {
        Ok(_) => node,
        Err(_) => {
            drop(node);
            Node::new(connect(&origin, &disk))
        }
    };
    let replica = replica.replica();
    assert_eq!((replica.cursor(), replica.behind()), (end(&origin), None), "{what}: once mended");
    assert_eq!(names(&replica.read()), names(&origin.read()), "{what}");
    is_met
}

fn sweep(commit: &dyn Fn(&Node, &str) -> Result<Accepted, Error>) {
    for fault in [Fault::NoSpace, Fault::Io] {
        let mut at = 0;
        while write(fault, at, commit) {
            at += 1;
        }
        assert!(at > 0, "a transaction is at least a write");
    }
}

#[test]
fn a_transaction_that_was_accepted_is_committed_though_it_cannot_be_written_here() {
    sweep(&|node, name| {
        let insert = |tx: &mut annals::Transaction<'_>| {
            tx.insert(ITEM, &[ValueRef::String(name), ValueRef::Int64(1)])
        };
        node.replica().transaction(insert).map(|(_, accepted)| accepted)
    });
}

#[test]
fn so_is_one_of_many_threads() {
    sweep(&|node, name| {
        let name = name.to_owned();
        let done = node.commit(move |mut tx| {
            tx.insert(ITEM, &[ValueRef::String(&name), ValueRef::Int64(1)])?;
            Ok::<_, Error>(((), tx))
        });
        done.map(|((), accepted)| accepted)
    });
}

#[test]
fn offline_work_that_was_accepted_is_said_to_be() {
    for at in 0.. {
        let (origin, disk) = (origin(), SimulatedDisk::new(9));
        let replica = connect(&origin, &disk);
        let offline = replica.offline().expect("an offline journal");
        let insert = |tx: &mut annals::Transaction<'_>| {
            tx.insert(ITEM, &[ValueRef::String("offline"), ValueRef::Int64(1)])
        };
        offline.write(insert).expect("a commit");
        offline.close().expect("closing");
        let first = disk.operations();
        disk.fail_at(first + at, Fault::NoSpace);
        let pushed = replica.push();
        let is_met = disk.operations() > first + at;
        let is_there = end(&origin).txid.0 == 2;
        match pushed {
            Ok(sent) => assert_eq!(sent.end, end(&origin), "operation {at}"),
            Err(error) if is_there => {
                assert!(error.to_string().contains("has accepted all"), "operation {at}: {error}");
            }
            Err(_) => {}
        }
        disk.clear_plan();
        drop(replica);
        let replica = connect(&origin, &disk);
        replica.push().expect("what is there already isn't sent again");
        assert_eq!(names(&origin.read()), ["offline"], "operation {at}");
        if !is_met {
            break;
        }
    }
}
