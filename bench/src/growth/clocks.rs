//! The operating system's figures of a process: its processor time, its memory.

use std::time::Instant;

use crate::engines::Failure;

/// The duration of some work, in nanoseconds.
pub(super) struct Took {
    pub(super) wall: f64,
    /// The processor time of all threads, including the kernel's on their behalf; NaN if the system doesn't report
    /// it.
    pub(super) processor: f64,
}

/// Measures what some work takes.
#[allow(clippy::disallowed_methods, reason = "a benchmark measures with the real clock")]
pub(super) fn time<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<(Took, T), Failure> {
    let (start, before) = (Instant::now(), processor());
    let value = work()?;
    let wall = start.elapsed().as_secs_f64() * 1e9;
    let took = Took { wall, processor: processor() - before };
    Ok((took, value))
}

/// Returns the processor time so far, in nanoseconds: of running threads, accurate to some milliseconds; of ended
/// ones, in ticks, if that is more.
fn processor() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let of_task = |task: std::fs::DirEntry| {
        let times = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        times.split_whitespace().next()?.parse::<f64>().ok()
    };
    let running: f64 = tasks.filter_map(of_task).sum();
    running.max(ticks().unwrap_or(f64::NAN))
}

fn ticks() -> Option<f64> {
    /// A reported tick is a hundredth of a second, whatever the kernel's own is.
    const TICK: f64 = 1e7;
    let all = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in parentheses, may hold anything.
    let mut fields = all.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some((next()? + next()?) * TICK)
}

/// Returns the peak memory of this process, in MiB; NaN if the system doesn't report it.
pub(super) fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.map_or(f64::NAN, |kib| kib / 1024.0)
}
