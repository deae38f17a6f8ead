//! A database that is written while it is uploaded, until both are killed: Annals, and SQLite with Litestream.
//!
//! Both get the same rows, many at once first, then one in each transaction, each flushed. What they send to the bucket goes
//! through a counter. At the end nothing more gets through, and what the bucket has is restored.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures with the real clock")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use annals::{Command as Change, Database, Options, TableNumber, Type, ValueRef};
use annals_replica::archive::{Archive, Bucket, Uploader, restore};
use annals_replica::frames::Source;
use object_store::prefix::PrefixStore;

use super::gateway::{Counter, Gateway, KEY, REGION, SECRET, program, store};
use crate::engines::Failure;
use crate::figures::Measured;

const PERSON: TableNumber = TableNumber(0);
/// The rows that are there when it begins, and those of each of their transactions.
const FIRST: u64 = 100_000;
const AT_ONCE: u64 = 1000;
/// How often a row is written then.
const PACE: Duration = Duration::from_millis(2);
/// How often it is uploaded: the default of both.
const INTERVAL: Duration = Duration::from_secs(1);
const ENGINES: [&str; 2] = ["Annals", "SQLite, Litestream"];

/// A database that is uploaded by somebody.
trait Side {
    /// Inserts rows in one transaction, on permanent storage.
    fn insert(&mut self, rows: std::ops::Range<u64>) -> Result<(), Failure>;

    /// Waits until the bucket has what was inserted.
    fn settle(&mut self) -> Result<(), Failure>;

    /// Kills whoever uploads.
    fn kill(&mut self);

    /// Restores what the bucket has, and returns how many rows that are.
    fn restore(&mut self) -> Result<(u64, Duration), Failure>;
}

/// Runs it for both, or for Annals alone where Litestream isn't installed; `seconds` of single rows.
#[expect(clippy::print_stderr, reason = "it says what is left out")]
pub(super) fn run(
    folder: &Path,
    gateway: &Gateway,
    seconds: u64,
    measured: &mut Measured,
) -> Result<(), Failure> {
    let counter = gateway.counted()?;
    let mut annals = Ours::new(folder, gateway, &counter)?;
    one(ENGINES[0], &mut annals, &counter, seconds, measured)?;
    let Some(litestream) = program("litestream") else {
        eprintln!(
            "Litestream is left out: it is neither in PATH nor in ~/go/bin; \
             go install github.com/benbjohnson/litestream/cmd/litestream@latest"
        );
        return Ok(());
    };
    let counter = gateway.counted()?;
    let mut sqlite = Theirs::new(folder, &litestream, gateway, &counter)?;
    one(ENGINES[1], &mut sqlite, &counter, seconds, measured)
}

#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn one(
    engine: &'static str,
    side: &mut dyn Side,
    counter: &Counter,
    seconds: u64,
    measured: &mut Measured,
) -> Result<(), Failure> {
    for begin in (0..FIRST).step_by(1000) {
        side.insert(begin..begin + AT_ONCE)?;
    }
    side.settle()?;
    let (bytes, requests) = counter.sent();
    measured.add(engine, ("first rows", "MB uploaded"), bytes as f64 / 1e6);
    measured.add(engine, ("first rows", "requests"), requests as f64);
    let (begun, mut rows) = (Instant::now(), FIRST);
    while begun.elapsed() < Duration::from_secs(seconds) {
        side.insert(rows..rows + 1)?;
        rows += 1;
        thread::sleep(PACE);
    }
    counter.cut();
    side.kill();
    let (all, all_requests) = counter.sent();
    measured.add(engine, ("then", "rows a second"), (rows - FIRST) as f64 / seconds as f64);
    measured.add(
        engine,
        ("then", "kB uploaded a second"),
        (all - bytes) as f64 / 1e3 / seconds as f64,
    );
    measured.add(
        engine,
        ("then", "requests a second"),
        (all_requests - requests) as f64 / seconds as f64,
    );
    let (restored, took) = side.restore()?;
    measured.add(engine, ("restore", "ms"), took.as_secs_f64() * 1e3);
    measured.add(engine, ("kill -9", "rows lost"), rows.saturating_sub(restored) as f64);
    Ok(())
}

fn note(id: u64) -> String {
    (0..3)
        .map(|part| format!("{:016x}", (id * 3 + part).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        .collect()
}

/// Annals, and a thread that uploads.
struct Ours {
    database: Database,
    at: std::path::PathBuf,
    endpoint: String,
    is_over: Arc<AtomicBool>,
    uploading: Option<thread::JoinHandle<()>>,
}

fn bucket(endpoint: &str) -> Result<Bucket, Failure> {
    let store = PrefixStore::new(store(endpoint)?, "beside");
    Ok(Bucket::with(Arc::new(store), endpoint)?.patience(Duration::ZERO))
}

impl Ours {
    fn new(folder: &Path, gateway: &Gateway, counter: &Counter) -> Result<Self, Failure> {
        let database = Options::new().open(folder.join("beside.annals"))?;
        database.write(|tx| {
            tx.apply_command(&Change::CreateTable { name: "person".to_owned() })?;
            for (name, ty) in [("name", Type::String), ("age", Type::Int32), ("note", Type::String)]
            {
                let (table, name, nullable, default) = (PERSON, name.to_owned(), false, None);
                tx.apply_command(&Change::AddField { table, name, ty, nullable, default })?;
            }
            Ok(())
        })?;
        let source = Source::new(database.clone());
        let mut uploader = Uploader::open(bucket(&counter.endpoint())?, &source)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let uploading = thread::spawn(move || {
            while !ends.load(Ordering::SeqCst) && uploader.upload(&source).is_ok() {
                thread::sleep(INTERVAL);
            }
        });
        let (at, endpoint) = (folder.to_owned(), gateway.endpoint());
        Ok(Self { database, at, endpoint, is_over, uploading: Some(uploading) })
    }
}

impl Side for Ours {
    fn insert(&mut self, rows: std::ops::Range<u64>) -> Result<(), Failure> {
        Ok(self.database.write(|tx| {
            for id in rows.clone() {
                let (name, age) = (format!("person {id:07}"), i32::try_from(id % 90).unwrap_or(0));
                let values =
                    [ValueRef::String(&name), ValueRef::Int32(age), ValueRef::String(&note(id))];
                tx.insert(PERSON, &values)?;
            }
            Ok(())
        })?)
    }

    fn settle(&mut self) -> Result<(), Failure> {
        thread::sleep(INTERVAL * 4);
        Ok(())
    }

    fn kill(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.uploading.take().map(thread::JoinHandle::join);
    }

    fn restore(&mut self) -> Result<(u64, Duration), Failure> {
        let path = self.at.join("beside-restored.annals");
        let begun = Instant::now();
        restore(Archive::new(bucket(&self.endpoint)?), &path, None, &Options::new())?;
        let took = begun.elapsed();
        let restored = Options::new().open(&path)?;
        Ok((restored.read().table(PERSON)?.len(), took))
    }
}

/// SQLite, and the program Litestream.
struct Theirs {
    connection: rusqlite::Connection,
    program: std::path::PathBuf,
    at: std::path::PathBuf,
    child: Child,
}

impl Drop for Theirs {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Theirs {
    fn new(
        folder: &Path,
        program: &Path,
        gateway: &Gateway,
        counter: &Counter,
    ) -> Result<Self, Failure> {
        let path = folder.join("beside.sqlite");
        let connection = rusqlite::Connection::open(&path)?;
        // As Litestream's documents say; each commit is flushed.
        connection.execute_batch(
            "pragma journal_mode = wal; pragma synchronous = full; pragma busy_timeout = 5000; \
             create table person (name text not null, age int not null, note text not null)",
        )?;
        for (file, endpoint) in [("to.yml", counter.endpoint()), ("from.yml", gateway.endpoint())] {
            let settings = format!(
                "dbs:\n  - path: {}\n    replica:\n      type: s3\n      bucket: bucket\n      path: litestream\n      \
                 endpoint: {endpoint}\n      region: {REGION}\n      force-path-style: true\n      sync-interval: {}s\n      \
                 access-key-id: {KEY}\n      secret-access-key: {SECRET}\n",
                path.display(),
                INTERVAL.as_secs()
            );
            std::fs::write(folder.join(file), settings)?;
        }
        let child = Command::new(program)
            .args(["replicate", "-config"])
            // It refuses certificates for a server without TLS.
            .env_remove("AWS_CA_BUNDLE")
            .arg(folder.join("to.yml"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let (program, at) = (program.to_owned(), folder.to_owned());
        Ok(Self { connection, program, at, child })
    }
}

impl Side for Theirs {
    fn insert(&mut self, rows: std::ops::Range<u64>) -> Result<(), Failure> {
        let tx = self.connection.transaction()?;
        {
            let mut insert = tx.prepare_cached("insert into person values (?, ?, ?)")?;
            for id in rows {
                let age = i64::try_from(id % 90).unwrap_or(0);
                insert.execute((format!("person {id:07}"), age, note(id)))?;
            }
        }
        Ok(tx.commit()?)
    }

    fn settle(&mut self) -> Result<(), Failure> {
        thread::sleep(INTERVAL * 4);
        Ok(())
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn restore(&mut self) -> Result<(u64, Duration), Failure> {
        let (from, to) = (self.at.join("from.yml"), self.at.join("beside-restored.sqlite"));
        let begun = Instant::now();
        let done = Command::new(&self.program)
            .args(["restore", "-config"])
            .env_remove("AWS_CA_BUNDLE")
            .arg(from)
            .arg("-o")
            .arg(&to)
            .arg(self.at.join("beside.sqlite"))
            .stdout(Stdio::null())
            .status()?;
        let took = begun.elapsed();
        if !done.success() {
            return Err("Litestream can't restore".into());
        }
        let restored = rusqlite::Connection::open(&to)?;
        let rows: i64 = restored.query_row("select count(*) from person", (), |row| row.get(0))?;
        Ok((rows.unsigned_abs(), took))
    }
}
