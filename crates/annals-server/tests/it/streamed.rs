//! Answers that are sent as they are made: differences, and files of all rows.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use annals::{Database, Options, TableNumber, ValueRef};
use annals_server::{Limits, NewToken, Role, Server, Tokens};
use reqwest::blocking::Client;

use crate::bounded::define;
use crate::running::Running;

const TABLE: TableNumber = TableNumber(0);
const ROWS: u64 = 60_000;
/// The bytes of each row's text: all of them are more than a connection takes that isn't read.
const BYTES: usize = 300;
/// What is asked for: each has all rows.
const STREAMS: [&str; 3] = ["/diff?from=txid:1", "/t/a?file=csv", "/t/a?file=ndjson"];

/// Creates a table by the first transaction, and fills it by the second one.
fn fill(database: &Database) {
    database.write(define).unwrap();
    let text = "x".repeat(BYTES);
    let insert = |tx: &mut annals::Transaction<'_>| {
        (0..ROWS).try_for_each(|_| tx.insert(TABLE, &[ValueRef::String(&text)]).map(drop))
    };
    database.write(insert).unwrap();
}

/// Connects with a small buffer. Some systems let that of a connection grow to 32 MiB: all of an answer would be in it.
fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let stream = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(64 << 10)?;
        socket.connect(address).await
    })?;
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Asks for an answer that isn't read.
fn open(running: &Running, path: &str, token: &str) -> TcpStream {
    let mut stream = connect(running.address).unwrap();
    let request = format!(
        "GET /v1/a{path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

fn status(stream: &mut TcpStream) -> String {
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    String::from_utf8_lossy(&head[9..]).into_owned()
}

fn start(limits: Limits) -> Running {
    let database = Database::in_memory().unwrap();
    fill(&database);
    let server = Server::new().database("a", database).unwrap().open_to_all().limits(limits);
    Running::start(server)
}

fn is_whole(running: &Running, path: &str) -> bool {
    let answer = reqwest::blocking::get(format!("{}{path}", running.of("a"))).unwrap();
    let (status, text) = (answer.status().as_u16(), answer.text().unwrap());
    assert!(matches!(status, 200 | 503), "{path}: {status} {text:.200}");
    status == 200 && text.matches(&"x".repeat(BYTES)).count() as u64 == ROWS
}

#[test]
fn those_who_do_not_read_hold_memory_and_no_place_until_they_are_cut_off() {
    let limits = Limits { memory: 16 << 20, silence: Duration::from_secs(2), ..Limits::default() };
    let running = start(limits);
    for path in STREAMS {
        let mut opened: Vec<_> = (0..30).map(|_| open(&running, path, "")).collect();
        std::thread::sleep(Duration::from_millis(500));
        let client = Client::builder().timeout(limits.silence / 2).build().unwrap();
        let row = client.get(format!("{}/t/a/0", running.of("a"))).send().unwrap();
        assert_eq!(row.status().as_u16(), 200, "others are answered");
        let statuses: Vec<_> = opened.iter_mut().map(status).collect();
        let answered = statuses.iter().filter(|status| *status == "200").count();
        assert!((1..20).contains(&answered), "{path}: {statuses:?}");
        assert!(statuses.iter().all(|it| it == "200" || it == "503"), "{path}: {statuses:?}");
        // Nothing is held after them.
        let begun = Instant::now();
        while !is_whole(&running, path) {
            assert!(begun.elapsed() < 5 * limits.silence, "{path}");
        }
    }
}

#[test]
fn those_who_leave_end_their_streams() {
    let limits =
        Limits { memory: 16 << 20, silence: Duration::from_secs(600), ..Limits::default() };
    let running = start(limits);
    for path in STREAMS {
        for _ in 0..20 {
            assert_eq!(status(&mut open(&running, path, "")), "200");
        }
        let begun = Instant::now();
        while !is_whole(&running, path) {
            assert!(begun.elapsed() < Duration::from_secs(20), "{path}");
        }
    }
}

fn token(path: &Path) -> NewToken {
    let new = NewToken::random(Role::Read, None);
    Tokens::of(path).unwrap().add(&new.stored).unwrap();
    new
}

#[test]
fn those_whose_token_is_revoked_get_no_whole_answer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    let database = Options::new().open(&path).unwrap();
    fill(&database);
    let server = Server::new().database_with("a", database, Tokens::of(&path).unwrap());
    let running = Running::start(server.unwrap());
    let (revoked, kept) = (token(&path), token(&path));
    let open = |token: &NewToken| STREAMS.map(|path| open(&running, path, &token.token));
    let (revoked_streams, kept_streams) = (open(&revoked), open(&kept));
    // All are being answered.
    for stream in revoked_streams.iter().chain(&kept_streams) {
        assert_eq!(stream.peek(&mut [0]).unwrap(), 1);
    }
    assert!(Tokens::of(&path).unwrap().revoke(&revoked.stored.id).unwrap());
    // It takes about a second; other tests may have the processors meanwhile.
    std::thread::sleep(Duration::from_secs(8));
    for (streams, is_kept) in [(revoked_streams, false), (kept_streams, true)] {
        for (mut stream, path) in streams.into_iter().zip(STREAMS) {
            assert_eq!(status(&mut stream), "200", "{path}");
            let mut rest = Vec::new();
            // The end of a body in chunks.
            let is_whole =
                stream.read_to_end(&mut rest).is_ok() && rest.ends_with(b"\r\n0\r\n\r\n");
            assert_eq!(is_whole, is_kept, "{path}");
        }
    }
}
