//! A server under abuse by one who may read: many idle connections, readers that don't read, queries whose clients leave,
//! large bodies and answers. Another one who reads is served as before, and the server's memory stays within what it was given.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::program::succeed;
use crate::served::Served;

/// What the server may take in all without an option: the guide says so.
const MEMORY: u64 = 256 << 20;
/// A query that ends at its limit of time only.
const ENDLESS: &str = r#"{"sql":"with recursive c(x) as (select 1 union all select x+1 from c) select count(*) from c"}"#;
/// A query that ends at its limit of memory.
const SORTING: &str = r#"{"sql":"with recursive c(x) as (select 1 union all select x+1 from c) select x, hex(randomblob(100)) from c order by 2 limit 1"}"#;

/// How much is done.
struct Effort {
    idle: usize,
    slow: usize,
    abusers: usize,
    time: Duration,
    /// The longest of 99 of 100 answers to the other one, on a machine that does nothing else.
    p99: Option<Duration>,
}

impl Effort {
    fn of_environment() -> Self {
        let full = std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full");
        match full {
            true => Self {
                idle: 9_500,
                slow: 100,
                abusers: 32,
                time: Duration::from_secs(60),
                p99: Some(Duration::from_millis(50)),
            },
            // Other tests run beside it, so times say nothing.
            false => {
                Self { idle: 300, slow: 10, abusers: 8, time: Duration::from_secs(5), p99: None }
            }
        }
    }
}

/// Creates a file with 20,000 rows, and one row with many long versions.
fn create(dir: &Path) {
    let mut script = "create_table a\nadd_field a n int64\nadd_field a t string\n".to_owned();
    let text = "x".repeat(100);
    (0..20_000).for_each(|n| script += &format!("insert a {n} \"{text}\"\n"));
    script += "commit\n";
    let long = "y".repeat(500_000);
    (0..40).for_each(|n| script += &format!("update a 0 t \"{n}{long}\"\ncommit\n"));
    succeed(dir, &["shell", "a.annals"], &script);
}

fn request(what: &str, token: &str, body: &str) -> String {
    format!(
        "{what} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Reads an answer with a length; returns its status.
fn answer(stream: &mut BufReader<TcpStream>) -> u16 {
    let (mut line, mut status, mut length) = (String::new(), 0, 0);
    while stream.read_line(&mut line).unwrap() > 2 {
        if let Some(rest) = line.strip_prefix("HTTP/1.1 ") {
            status = rest[..3].parse().unwrap();
        }
        if let Some(rest) = line.to_lowercase().strip_prefix("content-length:") {
            length = rest.trim().parse().unwrap();
        }
        line.clear();
    }
    stream.read_exact(&mut vec![0; length]).unwrap();
    status
}

/// Returns a figure of a process in KiB, as `RssAnon:`.
fn figure(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// Returns requests that cost much.
fn costly(token: &str) -> Vec<String> {
    let large = format!(r#"{{"sql":"select 1","params":["{}"]}}"#, "x".repeat(10 << 20));
    vec![
        request("POST /v1/a/sql", token, ENDLESS),
        request("GET /v1/a/t/a/0/history?limit=10000", token, ""),
        request("POST /v1/a/sql", token, SORTING),
        request("GET /v1/a/log?limit=10000", token, ""),
        request("GET /v1/a/search?text=zzz", token, ""),
        request("POST /v1/a/sql", token, &large),
        request("GET /v1/a/t/a/0/blame", token, ""),
        request("GET /v1/a/diff?from=txid:1", token, ""),
        request("GET /v1/a/changes?after=0", token, ""),
        request("POST /v1/a/t/a/0/restore", token, &large),
        request("GET /v1/a/t/a?limit=10000", token, ""),
        request("GET /v1/a/t/a?file=csv", token, ""),
        request("GET /v1/a/t/a?at=txid:2&limit=10000", token, ""),
    ]
}

/// Sends a request that costs much, and leaves at once, or waits a moment without reading.
fn abuse(address: &str, requests: &[String], number: usize) {
    let request = &requests[number % requests.len()];
    let Ok(mut stream) = TcpStream::connect(address) else { return };
    let _ = stream.set_write_timeout(Some(Duration::from_millis(100)));
    // It may be refused before all is sent.
    let _ = stream.write_all(request.as_bytes());
    std::thread::sleep(Duration::from_millis(if number.is_multiple_of(3) { 200 } else { 4 }));
}

/// Returns how long the threads of a process have run on a processor that do long work, and all others, in hundredths of a
/// second.
fn processor_time(pid: u32) -> [u64; 2] {
    let mut times = [0; 2];
    for thread in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        // It may have ended.
        let Ok(status) = std::fs::read_to_string(thread.unwrap().path().join("stat")) else {
            continue;
        };
        let (name, numbers) = status.rsplit_once(") ").unwrap();
        let time: u64 =
            numbers.split(' ').skip(11).take(2).map(|it| it.parse::<u64>().unwrap()).sum();
        times[usize::from(!name.ends_with("(annals-long"))] += time;
    }
    times
}

/// Opens connections that ask for nothing any more.
fn idle(address: &str, token: &str, number: usize) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let sent = match number % 4 {
        0 => Ok(()),
        1 => stream.write_all(b"GET /v1/a HTTP/1.1\r\nHost: loc"),
        2 => stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"),
        _ => stream.write_all(request("GET /v1/a", token, "").as_bytes()),
    };
    sent.unwrap();
    stream
}

/// Follows all changes, and reads none of them.
fn follow(address: &str, token: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let head =
        "GET /v1/a/changes?after=0 HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n";
    let head = format!("{head}Authorization: Bearer {token}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

fn connect(address: &str) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    BufReader::new(stream)
}

/// Writes what those who follow would have to read, until it is over; returns how many transactions that were.
fn write(address: &str, token: &str, is_over: &AtomicBool) -> u64 {
    let (mut stream, mut count) = (connect(address), 0);
    let long = "z".repeat(500_000);
    let change = format!(
        r#"{{"changes":[{{"op":"update","table":"a","id":1,"fields":{{"t":"{long}"}}}}]}}"#
    );
    let change = request("POST /v1/a/transactions", token, &change);
    while !is_over.load(Ordering::Relaxed) {
        stream.get_mut().write_all(change.as_bytes()).unwrap();
        assert_eq!(answer(&mut stream), 200);
        count += 1;
        std::thread::sleep(Duration::from_millis(50));
    }
    count
}

/// What one saw who reads rows: the times and statuses of the answers, and the server's memory in KiB at the most.
#[derive(Default)]
struct Seen {
    times: Vec<Duration>,
    statuses: Vec<u16>,
    memory: u64,
}

/// Reads rows for some time.
fn read(address: &str, token: &str, pid: u32, time: Duration) -> Seen {
    let (mut stream, mut seen, begun) = (connect(address), Seen::default(), Instant::now());
    while begun.elapsed() < time {
        let row = 2 + seen.times.len() % 19_000;
        let row = request(&format!("GET /v1/a/t/a/{row}"), token, "");
        let asked = Instant::now();
        stream.get_mut().write_all(row.as_bytes()).unwrap();
        seen.statuses.push(answer(&mut stream));
        seen.times.push(asked.elapsed());
        if seen.times.len() % 5 == 1 {
            seen.memory = seen.memory.max(figure(pid, "RssAnon:"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    seen.times.sort_unstable();
    seen
}

#[test]
fn one_who_abuses_a_server_does_not_hurt_others() {
    annals::storage::raise_most_open_files();
    let Effort { idle: idle_count, slow, abusers, time, p99: most } = Effort::of_environment();
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    create(dir);
    let token = |role: &str| {
        let token = succeed(dir, &["token", "add", "a.annals", "--role", role], "");
        token.trim().to_owned()
    };
    let (abuser, other, writer) = (token("read"), token("read"), token("write"));
    let served = Served::start(dir, "127.0.0.1:0", &[]);
    let (address, pid) = (served.address(), served.pid());
    let idle: Vec<_> = (0..idle_count).map(|number| idle(address, &abuser, number)).collect();
    let slow: Vec<_> = (0..slow).map(|_| follow(address, &abuser)).collect();
    let (is_over, asked, requests) = (AtomicBool::new(false), AtomicU64::new(0), costly(&abuser));
    let before = processor_time(pid);
    let (seen, count) = std::thread::scope(|scope| {
        for number in 0..abusers {
            let (is_over, asked, requests) = (&is_over, &asked, &requests);
            scope.spawn(move || {
                // They are on other machines in reality, and take nothing of the server's processor.
                annals::storage::lower_priority();
                for round in (0..).take_while(|_| !is_over.load(Ordering::Relaxed)) {
                    abuse(address, requests, number + round);
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let writing = scope.spawn(|| write(address, &writer, &is_over));
        let reading = scope.spawn(|| read(address, &other, pid, time)).join();
        // Also after a panic: the others wait for it.
        is_over.store(true, Ordering::Relaxed);
        (reading.unwrap(), writing.join().unwrap())
    });
    let threads = figure(pid, "Threads:");
    let after = processor_time(pid);
    let [long, other_work] = [0, 1].map(|of: usize| after[of].saturating_sub(before[of]));
    let at = |part: usize| seen.times[seen.times.len() * part / 1000];
    println!(
        "{} idle connections, {} readers that don't read, {} abusive requests, {count} transactions; {} reads by another \
         one: p50 {:?}, p99 {:?}, longest {:?}; memory {} KiB, {threads} threads; long work took {long} hundredths of a \
         second, all else {other_work}",
        idle.len(),
        slow.len(),
        asked.into_inner(),
        seen.times.len(),
        at(500),
        at(990),
        seen.times.last().unwrap(),
        seen.memory
    );
    assert!(seen.statuses.iter().all(|status| *status == 200), "{:?}", seen.statuses);
    assert!(most.is_none_or(|most| at(990) < most), "p99 is {:?}", at(990));
    assert!(seen.memory << 10 < MEMORY, "{} KiB of memory", seen.memory);
    assert!(threads < 100, "{threads} threads");
    drop((idle, slow));
    served.end();
}

/// The most memory that followers take together who don't read: that of one token for parts of answers, and what those have read
/// that have just begun to wait.
const FOLLOWERS: u64 = 96 << 20;

#[test]
fn followers_that_do_not_read_take_bounded_memory() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    succeed(dir, &["shell", "a.annals"], "create_table a\nadd_field a t string\ninsert a x\n");
    let token = |role: &str| {
        let token = succeed(dir, &["token", "add", "a.annals", "--role", role], "");
        token.trim().to_owned()
    };
    let (reader, writer) = (token("read"), token("write"));
    let served = Served::start(dir, "127.0.0.1:0", &[]);
    let followers: Vec<_> = (0..20).map(|_| follow(served.address(), &reader)).collect();
    let mut stream = connect(served.address());
    let before = figure(served.pid(), "RssAnon:");
    let mut most = 0;
    for number in 0..40 {
        let text = number.to_string() + &"z".repeat(2_000_000);
        let change = format!(
            r#"{{"changes":[{{"op":"update","table":"a","id":0,"fields":{{"t":"{text}"}}}}]}}"#
        );
        let change = request("POST /v1/a/transactions", &writer, &change);
        stream.get_mut().write_all(change.as_bytes()).unwrap();
        assert_eq!(answer(&mut stream), 200);
        most = most.max(figure(served.pid(), "RssAnon:"));
    }
    let taken = (most - before) << 10;
    println!("20 followers that don't read 40 transactions of 2 MB: {taken} bytes");
    assert!(taken < FOLLOWERS, "{taken} bytes");
    drop(followers);
    served.end();
}

#[test]
fn a_server_with_few_file_descriptors_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    succeed(dir, &["shell", "a.annals"], "create_table a\nadd_field a n int64\ninsert a 1\n");
    let token = succeed(dir, &["token", "add", "a.annals", "--role", "read"], "");
    let served = Served::within(dir, "ulimit -n 64", "a.annals", &["--listen", "127.0.0.1:0"]);
    // It takes no more of them than it can serve; those that ask for nothing leave their places.
    let silent: Vec<_> = (0..200).map(|_| TcpStream::connect(served.address()).unwrap()).collect();
    let stream = TcpStream::connect(served.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut stream = BufReader::new(stream);
    let row = request("GET /v1/a/t/a/0", token.trim(), "");
    stream.get_mut().write_all(row.as_bytes()).unwrap();
    assert_eq!(answer(&mut stream), 200);
    let log = std::fs::read_to_string(dir.join("a.annals.log")).unwrap();
    assert!(log.contains("this process may have 64 open files"), "{log}");
    assert!(!log.contains("can't accept"), "{log}");
    drop(silent);
    served.end();
}
