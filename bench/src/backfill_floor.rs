//! The floor of a backfill: pages in memory written to free places of a file, compared with the bare disk.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use annals::storage::{Access, Directory as _, Engine, FileDirectory, Storage, join};

use crate::engines::Failure;
use crate::figures::settle;
use crate::race::Spread;
use crate::random::Random;

/// The bytes of a page.
pub(crate) const PAGE: usize = 16 << 10;
/// The bytes of a write of the raw rate.
const RAW: usize = 1 << 20;

/// The layout of free space in the file: a random half of it, in stretches of a given number of pages.
const LAYOUTS: [(&str, Option<u64>); 3] = [
    ("in one stretch", None),
    ("half is free, in stretches of 4 pages", Some(4)),
    ("half is free, page by page", Some(1)),
];

/// The writer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writer {
    /// Writes of 1 MiB one after the other, wherever the pages should go.
    Raw,
    /// One `pwrite` for each page, in order.
    Loop,
    Batch(Option<Engine>),
}

const WRITERS: &[(&str, Writer)] = &[
    ("1 MiB writes in a row", Writer::Raw),
    ("a sorted loop of pwrite", Writer::Loop),
    ("write_batch", Writer::Batch(None)),
    #[cfg(feature = "choose-engine")]
    ("write_batch by io_uring", Writer::Batch(Some(Engine::Uring))),
    #[cfg(feature = "choose-engine")]
    ("write_batch by pwritev", Writer::Batch(Some(Engine::Vectored))),
    #[cfg(feature = "choose-engine")]
    ("write_batch one by one", Writer::Batch(Some(Engine::OneByOne))),
];

/// The result of one writer with one layout.
pub(crate) struct Line {
    pub(crate) layout: &'static str,
    pub(crate) writer: &'static str,
    /// In MiB a second, flush included.
    pub(crate) rate: Spread,
    /// How many times the rate of 1 MiB writes in the same turn.
    pub(crate) beside_raw: Spread,
    /// How many times the rate of the sorted loop in the same turn.
    pub(crate) beside_loop: Spread,
}

/// Writes a given number of MiB by each writer, with each layout, in each turn.
pub(crate) fn run(mib: u64, turns: usize) -> Result<Vec<Line>, Failure> {
    let folder = tempfile::tempdir()?;
    let count = usize::try_from(mib << 20)? / PAGE;
    let pages = pages(count);
    let mut lines = Vec::new();
    for (number, (layout, stretch)) in LAYOUTS.into_iter().enumerate() {
        let places = places(count, stretch);
        // Removing files makes flushes slow for a while on some disks, so all stay until the end.
        let path = folder.path().join(number.to_string());
        let end = places.last().map_or(0, |place| place + PAGE as u64);
        fill(&path, end)?;
        settle();
        let mut rates = vec![Vec::new(); WRITERS.len()];
        for turn in 0..turns.max(1) {
            for index in 0..WRITERS.len() {
                // Each writer follows another one in the next turn.
                let index = (index + turn) % WRITERS.len();
                rates[index].push(rate(WRITERS[index].1, &path, &pages, &places)?);
            }
        }
        let beside = |own: &[f64], floor: &[f64]| {
            Spread::of(own.iter().zip(floor).map(|(own, floor)| own / floor).collect())
        };
        for ((writer, _), own) in WRITERS.iter().zip(&rates) {
            lines.push(Line {
                layout,
                writer,
                rate: Spread::of(own.clone()),
                beside_raw: beside(own, &rates[0]),
                beside_loop: beside(own, &rates[1]),
            });
        }
    }
    Ok(lines)
}

/// Makes that many pages, each with its own place in memory, as a store's have.
pub(crate) fn pages(count: usize) -> Vec<Box<[u8]>> {
    (0..count as u64).map(|number| vec![number.to_le_bytes()[0]; PAGE].into()).collect()
}

/// Returns that many places for pages, in order.
pub(crate) fn places(count: usize, stretch: Option<u64>) -> Vec<u64> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut is_free = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.is_multiple_of(2)
    };
    let stretches = (0..).filter(|_| stretch.is_none() || is_free());
    let length = stretch.unwrap_or(1);
    let units = stretches.flat_map(|number| number * length..(number + 1) * length);
    units.take(count).map(|unit| unit * PAGE as u64).collect()
}

/// Returns that many places for pages, in order: random runs and gaps with a given average length.
pub(crate) fn scattered(count: usize, run: u64) -> Vec<u64> {
    let mut random = Random::new(run);
    let (mut is_free, page) = (true, PAGE as u64);
    let is_free_now = move |_: &u64| {
        // A run ends at each of its pages with the same probability.
        is_free ^= random.below(run.max(page)) < page;
        is_free
    };
    (0..).filter(is_free_now).take(count).map(|unit| unit * page).collect()
}

/// Makes a file, on the disk, in which all space is taken.
pub(crate) fn fill(path: &Path, len: u64) -> Result<(), Failure> {
    let file = open(path)?;
    let bytes = vec![0xEE; RAW];
    for number in 0..len.div_ceil(RAW as u64) {
        file.write_all_at(&bytes, number * RAW as u64)?;
    }
    Ok(file.sync_all()?)
}

fn open(path: &Path) -> Result<File, Failure> {
    #[allow(clippy::disallowed_methods, reason = "the floor has nothing between it and the file")]
    Ok(OpenOptions::new().write(true).create(true).truncate(false).open(path)?)
}

/// Writes all pages and flushes once; returns the rate in MiB a second.
pub(crate) fn rate(
    writer: Writer,
    path: &Path,
    pages: &[Box<[u8]>],
    places: &[u64],
) -> Result<f64, Failure> {
    settle();
    let (file, bytes) = (open(path)?, vec![0x55; RAW]);
    let storage = match writer {
        Writer::Batch(engine) => Some(storage(path, engine)?),
        Writer::Raw | Writer::Loop => None,
    };
    #[allow(clippy::disallowed_methods, reason = "a benchmark measures with the real clock")]
    let start = Instant::now();
    match (writer, storage) {
        (Writer::Batch(engine), Some(storage)) => {
            let pieces = places.iter().zip(pages).map(|(place, page)| (*place, &**page));
            let batched = storage.write_batch(&join(pieces))?;
            storage.flush()?;
            if engine.is_some_and(|engine| engine != batched.engine) {
                return Err(format!("{engine:?} isn't there, but {:?}", batched.engine).into());
            }
        }
        (Writer::Raw, _) => {
            for begin in (0..pages.len() * PAGE).step_by(RAW) {
                let len = RAW.min(pages.len() * PAGE - begin);
                file.write_all_at(&bytes[..len], begin as u64)?;
            }
            file.sync_data()?;
        }
        _ => {
            for (place, page) in places.iter().zip(pages) {
                file.write_all_at(page, *place)?;
            }
            file.sync_data()?;
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    #[allow(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
    Ok((pages.len() * PAGE) as f64 / f64::from(1 << 20) / seconds)
}

fn storage(path: &Path, engine: Option<Engine>) -> Result<Arc<dyn Storage>, Failure> {
    let directory = chosen(FileDirectory::new(path.parent().unwrap_or(Path::new(""))), engine);
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    Ok(directory.open(name, Access::Write)?)
}

#[cfg(feature = "choose-engine")]
fn chosen(directory: FileDirectory, engine: Option<Engine>) -> FileDirectory {
    match engine {
        Some(engine) => directory.with_engine(engine),
        None => directory,
    }
}

#[cfg(not(feature = "choose-engine"))]
fn chosen(directory: FileDirectory, _: Option<Engine>) -> FileDirectory {
    directory
}
