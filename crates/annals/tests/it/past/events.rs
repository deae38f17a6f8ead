//! The events of a range are read from near its beginning.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use annals::event::{Event, Script};
use annals::storage::{Directory, MemoryDirectory};
use annals::{BackfillMode, Committed, Database, Result, Schema, Sink, ValueRef};
use annals_simulated::SimulatedClock;

use super::{NAME, TABLE, define, options};
use crate::watched::{Watched, Watcher};

/// Counts what is read of the journal and of what is made of it.
#[derive(Debug, Default)]
struct Read(AtomicU64);

impl Watcher for Read {
    fn after_read(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// Writes transactions as a script.
#[derive(Default)]
struct Text(Script, Vec<String>);

impl Sink for Text {
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        let mut line = String::new();
        self.0.push(schema, event, &mut line)?;
        self.1.push(line);
        Ok(())
    }

    fn commit(&mut self, _: &Schema, committed: &Committed) -> Result<()> {
        self.1.push(format!("commit {}", committed.txid));
        Ok(())
    }
}

fn fill(database: &Database, rows: u64) {
    database.write(define).unwrap();
    for number in 0..rows {
        let name = format!("row {number} of a table with a name that takes some room");
        let value = i64::try_from(number).unwrap().into();
        let row = [ValueRef::String(&name), value, ValueRef::Null];
        database.write(|tx| tx.insert(TABLE, &row)).unwrap();
        if number % 500 == 499 {
            // Leaves a key frame.
            database.backfill(BackfillMode::Full).unwrap();
        }
    }
}

#[test]
fn the_end_of_a_long_history_costs_little() {
    let directory = MemoryDirectory::new();
    let read = Arc::new(Read::default());
    let watched = Arc::new(Watched::new(Arc::new(directory.clone()), Arc::clone(&read)));
    let clock = Arc::new(SimulatedClock::new(7));
    let database = options().open_in(watched, NAME, clock).unwrap();
    fill(&database, 2000);
    let len = directory.open(NAME, annals::storage::Access::Read).unwrap().len().unwrap();

    let mut whole = Text::default();
    annals_tools::scan_in(&annals::Options::new(), &directory, NAME, &mut whole).unwrap();
    let now = database.read();
    // A scan reads all of it twice.
    for (after, most) in
        [(now.txid(), len / 20), (annals::Txid(1900), len * 2 / 3), (annals::Txid(3), len * 2)]
    {
        for last in [after + 5, annals::Txid(u64::MAX)] {
            read.0.store(0, Ordering::Relaxed);
            let events = now.events(after, last).unwrap();
            let mut part = Text::default();
            part.0.set_next_id(TABLE, events.begin().table(TABLE).unwrap().next_id());
            events.read(&mut part).unwrap();
            let was_read = read.0.load(Ordering::Relaxed);
            assert!(was_read <= most, "{was_read} of {len} bytes were read after {after}");
            let ends = |txid: u64| {
                let end = format!("commit {txid}");
                whole.1.iter().position(|line| *line == end).unwrap() + 1
            };
            let expected = &whole.1[ends(after.0)..ends(last.min(now.txid()).0)];
            assert_eq!(part.1, expected, "after {after} up to {last}");
        }
    }
}

/// Sums the bytes of the events of each table.
#[derive(Default)]
struct Bytes {
    table: Option<annals::TableNumber>,
    sums: std::collections::BTreeMap<Option<annals::TableNumber>, usize>,
}

impl Sink for Bytes {
    fn event(&mut self, _: &Schema, event: &Event<'_>) -> Result<()> {
        self.table = match *event {
            Event::Insert { table, .. } | Event::Update { table, .. } => Some(table),
            _ => None,
        };
        Ok(())
    }

    fn bytes(&mut self, count: usize) {
        *self.sums.entry(self.table).or_default() += count;
    }

    fn commit(&mut self, _: &Schema, _: &Committed) -> Result<()> {
        Ok(())
    }
}

#[test]
fn each_event_has_its_bytes() {
    let database = super::try_open(&options(), &MemoryDirectory::new()).unwrap();
    database.write(define).unwrap();
    let after = database.read().txid();
    for comment in ["", "said"] {
        let tx = |tx: &mut annals::Transaction<'_>| {
            if !comment.is_empty() {
                tx.comment(comment)?;
            }
            tx.insert(
                TABLE,
                &[ValueRef::String(&"x".repeat(1000)), ValueRef::Int64(7), ValueRef::Null],
            )
        };
        database.write(tx).unwrap();
    }
    let mut bytes = Bytes::default();
    database.read().read_events(after, annals::Txid(u64::MAX), &mut bytes).unwrap();
    // The length of a string, a number, a null bit, and the table; of a comment its code, its length and its text.
    let rows = bytes.sums[&Some(TABLE)];
    assert!((2010..2040).contains(&rows), "{rows}");
    assert_eq!(bytes.sums[&None], "said".len() + 2);
}
