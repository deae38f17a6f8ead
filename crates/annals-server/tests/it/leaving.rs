//! Clients that leave before their answer: the work ends with them, and gives its place back.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use annals::Options;
use annals_server::{Limits, NewToken, Role, Server, Tokens};
use reqwest::blocking::Client;

use crate::bounded::database;
use crate::running::Running;

/// A query that never ends by itself.
const ENDLESS: &str = r#"{"sql":"with recursive c(x) as (select 1 union all select x+1 from c) select count(*) from c"}"#;
/// Long, if those who came before have left; much less than the time that a query may take.
const SOON: Duration = Duration::from_secs(5);

/// So long a request waits for a place, where that is short.
const PATIENCE: Duration = Duration::from_secs(1);

/// Sends a request, and leaves without its answer.
fn send_and_leave(running: &Running, request: &str) {
    let mut stream = TcpStream::connect(running.address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    // It has begun.
    std::thread::sleep(Duration::from_millis(4));
}

fn post(path: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn those_who_leave_give_their_places_back() {
    let server = Server::new().database("g", database(20_000, 0)).unwrap().open_to_all();
    // Long work has threads of its own: those for short work are fewer than one kind of it has places.
    let running = Running::with_threads(server, 2);
    let get = |path: &str| format!("GET /v1/g{path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let requests = [
        post("/v1/g/sql", ENDLESS),
        get("/t/a/0/history?limit=10000"),
        get("/log?limit=10000"),
        get("/search?text=zzz"),
        get("/t/a/0/blame"),
        get("/changes?after=0&wait=60"),
    ];
    std::thread::scope(|scope| {
        for request in &requests {
            let running = &running;
            scope.spawn(move || (0..100).for_each(|_| send_and_leave(running, request)));
        }
    });
    let begun = Instant::now();
    let client = Client::builder().timeout(SOON).build().unwrap();
    let row = client.get(format!("{}/t/a/0", running.of("g"))).send().unwrap();
    assert_eq!(row.status().as_u16(), 200);
    let query = client.post(format!("{}/sql", running.of("g")));
    let query = query.header("Content-Type", "application/json").body(r#"{"sql":"SELECT 1"}"#);
    assert_eq!(query.send().unwrap().text().unwrap(), "[{\"1\":1}]\n");
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
}

#[test]
fn those_who_stay_wait_for_a_place_and_others_are_answered_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("g.annals");
    let token = || {
        let new = NewToken::random(Role::Read, None);
        Tokens::of(&path).unwrap().add(&new.stored).unwrap();
        new.token
    };
    let file = Options::new().open(&path).unwrap();
    let (abuser, other) = (token(), token());
    let tokens = Tokens::of(&path).unwrap();
    let server = Server::new().database_with("g", file, tokens).unwrap();
    let limits = Limits { silence: PATIENCE, ..Limits::default() };
    let running = Running::with_threads(server.limits(limits), 2);
    let mut streams: Vec<_> = (0..40)
        .map(|_| {
            let mut stream = TcpStream::connect(running.address).unwrap();
            let head = format!("HTTP/1.1\r\nAuthorization: Bearer {abuser}");
            let request = post("/v1/g/sql", ENDLESS).replacen("HTTP/1.1", &head, 1);
            stream.write_all(request.as_bytes()).unwrap();
            stream
        })
        .collect();
    std::thread::sleep(Duration::from_millis(200));
    let client = Client::builder().timeout(SOON).build().unwrap();
    let query = client.post(format!("{}/sql", running.of("g"))).bearer_auth(&other);
    let query = query.header("Content-Type", "application/json").body(r#"{"sql":"SELECT 1"}"#);
    // One token has half of the places.
    assert_eq!(query.send().unwrap().text().unwrap(), "[{\"1\":1}]\n");
    // A place is free when its work ends, and no sooner: those that get none in time are told.
    let end = Instant::now() + SOON;
    let is_refused = |stream: &mut TcpStream| {
        let left = end.saturating_duration_since(Instant::now());
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1)))).unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).is_ok_and(|()| answer.ends_with(b" 503"))
    };
    let refused = streams.iter_mut().filter_map(|stream| is_refused(stream).then_some(())).count();
    assert!(refused > 30, "only {refused} of {} were refused", streams.len());
    streams.clear();
    // Once they have left, all places are free again.
    let query = client.post(format!("{}/sql", running.of("g"))).bearer_auth(&abuser);
    let query = query.header("Content-Type", "application/json").body(r#"{"sql":"SELECT 1"}"#);
    assert_eq!(query.send().unwrap().text().unwrap(), "[{\"1\":1}]\n");
}
