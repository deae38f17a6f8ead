//! Commits of one update while a large backfill continues, beside the same without it.
//!
//! The durable ones are made as a program makes them, with space filled ahead in the background; the
//! database is such that no backfill begins by itself. The soft ones, of which there are too many for that,
//! are made without anything in the background; they need nothing of it.

use std::path::Path;
use std::time::Duration;

use annals::{BackfillMode, Backfilled, Level, Options};

use super::mib;
use super::pages::Pages;
use crate::engines::Failure;
use crate::figures::{Figure, Measured, nanoseconds, settle};
use crate::random::Random;

/// The concurrent work.
#[derive(clap::Args)]
pub(crate) struct Meanwhile {
    /// How many MiB of pages each backfill writes.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub(crate) mib: u64,
    /// How long durable commits are made without a backfill, in each turn, in milliseconds; soft ones a
    /// quarter of that.
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    milliseconds: u64,
    /// What the backfill waits for.
    #[arg(long, default_value = "full", value_parser = BackfillMode::ALL.map(BackfillMode::name))]
    mode: String,
}

/// A level, the name of its commits, and the workload of each quantile.
struct Kind {
    level: Level,
    background: bool,
    ratio: &'static str,
    quantiles: [(&'static str, f64); 4],
    backfill: &'static str,
}

const KINDS: [Kind; 2] = [
    Kind {
        level: Level::Checksummed,
        background: true,
        ratio: "durable commit, median, times as long as without",
        quantiles: [
            ("durable commit, median", 0.5),
            ("durable commit, p99", 0.99),
            ("durable commit, p99.9", 0.999),
            ("durable commit, longest", 1.0),
        ],
        backfill: "the backfill beside durable commits",
    },
    Kind {
        level: Level::Soft,
        background: false,
        ratio: "soft commit, median, times as long as without",
        quantiles: [
            ("soft commit, median", 0.5),
            ("soft commit, p99", 0.99),
            ("soft commit, p99.9", 0.999),
            ("soft commit, longest", 1.0),
        ],
        backfill: "the backfill beside soft commits",
    },
];

const WITHOUT: &str = "without a backfill";
const DURING: &str = "during a backfill";

/// Runs commits alternately without and with a backfill.
pub(crate) fn run(meanwhile: &Meanwhile, turns: usize) -> Result<Vec<Figure>, Failure> {
    let all = tempfile::tempdir()?;
    let mut measured = Measured::default();
    for kind in KINDS {
        let folder = all.path().join(kind.quantiles[0].0);
        std::fs::create_dir_all(&folder)?;
        race(meanwhile, &kind, (&folder, turns.max(1)), &mut measured)?;
    }
    Ok(measured.medians())
}

fn race(
    meanwhile: &Meanwhile,
    kind: &Kind,
    (folder, turns): (&Path, usize),
    measured: &mut Measured,
) -> Result<(), Failure> {
    let mode = BackfillMode::named(&meanwhile.mode).ok_or("there is no such mode")?;
    let quiet = Duration::from_millis(match kind.level {
        Level::Soft => meanwhile.milliseconds.div_ceil(4),
        _ => meanwhile.milliseconds,
    });
    let (mut pages, mut position) = prepare(folder, meanwhile.mib, kind.background)?;
    let (mut without, mut during) = (Vec::new(), Vec::new());
    for number in 0..turns {
        let mut medians = [0.0; 2];
        for step in 0..2 {
            if (number + step) % 2 == 0 {
                settle();
                let times = commit_for(&pages, kind.level, quiet)?;
                medians[0] = quantile(&times, 0.5);
                without.extend(times);
            } else {
                pages.touch(1)?;
                settle();
                let (times, report) = commit_meanwhile(&pages, kind.level, mode)?;
                if report.journal_bytes != report.position - position {
                    let message = "a backfill began by itself: give more MiB or fewer milliseconds";
                    return Err(message.into());
                }
                position = report.position;
                tell(kind.backfill, &report, measured);
                medians[1] = quantile(&times, 0.5);
                during.extend(times);
            }
        }
        measured.add(DURING, (kind.ratio, "ratio"), medians[1] / medians[0]);
    }
    for (name, mut times) in [(WITHOUT, without), (DURING, during)] {
        times.sort_by(f64::total_cmp);
        for (workload, share) in kind.quantiles {
            measured.add(name, (workload, "us"), quantile(&times, share) / 1e3);
        }
    }
    Ok(())
}

/// Makes a database whose pages are in its image and in memory; returns the image's position. The backfill of all of
/// it delays the next automatic one.
fn prepare(folder: &Path, mib: u64, background: bool) -> Result<(Pages, u64), Failure> {
    let pages = Pages::fill(folder, mib, &Options::new().background(false))?;
    let rows = pages.rows;
    pages.backfill(BackfillMode::Full)?;
    pages.close()?;
    let mut pages = Pages::open(folder, rows, &Options::new().background(background))?;
    pages.touch(1)?;
    let (report, _) = pages.backfill(BackfillMode::Full)?;
    Ok((pages, report.position))
}

/// Commits for a given time; returns the nanoseconds of each commit, sorted.
fn commit_for(pages: &Pages, level: Level, long: Duration) -> Result<Vec<f64>, Failure> {
    #[allow(clippy::disallowed_methods, reason = "a benchmark measures with the real clock")]
    let start = std::time::Instant::now();
    commit_until(pages, level, || start.elapsed() >= long)
}

/// Commits until a backfill that begins at the same time is over.
fn commit_meanwhile(
    pages: &Pages,
    level: Level,
    mode: BackfillMode,
) -> Result<(Vec<f64>, Backfilled), Failure> {
    std::thread::scope(|scope| {
        let backfill = || pages.backfill_now(mode).map_err(|error| error.to_string());
        let backfill = scope.spawn(backfill);
        let times = commit_until(pages, level, || backfill.is_finished())?;
        let (report, _) = backfill.join().map_err(|_| "the backfill panicked")??;
        Ok((times, report))
    })
}

fn commit_until(
    pages: &Pages,
    level: Level,
    is_over: impl Fn() -> bool,
) -> Result<Vec<f64>, Failure> {
    let (mut random, mut times) = (Random::new(pages.rows), Vec::new());
    // One more after the end: it is the first that continues from the new root.
    let mut was_over = false;
    while !was_over {
        was_over = is_over();
        times.push(nanoseconds(1, || pages.commit(level, &mut random))?);
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// Returns a quantile of the sorted values.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts are far below 2^52, and shares are from 0 to 1"
)]
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = (sorted.len() as f64 * share) as usize;
    sorted.get(place.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}

fn tell(workload: &'static str, report: &Backfilled, measured: &mut Measured) {
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let phases = report.phases;
    measured.add(DURING, (workload, "MiB written"), mib(report.bytes));
    measured.add(DURING, (workload, "ms"), millis(phases.total()));
    measured.add(DURING, (workload, "ms, waiting"), millis(phases.wait));
    measured.add(DURING, (workload, "ms, installing"), millis(phases.install));
    measured.add(DURING, (workload, "ms, freeing"), millis(phases.free));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let values: Vec<_> = (1..=1000).map(f64::from).collect();
        let shares = [0.0, 0.5, 0.99, 0.999, 1.0];
        assert_eq!(
            shares.map(|share| quantile(&values, share)),
            [1.0, 501.0, 991.0, 1000.0, 1000.0]
        );
        assert_eq!(quantile(&[3.0], 0.5), 3.0);
        assert!(quantile(&[], 0.5).is_nan());
    }
}
