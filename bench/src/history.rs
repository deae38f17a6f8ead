//! The history of one row among many events: what is read for it, and how long that takes, with the history index,
//! without it, and beside a scan of the whole journal; and what the index costs.

use std::path::Path;

use annals::event::Event;
use annals::{
    BackfillMode, Command, Committed, Database, FieldNumber, Level, Options, RowId, Schema, Sink,
    TableNumber, Type, ValueRef,
};
use serde_json::json;

use crate::engines::{self, Failure};
use crate::figures::nanoseconds;
use crate::processor;
use crate::random::Random;

/// The written and searched rows.
#[derive(clap::Args)]
pub(crate) struct Work {
    /// Events: a tenth of them inserts, the others updates of random rows.
    #[arg(long, value_delimiter = ',', default_values_t = [10_000, 1_000_000, 10_000_000], value_parser = engines::count())]
    events: Vec<u64>,
    /// Events of a transaction.
    #[arg(long, default_value_t = 100, value_parser = engines::count())]
    at_once: u64,
    /// The numbers of versions of the searched rows.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 100, 10_000], value_parser = engines::count())]
    versions: Vec<u64>,
}

const TABLE: TableNumber = TableNumber(0);
const PEOPLE: FieldNumber = FieldNumber(1);

/// Prints a line for each size and each row.
pub(crate) fn run(work: &Work, turns: usize, table: bool) -> Result<(), Failure> {
    if table {
        println!(
            "| events | journal, MiB | index, of the journal | to index, ns/event | versions | with the index | without it | a scan |"
        );
        println!("|---|---|---|---|---|---|---|---|");
    }
    work.events.iter().try_for_each(|&events| measure(work, events, (turns, table)))
}

/// A time in milliseconds, and how many bytes were read.
struct Found {
    milliseconds: f64,
    bytes: u64,
}

fn measure(work: &Work, events: u64, (turns, table): (usize, bool)) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("db");
    let index = folder.path().join("db-history");
    // Each version has a separate transaction, and most events are of other rows.
    let fits = |&versions: &u64| versions * work.at_once.max(20) <= events * 9 / 10;
    let wanted: Vec<u64> = work.versions.iter().copied().filter(fits).collect();
    write(&path, events, work.at_once, &wanted)?;
    let database = Options::new().background(false).open(&path)?;
    let journal = std::fs::metadata(&path)?.len();
    let mut per_event = Vec::new();
    for _ in 0..turns {
        let _ = std::fs::remove_file(&index);
        let before = processor::of_thread();
        let waited =
            nanoseconds(events, || Ok(database.backfill(BackfillMode::Full).map(drop)?))?;
        #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
        let worked = |(from, to): (f64, f64)| (to - from) * 1e9 / events as f64;
        per_event.push(before.zip(processor::of_thread()).map_or(waited, worked));
    }
    let scanned = median((0..turns).map(|_| scan(&path)).collect::<Result<_, _>>()?);
    for (id, &versions) in wanted.iter().enumerate() {
        let id = RowId(id as u64);
        let len = std::fs::metadata(&index).map_or(0, |index| index.len());
        let with = look(&database, (id, versions), turns)?;
        let kept = folder.path().join("kept");
        if len > 0 {
            std::fs::rename(&index, &kept)?;
        }
        let without = look(&database, (id, versions), turns)?;
        if len > 0 {
            std::fs::rename(&kept, &index)?;
        }
        let per_event = median(per_event.clone());
        print((events, journal, len, per_event), versions, (&with, &without, scanned), table);
    }
    Ok(())
}

#[allow(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
fn print(
    (events, journal, index, per_event): (u64, u64, u64, f64),
    versions: u64,
    (with, without, scan): (&Found, &Found, f64),
    table: bool,
) {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let share = index as f64 / journal as f64;
    if !table {
        let line = json!({
            "events": events, "journal": journal, "index": index, "ns_per_event": per_event,
            "versions": versions, "with_ms": with.milliseconds, "with_bytes": with.bytes,
            "without_ms": without.milliseconds, "without_bytes": without.bytes, "scan_ms": scan,
        });
        return println!("{line}");
    }
    let shown =
        |found: &Found| format!("{:.2} ms, {:.2} MiB", found.milliseconds, mib(found.bytes));
    println!(
        "| {events} | {:.1} | {:.1} % | {per_event:.0} | {versions} | {} | {} | {scan:.1} ms |",
        mib(journal),
        share * 100.0,
        shown(with),
        shown(without),
    );
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Returns the history of a row so often; the median time.
fn look(database: &Database, (id, versions): (RowId, u64), turns: usize) -> Result<Found, Failure> {
    let (mut times, mut bytes) = (Vec::new(), 0);
    for _ in 0..turns {
        times.push(nanoseconds(1_000_000, || {
            let mut history = database.history_of(TABLE, id)?;
            let mut found = 0;
            for version in &mut history {
                version?;
                found += 1;
            }
            bytes = history.bytes_read();
            match found == versions {
                true => Ok(()),
                false => Err(format!("{found} versions, not {versions}").into()),
            }
        })?);
    }
    Ok(Found { milliseconds: median(times), bytes })
}

/// Reads the whole history; returns how long that took, in milliseconds.
fn scan(path: &Path) -> Result<f64, Failure> {
    struct Count(u64);
    impl Sink for Count {
        fn event(&mut self, _: &Schema, _: &Event<'_>) -> annals::Result<()> {
            self.0 += 1;
            Ok(())
        }
        fn commit(&mut self, _: &Schema, _: &Committed) -> annals::Result<()> {
            Ok(())
        }
    }
    nanoseconds(1_000_000, || Ok(annals::scan(path, &mut Count(0))?))
}

/// Writes a given number of events. The first rows are the searched ones. They have a given number of versions, one
/// for each of as many parts of the updates; no other update concerns them.
fn write(path: &Path, events: u64, at_once: u64, wanted: &[u64]) -> Result<(), Failure> {
    let database = Options::new().level(Level::Soft).open(path)?;
    database.write(define)?;
    let (rows, mut random) = (events / 10, Random::new(events));
    for begin in (0..rows).step_by(usize::try_from(at_once)?) {
        database.write(|tx| {
            (begin..rows.min(begin + at_once)).try_for_each(|number| {
                let name = format!("city {number}");
                tx.insert(TABLE, &[ValueRef::String(&name), ValueRef::UInt32(0)]).map(drop)
            })
        })?;
    }
    let (updates, first) = (events - rows, wanted.len() as u64);
    for begin in (0..updates).step_by(usize::try_from(at_once)?) {
        database.write(|tx| {
            for number in begin..updates.min(begin + at_once) {
                let mut id = first + random.below(rows - first);
                for (place, &versions) in (0..).zip(wanted) {
                    let each = updates / versions.max(2).saturating_sub(1);
                    if versions > 1 && number % each == place + 1 && number / each < versions - 1 {
                        id = place;
                    }
                }
                tx.update(TABLE, RowId(id), PEOPLE, u32::try_from(number + 1).unwrap_or(0).into())?;
            }
            Ok(())
        })?;
    }
    Ok(database.close()?)
}

fn define(tx: &mut annals::Transaction<'_>) -> annals::Result<()> {
    tx.apply_command(&Command::CreateTable { name: "city".to_owned() })?;
    for (name, ty) in [("name", Type::String), ("people", Type::UInt32)] {
        let (name, table, nullable) = (name.to_owned(), TABLE, false);
        tx.apply_command(&Command::AddField { table, name, ty, nullable, default: None })?;
    }
    Ok(())
}
