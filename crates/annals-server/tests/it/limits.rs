//! Clients that are slow, silent, or many: none costs the others anything, and each is bounded.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use annals::{Command, Database, Options, TableNumber, Type, ValueRef};
use annals_server::{Limits, NewToken, Role, Server};
use reqwest::blocking::Client;

use crate::running::Running;

const ITEM: TableNumber = TableNumber(0);
/// So long a client may be silent.
const SILENCE: Duration = Duration::from_millis(400);

fn limits() -> Limits {
    Limits { silence: SILENCE, ..Limits::default() }
}

/// Creates a table, and `rows` rows of 400 KB in one transaction.
fn create(database: &Database, rows: usize) {
    let field = Command::AddField {
        table: ITEM,
        name: "bytes".to_owned(),
        ty: Type::Bytes,
        nullable: false,
        default: None,
    };
    let large = vec![7; 400_000];
    database
        .write(|tx| {
            tx.apply_command(&Command::CreateTable { name: "item".to_owned() })?;
            tx.apply_command(&field)?;
            (0..rows).try_for_each(|_| tx.insert(ITEM, &[ValueRef::Bytes(&large)]).map(drop))
        })
        .unwrap();
}

/// Tries something again until it is so; it is an error if that takes very long.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it never happened: {what}");
}

fn send(running: &Running, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(running.address).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    stream
}

#[test]
fn slow_clients_hold_no_thread_and_are_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let database = Options::new().open(folder.path().join("origin")).unwrap();
    create(&database, 60);
    let new = NewToken::random(Role::Admin, None);
    let server = Server::new().database("origin", database).unwrap().session(new.stored);
    // Fewer threads than slow clients.
    let running = Running::with_threads(server.limits(limits()), 2);
    let token = format!("Authorization: Bearer {}\r\nHost: localhost\r\n", new.token);
    let pull = format!("GET /v1/origin/frames HTTP/1.1\r\n{token}\r\n");
    let mut readers: Vec<_> = (0..6).map(|_| send(&running, &pull)).collect();
    let push = format!(
        "POST /v1/origin/frames HTTP/1.1\r\n{token}If-Match: \"1:00c0ffee00c0ffee\"\r\nContent-Length: \
         100000\r\n\r\nsome"
    );
    let mut writers: Vec<_> = (0..6).map(|_| send(&running, &push)).collect();
    let client = Client::new();
    let get = |path: &str| {
        let request = client.get(format!("{}{path}", running.url)).bearer_auth(&new.token);
        request.send().unwrap().text().unwrap()
    };
    assert!(get("/v1/origin").contains("\"txid\":1"), "others are served meanwhile");
    let counted = || {
        let figures = get("/metrics");
        let count = figures.lines().find_map(|it| it.strip_prefix("annals_slow_readers_total "));
        count.unwrap().parse::<u64>().unwrap()
    };
    until("all slow readers are cut off", || counted() >= 6);
    for reader in &mut readers {
        let mut rest = Vec::new();
        // What was on its way, or that the connection was reset.
        let _ = reader.read_to_end(&mut rest);
        assert!(rest.len() < 60 * 400_000, "{} bytes were sent to one who didn't read", rest.len());
    }
    for writer in &mut writers {
        let mut answer = String::new();
        writer.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    }
    // The connection and the answer of each have seen it by now.
    std::thread::sleep(SILENCE);
    assert_eq!(counted(), 6, "each is counted once");
}

#[test]
fn requests_that_never_end_are_ended() {
    let server = Server::new().database("memory", Database::in_memory().unwrap()).unwrap();
    let running = Running::start(server.open_to_all().limits(limits()));
    // Nothing at all, a beginning of HTTP/2, and a beginning of a header.
    for beginning in ["", "PRI * HT", "GET /health HTTP/1.1\r\nHost: loc"] {
        let mut stream = send(&running, beginning);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 408"), "{answer:?}");
    }
    // A byte of a header now and then, for ever; and of a body.
    let body = "POST /v1/memory/transactions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Content-Length: 100000\r\n\r\n";
    for beginning in ["GET /health HTTP/1.1\r\nHost: localhost\r\nA: ", body] {
        let mut stream = send(&running, beginning);
        stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        until("the server ends it", || {
            let sent = stream.write_all(b"a");
            let read = stream.read(&mut [0; 100]);
            sent.is_err() || read.is_ok()
        });
    }
}

/// As many requests wait for their bodies at a time, if these are large.
const BODIES: usize = 128;

#[test]
fn only_so_many_requests_wait_for_their_bodies() {
    let server = Server::new().database("memory", Database::in_memory().unwrap()).unwrap();
    let running = Running::start(server.open_to_all());
    // The server asks for the body when it waits for it.
    let head = "POST /v1/memory/transactions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Content-Length: 20000\r\nExpect: 100-continue\r\n\r\n";
    let begin = || {
        let (mut stream, mut answer) = (send(&running, head), [0; 1000]);
        let count = stream.read(&mut answer).unwrap();
        (stream, String::from_utf8_lossy(&answer[..count]).to_lowercase())
    };
    let waits = |answer: &str| answer.starts_with("http/1.1 100");
    let waiting: Vec<_> = (0..BODIES).map(|_| begin()).collect();
    assert!(waiting.iter().all(|(_, answer)| waits(answer)), "{waiting:?}");
    for _ in 0..3 {
        let (_, answer) = begin();
        assert!(answer.starts_with("http/1.1 503"), "{answer}");
        assert!(answer.contains("\r\nretry-after: 1\r\n"), "{answer}");
    }
    // What has no body is answered.
    let answer = reqwest::blocking::get(running.of("memory")).unwrap();
    assert_eq!(answer.status().as_u16(), 200);
    drop(waiting);
    until("their places are free again", || waits(&begin().1));
}

#[test]
fn those_who_wait_for_news_hold_no_thread_and_are_all_told() {
    let database = Database::in_memory().unwrap();
    create(&database, 0);
    let server = Server::new().database("memory", database.clone()).unwrap().open_to_all();
    let running = Running::with_threads(server, 2);
    let here = running.of("memory");
    let end = annals::Cursor::from(database.read().point());
    let client = Client::new();
    let get = |rest: &str| client.get(format!("{here}{rest}")).send().unwrap().text().unwrap();
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..20)
            .flat_map(|_| {
                let changes = scope.spawn(|| get("/changes?after=1&wait=60"));
                [changes, scope.spawn(|| get(&format!("/frames?after={end}&wait=60")))]
            })
            .collect();
        until("all wait", || database.stats().subscribers >= 20);
        assert!(get("").contains("\"txid\":1"), "others are served meanwhile");
        database.write(|tx| tx.insert(ITEM, &[ValueRef::Bytes(b"x")]).map(drop)).unwrap();
        for answer in waiting {
            assert!(!answer.join().unwrap().is_empty());
        }
    });
}

#[test]
fn the_end_of_the_server_ends_those_who_wait() {
    let database = Database::in_memory().unwrap();
    create(&database, 0);
    let server = Server::new().database("memory", database.clone()).unwrap().open_to_all();
    let running = Running::start(server);
    let here = running.of("memory");
    std::thread::scope(|scope| {
        let get = |rest: &str, kind: &'static str| {
            let request = Client::new().get(format!("{here}{rest}")).header("Accept", kind);
            scope.spawn(move || request.send().and_then(|answer| answer.text()))
        };
        let poll = get("/changes?after=1&wait=60", "*/*");
        let events = get("/changes?after=1", "text/event-stream");
        // The server itself follows the database, too.
        until("both wait", || database.stats().subscribers == 3);
        drop(running);
        // Neither is cut off: they know how far they are, and go on elsewhere.
        assert!(poll.join().unwrap().unwrap().contains("{\"caught_up\":1,"));
        assert!(events.join().unwrap().unwrap().starts_with("event: caught-up"));
    });
}

#[tokio::test]
async fn a_server_of_the_programs_own_ends_beside_those_who_wait() {
    let database = Database::in_memory().unwrap();
    create(&database, 0);
    let server = Server::new().database("memory", database.clone()).unwrap().open_to_all();
    let (ending, router) = (server.ending(), server.router());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let shutdown = async move {
        let _ = ended.await;
        ending.begin();
    };
    let serving = tokio::spawn(async move {
        axum::serve(listener, router).with_graceful_shutdown(shutdown).await
    });
    let get = |rest: &str, kind: &str| {
        let url = format!("http://{address}/v1/memory{rest}");
        reqwest::Client::new().get(url).header("Accept", kind).send()
    };
    let events = get("/changes?after=1", "text/event-stream").await.unwrap();
    let poll = tokio::spawn(get("/changes?after=1&wait=60", "*/*"));
    while database.stats().subscribers < 3 {
        tokio::task::yield_now().await;
    }
    end.send(()).unwrap();
    let late = Duration::from_secs(20);
    let text = tokio::time::timeout(late, events.text()).await.expect("the stream ends");
    assert!(text.unwrap().starts_with("event: caught-up"));
    let poll = poll.await.unwrap().unwrap().text().await.unwrap();
    assert!(poll.contains("{\"caught_up\":1,"), "{poll}");
    let served = tokio::time::timeout(late, serving).await.expect("the server ends");
    served.unwrap().unwrap();
}
