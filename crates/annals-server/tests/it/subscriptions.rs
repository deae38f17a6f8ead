//! The promises of subscriptions, over HTTP: a test for each, by long polls and by server-sent events.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use annals::reports::Restarting;
use annals::{BackfillMode, Command, Database, Level, Options, TableNumber, Type, ValueRef};
use annals_server::{Limits, Server};
use annals_simulated::{Fault as DiskFault, Rng, SimulatedClock, SimulatedDisk};
use reqwest::blocking::Client;

use crate::effort::tries;
use crate::proxy::{Direction, Fault, Proxy};
use crate::running::Running;

const ITEM: TableNumber = TableNumber(0);

fn create(database: &Database) {
    let field = Command::AddField {
        table: ITEM,
        name: "bytes".to_owned(),
        ty: Type::Bytes,
        nullable: false,
        default: None,
    };
    database
        .write(|tx| {
            tx.apply_command(&Command::CreateTable { name: "item".to_owned() })?;
            tx.apply_command(&field)
        })
        .unwrap();
}

fn insert(database: &Database, bytes: &[u8]) {
    database.write(|tx| tx.insert(ITEM, &[ValueRef::Bytes(bytes)])).unwrap();
}

fn serve(database: &Database) -> Running {
    Running::start(Server::new().database("origin", database.clone()).unwrap().open_to_all())
}

/// A client that reads changes, and asks again after the last one whenever its connection ends.
struct Subscriber {
    http: Client,
    url: String,
    as_events: bool,
    /// The last transaction that has come.
    last: u64,
    /// How often it has asked.
    resumed: u64,
    /// True once it was answered.
    is_answered: Arc<AtomicBool>,
}

impl Subscriber {
    fn new(url: String, as_events: bool) -> Self {
        let is_answered = Arc::default();
        Self { http: Client::new(), url, as_events, last: 0, resumed: 0, is_answered }
    }

    /// Asks once, and reads until the connection ends, or until it has a transaction; each must be the next one.
    fn ask(&mut self, until: u64) {
        self.resumed += 1;
        let request = match self.as_events {
            false => self.http.get(format!("{}/changes?after={}&wait=60", self.url, self.last)),
            true => {
                let request = self.http.get(format!("{}/changes", self.url));
                let request = request.header("Accept", "text/event-stream");
                request.header("Last-Event-ID", self.last.to_string())
            }
        };
        let Ok(response) = request.send() else { return };
        assert_eq!(response.status().as_u16(), 200);
        self.is_answered.store(true, Ordering::Relaxed);
        let mut lines = BufReader::new(response);
        let mut line = Vec::new();
        while self.last < until && lines.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
            // A line that was cut off is none.
            if line.ends_with(b"\n") {
                self.take(std::str::from_utf8(&line).unwrap());
            }
            line.clear();
        }
    }

    fn take(&mut self, line: &str) {
        let data = if self.as_events { line.strip_prefix("data: ") } else { Some(line) };
        let Some(data) = data.filter(|data| data.starts_with('{')) else { return };
        let found: serde_json::Value = serde_json::from_str(data).unwrap();
        if found["changes"].is_array() {
            assert_eq!(found["txid"], self.last + 1, "once, in order, and none is missed");
            self.last += 1;
        }
    }
}

/// 1. Each transaction is returned once, in the order of their numbers, and none is missed.
fn resume(as_events: bool) {
    let database = Database::in_memory().unwrap();
    create(&database);
    let running = serve(&database);
    let proxy = Proxy::start(running.address);
    let mut subscriber = Subscriber::new(proxy.of("origin"), as_events);
    let mut rng = Rng::new(7);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let mut rng = Rng::new(8);
            while !is_over.load(Ordering::Relaxed) {
                for _ in 0..rng.below(4) {
                    insert(&database, &vec![0; rng.index(300)]);
                }
                std::thread::sleep(Duration::from_micros(500));
            }
        });
        while subscriber.resumed < tries(1000, 20_000) {
            let bytes = rng.index(2000);
            proxy.next(match rng.percent(80) {
                true => Fault::Cut(Direction::ToClient, bytes),
                false => Fault::Delay(Direction::ToClient, bytes),
            });
            let until = subscriber.last + 1 + rng.below(20);
            subscriber.ask(until);
        }
        is_over.store(true, Ordering::Relaxed);
        writing.join().unwrap();
    });
    assert!(proxy.faults() > 500, "{}", proxy.faults());
    proxy.settle();
    let end = database.read().txid().0;
    while subscriber.last < end {
        subscriber.ask(end);
    }
}

#[test]
fn a_poll_resumed_a_thousand_times_has_each_transaction_once_in_order() {
    resume(false);
}

#[test]
fn a_stream_of_events_resumed_a_thousand_times_has_each_transaction_once_in_order() {
    resume(true);
}

#[test]
fn a_poll_ends_while_others_write() {
    let database = Database::in_memory().unwrap();
    create(&database);
    let running = serve(&database);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                insert(&database, &[1; 100]);
                // Faster than it is sent; but a state of the past costs a replay here, in memory.
                std::thread::sleep(Duration::from_micros(50));
            }
        });
        let http = Client::new();
        for _ in 0..20 {
            let after = database.read().txid().0.saturating_sub(50);
            let url = format!("{}/changes?after={after}", running.of("origin"));
            let text = http.get(url).send().unwrap().text().unwrap();
            assert!(text.lines().last().unwrap().starts_with("{\"caught_up\":"), "{text}");
        }
        is_over.store(true, Ordering::Relaxed);
        writing.join().unwrap();
    });
}

/// 2. Only acknowledged commits are returned: those that have reached their level.
#[test]
fn what_did_not_reach_its_level_is_not_sent() {
    let disk = SimulatedDisk::new(3);
    let clock = Arc::new(SimulatedClock::new(1));
    let options = Options::new().background(false);
    let database = options.open_in(Arc::new(disk.clone()), "origin", clock).unwrap();
    create(&database);
    insert(&database, b"flushed");
    let before = disk.operations();
    insert(&database, b"flushed, too");
    let flush = disk.operations() - before - 1;
    let running = serve(&database);
    let http = Client::new();
    let poll = || {
        let url = format!("{}/changes?after=2&wait=0.05", running.of("origin"));
        http.get(url).send().unwrap().text().unwrap()
    };
    assert!(poll().contains("\"txid\":3"));
    let soft = || -> annals::Result<()> {
        let mut tx = database.begin()?;
        tx.set_level(Level::Soft);
        tx.insert(ITEM, &[ValueRef::Bytes(b"soft")])?;
        tx.commit().map(drop)
    };
    soft().unwrap();
    assert!(poll().contains("\"txid\":4"), "its level is reached at once");
    disk.fail_at(disk.operations() + flush, DiskFault::Io);
    let failed = database.write(|tx| tx.insert(ITEM, &[ValueRef::Bytes(b"lost?")])).unwrap_err();
    assert_eq!(failed.kind(), annals::ErrorKind::UnknownOutcome, "{failed}");
    let text = poll();
    assert!(text.contains("\"txid\":4") && !text.contains("\"txid\":5"), "{text}");
}

/// 3. It never makes a writer wait; and a reader that is too slow is cut off, and loses nothing by that.
#[test]
fn a_subscriber_that_reads_nothing_holds_no_writer_up_and_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let database = Options::new().open(folder.path().join("origin")).unwrap();
    create(&database);
    let limits = Limits { silence: Duration::from_millis(300), ..Limits::default() };
    let server = Server::new().database("origin", database.clone()).unwrap().open_to_all();
    let running = Running::start(server.limits(limits));
    let mut stream = TcpStream::connect(running.address).unwrap();
    let request = "GET /v1/origin/changes?after=0 HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n";
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    // More than the buffers of all sockets; the subscriber reads nothing meanwhile.
    for _ in 0..64 {
        insert(&database, &vec![1; 1 << 20]);
    }
    // It is cut off: its connection ends before it has all.
    let mut text = Vec::new();
    std::thread::sleep(Duration::from_millis(1500));
    let _ = stream.read_to_end(&mut text);
    let sent = String::from_utf8_lossy(&text);
    let last =
        sent.lines().filter_map(|line| line.strip_prefix("id: ")?.split(':').next()?.parse().ok());
    let mut whole: Vec<u64> = last.collect();
    whole.dedup(); // the event `caught-up` has the same id
    assert!(whole.len() < 65 && whole.iter().copied().eq(1..=whole.len() as u64), "{whole:?}");
    let mut subscriber = Subscriber::new(running.of("origin"), true);
    subscriber.last = whole.last().copied().unwrap_or(1) - 1;
    subscriber.ask(65);
    assert_eq!(subscriber.last, 65);
}

/// 4. It keeps little: here, that many wait at the same time, and each gets what is committed.
#[test]
fn many_subscribers_wait_and_each_gets_the_next_transaction() {
    let database = Database::in_memory().unwrap();
    create(&database);
    let running = serve(&database);
    let open = |after: u64| {
        let mut stream = TcpStream::connect(running.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let kind = if after == 0 { "text/event-stream" } else { "*/*" };
        let request = format!(
            "GET /v1/origin/changes?after={after}&wait=60 HTTP/1.1\r\nHost: localhost\r\nAccept: {kind}\r\n\r\n"
        );
        std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
        BufReader::new(stream).lines().map(Result::unwrap)
    };
    let mut all: Vec<_> = (0..tries(100, 1000)).map(|number| open(number % 2)).collect();
    for lines in &mut all {
        assert_eq!(lines.next().unwrap(), "HTTP/1.1 200 OK");
    }
    insert(&database, b"news");
    for lines in &mut all {
        assert!(lines.any(|line| line.contains("{\"txid\":2,")));
    }
}

/// 5. If rules of retention removed history that it hadn't read yet, it ends with an error.
#[test]
fn a_subscriber_is_told_when_what_it_has_not_read_was_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let database = Options::new().open(folder.path().join("origin")).unwrap();
    create(&database);
    (0..20).for_each(|_| insert(&database, &[1; 100]));
    let running = serve(&database);
    let how = Restarting { forget_history: true, ..Restarting::default() };
    let forget = || {
        let go_on = &mut |_| std::ops::ControlFlow::Continue(());
        database.backfill_with(BackfillMode::Truncate, how, go_on).unwrap();
    };
    // One that has read all isn't touched.
    let mut reading = Subscriber::new(running.of("origin"), true);
    reading.ask(21);
    forget();
    insert(&database, b"after");
    let http = Client::new();
    for kind in ["text/event-stream", "application/x-ndjson"] {
        let url = format!("{}/changes?after=5", running.of("origin"));
        let response = http.get(url).header("Accept", kind).send().unwrap();
        assert_eq!(response.status().as_u16(), 410);
        let text = response.text().unwrap();
        assert!(text.contains("\"error\":\"forgotten\""), "{text}");
    }
    reading.ask(22);
    assert_eq!(reading.last, 22);
}

/// 6. When the database is closed, it returns the commits up to then, and then ends.
#[test]
fn a_stream_ends_after_the_last_commit_when_the_database_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let database = Options::new().open(folder.path().join("origin")).unwrap();
    create(&database);
    let running = serve(&database);
    let mut subscriber = Subscriber::new(running.of("origin"), true);
    let is_answered = Arc::clone(&subscriber.is_answered);
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            subscriber.ask(u64::MAX);
            subscriber.last
        });
        // Whoever asks later is told that it is closed.
        while !is_answered.load(Ordering::Relaxed) && !reading.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        (0..10).for_each(|_| insert(&database, &[1; 1000]));
        database.clone().close().unwrap();
        assert_eq!(reading.join().unwrap(), 11);
    });
}
