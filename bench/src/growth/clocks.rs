//! What some work takes.

use std::time::Instant;

use crate::engines::Failure;
use crate::processor;

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
    let (start, before) = (Instant::now(), processor_time());
    let value = work()?;
    let wall = start.elapsed().as_secs_f64() * 1e9;
    let took = Took { wall, processor: processor_time() - before };
    Ok((took, value))
}

fn processor_time() -> f64 {
    processor::of_process().map_or(f64::NAN, |seconds| seconds * 1e9)
}
