//! The measured operations on a table.

use std::hint::black_box;
use std::io::{Read, Seek, SeekFrom};

use annals::Options;
use clap::ValueEnum;

use super::Work;
use super::clocks::{Took, time};
use crate::disk;
use crate::engines::Failure;
use crate::measured::{self, Database, SHORT, plain};
use crate::memory;
use crate::random::Random;

/// The task of a process.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Deed {
    /// Fills the table in one transaction, and closes the database.
    Fill,
    /// Opens it, reads rows at random, scans it.
    Look,
    /// Reads a `Vec`, and pages of a file.
    Compare,
}

const BULK: &str = "bulk insert, ns/row";
const BULK_WALL: &str = "bulk insert, until durable, ns/row";
const CLOSE_WALL: &str = "closing, with the image, until durable, ns/row";
const BULK_PEAK: &str = "bulk insert, peak of memory, MiB";
const DISK: &str = "on disk, bytes/row";
const OPEN_WALL: &str = "open and read a row, until there, us";
const FIRST: &str = "point reads, first round, ns/read";
const POINT: &str = "point reads, second round, ns/read";
const POINT_WALL: &str = "point reads, second round, until there, ns/read";
const SCAN: &str = "scan by rows, ns/row";
const SLICES: &str = "scan by slices, ns/row";
const LOOK_PEAK: &str = "reading, peak of memory, MiB";
const VEC: &str = "`Vec` of rows, random reads, ns/read";
const PAGES: &str = "whole pages of the image, random reads, ns/read";

/// All that is measured, in the order in which it is shown.
pub(super) const MEASUREMENTS: &[&str] = &[
    BULK, BULK_WALL, CLOSE_WALL, BULK_PEAK, DISK, OPEN_WALL, FIRST, POINT, POINT_WALL, VEC, PAGES,
    SCAN, SLICES, LOOK_PEAK,
];

/// Rows that are scanned at least, in as many passes as that takes.
const LONG_SCAN: u64 = 100_000_000;

/// A number and its meaning.
type Measurement = (&'static str, f64);

impl Deed {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Fill => "fill",
            Self::Look => "look",
            Self::Compare => "compare",
        }
    }

    pub(super) fn run(self, work: &Work) -> Result<Vec<Measurement>, Failure> {
        match self {
            Self::Fill => fill(work),
            Self::Look => look(work),
            Self::Compare => compare(work),
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn each(nanoseconds: f64, count: u64) -> f64 {
    nanoseconds / count as f64
}

/// Opens the database as a program does: with what happens in the background.
fn open(work: &Work) -> Result<Database, Failure> {
    let options = Options::new().memory(work.memory);
    Ok(Database::open_with(measured::path(&work.folder), &options)?)
}

fn fill(work: &Work) -> Result<Vec<Measurement>, Failure> {
    let rows = work.rows;
    let database = open(work)?;
    let (bulk, ()) = time(|| {
        Ok(database.write(|tx| {
            for value in 0..rows.cast_signed() {
                tx.insert(plain::New { name: SHORT, value })?;
            }
            Ok(())
        })?)
    })?;
    let peak = peak();
    let (close, ()) = time(|| Ok(database.close()?))?;
    #[allow(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
    let disk = disk::length(&work.folder)? as f64;
    Ok(vec![
        (BULK, each(bulk.processor, rows)),
        (BULK_WALL, each(bulk.wall, rows)),
        (CLOSE_WALL, each(close.wall, rows)),
        (BULK_PEAK, peak),
        (DISK, each(disk, rows)),
    ])
}

fn look(work: &Work) -> Result<Vec<Measurement>, Failure> {
    let rows = work.rows;
    let (opened, database) = time(|| {
        let database = open(work)?;
        check(database.read().plain().require(plain::Id::from_u64(rows / 2))?.value(), rows / 2)?;
        Ok(database)
    })?;
    let now = database.read();
    let table = now.plain();
    let mut random = Random::new(rows);
    let mut round = || {
        let ids: Vec<_> = (0..work.reads).map(|_| random.below(rows)).collect();
        let (took, sum) = time(|| {
            let value =
                |&id: &u64| Ok::<_, Failure>(table.require(plain::Id::from_u64(id))?.value());
            ids.iter().try_fold(0_i64, |sum, id| Ok::<_, Failure>(sum.wrapping_add(value(id)?)))
        })?;
        check(sum, ids.iter().sum())?;
        Ok::<_, Failure>(took)
    };
    let (first, second) = (round()?, round()?);
    let all = (0..rows).fold(0, u64::wrapping_add);
    let scan = |sum: &dyn Fn() -> Result<i64, Failure>| {
        let (took, sum) = time(sum)?;
        check(sum, all)?;
        Ok::<Took, Failure>(took)
    };
    let by_rows = scan(&|| {
        table.iter().try_fold(0_i64, |sum, row| Ok::<_, Failure>(sum.wrapping_add(row?.value())))
    })?;
    // The processor time is reported in steps of some milliseconds.
    let passes = (LONG_SCAN / rows).clamp(1, 100);
    let mut slices = 0.0;
    for _ in 0..passes {
        let pass = scan(&|| {
            let mut slices = table.slices_of(plain::VALUE, plain::Id::from_u64(0), rows)?;
            slices.try_fold(0_i64, |sum, slice| {
                Ok(slice?.iter().fold(sum, |sum, &value| sum.wrapping_add(value)))
            })
        })?;
        slices += pass.processor;
    }
    Ok(vec![
        (OPEN_WALL, opened.wall / 1e3),
        (FIRST, each(first.processor, work.reads)),
        (POINT, each(second.processor, work.reads)),
        (POINT_WALL, each(second.wall, work.reads)),
        (SCAN, each(by_rows.processor, rows)),
        (SLICES, each(slices, rows * passes)),
        (LOOK_PEAK, peak()),
    ])
}

fn check(read: i64, expected: u64) -> Result<(), Failure> {
    match read == expected.cast_signed() {
        true => Ok(()),
        false => Err(format!("{read} was read, not {expected}").into()),
    }
}

/// The size of a row in a `Vec`: no more than in the store.
#[derive(Clone, Copy)]
struct Plain {
    _name: [u8; 16],
    value: u64,
}

fn compare(work: &Work) -> Result<Vec<Measurement>, Failure> {
    const PAGE: usize = 16384;
    let (rows, reads) = (work.rows, work.reads);
    let mut random = Random::new(rows);
    let mut measurements = Vec::new();
    if work.memory == 0 {
        let vec: Vec<_> = (0..rows).map(|value| Plain { _name: [1; 16], value }).collect();
        let ids: Vec<_> = (0..reads).map(|_| random.below(rows)).collect();
        let (took, sum) = time(|| {
            let place = |&id: &u64| vec.get(usize::try_from(id).ok()?);
            let values = ids.iter().map(|id| black_box(place(id)).map_or(0, |row| row.value));
            Ok(values.fold(0_u64, u64::wrapping_add))
        })?;
        check(sum.cast_signed(), ids.iter().sum())?;
        measurements.push((VEC, each(took.processor, reads)));
    } else {
        let path = measured::image(&work.folder);
        disk::warm(&work.folder)?;
        #[allow(clippy::disallowed_methods, reason = "nobody's storage is involved")]
        let mut file = std::fs::File::open(path)?;
        let pages = (file.metadata()?.len() / PAGE as u64).max(1);
        let mut page = vec![0; PAGE];
        let (took, ()) = time(|| {
            for _ in 0..reads {
                file.seek(SeekFrom::Start(random.below(pages) * PAGE as u64))?;
                let _ = black_box(file.read(&mut page)?);
            }
            Ok(())
        })?;
        measurements.push((PAGES, each(took.processor, reads)));
    }
    Ok(measurements)
}

/// Returns the peak of memory so far, in MiB.
fn peak() -> f64 {
    memory::peak().map_or(f64::NAN, memory::mib)
}
