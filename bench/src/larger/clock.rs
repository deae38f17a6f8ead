//! What a task takes: time, bytes read, memory. Numbers that the system doesn't report are NaN.

use std::fs::read_to_string;
use std::time::Instant;

use crate::processor;

/// What is printed of each task.
pub(super) const UNITS: [&str; 3] = ["s of processor time", "s", "MiB read"];

/// A running task.
pub(super) struct Clock {
    start: Instant,
    processor: f64,
    read: f64,
}

impl Clock {
    #[allow(clippy::disallowed_methods, reason = "a benchmark measures with the real clock")]
    pub(super) fn start() -> Self {
        let processor = processor::of_process().unwrap_or(f64::NAN);
        Self { start: Instant::now(), processor, read: read() }
    }

    /// Prints what it took until now.
    pub(super) fn print(&self, task: &str) {
        let processor = processor::of_process().unwrap_or(f64::NAN) - self.processor;
        let used = [processor, self.start.elapsed().as_secs_f64(), read() - self.read];
        for (value, unit) in used.iter().zip(UNITS) {
            println!("{value} {task}, {unit}");
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
pub(super) fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Returns how much this process has read of files, in MiB, from the system's cache of pages or from the disk.
fn read() -> f64 {
    let counters = read_to_string("/proc/self/io").unwrap_or_default();
    number(&counters, "rchar:").map_or(f64::NAN, mib)
}

/// Returns the most memory that this process had, in MiB.
pub(super) fn peak() -> f64 {
    of_memory("VmHWM:")
}

/// Returns the memory that this process has, in MiB.
pub(super) fn held() -> f64 {
    of_memory("VmRSS:")
}

fn of_memory(field: &str) -> f64 {
    let status = read_to_string("/proc/self/status").unwrap_or_default();
    number(&status, field).map_or(f64::NAN, |kib| mib(kib * 1024))
}

fn number(text: &str, field: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(field))?;
    rest.split_whitespace().next()?.parse().ok()
}
