//! Opening reads a file once, and writes little, however long the file is.

use std::sync::Arc;

use annals::storage::{Access, Directory, MemoryDirectory};
use annals::{Database, Level, Recovery, RowId, ValueRef};
use annals_simulated::SimulatedClock;

use super::counting::{Counts, counting};
use super::{NAME, TABLE, define, options};

const MIB: u64 = 1 << 20;

fn length() -> u64 {
    let is_full = std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full");
    if is_full { 1024 * MIB } else { 64 * MIB }
}

fn open(directory: &Arc<dyn Directory>) -> Database {
    let clock = Arc::new(SimulatedClock::new(7));
    options(Recovery::Checked).open_in(Arc::clone(directory), NAME, clock).unwrap()
}

/// Writes a long journal at a level, and lets go of it without closing. Its rows are one row that
/// changes, so that memory doesn't grow with it.
fn written(level: Level, sizes: &[usize]) -> (Arc<dyn Directory>, Arc<Counts>) {
    let (directory, counts) = counting(Arc::new(MemoryDirectory::new()));
    let directory: Arc<dyn Directory> = Arc::new(directory);
    let database = open(&directory);
    define(&database);
    let text = "x".repeat(*sizes.iter().max().unwrap());
    let row = [ValueRef::String("one"), ValueRef::Null];
    database.write(|tx| tx.insert_at(TABLE, RowId(0), &row)).unwrap();
    let mut flushed = 0;
    for &size in sizes.iter().cycle() {
        let value = ValueRef::String(&text[..size]);
        let change = |tx: &mut annals::Transaction<'_>| {
            tx.set_level(level);
            tx.update(TABLE, RowId(0), super::TEXT, value)
        };
        database.write(change).unwrap();
        let end = database.read().point().position;
        // As the background work does.
        if end - flushed >= 16 * MIB {
            flushed = end;
            database.hard_checkpoint().unwrap();
        }
        if end > length() {
            break;
        }
    }
    database.rest().unwrap();
    let file = directory.open(NAME, Access::Read).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    file.read_at(0, &mut bytes).unwrap();
    drop((file, database, directory, counts));
    // As it is when the process is killed.
    let (directory, counts) = counting(Arc::new(MemoryDirectory::new()));
    directory.create(NAME).unwrap().write_at(0, &bytes).unwrap();
    (Arc::new(directory), counts)
}

/// Opens it, and compares what was read and written with what that may be.
fn judge(directory: &Arc<dyn Directory>, counts: &Counts, (lag, what): (u64, &str)) {
    let file = directory.open(NAME, Access::Write).unwrap();
    let len = file.len().unwrap();
    drop(file);
    counts.take();
    let database = open(directory);
    let (read, written) = counts.take();
    assert!(read >= len - 2 * MIB, "{what}: only {read} of {len} read: nothing was tested");
    assert!(read <= len + lag + 2 * MIB, "{what}: {read} bytes read of {len}");
    assert!(written <= lag + MIB, "{what}: {written} bytes written");
    database.close().unwrap();
    let (read, written) = counts.take();
    // A test build reads once more what a backfill wrote, and the history index reads the journal after it.
    assert!(read < 8 * MIB && written < 4 * MIB, "{what}: {read} read, {written} written to close");
    // The next opening, too, is to read the journal.
    directory.remove(&format!("{NAME}-image")).unwrap();
}

fn judge_all(level: Level, lag: u64, sizes: &[usize]) {
    let (directory, counts) = written(level, sizes);
    let judge = |lag, what| judge(&directory, &counts, (lag, &format!("{level:?}, {what}")));
    judge(lag, "unclean");
    judge(0, "closed");
    // A frame that was begun, and space that was filled ahead of it.
    let file = directory.open(NAME, Access::Write).unwrap();
    let end = file.len().unwrap();
    file.write_at(end, &[0xF5, b'A', b'N', b'F', 2, 0, 0, 0, 9]).unwrap();
    file.set_len(end + 64 * 1024).unwrap();
    judge(0, "a torn frame");
}

#[test]
fn durable_commits_are_read_once() {
    judge_all(Level::Checksummed, 2 * MIB, &[1000, 300_000, 70_000]);
}

#[test]
fn soft_commits_are_read_once() {
    judge_all(Level::Soft, 17 * MIB, &[100_000]);
}

#[test]
fn frames_longer_than_what_is_read_at_once_are_read_once() {
    judge_all(Level::Checksummed, 10 * MIB, &[5_000_000, 1_100_000]);
}
