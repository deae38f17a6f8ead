//! The memory of this process, as the kernel reports it in `/proc`: bytes; `None` if it doesn't.

use std::fs::{read_to_string, write};

/// Resets the peak. Where that can't be, it is that since the process began.
pub(crate) fn forget_peak() {
    let _ = write("/proc/self/clear_refs", "5");
}

/// Returns the most memory that was resident at a time, mapped files included.
pub(crate) fn peak() -> Option<u64> {
    of("VmHWM:")
}

/// Returns the memory that is resident.
pub(crate) fn resident() -> Option<u64> {
    of("VmRSS:")
}

fn of(field: &str) -> Option<u64> {
    let status = read_to_string("/proc/self/status").ok()?;
    let kibibytes = status.lines().find_map(|line| line.strip_prefix(field))?;
    kibibytes.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kibibytes| kibibytes << 10)
}

/// Returns bytes in MiB.
#[allow(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
pub(crate) fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
