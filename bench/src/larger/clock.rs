//! What a task takes: time, bytes read, memory. Numbers that the system doesn't report are NaN.

use std::fs::read_to_string;
use std::time::Instant;

use crate::{memory, processor};

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

/// Returns how much this process has read of files, in MiB, from the system's cache of pages or from the disk.
fn read() -> f64 {
    let counters = read_to_string("/proc/self/io").unwrap_or_default();
    let bytes = counters.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse().ok());
    bytes.map_or(f64::NAN, memory::mib)
}

/// Returns the most memory that this process had, in MiB.
pub(super) fn peak() -> f64 {
    memory::peak().map_or(f64::NAN, memory::mib)
}

/// Returns the memory that this process has, in MiB.
pub(super) fn held() -> f64 {
    memory::resident().map_or(f64::NAN, memory::mib)
}
