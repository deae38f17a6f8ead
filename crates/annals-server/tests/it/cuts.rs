//! Connections that break, stand still, repeat and reorder at every byte of the protocol: what was acknowledged is there, and
//! nothing twice.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use annals::{
    Command, Cursor, Database, ErrorKind, FieldNumber, Options, TableNumber, Type, ValueRef,
};
use annals_replica::{Http, Patience, Replica};
use annals_server::Server;

use crate::effort::{is_full, tries};
use crate::proxy::{Direction, Fault, INVENTED, Proxy};
use crate::running::Running;

const TABLE: TableNumber = TableNumber(0);

fn origin(path: &Path) -> Database {
    let database = Options::new().open(path).unwrap();
    let name = Command::AddField {
        table: TABLE,
        name: "name".to_owned(),
        ty: Type::String,
        nullable: false,
        default: None,
    };
    database
        .write(|tx| {
            tx.apply_command(&Command::CreateTable { name: "item".to_owned() })?;
            tx.apply_command(&name)
        })
        .unwrap();
    database
}

fn names(database: &Database) -> Vec<String> {
    let now = database.read();
    let rows = now.table(TABLE).unwrap().rows();
    rows.map(|row| row.unwrap().read::<&str>(FieldNumber(0)).to_owned()).collect()
}

/// A server, a proxy before it, and replicas through the proxy.
struct Setup {
    folder: tempfile::TempDir,
    database: Database,
    proxy: Proxy,
    _running: Running,
}

impl Setup {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = origin(&folder.path().join("origin"));
        let server = Server::new().database("origin", database.clone()).unwrap().open_to_all();
        let running = Running::start(server);
        let proxy = Proxy::start(running.address);
        Self { folder, database, proxy, _running: running }
    }

    fn connect(&self) -> Arc<Http> {
        Arc::new(Http::new(&self.proxy.of("origin"), None).unwrap())
    }

    fn replica(&self, name: &str) -> Replica {
        let patience = Patience { pause: Duration::from_millis(1), ..Patience::default() };
        let (path, options) = (self.folder.path().join(name), Options::new());
        Replica::connect_with(self.connect(), path, &options, patience).unwrap()
    }

    fn end(&self) -> Cursor {
        self.database.read().point().into()
    }
}

/// Two replicas write in turn, and the push of each meets the fault.
fn sweep(fault: impl Fn(usize) -> Fault) {
    let setup = Setup::new();
    let replicas = [setup.replica("one"), setup.replica("two")];
    let mut expected = Vec::new();
    let mut bytes = 0;
    loop {
        let name = format!("{:?}", fault(bytes));
        let replica = &replicas[bytes % 2];
        replica.pull().unwrap();
        let faults = setup.proxy.faults();
        setup.proxy.next(fault(bytes));
        let accepted = replica.transaction(|tx| tx.insert(TABLE, &[ValueRef::String(&name)]));
        match accepted {
            Ok((_, accepted)) => {
                assert_eq!(accepted.runs, 1, "{name}");
                expected.push(name.clone());
            }
            // It was certain that nothing arrived.
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unreachable, "{name}: {error}"),
        }
        assert_eq!(names(&setup.database), expected, "{name}");
        assert_eq!(replica.cursor(), setup.end(), "{name}");
        if setup.proxy.faults() == faults {
            break; // the whole exchange has fewer bytes
        }
        bytes += tries(13, 1);
    }
    setup.proxy.settle();
    assert!(bytes > 100, "the exchange has only {bytes} bytes");
    assert_eq!(names(&setup.database), expected, "after all that was late");
    for replica in replicas {
        replica.pull().unwrap();
        assert_eq!(replica.cursor(), setup.end());
        assert_eq!(names(replica.database()), expected);
    }
}

#[test]
fn a_request_that_is_cut_off_at_any_byte_is_accepted_once() {
    sweep(|bytes| Fault::Cut(Direction::ToServer, bytes));
}

#[test]
fn a_push_whose_answer_is_cut_off_at_any_byte_is_accepted_once() {
    sweep(|bytes| Fault::Cut(Direction::ToClient, bytes));
}

#[test]
fn a_push_that_stands_still_at_any_byte_is_accepted_once() {
    sweep(|bytes| Fault::Delay(Direction::ToServer, bytes));
    sweep(|bytes| Fault::Delay(Direction::ToClient, bytes));
}

/// The client asks for the chain, pushes again, and then come newer transactions: a late push arrives before each of these.
#[test]
fn a_push_that_arrives_late_from_any_byte_on_is_accepted_once() {
    for after in [0, 1, 2, 3, 6] {
        sweep(|bytes| Fault::Late { bytes, after });
    }
}

/// Two replicas write in turn: the push of each meets a fault, and is accepted once.
fn each(faults: impl IntoIterator<Item = Fault>) {
    let setup = Setup::new();
    let replicas = [setup.replica("one"), setup.replica("two")];
    let mut expected = Vec::new();
    for fault in faults {
        let name = format!("{} {fault:?}", expected.len());
        let replica = &replicas[expected.len() % 2];
        replica.pull().unwrap();
        setup.proxy.next(fault);
        let insert =
            |tx: &mut annals::Transaction<'_>| tx.insert(TABLE, &[ValueRef::String(&name)]);
        let (_, accepted) = replica.transaction(insert).unwrap();
        assert_eq!(accepted.runs, 1, "{name}");
        expected.push(name);
    }
    setup.proxy.settle();
    assert_eq!(names(&setup.database), expected);
    assert_eq!(setup.end().txid.0, expected.len() as u64 + 1);
}

/// Whoever gave the answer, and whenever the push arrives: the place is looked at before anything is done again.
#[test]
fn a_push_with_an_invented_answer_is_accepted_once() {
    let turns = 0..tries(3, 60);
    each(turns.flat_map(|after| INVENTED.map(|answer| Fault::Invented { answer, after })));
}

#[test]
fn a_push_that_arrives_twice_is_accepted_once() {
    each((0..tries(60, 2000)).map(|turn| Fault::Twice { after: turn % 7 }));
}

#[test]
fn replicas_end_equal_whatever_befalls_their_exchanges() {
    for seed in 0..tries(3, 100) {
        let setup = Setup::new();
        let replicas = [setup.replica("one"), setup.replica("two"), setup.replica("three")];
        setup.proxy.follow(seed, 30);
        let write = |number: usize, replica: &Replica| {
            let mut acknowledged = Vec::new();
            for turn in 0..25 {
                let name = format!("{number} {turn}");
                let insert =
                    |tx: &mut annals::Transaction<'_>| tx.insert(TABLE, &[ValueRef::String(&name)]);
                match replica.transaction(insert) {
                    Ok(_) => acknowledged.push(name),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Unreachable, "seed {seed}: {error}");
                    }
                }
            }
            acknowledged
        };
        let mut expected = std::thread::scope(|scope| {
            let writing: Vec<_> = replicas
                .iter()
                .enumerate()
                .map(|(number, replica)| scope.spawn(move || write(number, replica)))
                .collect();
            writing.into_iter().flat_map(|it| it.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(setup.proxy.faults() > 3, "seed {seed}");
        setup.proxy.settle();
        // What was said not to have arrived hasn't, also not later.
        let mut found = names(&setup.database);
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "seed {seed}");
        for replica in replicas {
            replica.pull().unwrap();
            assert_eq!(replica.cursor(), setup.end(), "seed {seed}");
            assert_eq!(names(replica.database()), names(&setup.database), "seed {seed}");
        }
    }
}

#[test]
fn a_pull_that_breaks_or_stands_still_is_continued() {
    let setup = Setup::new();
    let replica = setup.replica("replica");
    for direction in [Direction::ToServer, Direction::ToClient] {
        for bytes in (0..2000).step_by(if is_full() { 1 } else { 61 }) {
            let name = format!("{bytes} {}", "x".repeat(1000));
            setup.database.write(|tx| tx.insert(TABLE, &[ValueRef::String(&name)])).unwrap();
            setup.proxy.next(match bytes % 2 {
                0 => Fault::Cut(direction, bytes),
                _ => Fault::Delay(direction, bytes),
            });
            while let Err(error) = replica.pull() {
                assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
            }
            assert_eq!(replica.cursor(), setup.end(), "{bytes}");
        }
    }
    setup.proxy.settle();
    assert!(setup.proxy.faults() > 20);
    assert_eq!(names(replica.database()), names(&setup.database));
    assert_eq!(setup.replica("late").cursor(), replica.cursor());
}
