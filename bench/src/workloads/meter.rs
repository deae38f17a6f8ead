//! The resources that this process has used so far, as the operating system counts them.

use std::path::Path;
use std::time::Instant;

use crate::processor;

/// Everything at one moment.
pub(super) struct Reading {
    at: Instant,
    /// Seconds of processor time, of all threads.
    cpu: Option<f64>,
    /// Flushes requested of the disk, by any process.
    flushes: Option<u64>,
}

/// The difference of two readings.
#[derive(Clone, Copy, Default)]
pub(super) struct Used {
    pub(super) nanoseconds: f64,
    /// Nanoseconds of processor time.
    pub(super) cpu: Option<f64>,
    pub(super) flushes: Option<u64>,
}

impl Reading {
    /// Reads all counters, the clock last. The disk is that of a folder.
    pub(super) fn begin(folder: &Path) -> Self {
        let (cpu, flushes) = (processor::of_process(), flushes(folder));
        Self { at: now(), cpu, flushes }
    }

    /// Reads the clock, and then all counters.
    pub(super) fn end(&self, folder: &Path) -> Used {
        let nanoseconds = self.at.elapsed().as_secs_f64() * 1e9;
        let cpu = processor::of_process().zip(self.cpu);
        let cpu = cpu.map(|(after, before)| (after - before) * 1e9);
        let flushes = flushes(folder).zip(self.flushes).map(|(after, before)| after - before);
        Used { nanoseconds, cpu, flushes }
    }
}

/// Returns the time.
pub(super) fn now() -> Instant {
    #[allow(clippy::disallowed_methods, reason = "a benchmark measures with the real clock")]
    Instant::now()
}

/// Returns how many flushes the disk of a folder was asked for since the system began.
#[cfg(target_os = "linux")]
fn flushes(folder: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt as _;
    let device = std::fs::metadata(folder).ok()?.dev();
    let (major, minor) = (libc::major(device), libc::minor(device));
    let counters = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).ok()?;
    counters.split_whitespace().nth(15)?.parse().ok()
}

#[cfg(not(target_os = "linux"))]
fn flushes(_: &Path) -> Option<u64> {
    None
}
