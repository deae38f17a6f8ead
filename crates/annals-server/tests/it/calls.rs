//! Calls of procedures through faults: each runs once.

use std::sync::atomic::{AtomicU64, Ordering};

use annals::{Abort, Command, Cursor, Database, TableNumber};
use annals_replica::{Connection as _, Http, Replica};
use annals_server::Server;
use reqwest::blocking::Client;

use crate::effort::tries;
use crate::proxy::{Direction, Fault, INVENTED, Proxy};
use crate::running::Running;

annals::schema!("tests/it/bank.schema");
use bank::account;

fn open(tx: &mut bank::Transaction<'_>, owner: String) -> Result<u64, Abort> {
    Ok(tx.insert(account::New { owner: &owner, ..Default::default() })?.as_u64())
}

#[test]
fn a_procedure_runs_once_whatever_befalls_its_call() {
    let db = bank::Database::in_memory().unwrap();
    let server = Server::new().database("bank", annals::Database::clone(&db)).unwrap();
    let running = Running::start(server.procedure("bank", "open", open).unwrap().open_to_all());
    let proxy = Proxy::start(running.address);
    let connection = Http::new(&proxy.of("bank"), None).unwrap();
    let mut count = 0;
    let mut call = |fault: Fault| {
        let faults = proxy.faults();
        proxy.next(fault);
        let called = connection.call::<u64>("open", &format!("{fault:?}")).unwrap();
        // The name is unique: a second run would have failed.
        assert_eq!((called.answer, db.read().account().len()), (count, count + 1), "{fault:?}");
        count += 1;
        proxy.faults() > faults
    };
    for kind in 0..4 {
        let mut bytes = 0;
        while call(match kind {
            0 => Fault::Cut(Direction::ToServer, bytes),
            1 => Fault::Cut(Direction::ToClient, bytes),
            2 => Fault::Late { bytes, after: 0 },
            _ => Fault::Late { bytes, after: 1 + bytes % 3 },
        }) {
            bytes += tries(29, 1);
        }
        assert!(bytes > 100);
    }
    for after in 0..5 {
        assert!(call(Fault::Twice { after }));
    }
    for answer in INVENTED {
        (0..3).for_each(|after| assert!(call(Fault::Invented { answer, after })));
    }
    proxy.settle();
    assert_eq!(db.read().account().len(), count);
}

/// The last of these is what a client that is always late needs.
#[test]
fn a_late_push_gets_the_frames_that_came_first_and_then_a_turn() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::in_memory().unwrap();
    let create = |name: &str| Command::CreateTable { name: name.to_owned() };
    database.write(|tx| tx.apply_command(&create("item"))).unwrap();
    let running =
        Running::start(Server::new().database("origin", database.clone()).unwrap().open_to_all());
    let url = running.of("origin");
    // The frames of a transaction that somebody else has pushed.
    let connection = std::sync::Arc::new(Http::new(&url, None).unwrap());
    let replica = Replica::connect(connection.clone(), folder.path().join("replica")).unwrap();
    let from = replica.cursor();
    let insert = |tx: &mut annals::Transaction<'_>| {
        tx.insert(TableNumber(0), &[] as &[annals::ValueRef<'_>])
    };
    replica.transaction(insert).unwrap();
    let http = Client::new();
    let first = http.get(format!("{url}/frames?after={from}")).send().unwrap().bytes().unwrap();
    // The same transaction with another chain can't be it.
    let mut other = first.to_vec();
    *other.last_mut().unwrap() ^= 1;
    let conflicts = AtomicU64::new(0);
    let push = || {
        let request = http.post(format!("{url}/frames")).header("If-Match", format!("\"{from}\""));
        let request = request.header("Prefer", "return=representation").body(other.clone());
        let conflicts = conflicts.fetch_add(1, Ordering::Relaxed);
        let response = request.header("Annals-Conflicts", conflicts).send().unwrap();
        assert_eq!(response.status().as_u16(), 412);
        let header = |name| response.headers().get(name).map(|it| it.to_str().unwrap().to_owned());
        let (next, turn) = (header("Annals-Next"), header("Annals-Turn"));
        assert_eq!(next, Some(Cursor::from(database.read().point()).to_string()));
        assert_eq!(response.bytes().unwrap(), first);
        turn
    };
    for _ in 0..3 {
        assert_eq!(push(), None);
    }
    assert!(push().is_some(), "it was late three times before");
    assert_eq!(connection.describe().unwrap().end, replica.cursor());
}
