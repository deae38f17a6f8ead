//! Answers that nobody reads: whatever they are of, those who write go on.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use annals::{Database, FieldNumber, RowId, ValueRef};
use annals_server::{Limits, NewToken, Role, Server, Tokens};
use reqwest::blocking::Client;

use crate::bounded::{TABLE, define};
use crate::running::Running;

const READERS: usize = 50;
/// More than one that writes takes, and much less than the time after which those who don't read are cut off.
const SOON: Duration = Duration::from_secs(10);
/// A text of which twenty are more than the system keeps of an answer that nobody reads.
const LONG: usize = 500_000;

/// Each is long for somebody who doesn't read it.
const UNREAD: [(&str, &str); 7] = [
    ("/changes?after=0", "text/event-stream"),
    ("/changes?after=0&wait=60", "*/*"),
    ("/t/a/0/history?limit=10000", "*/*"),
    ("/diff?from=txid:0", "*/*"),
    ("/log?after=0", "*/*"),
    ("/t/a?file=csv", "*/*"),
    ("/t/a", "application/vnd.apache.arrow.stream"),
];

/// Creates a table with forty long rows, and twenty versions of the first.
fn database() -> Database {
    let (database, text) = (Database::in_memory().unwrap(), "y".repeat(LONG));
    let text = ValueRef::String(&text);
    database
        .write(|tx| {
            define(tx)?;
            (0..40).try_for_each(|_| tx.insert(TABLE, &[text]).map(drop))
        })
        .unwrap();
    for version in 0..20 {
        let text = format!("{version}{}", "z".repeat(LONG));
        let text = ValueRef::String(&text);
        database.write(|tx| tx.update(TABLE, RowId(0), FieldNumber(0), text)).unwrap();
    }
    database
}

fn limits() -> Limits {
    Limits { memory: 64 << 20, ..Limits::default() }
}

/// Asks for something, and doesn't read the answer.
fn ask(running: &Running, (path, accept): (&str, &str), token: &str) -> TcpStream {
    let mut stream = TcpStream::connect(running.address).unwrap();
    let head = format!(
        "GET /v1/a{path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

/// Opens answers that nobody reads; meanwhile a long row is inserted three times.
fn check(server: Server, unread: (&str, &str), readers: &[&str], writer: &str) {
    let running = Running::start(server);
    let readers = readers.iter().cycle().take(READERS);
    let opened: Vec<_> = readers.map(|token| ask(&running, unread, token)).collect();
    // They take what they can get.
    std::thread::sleep(Duration::from_secs(1));
    let client = Client::new();
    let body = format!(
        r#"{{"changes":[{{"op":"insert","table":"a","fields":{{"t":"{}"}}}}]}}"#,
        "w".repeat(2 * LONG)
    );
    for _ in 0..3 {
        let begun = Instant::now();
        let request = client.post(format!("{}/transactions", running.of("a")));
        let request = request.header("Content-Type", "application/json").bearer_auth(writer);
        let answer = request.body(body.clone()).send().unwrap();
        let (status, took) = (answer.status().as_u16(), begun.elapsed());
        let text = answer.text().unwrap();
        assert!(status == 200 && took < SOON, "{}: {status} after {took:?}: {text}", unread.0);
    }
    drop(opened);
}

#[test]
fn who_writes_has_memory_beside_readers_who_do_not_read() {
    for unread in UNREAD {
        let server = Server::new().database("a", database()).unwrap();
        // They all are one, who has all places and all memory.
        check(server.open_to_all().limits(limits()), unread, &[""], "");
    }
}

#[test]
fn one_token_has_memory_beside_others_whose_answers_nobody_reads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    let token = |role| {
        let new = NewToken::random(role, None);
        Tokens::of(&path).unwrap().add(&new.stored).unwrap();
        new.token
    };
    let [one, other, writer] = [Role::Read, Role::Write, Role::Write].map(token);
    for unread in UNREAD {
        let tokens = Tokens::of(&path).unwrap();
        let server = Server::new().database_with("a", database(), tokens).unwrap();
        check(server.limits(limits()), unread, &[&one, &other], &writer);
    }
}
