//! Lazy replicas of a database on a server, also over connections that break.

use std::sync::Arc;
use std::time::Duration;

use annals::{BackfillMode, Database, ErrorKind, Options};
use annals_replica::lazy::testing::{QUESTIONS, create, touch};
use annals_replica::{Fetching, Http, Lazy, Patience, Ranges};
use annals_server::{Limits, Server};

use crate::effort::is_full;
use crate::proxy::{Direction, Fault, Proxy};
use crate::running::Running;

const PERSONS: u64 = 20_000;

fn serve(database: &Database, limits: Limits) -> Running {
    let server = Server::new().database("a", database.clone()).unwrap().open_to_all();
    Running::start(server.limits(limits))
}

fn open(url: &str) -> annals::Result<Lazy> {
    let patience = Patience { pause: Duration::from_millis(1), ..Patience::default() };
    let ranges: Arc<dyn Ranges> = Arc::new(Http::new(url, None)?);
    let fetching = Fetching { patience, ..Fetching::default() };
    Lazy::in_memory(ranges, &Options::new(), fetching)
}

/// Asks all questions; the answers must be those of a file.
fn ask_all(lazy: &Lazy, expected: &[String]) {
    for ((name, ask), expected) in QUESTIONS.iter().zip(expected) {
        let answer = lazy.ask(ask);
        assert_eq!(answer.as_ref().ok(), Some(expected), "{name}: {answer:?}");
    }
}

fn answers(path: &std::path::Path) -> Vec<String> {
    annals_replica::lazy::testing::answers(path)
}

#[test]
fn a_lazy_replica_of_a_server_answers_as_the_file_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    let database = create(&path, PERSONS);
    let running = serve(&database, Limits::default());
    let lazy = open(&running.of("a")).unwrap();
    assert_eq!(lazy.cursor(), database.read().point().into());
    ask_all(&lazy, &answers(&path));
    let all = lazy.fetched();
    assert!(all.bytes < lazy.size() / 2, "{all:?} of {}", lazy.size());

    // What is committed there is here after a pull, of a few requests.
    for round in 0..6 {
        touch(&database, PERSONS);
        match round {
            2 => drop(database.backfill(BackfillMode::Full).unwrap()),
            4 => drop(database.backfill(BackfillMode::Restart).unwrap()),
            _ => {}
        }
        let before = lazy.fetched();
        assert_eq!(lazy.pull().unwrap().point(), database.read().point());
        let fetched = lazy.fetched().requests - before.requests;
        assert!(fetched <= if round % 2 == 0 && round > 0 { 12 } else { 3 }, "{round}: {fetched}");
        ask_all(&lazy, &answers(&path));
    }
}

#[test]
fn it_starts_over_when_its_root_was_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    let database = create(&path, PERSONS);
    let limits = Limits { pinned: Duration::from_millis(50), ..Limits::default() };
    let running = serve(&database, limits);
    let lazy = open(&running.of("a")).unwrap();
    let before = lazy.read().txid();
    for _ in 0..3 {
        (0..50).for_each(|_| touch(&database, PERSONS));
        database.backfill(BackfillMode::Full).unwrap();
    }
    while database.backfill(BackfillMode::Full).unwrap().oldest_reader.is_some() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let (_, ask) = QUESTIONS[1];
    let error = ask(&lazy.reader()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forgotten);
    assert!(error.to_string().contains("pull"), "{error}");
    assert_eq!(lazy.read().txid(), before);
    ask_all(&lazy, &answers(&path));
    assert_eq!(lazy.read().txid(), database.read().txid());
}

#[test]
fn broken_connections_are_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    let database = create(&path, 5000);
    let running = serve(&database, Limits::default());
    let (proxy, expected) = (Proxy::start(running.address), answers(&path));
    let ask_through = || ask_all(&open(&proxy.of("a")).unwrap(), &expected);
    // The list of files, cut at each byte.
    for bytes in (0..600).step_by(if is_full() { 1 } else { 151 }) {
        proxy.next(Fault::Cut(Direction::ToClient, bytes));
        ask_through();
    }
    // And everything, as a plan has it.
    for seed in 0..if is_full() { 100 } else { 3 } {
        proxy.follow(seed, 20);
        ask_through();
    }
    assert!(proxy.faults() > 10, "some exchanges had a fault: {}", proxy.faults());
    proxy.settle();
}

#[test]
fn readers_and_writers_at_the_same_time_see_only_states_that_were() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    let database = create(&path, 5000);
    let limits = Limits { pinned: Duration::from_secs(1), ..Limits::default() };
    let running = serve(&database, limits);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // It ends also if the test fails.
            for _ in 0..2000 {
                if is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
                touch(&database, 5000);
                std::thread::sleep(Duration::from_millis(1));
                if database.read().txid().0.is_multiple_of(10) {
                    database.backfill(BackfillMode::Full).unwrap();
                }
            }
        });
        for _ in 0..3 {
            let lazy = open(&running.of("a")).unwrap();
            for _ in 0..5 {
                for (name, ask) in QUESTIONS {
                    let answer = lazy.ask(ask);
                    assert!(answer.is_ok(), "{name}: {answer:?}");
                }
                lazy.pull().unwrap();
            }
            // What is read is on the history.
            let cursor = lazy.cursor();
            let chains = annals_replica::Connection::chains(
                &Http::new(&running.of("a"), None).unwrap(),
                &[cursor.txid],
            );
            assert_eq!(chains.unwrap(), [Some(cursor.chain)]);
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
