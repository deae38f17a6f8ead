//! How long commits and reads take while pages of the image are damaged.
//!
//! ```sh
//! cargo run --release -p annals-examples --example damage -- 256
//! ```
//!
//! It makes a journal of so many MiB. Then it flips a byte that only a key frame reaches, and times commits while the
//! past is read; and one that the newest root reaches, and times reads of other pages meanwhile.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program that measures, and prints what it measured"
)]

use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use annals::storage::{Access, Directory as _, FileDirectory};
use annals::{BackfillMode, Command, Database, FieldNumber, Options, RowId, TableNumber, Txid};
use annals::{Transaction, Type, ValueRef};

type Failure = Box<dyn Error + Send + Sync>;

/// The table that makes the history long, and the one that changes from one root to the next.
const KEPT: TableNumber = TableNumber(0);
const HOT: TableNumber = TableNumber(1);
const FIELD: FieldNumber = FieldNumber(0);
/// So many rows of the latter fill two pages, with numbers that are found in the image by this one.
const HOT_ROWS: u64 = 4096;
const MARK: i64 = 0x4b45_5946_5241_4d45;
const ROUNDS: i64 = 8;
/// How long each part is measured.
const TIME: Duration = Duration::from_secs(10);

fn main() -> Result<(), Failure> {
    let mib: u64 = std::env::args().nth(1).map_or(Ok(64), |mib| mib.parse())?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("history.annals");
    let rounds = make(&path, mib)?;
    let len = std::fs::metadata(&path)?.len();
    println!("journal of {} MiB, {} key frames at most", len >> 20, rounds.len());

    let db = Database::open(&path)?;
    println!("commits, nothing damaged: {}", commits(&db, || Ok(()))?);
    let (round, txid) = rounds[rounds.len() / 2];
    flip(folder.path(), MARK + round)?;
    let past = || {
        let then = db.at(Txid(txid))?;
        let read = then.table(HOT)?.get(RowId(7))?.read::<i64>(FIELD);
        if read == MARK + round { Ok(()) } else { Err(Failure::from("a wrong value")) }
    };
    let begun = Instant::now();
    past()?;
    println!("first look at the damaged key frame: {:.0?}", begun.elapsed());
    println!("commits, a key frame damaged and read: {}", commits(&db, past)?);
    println!("reported: {}", db.image_damage().len());
    db.close()?;

    flip(folder.path(), MARK + ROUNDS)?;
    let db = Database::open(&path)?;
    let is_done = AtomicBool::new(false);
    let (lost, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| reads(&db, &is_done));
        std::thread::sleep(TIME / 10);
        let begun = Instant::now();
        let read = db.read().table(HOT)?.get(RowId(7))?.read::<i64>(FIELD);
        let lost = begun.elapsed();
        std::thread::sleep(TIME / 10);
        is_done.store(true, Ordering::Relaxed);
        let other = other.join().map_err(|_| Failure::from("a reader panicked"))??;
        if read == MARK + ROUNDS { Ok((lost, other)) } else { Err(Failure::from("a wrong value")) }
    })?;
    println!("a read of the page of the newest root that is damaged: {lost:.0?}");
    println!("reads of other pages meanwhile: {other}");
    println!("reported: {}", db.image_damage().len());
    Ok(())
}

/// Fills a database; returns the rounds, and the transactions up to which the image was brought forward in each.
fn make(path: &Path, mib: u64) -> Result<Vec<(i64, u64)>, Failure> {
    let db = Options::new().background(false).open(path)?;
    db.write(|tx| {
        for (table, name, ty) in [(KEPT, "kept", Type::String), (HOT, "hot", Type::Int64)] {
            tx.apply_command(&Command::CreateTable { name: name.to_owned() })?;
            let (name, nullable, default) = ("value".to_owned(), false, None);
            tx.apply_command(&Command::AddField { table, name, ty, nullable, default })?;
        }
        (0..HOT_ROWS).try_for_each(|_| tx.insert(HOT, &[ValueRef::Int64(0)]).map(drop))
    })?;
    let (text, mut rounds) = ("x".repeat(1000), Vec::new());
    let fill = |tx: &mut Transaction<'_>| {
        (0..1024).try_for_each(|_| tx.insert(KEPT, &[ValueRef::String(&text)]).map(drop))
    };
    for round in 1..=ROUNDS {
        for _ in 0..mib.div_ceil(ROUNDS.unsigned_abs()) {
            db.write(fill)?;
        }
        let number = ValueRef::Int64(MARK + round);
        db.write(|tx| (0..HOT_ROWS).try_for_each(|id| tx.update(HOT, RowId(id), FIELD, number)))?;
        rounds.push((round, db.backfill(BackfillMode::Full)?.txid.0));
    }
    db.close()?;
    Ok(rounds)
}

/// Flips a bit in the first page of an image that begins with a number.
fn flip(folder: &Path, number: i64) -> Result<(), Failure> {
    let image = FileDirectory::new(folder).open("history.annals-image", Access::Write)?;
    let (mut at, mut unit) = (0, [0; 4096]);
    while image.read_at(at, &mut unit)? == unit.len() {
        if unit.starts_with(&[number.to_le_bytes(); 2].concat()) {
            image.write_at(at + 100, &[unit[100] ^ 1])?;
            return Ok(());
        }
        at += 4096;
    }
    Err("no page of the image has that number".into())
}

/// Times commits, while another thread does something again and again.
fn commits(
    db: &Database,
    beside: impl Fn() -> Result<(), Failure> + Send,
) -> Result<String, Failure> {
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let is_done = &is_done;
        let other = scope.spawn(move || {
            while !is_done.load(Ordering::Relaxed) {
                beside()?;
                std::thread::sleep(Duration::from_millis(5));
            }
            Ok::<_, Failure>(())
        });
        let (begun, mut times) = (Instant::now(), Vec::new());
        while begun.elapsed() < TIME {
            let now = Instant::now();
            db.write(|tx| tx.insert(KEPT, &[ValueRef::String("one more")]))?;
            times.push(now.elapsed());
        }
        is_done.store(true, Ordering::Relaxed);
        other.join().map_err(|_| Failure::from("a thread panicked"))??;
        Ok(summary(times))
    })
}

/// Times reads of rows all over, until it is done.
fn reads(db: &Database, is_done: &AtomicBool) -> Result<String, Failure> {
    let (mut times, mut id) = (Vec::new(), 1_u64);
    while !is_done.load(Ordering::Relaxed) {
        let now = Instant::now();
        let snapshot = db.read();
        let table = snapshot.table(KEPT)?;
        id = id.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let row = table.get(RowId((id >> 33) % table.len()))?;
        std::hint::black_box(row.read::<&str>(FIELD));
        times.push(now.elapsed());
    }
    Ok(summary(times))
}

fn summary(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |part: usize| times.get(times.len() * part / 1000).copied().unwrap_or_default();
    let most = times.last().copied().unwrap_or_default();
    format!("{} times, p50 {:.1?}, p99 {:.1?}, most {most:.1?}", times.len(), at(500), at(990))
}
