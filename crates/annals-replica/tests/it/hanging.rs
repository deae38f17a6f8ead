//! A connection that hangs: what is here can be read meanwhile.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use annals::{Command, Cursor, Database, Result, RowId, TableNumber, Txid};
use annals_replica::{Connection, Description, Granted, Local, Pulled, Pushed, Replica};
use annals_storage::Spool;

const ITEM: TableNumber = TableNumber(0);
/// What is read must be there within this time: it isn't measured, but else the test would hang, too.
const HUNG: Duration = Duration::from_secs(120);

/// Each exchange says that it began, and goes on when it is let go; before the first one is expected, none hangs.
#[derive(Debug)]
struct Hanging {
    local: Local,
    gate: Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

impl Hanging {
    fn hang(&self) {
        if let Some((begun, go)) = &*self.gate.lock().expect("no panic") {
            begun.send(()).expect("the test waits");
            go.recv().expect("the test lets it go");
        }
    }
}

impl Connection for Hanging {
    fn name(&self) -> String {
        self.local.name()
    }

    fn describe(&self) -> Result<Description> {
        self.local.describe()
    }

    fn pull(&self, after: Option<Cursor>, wait: Duration, into: &mut Spool) -> Result<Pulled> {
        self.hang();
        self.local.pull(after, wait, into)
    }

    fn push(&self, from: Cursor, frames: &Spool, lease: Option<u64>) -> Result<Pushed> {
        self.hang();
        self.local.push(from, frames, lease)
    }

    fn lock(&self, lasting: Duration, ticket: Option<u64>) -> Result<Granted> {
        self.local.lock(lasting, ticket)
    }

    fn unlock(&self, ticket: u64) -> Result<()> {
        self.local.unlock(ticket)
    }

    fn chains(&self, txids: &[Txid]) -> Result<Vec<Option<u64>>> {
        self.local.chains(txids)
    }
}

fn insert(tx: &mut annals::Transaction<'_>) -> Result<RowId> {
    tx.insert(ITEM, &[] as &[annals::ValueRef<'_>])
}

/// Reads in each way that there is.
fn read(replica: &Replica) -> u64 {
    let now = replica.read();
    let count = now.table(ITEM).expect("the table").len();
    let before = replica.database().at(Txid(1)).expect("the past");
    assert_eq!(before.table(ITEM).expect("the table").len(), 0);
    assert_eq!(now.table(ITEM).expect("the table").rows().count() as u64, count);
    assert_eq!(replica.cursor().txid, now.txid());
    assert_eq!(replica.database().changes(..).expect("changes").count() as u64, now.txid().0);
    count
}

#[test]
fn what_is_here_is_read_while_a_pull_and_a_push_hang() {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = annals::Options::new().open(folder.path().join("origin")).expect("a database");
    let create = Command::CreateTable { name: "item".to_owned() };
    origin.write(|tx| tx.apply_command(&create)).expect("a table");
    origin.write(insert).expect("a row");
    let hanging =
        Arc::new(Hanging { local: Local::new(Database::clone(&origin)), gate: Mutex::default() });
    let connection: Arc<dyn Connection> = Arc::clone(&hanging) as _;
    let replica = Replica::connect(connection, folder.path().join("replica")).expect("a replica");
    origin.write(insert).expect("another row");
    let (begun, has_begun) = channel();
    let (let_go, go) = channel();
    *hanging.gate.lock().expect("no panic") = Some((begun, go));
    std::thread::scope(|scope| {
        let replica = &replica;
        let read_meanwhile = |expected: u64| {
            has_begun.recv_timeout(HUNG).expect("it begins");
            let (send, receive) = channel();
            scope.spawn(move || send.send(read(replica)));
            let found = receive.recv_timeout(HUNG).expect("reading waits for the network");
            assert_eq!(found, expected);
            let_go.send(()).expect("it hangs");
        };
        let pulling = scope.spawn(|| replica.pull());
        read_meanwhile(1); // until the new row is here
        read_meanwhile(2); // while it is asked whether there is more
        assert_eq!(pulling.join().expect("no panic").expect("a pull"), 1);
        let pushing = scope.spawn(|| replica.transaction(insert));
        read_meanwhile(2); // what isn't accepted isn't seen
        pushing.join().expect("no panic").expect("a transaction");
        assert_eq!(read(replica), 3);
    });
}
