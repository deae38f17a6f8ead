//! Readers beside a writer. Four threads look up rows by id and by name and scan, each time in a new snapshot; one
//! commits softly, updating and appending rows. The background work is the default one.
//!
//! A turn has a phase with readers alone, one with the writer alone, one with both, and one with the writer beside
//! threads that read as much at random in memory of their own. The machine causes the writer's loss in the last phase
//! (its caches, its memory, other threads on its processors), and no engine can avoid it. There may be fewer
//! processors than threads. So the report has the work for each second of the thread's processor time, and the ratio
//! of that with the others to that alone, turn by turn.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use annals::Level;

use crate::engines::{self, Failure, name, value};
use crate::figures::{Figure, Measured};
use crate::processor;
use crate::random::Random;
use crate::scenario::{self, Scenario};

annals::schema!("indexed.schema");

use indexed::item::{Id, New, VALUE};

/// The concurrent work.
#[derive(clap::Args)]
pub(crate) struct Work {
    /// Rows of the table at the beginning.
    #[arg(long, default_value_t = 1_000_000, value_parser = engines::count())]
    pub(crate) rows: u64,
    /// How long each of the three continues, in all turns together.
    #[arg(long, default_value_t = 30_000, value_parser = clap::value_parser!(u64).range(1..))]
    milliseconds: u64,
    /// Threads that read.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=64))]
    pub(crate) readers: u64,
}

/// Lookups by id in a snapshot.
const BY_ID: u64 = 2_000;
/// Lookups by name in a snapshot.
const BY_NAME: u64 = 1_000;
/// Rows of a scan in a snapshot.
const SCANNED: u64 = 200_000;
/// Commits of the writer between two checks of the clock's flag.
const COMMITS: u64 = 16;
/// The writer appends a row once in this many commits.
const APPENDS: u64 = 4;

/// How many random words of memory a substitute thread reads: as many as a reader may read for all its lookups.
const AT_RANDOM: u64 = BY_ID * 3 + BY_NAME * 12;
/// Words that such threads read together, a row.
const WORDS: u64 = 8;

/// The work of threads beside the writer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reads {
    /// There is none.
    Nothing,
    /// The database.
    Rows,
    /// Separate memory of the threads.
    Memory,
}

/// The phase that is measured.
#[derive(Clone, Copy)]
struct Phase {
    reads: Reads,
    writes: bool,
    name: &'static str,
}

const PHASES: [Phase; 4] = [
    Phase { reads: Reads::Rows, writes: false, name: "readers alone" },
    Phase { reads: Reads::Nothing, writes: true, name: "writer alone" },
    Phase { reads: Reads::Rows, writes: true, name: "both" },
    Phase { reads: Reads::Memory, writes: true, name: "writer beside reads of memory" },
];

/// The work of threads.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    /// Snapshots that were read, or commits.
    count: u64,
    /// The processor's seconds.
    processor: f64,
}

impl Done {
    /// Returns how much was done in a second of the processor.
    #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    fn rate(self) -> f64 {
        self.count as f64 / self.processor
    }
}

/// Runs the turns of readers and writer.
pub(crate) fn run(work: &Work, turns: usize) -> Result<Vec<Figure>, Failure> {
    let folder = tempfile::tempdir()?;
    let database = indexed::Database::open(folder.path().join("mixed.annals"))?;
    for first in (0..work.rows).step_by(1_000_000) {
        database.write(|tx| {
            for id in first..work.rows.min(first + 1_000_000) {
                tx.insert(New { name: &name(id), value: value(id, 0) })?;
            }
            Ok(())
        })?;
    }
    let long = Duration::from_millis(work.milliseconds.div_ceil(turns as u64));
    let words: Vec<_> = (0..work.rows * WORDS).collect();
    let writer = Writer { random: Random::new(4), rows: work.rows, version: 0 };
    let rates = [(0.0, 0.0); PHASES.len()];
    let mut mixed = Mixed { database, words, work, writer, long, rates };
    let figures = scenario::run(&mut mixed, (0..PHASES.len()).collect(), turns)?;
    mixed.database.close()?;
    Ok(figures)
}

/// The threads, and the rates of a turn: of a reader and of the writer in each phase.
struct Mixed<'w> {
    database: indexed::Database,
    words: Vec<u64>,
    work: &'w Work,
    writer: Writer,
    long: Duration,
    rates: [(f64, f64); PHASES.len()],
}

impl Scenario for Mixed<'_> {
    type Contestant = usize;

    fn work(&mut self, number: usize, _: &Path, measured: &mut Measured) -> Result<(), Failure> {
        let phase = PHASES[number];
        let before = processor::of_process();
        let (read, written) = self.pass(phase)?;
        self.rates[number] = (read.rate(), written.rate());
        if phase.reads == Reads::Rows {
            measured.add(phase.name, ("snapshots read", "a second of a reader"), read.rate());
        }
        if phase.writes {
            let rate = written.rate();
            measured.add(phase.name, ("soft commits", "a second of the writer"), rate);
        }
        if let Some((before, after)) = before.zip(processor::of_process()) {
            let rest = after - before - read.processor - written.processor;
            let all = rest / self.long.as_secs_f64();
            measured.add(phase.name, ("in the background", "processors"), all.max(0.0));
        }
        Ok(())
    }

    fn end(&mut self, measured: &mut Measured) -> Result<(), Failure> {
        let [(readers, _), (_, alone), (beside, with), (_, limit)] = self.rates;
        measured.add("readers", ("beside the other, of alone", "ratio"), beside / readers);
        measured.add("writer", ("beside the other, of alone", "ratio"), with / alone);
        measured.add("writer", ("beside reads of memory, of alone", "ratio"), limit / alone);
        Ok(())
    }
}

impl Mixed<'_> {
    /// Runs the threads of a phase for a given time.
    fn pass(&mut self, phase: Phase) -> Result<(Done, Done), Failure> {
        let (database, words, work) = (&self.database, self.words.as_slice(), self.work);
        let writer = &mut self.writer;
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let count = if phase.reads == Reads::Nothing { 0 } else { work.readers };
            let readers: Vec<_> = (0..count)
                .map(|seed| {
                    let over = &over;
                    scope.spawn(move || match phase.reads {
                        Reads::Memory => timed(over, &mut stand_in(words, seed)),
                        _ => timed(over, &mut reader(database, work.rows, seed)),
                    })
                })
                .collect();
            let writing = phase.writes.then(|| {
                let over = &over;
                scope.spawn(move || timed(over, &mut || writer.commit(database)))
            });
            #[allow(
                clippy::disallowed_methods,
                reason = "a benchmark measures with the real clock"
            )]
            std::thread::sleep(self.long);
            over.store(true, Ordering::Relaxed);
            let mut read = Done::default();
            for reader in readers {
                let done = reader.join().map_err(|_| "a reader panicked")??;
                read.count += done.count;
                read.processor += done.processor;
            }
            let written = match writing {
                Some(writing) => writing.join().map_err(|_| "the writer panicked")??,
                None => Done::default(),
            };
            Ok((read, written))
        })
    }
}

/// Does something over and over; it says how much it did.
fn timed(over: &AtomicBool, once: &mut dyn FnMut() -> annals::Result<u64>) -> Result<Done, String> {
    let clock = || processor::of_thread().ok_or("the system doesn't tell what a thread takes");
    let before = clock()?;
    let mut count = 0;
    while !over.load(Ordering::Relaxed) {
        count += once().map_err(|error| error.to_string())?;
    }
    Ok(Done { count, processor: clock()? - before })
}

/// Makes what a reader does with one snapshot.
fn reader(
    database: &indexed::Database,
    rows: u64,
    seed: u64,
) -> impl FnMut() -> annals::Result<u64> {
    let mut random = Random::new(seed << 32);
    move || {
        let now = database.read();
        let table = now.item();
        let mut good = true;
        for _ in 0..BY_ID {
            let id = random.below(rows);
            good &= engines::is_value_of(id, table.require(Id::from_u64(id))?.value());
        }
        let index = now.item().by_name();
        for _ in 0..BY_NAME {
            let id = random.below(rows);
            for row in index.with_name(&name(id)) {
                good &= engines::is_value_of(id, row?.value());
            }
        }
        let scanned = SCANNED.min(rows);
        let first = random.below(rows - scanned + 1);
        let mut sum = 0;
        for values in table.slices_of(VALUE, Id::from_u64(first), scanned)? {
            sum = values?.iter().fold(sum, |sum, value| sum + (value & 0xFFFF_FFFF));
        }
        let expected: u64 = (first..first + scanned).sum();
        assert!(good && sum.cast_unsigned() == expected, "a reader saw what nobody wrote");
        Ok(1)
    }
}

/// Makes a substitute for a reader.
fn stand_in(words: &[u64], seed: u64) -> impl FnMut() -> annals::Result<u64> {
    let mut random = Random::new(seed << 32);
    move || {
        let count = words.len() as u64;
        // Each place depends on what was read before, as in a tree.
        let mut place = random.below(count);
        for _ in 0..AT_RANDOM {
            let found = words.get(usize::try_from(place).unwrap_or(0)).copied().unwrap_or(0);
            place = (found ^ random.below(count)) % count;
        }
        let scanned = words.len().min(usize::try_from(SCANNED).unwrap_or(usize::MAX));
        let sum: u64 = words[..scanned].iter().sum();
        Ok(u64::from(std::hint::black_box(sum ^ place) != u64::MAX))
    }
}

/// The writer of commits.
struct Writer {
    random: Random,
    /// Existing rows.
    rows: u64,
    version: u32,
}

impl Writer {
    fn commit(&mut self, database: &indexed::Database) -> annals::Result<u64> {
        for number in 0..COMMITS {
            self.version = self.version.wrapping_add(1) & 0x7FFF_FFFF;
            let (id, version) = (self.random.below(self.rows), self.version);
            database.write(|tx| {
                tx.set_level(Level::Soft);
                if number % APPENDS == 0 {
                    tx.insert(New { name: &name(self.rows), value: value(self.rows, 0) })?;
                    self.rows += 1;
                }
                tx.edit(Id::from_u64(id))?.set_value(value(id, version))?;
                Ok(())
            })?;
        }
        Ok(COMMITS)
    }
}
