//! Connections that break at every byte of the protocol: what was acknowledged is there, and nothing twice.

use std::sync::Arc;
use std::time::Duration;

use annals::{Command, Cursor, Database, FieldNumber, Options, TableNumber, Type, ValueRef};
use annals_replica::{Http, Patience, Replica};
use annals_server::Server;

use crate::proxy::{Direction, Proxy};
use crate::running::Running;

const TABLE: TableNumber = TableNumber(0);

fn origin(path: &std::path::Path) -> Database {
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

fn is_full() -> bool {
    std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full")
}

#[test]
fn a_transaction_is_accepted_once_wherever_the_connection_breaks() {
    let folder = tempfile::tempdir().unwrap();
    let database = origin(&folder.path().join("origin"));
    let server = Server::new().database("origin", database.clone()).unwrap().open_to_all();
    let running = Running::start(server);
    let proxy = Proxy::start(running.address);
    let connection = Http::new(&format!("{}/v1/origin", proxy.url()), None).unwrap();
    let patience = Patience { pause: Duration::from_millis(1), ..Patience::default() };
    let (path, options) = (folder.path().join("replica"), Options::new());
    let replica = Replica::connect_with(Arc::new(connection), path, &options, patience).unwrap();
    let step = if is_full() { 1 } else { 7 };
    let mut expected = Vec::new();
    for direction in [Direction::ToServer, Direction::ToClient] {
        let mut bytes = 0;
        loop {
            let name = format!("{direction:?} {bytes}");
            let cuts = proxy.cuts();
            proxy.cut_after(direction, bytes);
            let accepted = replica.transaction(|tx| tx.insert(TABLE, &[ValueRef::String(&name)]));
            match accepted {
                Ok((_, accepted)) => {
                    assert_eq!(accepted.runs, 1, "{name}");
                    expected.push(name);
                }
                // It was certain that nothing arrived.
                Err(error) => assert_eq!(error.kind(), annals::ErrorKind::Unreachable, "{name}"),
            }
            assert_eq!(names(&database), expected, "after {bytes} bytes {direction:?}");
            assert_eq!(replica.cursor(), Cursor::from(database.read().point()));
            if proxy.cuts() == cuts {
                break; // the whole exchange has fewer bytes
            }
            bytes += step;
        }
        assert!(bytes > 100, "{direction:?} has only {bytes} bytes");
        proxy.cut_after(direction, -1);
    }
}

#[test]
fn a_pull_that_breaks_is_continued() {
    let folder = tempfile::tempdir().unwrap();
    let database = origin(&folder.path().join("origin"));
    let server = Server::new().database("origin", database.clone()).unwrap().open_to_all();
    let running = Running::start(server);
    let proxy = Proxy::start(running.address);
    let connect = || Arc::new(Http::new(&format!("{}/v1/origin", proxy.url()), None).unwrap());
    let replica = Replica::connect(connect(), folder.path().join("replica")).unwrap();
    for bytes in (0..2000).step_by(if is_full() { 1 } else { 61 }) {
        let name = format!("{bytes} {}", "x".repeat(1000));
        database.write(|tx| tx.insert(TABLE, &[ValueRef::String(&name)])).unwrap();
        proxy.cut_after(Direction::ToClient, bytes);
        while let Err(error) = replica.pull() {
            assert_eq!(error.kind(), annals::ErrorKind::Unreachable, "{error}");
        }
        proxy.cut_after(Direction::ToClient, -1);
        assert_eq!(replica.cursor(), Cursor::from(database.read().point()), "{bytes}");
    }
    assert!(proxy.cuts() > 10);
    assert_eq!(names(replica.database()), names(&database));

    // A slow connection is only slow.
    proxy.delay(Duration::from_millis(2));
    let late = Replica::connect(connect(), folder.path().join("late")).unwrap();
    assert_eq!(late.cursor(), replica.cursor());
}
