//! The order in which a push is judged: of two neighbouring causes at once, the first one is the answer.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use annals::{Command, Cursor, Database, Options, TableNumber, Timestamp, ValueRef};
use annals_replica::Local;
use annals_server::{Limits, NewToken, Role, Server};
use annals_simulated::{SimulatedClock, SimulatedDisk};
use annals_storage::{Directory as _, MemoryDirectory, Spool, Storage as _};
use reqwest::blocking::Client;

use crate::running::Running;

const ITEM: TableNumber = TableNumber(0);
const NAME: &str = "journal";
/// The most bytes of a push here.
const MOST: usize = 400_000;
/// 2026-01-01, in microseconds.
const NOW: i64 = 1_767_225_600_000_000;
const TEN_YEARS: i64 = 10 * 365 * 86_400 * 1_000_000;

fn clock(ahead: i64) -> Arc<SimulatedClock> {
    let clock = SimulatedClock::new(1);
    clock.set(NOW + ahead);
    Arc::new(clock)
}

fn end(database: &Database) -> Cursor {
    database.read().point().into()
}

/// A copy of a database, with another clock.
fn copy_of(disk: &SimulatedDisk, ahead: i64) -> Database {
    let directory = MemoryDirectory::new();
    let file = directory.create(NAME).unwrap();
    file.write_at(0, &disk.content(NAME).unwrap()).unwrap();
    Options::new().open_in(directory.again(), NAME, clock(ahead)).unwrap()
}

/// Returns the frames of a database after a cursor.
fn frames(database: &Database, after: Cursor) -> Vec<u8> {
    let mut spool = Spool::new(MemoryDirectory::new().again(), "spool".to_owned(), 0);
    Local::new(database.clone()).batch(Some(after)).unwrap().copy_to(&mut spool).unwrap();
    let len = usize::try_from(spool.end() - spool.begin()).unwrap();
    let mut bytes = vec![0; len];
    spool.read_at(spool.begin(), &mut bytes).unwrap();
    bytes
}

fn insert(database: &Database) {
    database.write(|tx| tx.insert(ITEM, &[] as &[ValueRef<'_>]).map(drop)).unwrap();
}

struct Pushing {
    client: Client,
    running: Running,
    token: String,
}

impl Pushing {
    fn send(&self, name: &str, from: Option<Cursor>, body: &[u8]) -> (u16, String) {
        let url = format!("{}/frames", self.running.of(name));
        let request = self.client.post(url).bearer_auth(&self.token).body(body.to_vec());
        let request = match from {
            Some(from) => request.header("If-Match", format!("\"{from}\"")),
            None => request,
        };
        let answer = request.send().unwrap();
        (answer.status().as_u16(), answer.text().unwrap())
    }

    /// Says that a body with too many bytes will come, and sends none of it: the answer comes at once, and no byte that
    /// is on its way resets the connection.
    fn announce(&self, name: &str, from: Option<Cursor>) -> u16 {
        let mut stream = TcpStream::connect(self.running.address).unwrap();
        let from = from.map(|from| format!("If-Match: \"{from}\"\r\n")).unwrap_or_default();
        let (token, len) = (&self.token, MOST + 1);
        let request = format!(
            "POST /v1/{name}/frames HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n{from}\
             Content-Length: {len}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line.split(' ').nth(1).unwrap().parse().unwrap()
    }

    fn status(&self, from: Cursor, body: &[u8]) -> u16 {
        self.send("journal", Some(from), body).0
    }
}

fn serve(database: &Database, role: Role) -> Pushing {
    let NewToken { token, stored } = NewToken::random(role, None);
    let limits = Limits { push: MOST as u64, ..Limits::default() };
    let server = Server::new().database("journal", database.clone()).unwrap().session(stored);
    // It installs what clients need for TLS.
    let running = Running::start(server.limits(limits));
    Pushing { client: Client::new(), running, token }
}

#[test]
fn of_two_causes_the_first_is_the_answer() {
    let disk = SimulatedDisk::new(7);
    let database = Options::new().open_in(Arc::new(disk.clone()), NAME, clock(0)).unwrap();
    let start = end(&database);
    database
        .write(|tx| tx.apply_command(&Command::CreateTable { name: "item".to_owned() }))
        .unwrap();
    let created = end(&database);
    insert(&database);
    let here = end(&database);
    let history = frames(&database, created);
    let foreign = Cursor { chain: 7, ..here };
    let writer = serve(&database, Role::Write);

    // 401, 403, 404: whether the database is there makes no difference but for who may know.
    let nobody = Pushing { token: "annals_wrong".to_owned(), ..serve(&database, Role::Write) };
    assert_eq!(nobody.send("journal", None, b""), nobody.send("nothing", None, b""));
    assert_eq!(nobody.send("nothing", None, b"").0, 401);
    let reader = serve(&database, Role::Read);
    assert_eq!(reader.send("journal", None, b""), reader.send("nothing", None, b""));
    assert_eq!(reader.send("nothing", None, b"").0, 403);
    assert_eq!(writer.send("nothing", None, b"").0, 404, "before 428");
    assert_eq!(writer.announce("journal", None), 413, "before 428");
    assert_eq!(writer.send("journal", None, b"half").0, 428, "before 422, not whole frames");
    let half = [&history[..], b"half"].concat();
    assert_eq!(writer.status(created, &half), 422, "before 200, already there");
    assert_eq!(writer.status(Cursor { chain: 7, ..created }, &history), 200, "before 409");
    // Another history of the same length, which would also come too late.
    let other = copy_of(&disk, 0);
    insert(&other);
    let next = frames(&other, here);
    insert(&database);
    assert_eq!(writer.status(foreign, &next), 409, "before 412");
    assert_eq!(writer.status(start, &next), 412, "before 422: nor do they fit there");
    let now = end(&database);
    assert_eq!(writer.status(now, &next), 422, "they don't continue this");
    assert_eq!(end(&database), now, "nothing was changed");
}

#[test]
fn a_clock_far_ahead_is_refused_and_explicit_times_are_free() {
    let disk = SimulatedDisk::new(7);
    let database = Options::new().open_in(Arc::new(disk.clone()), NAME, clock(0)).unwrap();
    database
        .write(|tx| tx.apply_command(&Command::CreateTable { name: "item".to_owned() }))
        .unwrap();
    let here = end(&database);
    let pushing = serve(&database, Role::Write);
    let ahead = copy_of(&disk, TEN_YEARS);
    insert(&ahead);
    let (status, message) = pushing.send("journal", Some(here), &frames(&ahead, here));
    assert_eq!(status, 422, "{message}");
    assert!(message.contains("more than 10 s ahead"), "{message}");
    assert_eq!(end(&database), here);

    // A full disk is seen after that: nothing was to be written.
    disk.limit_space(0);
    assert_eq!(pushing.status(here, &frames(&ahead, here)), 422, "before 507");
    let explicit = copy_of(&disk, 0);
    explicit
        .write(|tx| {
            tx.set_time(Timestamp(NOW + TEN_YEARS));
            // More than there is in space that is zeroed ahead.
            tx.comment(&"long ".repeat(40_000))?;
            tx.insert(ITEM, &[] as &[ValueRef<'_>]).map(drop)
        })
        .unwrap();
    let good = frames(&explicit, here);
    let (status, message) = pushing.send("journal", Some(here), &good);
    assert_eq!(status, 507, "{message}");
    assert!(message.contains("no_space"), "{message}");
    assert_eq!(end(&database), here, "nothing of it remains");
    disk.free_space();
    assert_eq!(pushing.status(here, &good), 200);
    insert(&database);
    let last = database.changes(end(&database).txid..=end(&database).txid).unwrap().next();
    let time = last.unwrap().unwrap().time;
    assert!(time.0 < NOW + TEN_YEARS, "an explicit time moves no clock: {time}");
}
