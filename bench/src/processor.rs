//! The processor time, as the kernel reports it in `/proc`: seconds; `None` if it doesn't.

use std::fs::read_to_string;

/// The times are in hundredths of a second on every machine (`USER_HZ`).
const TICKS: f64 = 100.0;

/// For this process, including all ended threads.
pub(crate) fn of_process() -> Option<f64> {
    ticks([11, 12])
}

/// For all children of this process that ended, and for theirs.
pub(crate) fn of_children() -> Option<f64> {
    ticks([13, 14])
}

/// For this thread.
pub(crate) fn of_thread() -> Option<f64> {
    let text = read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split(' ').next()?.parse::<f64>().ok()? / 1e9)
}

/// Returns the sum of two of the fields after the program's name, which may have spaces itself.
fn ticks(fields: [usize; 2]) -> Option<f64> {
    let stat = read_to_string("/proc/self/stat").ok()?;
    let (_, behind) = stat.rsplit_once(") ")?;
    let tick = |field: usize| behind.split(' ').nth(field)?.parse::<f64>().ok();
    Some((tick(fields[0])? + tick(fields[1])?) / TICKS)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn work_takes_time() {
        let before = (of_process().unwrap(), of_thread().unwrap());
        let mut sum = 0u64;
        while of_process().unwrap() - before.0 < 0.05 {
            sum = (0..1_000_000u64).fold(sum, |sum, number| std::hint::black_box(sum ^ number));
        }
        assert!(sum < u64::MAX && of_thread().unwrap() > before.1);
        assert!(of_children().is_some());
    }
}
