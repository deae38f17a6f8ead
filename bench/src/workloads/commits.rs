//! Commits of one row: soft, durable, and durable by several threads, beside the floor of the disk.

use std::ops::Range;

use super::child::Run;
use super::target::{Bound, Target};
use super::{Workload, is_engine};
use crate::engines::annals::Small;
use crate::engines::{self, Engine, Failure, Level, Names, Shape, Writer};
use crate::figures::nanoseconds;
use crate::floor::Floor;

/// Commits of each thread before another engine continues, where they are flushed.
const SLICE: u64 = 50;
/// The same for soft commits: many, as SQLite and fjall update their tables meanwhile.
const SOFT_SLICE: u64 = 10_000;

const WRITE: &str = "write into zeroed space";
const FLUSH: &str = "write into zeroed space, flush";
const THREADS: &str = "the same by each thread, a file each";
const ALONE: &str = "Annals, 1 thread";

pub(super) const WORKLOADS: &[Workload] = &[SOFT, DURABLE, FOUR, SIXTEEN];

const SOFT: Workload = Workload {
    key: "soft",
    title: "Soft commits, one row each (SQLite: NORMAL; LMDB: without sync; fjall: buffered)",
    unit: ("commit", "us"),
    count: 1_000_000,
    slice: Some(SOFT_SLICE),
    filled: None,
    engines: is_engine,
    work: soft,
    beside: &[(WRITE, write)],
    targets: &[
        Target::time("at most 1.5x one write", &[WRITE], Bound::TimesAtMost(1.5)),
        Target::time("at least 1.5x faster than every peer", &[], Bound::FasterAtLeast(1.5)),
    ],
};
const DURABLE: Workload = Workload {
    key: "durable",
    title: "Durable commits, one row each",
    count: 2_000,
    slice: Some(SLICE),
    work: threads::<1>,
    beside: &[(FLUSH, flush::<1>)],
    targets: &[
        Target::time("at most 1.15x the floor", &[FLUSH], Bound::TimesAtMost(1.15)),
        Target::time("faster than every peer", &[], Bound::FasterAtLeast(1.0)),
    ],
    ..SOFT
};
const FOUR: Workload = Workload {
    key: "threads-4",
    title: "Durable commits, one row each, from 4 threads",
    count: 8_000,
    slice: Some(4 * SLICE),
    work: threads::<4>,
    beside: &[(ALONE, alone), (THREADS, flush::<4>)],
    targets: &[
        Target::time("at least 2x one thread's rate", &[ALONE], Bound::FasterAtLeast(2.0)),
        Target::time("ahead of every peer", &[], Bound::FasterAtLeast(1.0)),
    ],
    ..DURABLE
};
const SIXTEEN: Workload = Workload {
    key: "threads-16",
    title: "Durable commits, one row each, from 16 threads",
    count: 32_000,
    slice: Some(16 * SLICE),
    work: threads::<16>,
    beside: &[(ALONE, alone), (THREADS, flush::<16>)],
    targets: &[
        Target::time("at least 6x one thread's rate", &[ALONE], Bound::FasterAtLeast(6.0)),
        Target::time("ahead of every peer", &[], Bound::FasterAtLeast(1.0)),
    ],
    ..FOUR
};

fn soft(engine: &dyn Engine, run: &mut Run<'_>) -> Result<(), Failure> {
    let table = engine.create(run.folder, Shape::Small)?;
    let Some(mut writer) = table.writer(Level::Soft)? else {
        run.absent();
        return Ok(());
    };
    run.slices(|ids| writer.insert(ids, &Names::SHORT))?;
    drop(writer);
    run.close(engine, table)
}

/// Runs commits on several threads, each with a part of the ids of a slice.
fn threads<const COUNT: usize>(engine: &dyn Engine, run: &mut Run<'_>) -> Result<(), Failure> {
    let table = engine.create(run.folder, Shape::Small)?;
    let mut writers = Vec::new();
    for _ in 0..COUNT {
        let Some(writer) = table.writer(Level::Durable)? else {
            run.absent();
            return Ok(());
        };
        writers.push((writer, Vec::new()));
    }
    type Part<'a> = (Box<dyn Writer + Send + 'a>, Vec<f64>);
    let commit = |(writer, times): &mut Part<'_>, ids: Range<u64>| {
        for id in ids {
            times.push(nanoseconds(1, || writer.insert(id..id + 1, &Names::SHORT))?);
        }
        Ok(())
    };
    run.slices(|ids| by_threads(&mut writers, ids, commit))?;
    let times = writers.into_iter().flat_map(|(_, times)| times).collect();
    run.percentiles(times);
    run.close(engine, table)
}

fn alone(run: &mut Run<'_>) -> Result<(), Failure> {
    threads::<1>(engines::find("annals")?, run)
}

/// Writes as much as a commit has, without a flush.
fn write(run: &mut Run<'_>) -> Result<(), Failure> {
    let mut floors = floors(1, run)?;
    let length = commit_length(run, annals::Level::Soft)?;
    floors[0].prepare(run.count * length)?;
    run.slices(|ids| floors[0].write(ids.end - ids.start, length))?;
    run.written();
    Ok(())
}

/// Writes the bytes of a commit and flushes, on several threads, each in a separate file.
fn flush<const COUNT: usize>(run: &mut Run<'_>) -> Result<(), Failure> {
    let length = commit_length(run, annals::Level::Checksummed)?;
    let mut writers = Vec::new();
    for mut floor in floors(COUNT, run)? {
        floor.prepare(run.count * length)?;
        writers.push((floor, Vec::new()));
    }
    let commit = |(floor, times): &mut (Floor, Vec<f64>), ids: Range<u64>| {
        for _ in ids {
            times.push(nanoseconds(1, || floor.commit(1, length))?);
        }
        Ok(())
    };
    run.slices(|ids| by_threads(&mut writers, ids, commit))?;
    let times = writers.into_iter().flat_map(|(_, times)| times).collect();
    run.percentiles(times);
    run.written();
    Ok(())
}

/// Returns files without anything in them.
fn floors(count: usize, run: &Run<'_>) -> Result<Vec<Floor>, Failure> {
    (0..count).map(|number| Floor::create(&run.folder.join(format!("floor {number}")))).collect()
}

/// Returns the bytes of a commit of one row in the journal.
fn commit_length(run: &Run<'_>, level: annals::Level) -> Result<u64, Failure> {
    const COUNT: u64 = 100;
    let table = Small::open(&run.folder.join("length"), &annals::Options::new())?;
    let before = table.position();
    table.commit_each(COUNT, "TOTO", level)?;
    Ok((table.position() - before).div_ceil(COUNT))
}

/// Runs each writer, in a separate thread, on its part of the ids of a slice.
fn by_threads<W: Send>(
    writers: &mut [W],
    ids: Range<u64>,
    commit: impl Fn(&mut W, Range<u64>) -> Result<(), Failure> + Sync,
) -> Result<(), Failure> {
    if let [writer] = writers {
        return commit(writer, ids); // a thread would cost more than it does
    }
    let each = (ids.end - ids.start) / writers.len() as u64;
    let commit = &commit;
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (writer, first) in writers.iter_mut().zip((ids.start..).step_by(usize::try_from(each)?))
        {
            threads.push(scope.spawn(move || {
                commit(writer, first..first + each).map_err(|error| error.to_string())
            }));
        }
        for thread in threads {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        Ok(())
    })
}
