//! Backfills of dirty pages, compared with the disk's rate for as many bytes.
//!
//! Three cases: all pages of a new image; every page again, into the space of an older root, which is one
//! stretch; every second page by chance, into what as random choices before have left free. The floors write
//! to files that are like the image: a new one, or one in which all space is taken.

pub(crate) mod during;
mod pages;

use std::path::{Path, PathBuf};
use std::time::Duration;

use annals::{BackfillMode, Backfilled, Options};

use crate::backfill_floor::{self as floor, PAGE, Writer};
use crate::engines::Failure;
use crate::figures::{Figure, Measured};
use pages::Pages;

/// The pages to write to the image.
#[derive(clap::Args)]
pub(crate) struct Dirty {
    /// How many MiB of pages there are.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub(crate) mib: u64,
}

const ANNALS: &str = "Annals";
const RAW: &str = "1 MiB writes in a row";
const LOOP: &str = "a sorted loop of pwrite";

/// The compared writers.
type Case = &'static str;
const NEW: Case = "a new image";

/// Backfills of randomly chosen pages, one of every few, and whether the free space is scattered: in runs that are as
/// long on average as the backfill's.
const AGAIN: [(Case, u64, bool); 2] =
    [("every page again", 1, false), ("every second page, into fragmented space", 2, true)];

/// Backfills until the space that is free is what the case says: two roots are on disk, and what the one
/// before them reached is what the next backfill gets.
const UNTIL_STEADY: usize = 3;

/// The bytes and the layout that the floors of a case write.
struct Floor<'p> {
    path: PathBuf,
    pages: &'p [Box<[u8]>],
    places: Vec<u64>,
}

/// Runs the turns of all writers.
pub(crate) fn run(dirty: &Dirty, turns: usize) -> Result<Vec<Figure>, Failure> {
    let all = tempfile::tempdir()?;
    let mut measured = Measured::default();
    let bytes: Vec<_> = floor::pages(usize::try_from(dirty.mib << 20)? / PAGE);
    let mut last = None;
    for number in 0..turns.max(1) {
        let folder = all.path().join(number.to_string());
        std::fs::create_dir_all(&folder)?;
        let mut floors = [RAW, LOOP].map(|name| Floor {
            path: folder.join(name),
            pages: &bytes,
            places: floor::places(bytes.len(), None),
        });
        // One database at a time has its pages in memory.
        drop(last.take());
        last = Some(turn((NEW, number), &mut floors, &mut measured, || {
            let pages = Pages::fill(&folder, dirty.mib, &Options::new().background(false))?;
            let (report, took) = pages.backfill(BackfillMode::Full)?;
            Ok((report, took, pages))
        })?);
    }
    let Some(mut pages) = last else { return Ok(measured.medians()) };
    for (case, one_of, is_scattered) in AGAIN {
        again(
            (case, one_of, is_scattered),
            (&mut pages, &bytes, all.path()),
            turns,
            &mut measured,
        )?;
    }
    Ok(measured.medians())
}

/// Dirties the pages of a database and backfills them, repeatedly.
fn again(
    (case, one_of, is_scattered): (Case, u64, bool),
    (pages, bytes, all): (&mut Pages, &[Box<[u8]>], &Path),
    turns: usize,
    measured: &mut Measured,
) -> Result<(), Failure> {
    let mut once = || {
        pages.touch(one_of)?;
        let (report, took) = pages.backfill(BackfillMode::Full)?;
        Ok::<_, Failure>((report, took, ()))
    };
    let (mut count, mut run) = (0, 0);
    for _ in 0..UNTIL_STEADY {
        let (report, ..) = once()?;
        count = usize::try_from(report.bytes)? / PAGE;
        run = report.bytes / report.runs.max(1);
    }
    let bytes = &bytes[..count.clamp(1, bytes.len())];
    let places = match is_scattered {
        true => floor::scattered(bytes.len(), run),
        false => floor::places(bytes.len(), None),
    };
    let path = all.join(case);
    floor::fill(&path, places.last().map_or(0, |place| place + PAGE as u64))?;
    let mut floors =
        [(), ()].map(|()| Floor { path: path.clone(), pages: bytes, places: places.clone() });
    for number in 0..turns.max(1) {
        turn((case, number), &mut floors, measured, &mut once)?;
    }
    Ok(())
}

/// Runs a turn of the floors and a backfill, each after another one in the next; returns the backfill's result.
fn turn<T>(
    (case, number): (Case, usize),
    [raw, sorted]: &mut [Floor<'_>; 2],
    measured: &mut Measured,
    backfill: impl FnOnce() -> Result<(Backfilled, Duration, T), Failure>,
) -> Result<T, Failure> {
    let (mut backfill, mut left) = (Some(backfill), None);
    let mut rates = [0.0; 3];
    for step in 0..rates.len() {
        match (number + step) % rates.len() {
            0 => rates[0] = floor::rate(Writer::Raw, &raw.path, raw.pages, &raw.places)?,
            1 => rates[1] = floor::rate(Writer::Loop, &sorted.path, sorted.pages, &sorted.places)?,
            _ => left = backfill.take().map(|backfill| backfill()).transpose()?,
        }
    }
    let (report, took, left) = left.ok_or("there was no backfill")?;
    rates[2] = mib(report.bytes) / took.as_secs_f64();
    for (name, rate) in [RAW, LOOP, ANNALS].into_iter().zip(rates) {
        measured.add(name, (case, "MiB/s"), rate);
        measured.add(name, (case, "times the raw rate"), rate / rates[0]);
        measured.add(name, (case, "times the loop"), rate / rates[1]);
    }
    tell(case, &report, measured);
    Ok(left)
}

/// Adds what the report says.
#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn tell(case: Case, report: &Backfilled, measured: &mut Measured) {
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let phases = report.phases;
    let mut add = |unit, value: f64| measured.add(ANNALS, (case, unit), value);
    add("MiB written", mib(report.bytes));
    add("writes", report.runs as f64);
    add("% of pages from memory", report.from_memory as f64 / report.pages as f64 * 100.0);
    add("ms, waiting and hardening", millis(phases.wait + phases.harden));
    add("ms, collecting", millis(phases.collect));
    add("ms, writing", millis(phases.write));
    add("ms, publishing", millis(phases.publish));
    add("ms, installing", millis(phases.install));
    add("ms, freeing", millis(phases.free));
}

#[allow(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
