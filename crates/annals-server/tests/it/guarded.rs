//! What the guard does before a byte of a body is read, on every route that the description has; and what it does later,
//! when a right ends.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

use annals::{Abort, Command, Database, Options, RowId, TableNumber, Timestamp, ValueRef};
use annals_server::{Limits, NewToken, Role, Server, Tokens};
use reqwest::blocking::Client;
use serde_json::Value;

use crate::running::Running;

annals::schema!("tests/it/bank.schema");
use bank::account;

/// An answer must come sooner than the time that a server waits for a body.
const SOON: Duration = Duration::from_secs(10);
/// So late an open answer has ended, when its token has: tokens are read again each second, and asked again each second.
const LATE: Duration = Duration::from_secs(6);

fn token(path: &Path, role: Role) -> NewToken {
    let new = NewToken::random(role, None);
    Tokens::of(path).unwrap().add(&new.stored).unwrap();
    new
}

fn create(path: &Path) -> Database {
    let database = Options::new().open(path).unwrap();
    let create = Command::CreateTable { name: "item".to_owned() };
    database.write(|tx| tx.apply_command(&create)).unwrap();
    database
}

#[test]
fn a_request_of_two_hosts_is_refused() {
    let server = Server::new().database("memory", Database::in_memory().unwrap());
    let running = Running::start(server.unwrap().open_to_all());
    let ask = |line: &str| status_of_head(&running, "GET /v1/memory", None, line);
    assert_eq!(ask("Accept: */*"), 200);
    assert_eq!([ask("Host: localhost"), ask("Host: evil.example.org")], [400; 2]);
}

/// Sends the head of a request, and nothing of its body; returns the status, which must come without it.
fn status_of_head(running: &Running, request: &str, token: Option<&str>, body: &str) -> u16 {
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let head = format!(
        "{request} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{token}{body}\r\n\r\n"
    );
    let mut stream = TcpStream::connect(running.address).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap_or_else(|error| {
        panic!("{request}, of which no body was sent, has no answer: {error}");
    });
    String::from_utf8_lossy(&answer[9..]).parse().unwrap()
}

/// Returns the most bytes that a route takes from one token of many.
fn most_of(path: &str) -> u64 {
    match path.rsplit('/').next() {
        Some("frames") => Limits::default().push,
        Some("transactions") => 8 << 20,
        Some("sql") => 6 << 20,
        _ => 64 << 10,
    }
}

#[test]
fn every_route_asks_for_token_role_and_size_before_it_reads_a_body() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("library.annals");
    let database = create(&path);
    let [reader, writer, admin] =
        [Role::Read, Role::Write, Role::Admin].map(|role| token(&path, role).token);
    let server = Server::new().database_with("library", database, Tokens::of(&path).unwrap());
    let running = Running::start(server.unwrap());
    let url = format!("{}/v1/openapi.json", running.url);
    let description = reqwest::blocking::get(url).unwrap().text().unwrap();
    let description: Value = serde_json::from_str(&description).unwrap();
    let bodies = ["Content-Length: 2000000000", "Transfer-Encoding: chunked"];
    let (mut asked, mut writing) = (0, 0);
    for (path, methods) in description["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let path = path.replace("{name}", "library").replace("{table}", "item");
            let path = path.replace("{id}", "0").replace("{number}", "0").replace("{root}", "0");
            let request = format!("{} {path}", method.to_uppercase());
            let ask =
                |token: Option<&str>, body: &str| status_of_head(&running, &request, token, body);
            let is_public = matches!(path.as_str(), "/health" | "/ready" | "/v1/openapi.json");
            asked += 1;
            if is_public {
                assert_eq!(ask(None, bodies[0]), 413, "{request}");
                continue;
            }
            for body in bodies {
                assert_eq!(ask(None, body), 401, "{request} without a token");
                assert_eq!(ask(Some("annals_wrong"), body), 401, "{request} with a wrong token");
            }
            let is_reading = method == "get" || path.ends_with("/sql");
            if !is_reading || path == "/metrics" {
                writing += 1;
                for body in bodies {
                    assert_eq!(ask(Some(&reader), body), 403, "{request} by one who may read");
                }
            }
            let right = match path.as_str() {
                "/metrics" => &admin,
                _ if is_reading => &reader,
                _ => &writer,
            };
            assert_eq!(ask(Some(right), bodies[0]), 413, "{request} with too much");
            assert_eq!(ask(Some(&admin), bodies[0]), 413, "{request} with too much");
            let most = most_of(&path);
            let length = |bytes| format!("Content-Length: {bytes}");
            assert_eq!(ask(Some(right), &length(most + 1)), 413, "{request} with a byte too much");
            // A handler that reads the body asks for it; the others answer.
            let whole = format!("{}\r\nExpect: 100-continue", length(most));
            assert_ne!(ask(Some(right), &whole), 413, "{request} with {most} bytes");
        }
    }
    assert!(asked >= 30 && writing >= 5, "only {asked} routes, of which {writing} write");
    // A segment's end is said by its owner only.
    let seal = "Annals-Seal: 1\r\nTransfer-Encoding: chunked";
    let request = "POST /v1/library/frames";
    assert_eq!(status_of_head(&running, request, Some(&writer), seal), 403);
    // Nothing is said of what is there to those who may not ask.
    for request in ["POST /v1/other/sql", "POST /v1/other/t/item/0/restore"] {
        assert_eq!(status_of_head(&running, request, None, bodies[1]), 401, "{request}");
    }
    for request in ["GET /v1/library/no", "GET /v1/other/no"] {
        assert_eq!(status_of_head(&running, request, None, bodies[1]), 404, "{request}");
    }
}

/// Opens an answer, and sends what is read of it when it has ended.
fn open(running: &Running, request: &str, accept: &str, token: &str) -> mpsc::Receiver<String> {
    let mut stream = TcpStream::connect(running.address).unwrap();
    let head = format!(
        "{request} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\n"
    );
    let endless = r#"{"sql":"with recursive c(x) as (select 1 union all select x+1 from c) select count(*) from c"}"#;
    let body = if request.contains("/sql") { endless } else { "" };
    let length = body.len();
    let all = format!("{head}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    stream.write_all(all.as_bytes()).unwrap();
    stream.set_read_timeout(Some(LATE)).unwrap();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut all = Vec::new();
        let is_over = match stream.read_to_end(&mut all) {
            Ok(_) => true,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        };
        let text = String::from_utf8_lossy(&all).into_owned();
        let _ = sender.send(if is_over { text } else { format!("still open: {text}") });
    });
    receiver
}

#[test]
fn open_answers_end_with_their_token() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("library.annals");
    let database = create(&path);
    let end = annals::Cursor::from(database.read().point());
    let server =
        Server::new().database_with("library", database, Tokens::of(&path).unwrap()).unwrap();
    let running = Running::start(server);
    let requests = [
        ("GET /v1/library/changes?after=0".to_owned(), "text/event-stream"),
        ("GET /v1/library/changes?after=1&wait=60".to_owned(), "application/x-ndjson"),
        (format!("GET /v1/library/frames?after={end}&wait=60"), "*/*"),
        ("POST /v1/library/sql".to_owned(), "application/json"),
    ];
    let revoked = token(&path, Role::Read);
    let until = Timestamp::from(SystemTime::now() + Duration::from_secs(2));
    let expiring = NewToken::random(Role::Read, Some(until));
    Tokens::of(&path).unwrap().add(&expiring.stored).unwrap();
    let kept = token(&path, Role::Read);
    let opened = requests.iter().flat_map(|(request, accept)| {
        [&revoked, &expiring].map(|by| (request, open(&running, request, accept, &by.token)))
    });
    let opened: Vec<_> = opened.collect();
    let lasting = open(&running, &requests[0].0, requests[0].1, &kept.token);
    // Record batches end when all are sent, also to one token of many, which has a part of the memory.
    let batches = "GET /v1/library/changes?after=1&table=item";
    let batches = open(&running, batches, "application/vnd.apache.arrow.stream", &kept.token);
    let batches = batches.recv().unwrap();
    assert!(batches.starts_with("HTTP/1.1 200") && batches.ends_with("0\r\n\r\n"), "{batches}");
    std::thread::sleep(Duration::from_millis(500));
    assert!(opened.iter().all(|(_, answer)| answer.try_recv().is_err()), "all are open");
    assert!(Tokens::of(&path).unwrap().revoke(&revoked.stored.id).unwrap());
    for (request, answer) in opened {
        let text = answer.recv().unwrap();
        assert!(!text.starts_with("still open"), "{request}: {text}");
        if request.contains("changes?after=0") {
            assert!(text.contains("event: ended\ndata: {\"error\":\"unauthenticated\""), "{text}");
        }
        if request.contains("/sql") || request.contains("/frames") {
            assert!(text.starts_with("HTTP/1.1 401"), "{request}: {text}");
        }
    }
    assert!(lasting.try_recv().is_err(), "that of another token goes on");
}

/// So long the procedure of the test takes.
const SLOW: Duration = Duration::from_millis(2500);

fn slow(tx: &mut bank::Transaction<'_>, owner: String) -> Result<u64, Abort> {
    std::thread::sleep(SLOW);
    Ok(tx.insert(account::New { owner: &owner, ..Default::default() })?.as_u64())
}

#[test]
fn a_procedure_that_outlives_its_token_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bank.annals");
    let db = bank::Database::open(&path).unwrap();
    let server = Server::new()
        .database_with("bank", annals::Database::clone(&db), Tokens::of(&path).unwrap())
        .unwrap();
    let running = Running::start(server.procedure("bank", "slow", slow).unwrap());
    let (ended, kept) = (token(&path, Role::Write), token(&path, Role::Write));
    let url = format!("{}/transactions", running.of("bank"));
    let call = |token: &NewToken| {
        let request = Client::new().post(&url).bearer_auth(&token.token);
        let request = request.header("Content-Type", "application/json");
        let answer = request.body(r#"{"procedure":"slow","args":"Ada"}"#).send().unwrap();
        answer.status().as_u16()
    };
    std::thread::scope(|scope| {
        let called = scope.spawn(|| call(&ended));
        std::thread::sleep(SLOW / 10);
        assert!(Tokens::of(&path).unwrap().revoke(&ended.stored.id).unwrap());
        assert_eq!((called.join().unwrap(), db.read().account().len()), (401, 0));
    });
    assert_eq!((call(&kept), db.read().account().len()), (200, 1));
}

/// Creates a table and a row, which is deleted again.
fn with_deleted_row(path: &Path) -> Database {
    let (database, item) = (create(path), TableNumber(0));
    let none: &[ValueRef<'_>] = &[];
    database.write(|tx| tx.insert(item, none).map(drop)).unwrap();
    database.write(|tx| tx.delete(item, RowId(0))).unwrap();
    database
}

/// The moment at which the row is there, and a comment that makes the whole a text of so many bytes.
fn restoring(bytes: usize) -> String {
    let empty = r#"{"moment":"txid:2","comment":""}"#;
    empty.replace("\"\"", &format!("\"{}\"", "x".repeat(bytes - empty.len())))
}

#[test]
fn a_body_of_unknown_length_ends_at_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let database = with_deleted_row(&folder.path().join("library.annals"));
    let server = Server::new().database("library", database.clone()).unwrap().open_to_all();
    let running = Running::start(server);
    let restore = |bytes: usize| {
        let request = Client::new().post(format!("{}/t/item/0/restore", running.of("library")));
        let request = request.header("Content-Type", "application/json");
        // It is sent in chunks.
        let body = reqwest::blocking::Body::new(std::io::Cursor::new(restoring(bytes)));
        request.body(body).send().unwrap().status().as_u16()
    };
    let rows = || database.read().table(TableNumber(0)).unwrap().len();
    assert_eq!((restore(65_537), rows()), (413, 0));
    assert_eq!((restore(65_536), rows()), (200, 1));
}

#[test]
fn a_token_that_ends_while_a_body_comes_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("library.annals");
    let database = with_deleted_row(&path);
    let server =
        Server::new().database_with("library", database.clone(), Tokens::of(&path).unwrap());
    let running = Running::start(server.unwrap());
    let restore = |token: &NewToken, meanwhile: &dyn Fn()| {
        let body = restoring(1000);
        let (first, rest) = body.split_at(500);
        let head = format!(
            "POST /v1/library/t/item/0/restore HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Authorization: Bearer {}\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n{first}",
            token.token
        );
        let mut stream = TcpStream::connect(running.address).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        meanwhile();
        stream.write_all(rest.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer[9..12].parse::<u16>().unwrap()
    };
    let rows = || database.read().table(TableNumber(0)).unwrap().len();
    let (ended, kept) = (token(&path, Role::Write), token(&path, Role::Write));
    let revoke = || {
        // It was admitted before.
        std::thread::sleep(Duration::from_millis(300));
        assert!(Tokens::of(&path).unwrap().revoke(&ended.stored.id).unwrap());
        // So long tokens that were read are believed.
        std::thread::sleep(Duration::from_millis(1500));
    };
    assert_eq!((restore(&ended, &revoke), rows()), (401, 0));
    assert_eq!((restore(&kept, &|| {}), rows()), (200, 1));
}
