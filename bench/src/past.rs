//! The past: the time to read a past state, by its distance, with key frames and without.
//!
//! Without a file, databases are made: random updates of a table, in transactions of a hundred, ever more of them.
//! Backfills run in the background as they are written, as in any program. Then the database is opened again, and
//! moments at all distances are read; from each, the number of its rows and one of them.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use annals::{
    BackfillMode, Command, FieldNumber, Options, Reader, RowId, TableNumber, Txid, Type, ValueRef,
};

use crate::engines::{self, Failure};
use crate::random::Random;

/// The table that is updated.
const TABLE: TableNumber = TableNumber(0);
/// Its rows.
const ROWS: u64 = 100_000;
/// Updates in each transaction.
const TOGETHER: u64 = 100;
/// Separately reported parts of the history.
const PARTS: u64 = 5;

/// The request.
#[derive(clap::Args)]
pub(crate) struct Asked {
    /// A database, which is only read; without it some are made.
    file: Option<PathBuf>,
    /// Updates that the histories have which are made.
    #[arg(long, value_delimiter = ',', value_parser = engines::count())]
    #[arg(default_value = "300000,1000000,3000000")]
    updates: Vec<u64>,
    /// Bytes that key frames may take in one case; in the others as much as the newest state, and nothing.
    #[arg(long, default_value_t = 128 << 20, value_parser = engines::count())]
    budget: u64,
    /// Moments in each fifth of the history.
    #[arg(long, default_value_t = 40, value_parser = engines::count())]
    moments: u64,
}

/// One line of what is printed.
struct Line {
    what: String,
    frames: usize,
    journal: u64,
    image: u64,
    /// The median and the longest of each part, the newest part first.
    parts: Vec<(Duration, Duration)>,
}

/// Measures, and prints a line for each history.
pub(crate) fn run(asked: &Asked, table: bool) -> Result<(), Failure> {
    let mut lines = Vec::new();
    if let Some(file) = &asked.file {
        lines.push(look(file, asked.moments, file.display().to_string())?);
    } else {
        for &updates in &asked.updates {
            let more = (Some(asked.budget), "more key frames");
            for (budget, what) in [more, (None, "key frames"), (Some(0), "none")] {
                let folder = tempfile::tempdir()?;
                let path = folder.path().join("past.annals");
                make(&path, updates, budget)?;
                lines.push(look(&path, asked.moments, format!("{updates} updates, {what}"))?);
            }
        }
    }
    print(&lines, table);
    Ok(())
}

/// Makes a history, with a limit on key frames in bytes.
fn make(path: &Path, updates: u64, budget: Option<u64>) -> Result<(), Failure> {
    let options = Options::new().level(annals::Level::Soft);
    let options = budget.map_or(options.clone(), |bytes| options.key_frames(bytes));
    let db = options.open(path)?;
    db.write(|tx| {
        tx.apply_command(&Command::CreateTable { name: "t".to_owned() })?;
        for (name, ty) in [("name", Type::String), ("number", Type::Int64)] {
            let (name, nullable, default) = (name.to_owned(), false, None);
            tx.apply_command(&Command::AddField { table: TABLE, name, ty, nullable, default })?;
        }
        let (name, fields) = ("by_number".to_owned(), vec![FieldNumber(1)]);
        tx.apply_command(&Command::CreateIndex { name, table: TABLE, fields, unique: false })?;
        (0..ROWS).try_for_each(|number| {
            let name = format!("row {number}");
            let number = i64::try_from(number).unwrap_or(0);
            tx.insert(TABLE, &[ValueRef::String(&name), number.into()]).map(drop)
        })
    })?;
    let mut random = Random::new(1);
    for _ in 0..updates / TOGETHER {
        db.write(|tx| {
            (0..TOGETHER).try_for_each(|_| {
                let (id, number) = (RowId(random.below(ROWS)), random.below(1 << 40));
                let number = i64::try_from(number).unwrap_or(0);
                tx.update(TABLE, id, FieldNumber(1), number.into())
            })
        })?;
    }
    db.backfill(BackfillMode::Full)?;
    Ok(db.close()?)
}

/// Reads moments of each part of the history of a database.
fn look(path: &Path, moments: u64, what: String) -> Result<Line, Failure> {
    let reader = Options::new().open_read_only(path)?;
    let last = reader.read().txid();
    let part = |part: u64| {
        let mut times: Vec<_> = (0..moments)
            .map(|moment| {
                let back = (part * moments + moment) * last / (PARTS * moments);
                ask(&reader, last - back)
            })
            .collect::<Result<_, _>>()?;
        times.sort_unstable();
        let middle = times.get(times.len() / 2).copied().unwrap_or_default();
        Ok((middle, times.last().copied().unwrap_or_default()))
    };
    let parts = (0..PARTS).map(part).collect::<Result<_, Failure>>()?;
    let inspected = annals::inspect(path)?;
    let image = inspected.image.as_ref();
    Ok(Line {
        what,
        frames: image.map_or(0, |image| image.key_frames.len()),
        journal: std::fs::metadata(path)?.len(),
        image: image.map_or(0, |image| image.len),
        parts,
    })
}

/// Reads the state after a transaction; returns the duration.
fn ask(reader: &Reader, txid: u64) -> Result<Duration, Failure> {
    #[allow(clippy::disallowed_methods, reason = "a benchmark measures with the real clock")]
    let begun = Instant::now();
    let then = reader.at(Txid(txid))?;
    let mut rows = 0;
    for table in then.schema().tables() {
        let table = then.table(table.number)?;
        rows += table.len();
        table.find(RowId(table.next_id() / 2))?;
    }
    std::hint::black_box(rows);
    Ok(begun.elapsed())
}

fn print(lines: &[Line], table: bool) {
    let mib = |bytes: u64| bytes >> 20;
    let ms = |time: Duration| format!("{:.1}", time.as_secs_f64() * 1e3);
    if table {
        println!(
            "| history | journal, MiB | image, MiB | key frames | newest fifth, ms (longest) | 2 | 3 | 4 | oldest fifth |"
        );
        println!("|---|---|---|---|---|---|---|---|---|");
    }
    for Line { what, frames, journal, image, parts } in lines {
        let parts: Vec<_> = (parts.iter())
            .map(|(middle, longest)| format!("{} ({})", ms(*middle), ms(*longest)))
            .collect();
        let (journal, image) = (mib(*journal), mib(*image));
        match table {
            true => println!("| {what} | {journal} | {image} | {frames} | {} |", parts.join(" | ")),
            false => println!(
                "{what}: journal {journal} MiB, image {image} MiB, {frames} key frames: ms {}",
                parts.join(", ")
            ),
        }
    }
}
