//! The resources that this process has used so far, as the operating system counts them.

use std::path::Path;
use std::time::Instant;

/// Everything at one moment.
pub(super) struct Reading {
    at: Instant,
    /// Nanoseconds of processor time, in the program and in the kernel for it, of all threads.
    cpu: Option<f64>,
    /// Flushes requested of the disk, by any process.
    flushes: Option<u64>,
}

/// The difference of two readings.
#[derive(Clone, Copy, Default)]
pub(super) struct Used {
    pub(super) nanoseconds: f64,
    pub(super) cpu: Option<f64>,
    pub(super) flushes: Option<u64>,
}

impl Reading {
    /// Reads all counters, the clock last. The disk is that of a folder.
    pub(super) fn begin(folder: &Path) -> Self {
        let (cpu, flushes) = (cpu(), flushes(folder));
        Self { at: now(), cpu, flushes }
    }

    /// Reads the clock, and then all counters.
    pub(super) fn end(&self, folder: &Path) -> Used {
        let nanoseconds = self.at.elapsed().as_secs_f64() * 1e9;
        let cpu = cpu().zip(self.cpu).map(|(after, before)| after - before);
        let flushes = flushes(folder).zip(self.flushes).map(|(after, before)| after - before);
        Used { nanoseconds, cpu, flushes }
    }
}

/// Returns the time.
pub(super) fn now() -> Instant {
    #[allow(clippy::disallowed_methods, reason = "a benchmark measures with the real clock")]
    Instant::now()
}

#[cfg(unix)]
fn cpu() -> Option<f64> {
    // SAFETY: `getrusage` writes the given struct, which may have any bytes before.
    #[allow(unsafe_code, reason = "the standard library doesn't tell processor time")]
    let usage = unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        (libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) == 0).then_some(usage)
    }?;
    #[allow(clippy::cast_precision_loss, reason = "times are far below 2^52")]
    let nanoseconds = |time: libc::timeval| time.tv_sec as f64 * 1e9 + time.tv_usec as f64 * 1e3;
    Some(nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime))
}

#[cfg(not(unix))]
fn cpu() -> Option<f64> {
    None
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

/// Resets the peak of memory. Where that can't be, it is that of the whole process.
pub(super) fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Returns the most memory that was resident at a time, mapped files included, in bytes.
pub(super) fn peak() -> Option<u64> {
    status("VmHWM:")
}

/// Returns the memory that is resident, in bytes.
pub(super) fn resident() -> Option<u64> {
    status("VmRSS:")
}

fn status(line: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kibibytes = status.lines().find_map(|text| text.strip_prefix(line))?;
    kibibytes.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kibibytes| kibibytes << 10)
}
