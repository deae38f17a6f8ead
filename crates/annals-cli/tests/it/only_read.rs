//! A server that only reads, beside a program that writes.

use annals::{Database, Level, Options, TableNumber, ValueRef};

use crate::program::{run, succeed};
use crate::served::{Served, answer_to, create, wait_until_ready};

/// One that only reads takes no lock, makes no file, and shows what the program that writes has committed since.
#[test]
fn a_server_that_only_reads_stands_beside_one_that_writes() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    create(dir);
    let writing = Served::start(dir, "127.0.0.1:0", &["--no-token"]);
    let files = || {
        let files = std::fs::read_dir(dir).unwrap().map(|it| it.unwrap().file_name());
        files.collect::<std::collections::BTreeSet<_>>()
    };
    let before = files();
    let reading = Served::start(dir, "127.0.0.1:0", &["--no-token", "--read-only"]);
    assert_eq!(files(), before);
    let script = "insert page one\n";
    succeed(dir, &["shell", "b.annals", "--replica-of", &writing.url], script);
    for command in [&["dump"][..], &["log"]] {
        let of = |url: &str| succeed(dir, &[command, &[url]].concat(), "");
        assert_eq!(of(&reading.url), of(&writing.url), "{command:?}");
        assert!(of(&reading.url).contains("one"));
    }
    let printed = succeed(dir, &["clone", &reading.url, "c.annals"], "");
    assert_eq!(printed, "c.annals: fetched 2 transactions, up to transaction 2\n");
    let refused =
        run(dir, &["shell", "c.annals", "--replica-of", &reading.url], b"insert page two\n");
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && error.contains("--read-only"), "{error}");
    // A replica of it is told of news, and a moment may be as new.
    let described = answer_to(reading.address(), "/v1/a");
    let chain = described.split("\"chain\":\"").nth(1).and_then(|it| it.get(..16)).unwrap();
    let path = format!("/v1/a/frames?after=2:{chain}&wait=60");
    let address = reading.address().to_owned();
    let waiting = std::thread::spawn(move || answer_to(&address, &path));
    for title in ["two", "three"] {
        let script = format!("insert page {title}\n");
        succeed(dir, &["shell", "b.annals", "--replica-of", &writing.url], &script);
    }
    let told = waiting.join().unwrap();
    assert!(told.contains("annals-next: 3:") || told.contains("annals-next: 4:"), "{told}");
    let moment = "insert page four\ncomment \"fourth\"\n";
    succeed(dir, &["shell", "b.annals", "--replica-of", &writing.url], moment);
    let there = answer_to(reading.address(), "/v1/a/at?moment=comment:fourth");
    assert!(there.contains("\"txid\":5"), "{there}");
    writing.end();
    assert!(succeed(dir, &["dump", &reading.url], "").contains("one"));
    wait_until_ready(reading.address(), " 200 ");
    // An erasure replaces the file: nothing of the old one is answered, and nothing is said not to be there.
    succeed(dir, &["erase", "a.annals", "page", "0", "--yes"], "");
    let said = wait_until_ready(reading.address(), " 503 ");
    assert!(said.contains("can't be read"), "{said}");
    let error = run(dir, &["sql", &reading.url, "SELECT * FROM page"], b"").stderr;
    let error = String::from_utf8_lossy(&error);
    assert!(error.contains("removed or replaced"), "{error}");
    let said = answer_to(reading.address(), "/v1/a/t/page/0");
    assert!(said.contains(" 503 ") && said.contains("\"unreadable\""), "{said}");
    reading.end();
    let created = run(dir, &["serve", "new.annals", "--create", "--read-only"], b"");
    assert!(!created.status.success() && !dir.join("new.annals").exists());
}

#[test]
fn a_server_that_only_reads_shows_what_no_power_cut_undoes() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    create(dir);
    // The file is flushed only when this says so.
    let options = Options::new().level(Level::Soft).background(false);
    let database = options.open(dir.join("a.annals")).unwrap();
    let insert = |database: &Database, title: &str| {
        let insert = |tx: &mut annals::Transaction<'_>| {
            tx.insert(TableNumber(0), &[ValueRef::String(title)]).map(drop)
        };
        database.write(insert).unwrap();
    };
    insert(&database, "zero");
    let reading = Served::start(dir, "127.0.0.1:0", &["--no-token", "--read-only"]);
    insert(&database, "one");
    let rows = || answer_to(reading.address(), "/v1/a/t/page");
    let facts = || answer_to(reading.address(), "/v1/a");
    assert!(!rows().contains("zero") && !rows().contains("one"), "{}", rows());
    assert!(facts().contains("\"txid\":1"), "{}", facts());
    database.hard_checkpoint().unwrap();
    assert!(rows().contains("zero") && rows().contains("one"), "{}", rows());
    assert!(facts().contains("\"txid\":3"), "{}", facts());
    reading.end();
}
