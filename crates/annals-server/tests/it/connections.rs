//! Connections of those who ask for nothing, and what protects those of browsers.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use annals::Database;
use annals_server::{Identity, Limits, NewToken, Role, Server};
use reqwest::Certificate;
use reqwest::blocking::{Client, ClientBuilder};
use reqwest::redirect::Policy;

use crate::running::Running;

/// The beginning of a connection of HTTP/2, with empty settings.
const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const SETTINGS: u8 = 4;
const PING: u8 = 6;

/// Answers settings and pings of HTTP/2, and asks for nothing, until the other side ends it.
fn only_answer_pings(mut stream: TcpStream) {
    stream.write_all(HTTP2).unwrap();
    let mut head = [0; 9];
    while stream.read_exact(&mut head).is_ok() {
        let length = head[..3].iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        let mut frame = vec![0; length];
        if stream.read_exact(&mut frame).is_err() {
            return;
        }
        let is_answer = head[4] & 1 == 1;
        let sent = match head[3] {
            SETTINGS if !is_answer => stream.write_all(b"\0\0\0\x04\x01\0\0\0\0"),
            PING if !is_answer => {
                let answer = [&b"\0\0\x08\x06\x01\0\0\0\0"[..], &frame].concat();
                stream.write_all(&answer)
            }
            _ => Ok(()),
        };
        if sent.is_err() {
            return;
        }
    }
}

#[test]
fn connections_that_ask_for_nothing_give_their_places_to_others() {
    let limits = Limits { connections: 12, silence: Duration::from_secs(30), ..Limits::default() };
    let new = NewToken::random(Role::Read, None);
    let server = Server::new().database("a", Database::in_memory().unwrap()).unwrap();
    let running = Running::start(server.session(new.stored).limits(limits));
    let connect = || TcpStream::connect(running.address).unwrap();
    let url = running.of("a");
    let get = |client: &Client| client.get(&url).bearer_auth(&new.token).send();
    // One who may ask, and waits for news, keeps its connection.
    let mut waiting = connect();
    let head = format!(
        "GET /v1/a/changes?after=0 HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nAuthorization: Bearer {}\r\n\r\n",
        new.token
    );
    waiting.write_all(head.as_bytes()).unwrap();
    let mut silent: Vec<_> = (0..4).map(|_| connect()).collect();
    for beginning in [
        "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /v1/a HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ] {
        let mut stream = connect();
        // Answered without a right, or refused, and silent from then on.
        stream.write_all(beginning.as_bytes()).unwrap();
        silent.push(stream);
    }
    let pinging: Vec<_> = (0..8)
        .map(|_| {
            let stream = connect();
            std::thread::spawn(move || only_answer_pings(stream))
        })
        .collect();
    let begun = Instant::now();
    let client = Client::builder().timeout(Duration::from_secs(20)).build().unwrap();
    assert_eq!(get(&client).unwrap().status().as_u16(), 200);
    let late = begun.elapsed();
    assert!(late < Duration::from_secs(10), "it has waited {late:?}");
    pinging.into_iter().for_each(|thread| thread.join().unwrap());
    waiting.set_nonblocking(true).unwrap();
    let mut read = [0; 10_000];
    let count = waiting.read(&mut read).unwrap();
    assert!(read[..count].starts_with(b"HTTP/1.1 200"));
    let more = waiting.read(&mut read);
    assert!(more.is_err(), "it is open: {more:?}");
}

/// Starts a server with a certificate; returns a client that trusts it, and its origin.
fn start_with_tls(folder: &Path, server: Server) -> (Running, ClientBuilder, String) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let running = Running::start(server.tls(Identity::read(&cert, &key).unwrap()));
    let root = Certificate::from_pem(made.cert.pem().as_bytes()).unwrap();
    let origin = format!("https://localhost:{}", running.address.port());
    (running, Client::builder().tls_certs_only([root]), origin)
}

#[test]
fn pages_of_its_own_origin_may_ask_over_every_http() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new().database("a", Database::in_memory().unwrap()).unwrap();
    let (_running, with_2, origin) = start_with_tls(folder.path(), server.open_to_all());
    let root = std::fs::read(folder.path().join("cert.pem")).unwrap();
    let with_1 = Client::builder().tls_certs_only([Certificate::from_pem(&root).unwrap()]);
    let plain = origin.replace("https", "http");
    let other = origin.replace("https", "foo");
    for (client, version) in
        [(with_2, reqwest::Version::HTTP_2), (with_1.http1_only(), reqwest::Version::HTTP_11)]
    {
        let client = client.build().unwrap();
        let ask = |from: &str| {
            let answer =
                client.get(format!("{origin}/v1/a")).header("Origin", from).send().unwrap();
            assert_eq!(answer.version(), version);
            answer.status().as_u16()
        };
        assert_eq!(ask(&origin), 200, "{version:?}");
        let others =
            [plain.as_str(), &other, "null", "https://localhost", "https://localhost:1", ""];
        for from in others {
            assert_eq!(ask(from), 403, "{version:?} from {from:?}");
        }
    }
}

/// Returns the cookie that a server's link to the explorer sets, and its attributes.
fn enter(client: &Client, origin: &str, token: &str) -> (String, String) {
    let answer = client.get(format!("{origin}/explore/a?token={token}")).send().unwrap();
    let cookie = answer.headers().get("Set-Cookie").unwrap().to_str().unwrap();
    let (cookie, attributes) = cookie.split_once(';').unwrap();
    (cookie.to_owned(), attributes.to_lowercase())
}

#[test]
fn two_servers_of_a_host_have_cookies_of_their_own() {
    let start = || {
        let new = NewToken::random(Role::Write, None);
        let server = Server::new().database("a", Database::in_memory().unwrap()).unwrap();
        (Running::start(server.session(new.stored)), new.token)
    };
    let client = Client::builder().redirect(Policy::none()).build().unwrap();
    let servers = [start(), start()];
    let entered = servers.each_ref().map(|(running, token)| enter(&client, &running.url, token));
    // A browser sends all cookies of a host to each of its ports.
    let all = entered.each_ref().map(|(cookie, _)| cookie.as_str()).join("; ");
    for (running, _) in &servers {
        let get = |cookies: &str| {
            let request = client.get(running.of("a")).header("Cookie", cookies);
            request.send().unwrap().status().as_u16()
        };
        assert_eq!((get(&all), get("other=1")), (200, 401));
    }
    for (_, attributes) in &entered {
        assert!(attributes.contains("httponly") && attributes.contains("samesite=strict"));
    }
    let folder = tempfile::tempdir().unwrap();
    let new = NewToken::random(Role::Write, None);
    let server = Server::new().database("a", Database::in_memory().unwrap()).unwrap();
    let (_running, client, origin) = start_with_tls(folder.path(), server.session(new.stored));
    let client = client.redirect(Policy::none()).build().unwrap();
    let (cookie, attributes) = enter(&client, &origin, &new.token);
    assert!(
        cookie.starts_with("__Host-") && attributes.contains("secure"),
        "{cookie}; {attributes}"
    );
    let get = client.get(format!("{origin}/v1/a")).header("Cookie", cookie);
    assert_eq!(get.send().unwrap().status().as_u16(), 200);
}
