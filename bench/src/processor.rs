//! The processor time, as the operating system reports it, in the program and in the kernel for it: seconds; `None` if it
//! doesn't.

use std::fs::read_to_string;

/// For this process, including all ended threads.
pub(crate) fn of_process() -> Option<f64> {
    #[cfg(unix)]
    return used(libc::RUSAGE_SELF);
    #[cfg(not(unix))]
    None
}

/// For all children of this process that ended, and for theirs.
pub(crate) fn of_children() -> Option<f64> {
    #[cfg(unix)]
    return used(libc::RUSAGE_CHILDREN);
    #[cfg(not(unix))]
    None
}

/// For this thread.
pub(crate) fn of_thread() -> Option<f64> {
    let text = read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split(' ').next()?.parse::<f64>().ok()? / 1e9)
}

#[cfg(unix)]
fn used(whose: libc::c_int) -> Option<f64> {
    // SAFETY: `getrusage` writes the given struct, which may have any bytes before.
    #[allow(unsafe_code, reason = "the standard library doesn't tell processor time")]
    let usage = unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        (libc::getrusage(whose, &raw mut usage) == 0).then_some(usage)
    }?;
    #[allow(clippy::cast_precision_loss, reason = "times are far below 2^52")]
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Some(seconds(usage.ru_utime) + seconds(usage.ru_stime))
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
