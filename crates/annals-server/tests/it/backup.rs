//! A synchronous backup: nothing is acknowledged, or seen, that it doesn't have.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use annals::reports::Restarting;
use annals::{
    BackfillMode, Command, Cursor, Database, Error, ErrorKind, Options, Result, TableNumber, Txid,
    ValueRef,
};
use annals_replica::{
    Backup, Connection, Description, Granted, Http, Local, Pulled, Pushed, Replica,
};
use annals_server::{Limits, NewToken, Role, Server, Tokens};
use annals_storage::Spool;
use reqwest::blocking::Client;

use crate::running::Running;

const ITEM: TableNumber = TableNumber(0);
/// Long enough for a backup that is there.
const SOON: Duration = Duration::from_secs(20);

/// So long a transaction waits for the backup.
const AWAY: Duration = Duration::from_secs(2);

/// A connection that can be cut, and whose answers can get lost.
#[derive(Debug)]
struct Flaky {
    to: Local,
    is_cut: AtomicBool,
    loses_answers: AtomicBool,
}

impl Flaky {
    fn new(to: Local) -> Arc<Self> {
        Arc::new(Self { to, is_cut: false.into(), loses_answers: false.into() })
    }

    fn check(&self) -> Result<()> {
        match self.is_cut.load(Ordering::Relaxed) {
            true => Err(Error::new(ErrorKind::Unreachable, "the cable was cut")),
            false => Ok(()),
        }
    }
}

impl Connection for Flaky {
    fn name(&self) -> String {
        "the backup".to_owned()
    }

    fn describe(&self) -> Result<Description> {
        self.check()?;
        self.to.describe()
    }

    fn pull(&self, after: Option<Cursor>, wait: Duration, into: &mut Spool) -> Result<Pulled> {
        self.to.pull(after, wait, into)
    }

    fn push(&self, from: Cursor, frames: &Spool, lease: Option<u64>) -> Result<Pushed> {
        self.check()?;
        let pushed = self.to.push(from, frames, lease)?;
        match self.loses_answers.load(Ordering::Relaxed) {
            true => {
                let lost = Error::new(ErrorKind::Unreachable, "the answer was lost");
                Ok(Pushed::Unknown(lost))
            }
            false => Ok(pushed),
        }
    }

    fn lock(&self, lasting: Duration, ticket: Option<u64>) -> Result<Granted> {
        self.to.lock(lasting, ticket)
    }

    fn unlock(&self, ticket: u64) -> Result<()> {
        self.to.unlock(ticket)
    }

    fn push_seal(&self, from: Cursor, bytes: &Spool) -> Result<Pushed> {
        self.check()?;
        self.to.push_seal(from, bytes)
    }

    fn chains(&self, txids: &[Txid]) -> Result<Vec<Option<u64>>> {
        self.to.chains(txids)
    }
}

fn create(database: &Database) {
    let table = Command::CreateTable { name: "item".to_owned() };
    database.write(|tx| tx.apply_command(&table)).unwrap();
}

fn insert(database: &Database) {
    database.write(|tx| tx.insert(ITEM, &[] as &[ValueRef<'_>]).map(drop)).unwrap();
}

fn end(database: &Database) -> Cursor {
    database.read().point().into()
}

/// Waits until a backup has been away for so long.
fn until_away_for(backup: &Backup, time: Duration) {
    let begun = std::time::Instant::now();
    while backup.problem().is_none_or(|(_, since)| since < time) {
        assert!(begun.elapsed() < SOON, "nobody notes that the backup is away");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A server with a backup in a file.
struct Setup {
    folder: tempfile::TempDir,
    database: Database,
    copy: Database,
    cable: Arc<Flaky>,
    backup: Arc<Backup>,
    running: Running,
    token: String,
}

impl Drop for Setup {
    /// Ends what waits for the backup: else a test that fails while it is away waits for it, too.
    fn drop(&mut self) {
        self.backup.end();
    }
}

impl Setup {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("origin.annals");
        let database = Options::new().open(&path).unwrap();
        create(&database);
        let (copy, to) = Backup::file(&database, folder.path().join("copy.annals")).unwrap();
        let cable = Flaky::new(to);
        let backup = Backup::start(&database, &path, Arc::<Flaky>::clone(&cable)).unwrap();
        backup.wait(SOON).unwrap();
        let NewToken { token, stored } = NewToken::random(Role::Admin, None);
        let limits = Limits { backup: AWAY, ..Limits::default() };
        let server = Server::new().database("origin", database.clone()).unwrap().session(stored);
        let server = server.backup("origin", Arc::clone(&backup)).unwrap().limits(limits);
        Self { folder, database, copy, cable, backup, running: Running::start(server), token }
    }

    fn get(&self, path: &str) -> (u16, String) {
        let request = Client::new().get(format!("{}{path}", self.running.url));
        let answer = request.bearer_auth(&self.token).send().unwrap();
        (answer.status().as_u16(), answer.text().unwrap())
    }

    /// Inserts a row with a key; returns the status and the answer.
    fn post(&self, key: &str) -> (u16, serde_json::Value) {
        let request = Client::new().post(format!("{}/transactions", self.running.of("origin")));
        let request = request.bearer_auth(&self.token).header("Content-Type", "application/json");
        let body = "{\"changes\":[{\"op\":\"insert\",\"table\":\"item\"}]}";
        let answer = request.header("Idempotency-Key", key).body(body).send().unwrap();
        let status = answer.status().as_u16();
        (status, serde_json::from_str(&answer.text().unwrap()).unwrap())
    }
}

#[test]
fn nothing_is_acknowledged_or_seen_while_the_backup_is_away() {
    let setup = Setup::new();
    let Setup { database, copy, cable, backup, .. } = &setup;
    assert_eq!(setup.post("a").0, 200);
    assert_eq!(end(copy), end(database), "at once");
    assert_eq!(setup.get("/ready").0, 200);
    assert!(setup.get("/metrics").1.contains("annals_backup_in_sync{database=\"origin\"} 1\n"));

    let before = end(database);
    cable.is_cut.store(true, Ordering::Relaxed);
    let (status, answer) = setup.post("b");
    assert_eq!((status, answer["error"].as_str()), (503, Some("unknown")), "{answer}");
    assert_eq!((end(database), end(copy)), (before, before), "nobody sees it");
    assert!(setup.get("/v1/origin").1.contains("\"txid\":2"), "reading goes on");
    assert_eq!(setup.get("/v1/origin/t/item/0").0, 200);
    assert_eq!(setup.get("/v1/origin/t/item/1").0, 404);
    // It is refused once the backup is away for as long as a transaction waits for it; "b" may have begun to wait before.
    until_away_for(backup, AWAY);
    let (status, answer) = setup.post("c");
    assert_eq!((status, answer["error"].as_str()), (503, Some("backup")), "{answer}");
    assert_eq!(setup.get("/ready").0, 503);
    assert!(setup.get("/metrics").1.contains("annals_backup_in_sync{database=\"origin\"} 0\n"));

    cable.is_cut.store(false, Ordering::Relaxed);
    backup.wait(SOON).unwrap();
    let (status, answer) = setup.post("b");
    assert_eq!((status, &answer["repeated"]), (200, &true.into()), "{answer}");
    let (status, answer) = setup.post("c");
    assert_eq!((status, &answer["txid"]), (200, &4.into()), "it wasn't begun: {answer}");
    assert_eq!(end(copy), end(database));
}

#[test]
#[cfg(unix)]
fn nothing_is_acknowledged_once_a_file_or_its_backup_was_removed_or_replaced() {
    for (name, is_replaced) in
        [("origin", false), ("origin", true), ("copy", false), ("copy", true)]
    {
        let setup = Setup::new();
        assert_eq!((setup.post("a").0, setup.get("/ready").0), (200, 200));
        let file = setup.folder.path().join(format!("{name}.annals"));
        if is_replaced {
            let other = setup.folder.path().join("other.annals");
            std::fs::copy(&file, &other).unwrap();
            std::fs::rename(other, &file).unwrap();
        } else {
            std::fs::remove_file(&file).unwrap();
        }
        let context = format!("{name}, {is_replaced}");
        if name == "origin" {
            assert_eq!(setup.get("/ready").0, 503, "{context}: without a transaction, too");
        }
        for key in ["b", "c"] {
            let (status, answer) = setup.post(key);
            assert!(matches!(status, 500 | 503), "{context}: {status} {answer}");
        }
        assert_eq!(setup.get("/ready").0, 503, "{context}");
        assert_eq!(setup.get("/v1/origin/t/item/0").0, 200, "{context}: reading goes on");
        assert_eq!(setup.get("/v1/origin/t/item/1").0, 404, "{context}: nobody sees it");
        setup.backup.end();
    }
}

#[test]
fn pushes_are_once_in_both_whatever_gets_lost() {
    let setup = Setup::new();
    let Setup { folder, database, copy, cable, .. } = &setup;
    let http = Http::new(&setup.running.of("origin"), Some(setup.token.clone())).unwrap();
    let replica = Replica::connect(Arc::new(http), folder.path().join("replica")).unwrap();
    let insert = |_: u64| {
        let inserted = replica.transaction(|tx| tx.insert(ITEM, &[] as &[ValueRef<'_>]));
        inserted.unwrap().1.runs
    };
    assert_eq!(insert(0), 1);
    // It has them, and this side doesn't know: it asks.
    cable.loses_answers.store(true, Ordering::Relaxed);
    assert_eq!((1..4).map(insert).sum::<u32>(), 3);
    cable.loses_answers.store(false, Ordering::Relaxed);
    // It is away for longer than a transaction waits; the client asks and pushes until it is back.
    cable.is_cut.store(true, Ordering::Relaxed);
    std::thread::scope(|scope| {
        let pushing = scope.spawn(|| insert(4));
        until_away_for(&setup.backup, Duration::from_secs(3));
        cable.is_cut.store(false, Ordering::Relaxed);
        assert_eq!(pushing.join().unwrap(), 1, "it ran once");
    });
    assert_eq!((end(copy), replica.cursor()), (end(database), end(database)));
    assert_eq!(database.read().table(ITEM).unwrap().len(), 5);
}

#[test]
fn a_server_is_a_backup_also_of_several_segments() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("origin.annals");
    let database = Options::new().open(&path).unwrap();
    create(&database);
    let copy_path = folder.path().join("copy.annals");
    let local = Arc::new(Local::new(database.clone()));
    Replica::connect(local, &copy_path).unwrap().close().unwrap();
    let copy = Options::new().open(&copy_path).unwrap();
    let token = |role| {
        let new = NewToken::random(role, None);
        Tokens::of(&copy_path).unwrap().add(&new.stored).unwrap();
        new.token
    };
    let (writer, admin) = (token(Role::Write), token(Role::Admin));
    let server = Server::new().database_with("copy", copy.clone(), Tokens::of(&copy_path).unwrap());
    let running = Running::start(server.unwrap());
    let connect = |token: &str| Http::new(&running.of("copy"), Some(token.to_owned())).unwrap();
    let backup = Backup::start(&database, &path, Arc::new(connect(&admin))).unwrap();
    backup.wait(SOON).unwrap();
    for (forget_history, mode) in [(false, BackfillMode::Restart), (true, BackfillMode::Truncate)] {
        insert(&database);
        let how = Restarting { forget_history, ..Restarting::default() };
        let go_on = &mut |_: annals::reports::BackfillProgress| std::ops::ControlFlow::Continue(());
        database.backfill_with(mode, how, go_on).unwrap();
        insert(&database);
        assert_eq!(end(&copy), end(&database));
    }
    // Only who may administrate the backup ends its segments.
    let mut seal = Spool::new(Arc::new(annals_storage::MemoryDirectory::new()), "s".to_owned(), 0);
    seal.append(b"something").unwrap();
    let refused = connect(&writer).push_seal(end(&copy), &seal).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Forbidden, "{refused}");
    let refused = connect(&admin).push_seal(end(&copy), &seal).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    insert(&database);
    assert_eq!(end(&copy), end(&database));
}

#[test]
fn another_database_is_no_backup_and_the_end_of_the_server_ends_the_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("origin.annals");
    let database = Options::new().open(&path).unwrap();
    create(&database);
    let other = Options::new().open(folder.path().join("other.annals")).unwrap();
    let backup = Backup::start(&database, &path, Arc::new(Local::new(other))).unwrap();
    let problem = backup.wait(Duration::from_secs(1)).unwrap_err().to_string();
    assert!(problem.contains("another database"), "{problem}");
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| database.write(|tx| tx.comment("waits")));
        let has_begun = || end(&database).txid.0 == 1 && !writing.is_finished();
        assert!(has_begun());
        backup.end();
        let error = writing.join().unwrap().unwrap_err();
        let kinds = [ErrorKind::UnknownOutcome, ErrorKind::Poisoned];
        assert!(kinds.contains(&error.kind()), "{error}");
    });
    let _ = database.close();
    let database = Options::new().open(&path).unwrap();
    assert!(database.read().txid() <= Txid(2), "it may be there after that");

    // Nor is a copy that somebody else wrote.
    let (copy, to) = Backup::file(&database, folder.path().join("copy.annals")).unwrap();
    drop(to);
    copy.close().unwrap();
    let copy = Options::new().open(folder.path().join("copy.annals")).unwrap();
    copy.write(|tx| tx.comment("somebody else")).unwrap();
    let backup = Backup::start(&database, &path, Arc::new(Local::new(copy))).unwrap();
    let problem = backup.wait(Duration::from_secs(1)).unwrap_err().to_string();
    assert!(problem.contains("has transactions that this database doesn't have"), "{problem}");
    backup.end();
}
