//! Servers that aren't ours: a page of a login in between, one that sends without end, one that redirects. The program
//! believes none of them, and sends them nothing that is for another.

use std::io::{BufRead as _, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::program::{annals, feed, run, succeed};
use crate::served::Served;

/// The most bytes that the program reads of an answer, and what is on its way in buffers of the system.
const MOST: u64 = (128 << 20) + (64 << 20);
/// After so many bytes an endless answer ends, so that a test fails rather than goes on for ever.
const ENDLESS: u64 = 1 << 30;

/// An error that is certain comes sooner than a server in trouble is given up.
const SOON: Duration = Duration::from_secs(15);
/// A server that sends too slowly is given up sooner.
const LATE: Duration = Duration::from_secs(90);

const PAGE: &str = "<!doctype html><title>Wi-Fi</title><h1>Please log in</h1>";

/// A server that answers each request, of which it has the head, in the same way, until the test's process ends.
fn serve(answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, answer) = (listener.local_addr().unwrap(), Arc::new(answer));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map(Result::unwrap) {
            let answer = Arc::clone(&answer);
            std::thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let lines = lines.by_ref().map_while(Result::ok).take_while(|it| !it.is_empty());
                let head = lines.collect::<Vec<_>>().join("\n");
                if !head.is_empty() {
                    answer(&head, &mut stream);
                }
            });
        }
    });
    address
}

/// Returns the head of an answer that ends with its connection.
fn head(status: &str, more: &str) -> String {
    format!("HTTP/1.1 {status}\r\nConnection: close\r\n{more}\r\n")
}

/// What asks a server, each with a file that it would make.
fn commands() -> Vec<Vec<&'static str>> {
    vec![
        vec!["clone", "URL", "new.annals"],
        vec!["clone", "URL", "new.annals", "--lazy"],
        vec!["history", "URL", "a", "0"],
        vec!["log", "URL"],
        vec!["dump", "URL"],
        #[cfg(feature = "sqlite")]
        vec!["sql", "URL", "SELECT 1", "--format", "table"],
        #[cfg(feature = "sqlite")]
        vec!["sql", "URL", "SELECT 1", "--format", "csv"],
        #[cfg(feature = "sqlite")]
        vec!["sql", "URL", "SELECT 1", "--format", "json"],
        #[cfg(feature = "sqlite")]
        vec!["sql", "URL", "SELECT 1", "--format", "ndjson"],
    ]
}

/// Runs a command on a server, with a token; it must fail, and make nothing. Returns what it says.
fn fail(dir: &Path, command: &[&str], server: SocketAddr) -> String {
    let url = format!("http://{server}/v1/x");
    let arguments: Vec<_> =
        command.iter().map(|it| if *it == "URL" { url.as_str() } else { *it }).collect();
    let mut command = annals(dir, &arguments);
    command.env("ANNALS_TOKEN", "annals_secret");
    let Output { status, stdout, stderr } = feed(command, b"");
    let (printed, error) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(!status.success(), "{arguments:?} succeeded: {printed:.300}{error:.300}");
    assert_eq!(printed, "", "{arguments:?} printed something: {printed:.300}");
    let left: Vec<_> = std::fs::read_dir(dir).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert!(left.is_empty(), "{arguments:?} has left {left:?}");
    error.into_owned()
}

/// A server whose certificate only its own authority vouches for.
#[test]
fn an_authority_of_certificates_is_named_by_an_option_or_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(dir.join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(dir.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let tls = ["--create", "--no-token", "--cert", "cert.pem", "--key", "key.pem"];
    let served = Served::start(dir, "localhost:0", &tls);
    let port = served.url.split(':').nth(2).unwrap().split('/').next().unwrap();
    let url = format!("https://localhost:{port}/v1/a");
    let ask = ["sql", &url, "SELECT 6 * 7"];
    let by_option = succeed(dir, &[ask.as_slice(), &["--ca", "cert.pem"]].concat(), "");
    let mut command = annals(dir, &ask);
    command.env("ANNALS_CA", "cert.pem");
    let by_environment = feed(command, b"");
    assert!(by_environment.status.success());
    assert_eq!(String::from_utf8(by_environment.stdout).unwrap(), by_option);
    assert!(by_option.contains("42"), "{by_option}");
    let unknown = run(dir, &ask, b"");
    let said = String::from_utf8(unknown.stderr).unwrap();
    assert!(!unknown.status.success() && said.contains("--ca"), "{said}");
    std::fs::write(dir.join("other.pem"), "nothing").unwrap();
    for (file, what) in [("other.pem", "certificate"), ("missing.pem", "missing.pem")] {
        let wrong = run(dir, &[ask.as_slice(), &["--ca", file]].concat(), b"");
        let said = String::from_utf8(wrong.stderr).unwrap();
        assert!(!wrong.status.success() && said.contains(what), "{file}: {said}");
    }
}

#[test]
fn a_token_is_sent_to_no_other_server() {
    let folder = tempfile::tempdir().unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let by = Arc::clone(&seen);
    // What it would be redirected to redirects to itself: only the first hop is another server.
    let other = serve(move |head, stream| {
        by.lock().unwrap().push(head.to_owned());
        let length = "Content-Length: 0\r\n";
        let again = format!("Location: /again\r\n{length}");
        let _ = stream.write_all(self::head("302 Found", &again).as_bytes());
    });
    for (status, to) in [
        ("302 Found", format!("http://{other}")),
        ("307 Temporary Redirect", format!("http://{other}")),
        // The same machine by another name is another server.
        ("308 Permanent Redirect", format!("http://localhost:{}", other.port())),
    ] {
        let location = format!("Location: {to}/v1/x\r\nContent-Length: 0\r\n");
        let trusted = serve(move |_, stream| {
            let _ = stream.write_all(head(status, &location).as_bytes());
        });
        for command in commands() {
            let begun = Instant::now();
            let error = fail(folder.path(), &command, trusted);
            assert!(begun.elapsed() < SOON, "{command:?} asks again: {:?}", begun.elapsed());
            assert!(error.contains("redirects to another one"), "{command:?}: {error}");
            assert!(error.contains(&to) && !error.contains("annals_secret"), "{error}");
        }
    }
    assert_eq!(*seen.lock().unwrap(), Vec::<String>::new(), "the other one was asked");
}

#[test]
fn a_page_in_between_is_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    // As a portal says it, as what was asked for, and as an error.
    for (status, kind) in [
        ("200 OK", "text/html"),
        ("200 OK", "text/csv"),
        ("200 OK", "application/json"),
        ("200 OK", "application/x-ndjson"),
        ("502 Bad Gateway", "text/html"),
    ] {
        let length = PAGE.len();
        let more = format!("Content-Type: {kind}\r\nContent-Length: {length}\r\n");
        let portal = serve(move |_, stream| {
            let _ = stream.write_all((head(status, &more) + PAGE).as_bytes());
        });
        for command in commands() {
            // One that is lazy asks a server in trouble again for a while.
            if status.starts_with("502") && command.contains(&"--lazy") {
                continue;
            }
            let error = fail(folder.path(), &command, portal);
            let told = if status.starts_with("200") { "is it one of Annals" } else { status };
            assert!(error.contains(told), "{kind}, {command:?}: {error}");
        }
    }
}

#[test]
fn an_answer_without_end_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    for kind in ["text/csv", "application/json", "application/x-ndjson"] {
        // All that an answer of ours has, too.
        let more = format!(
            "Content-Type: {kind}\r\nAnnals-Txid: 1\r\nAnnals-Next: 1:00c0ffee00c0ffee\r\nTransfer-Encoding: chunked\r\n"
        );
        let most = Arc::new(AtomicU64::new(0));
        let by = Arc::clone(&most);
        let endless = serve(move |_, stream| {
            let chunk = format!("100000\r\n{}\r\n", "x".repeat(1 << 20));
            let (mut sent, head) = (0, head("200 OK", &more));
            let mut is_open = stream.write_all(head.as_bytes()).is_ok();
            while is_open && sent < ENDLESS {
                is_open = stream.write_all(chunk.as_bytes()).is_ok();
                sent += 1 << 20;
            }
            by.fetch_max(sent, Ordering::Relaxed);
        });
        for command in commands() {
            let error = fail(folder.path(), &command, endless);
            assert!(error.contains("is it one of Annals"), "{kind}, {command:?}: {error}");
        }
        let most = most.load(Ordering::Relaxed);
        assert!(most < MOST, "{kind}: {most} bytes were taken");
    }
}

/// A byte now and then is no silence, and the whole answer would take years.
#[test]
fn an_answer_that_drips_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let dripping = serve(|_, stream| {
        let length = "Content-Type: application/octet-stream\r\nAnnals-Txid: 1\r\nAnnals-Next: 1:00c0ffee00c0ffee\r\nContent-Length: 1000000\r\n";
        let mut is_open = stream.write_all(head("200 OK", length).as_bytes()).is_ok();
        // It begins as frames do.
        is_open &= stream.write_all(b"\xF5A").is_ok();
        while is_open {
            std::thread::sleep(Duration::from_millis(500));
            is_open = stream.write_all(b" ").is_ok();
        }
    });
    let begun = Instant::now();
    let error = fail(folder.path(), &["clone", "URL", "new.annals"], dripping);
    assert!(error.contains("bytes of the answer came in 3"), "{error}");
    assert!(begun.elapsed() < LATE, "{:?}", begun.elapsed());
}
