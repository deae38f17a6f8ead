//! Serves the figures of a database to Prometheus, over HTTP, in its text format:
//! `cargo run --release --example metrics -- library.annals 127.0.0.1:9184`.
//!
//! Without arguments it serves a database in memory, asks itself once, prints the answer and ends. A program with a web
//! server of its own takes `text` from here.
#![allow(clippy::print_stdout, reason = "an example prints what it finds")]

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use annals::{Database, Stats};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// So long a client may be silent.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest request that is read, in bytes.
const LONGEST: u64 = 8 << 10;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [path, address] = &arguments[..] {
        let (db, listener) = (Database::open(path)?, TcpListener::bind(address)?);
        println!("http://{}/metrics", listener.local_addr()?);
        return serve(&db, &listener);
    }
    let (db, listener) = (Database::in_memory()?, TcpListener::bind("127.0.0.1:0")?);
    db.write(|tx| tx.comment("the first commit"))?;
    let address = listener.local_addr()?;
    let server = db.clone();
    // It ends with the program.
    thread::spawn(move || serve(&server, &listener));
    let mut client = TcpStream::connect(address)?;
    client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n")?;
    let mut answer = String::new();
    client.read_to_string(&mut answer)?;
    println!("{answer}");
    Ok(())
}

/// Answers requests, one after another, as Prometheus asks.
fn serve(db: &Database, listener: &TcpListener) -> Result<(), Failure> {
    loop {
        let (stream, _) = listener.accept()?;
        // A client that goes away, or is silent, is no reason to stop.
        let _ = answer(db, stream);
    }
}

fn answer(db: &Database, mut stream: TcpStream) -> Result<(), Failure> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = BufReader::new((&stream).take(LONGEST));
    let mut first = String::new();
    request.read_line(&mut first)?;
    let mut line = String::new();
    while first.len() > 2 && request.read_line(&mut line)? > 2 {
        line.clear();
    }
    let (status, text) = match first.split(' ').take(2).collect::<Vec<_>>()[..] {
        ["GET", "/metrics"] => ("200 OK", text(&db.stats())?),
        _ => ("404 Not Found", "ask for /metrics\n".to_owned()),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{text}",
        text.len()
    )?;
    Ok(())
}

/// Returns the figures in the text format of Prometheus.
fn text(stats: &Stats) -> Result<String, std::fmt::Error> {
    let mut out = String::new();
    let age = stats.oldest_reader.map_or(Duration::ZERO, |oldest| oldest.age);
    let backfilled = stats.last_backfill.map_or(0, |time| time.0 / 1_000_000);
    for (name, kind, help, value) in [
        ("commits_total", "counter", "Commits that were acknowledged.", stats.commits),
        ("last_transaction", "gauge", "The last transaction.", stats.txid.0),
        ("tail_bytes", "gauge", "Bytes of the journal after the image.", stats.tail_bytes),
        ("tail_transactions", "gauge", "Transactions after the image.", stats.tail_transactions),
        ("image_bytes", "gauge", "The length of the image.", stats.image_bytes),
        ("cache_hits_total", "counter", "Pages found in the cache.", stats.cache.hits),
        ("cache_misses_total", "counter", "Pages read from the image.", stats.cache.misses),
        ("cache_read_bytes_total", "counter", "Bytes read from the image.", stats.cache.read_bytes),
        ("cache_bytes", "gauge", "Bytes in the cache.", stats.cache.bytes),
        ("cache_limit_bytes", "gauge", "The limit of the cache.", stats.cache.limit),
        ("memory_bytes", "gauge", "Memory of the database.", stats.memory.total()),
        ("readers", "gauge", "Snapshots in use.", stats.readers),
        ("subscribers", "gauge", "Subscriptions in use.", stats.subscribers),
    ] {
        metric(&mut out, (name, kind), help, value)?;
    }
    let help = "Seconds since the oldest state that is read was replaced.";
    metric(&mut out, ("oldest_reader_seconds", "gauge"), help, age.as_secs_f64())?;
    let help = "When the last backfill began, in seconds since 1970.";
    metric(&mut out, ("last_backfill_timestamp_seconds", "gauge"), help, backfilled)?;

    let name = "annals_flush_seconds";
    writeln!(out, "# HELP {name} How long commits waited for flushes.\n# TYPE {name} histogram")?;
    let mut count = 0;
    for (bound, here) in stats.flushes.buckets() {
        count += here;
        let bound = bound.map_or("+Inf".to_owned(), |bound| bound.as_secs_f64().to_string());
        writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {count}")?;
    }
    writeln!(out, "{name}_sum {}", stats.flushes.total().as_secs_f64())?;
    writeln!(out, "{name}_count {count}")?;
    Ok(out)
}

fn metric(
    out: &mut String,
    named: (&str, &str),
    help: &str,
    value: impl std::fmt::Display,
) -> std::fmt::Result {
    let (name, kind) = named;
    writeln!(out, "# HELP annals_{name} {help}\n# TYPE annals_{name} {kind}\nannals_{name} {value}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(address: std::net::SocketAddr, request: &str) -> String {
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn prometheus_reads_what_is_served() {
        let folder = tempfile::tempdir().unwrap();
        let db = Database::open(folder.path().join("db.annals")).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = db.clone();
        thread::spawn(move || serve(&server, &listener));
        for number in 0..3 {
            db.write(|tx| tx.comment(&number.to_string())).unwrap();
        }
        drop(TcpStream::connect(address).unwrap()); // one that says nothing
        let answer = ask(address, "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
        let value = |name: &str| {
            let line = body.lines().find(|line| line.split(' ').next() == Some(name));
            line.unwrap_or_else(|| panic!("no {name} in {body}"))
                .split(' ')
                .nth(1)
                .unwrap()
                .to_owned()
        };
        assert_eq!(
            (value("annals_commits_total"), value("annals_readers")),
            ("3".into(), "0".into())
        );
        assert_eq!(value("annals_flush_seconds_count"), "3");
        assert_eq!(value("annals_flush_seconds_bucket{le=\"+Inf\"}"), "3");
        // Each line is a comment, or a name with a number.
        for line in body.lines().filter(|line| !line.starts_with("# ")) {
            let (name, number) = line.rsplit_once(' ').unwrap();
            assert!(name.starts_with("annals_") && number.parse::<f64>().is_ok(), "{line}");
        }
        assert!(ask(address, "GET /other HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(ask(address, "\r\n").starts_with("HTTP/1.1 404 "));
    }
}
