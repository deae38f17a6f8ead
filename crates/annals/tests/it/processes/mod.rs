//! Real processes, threads and file systems: killed writers, full and read-only places, names that
//! change, signals, and commits that share flushes.
//!
//! A child process is this binary again, with a job in its environment ([`child`]). What all write is a
//! [`ledger`], in which lost, doubled and half-applied transactions show. `ANNALS_TEST_EFFORT=full`
//! continues much longer.

mod child;
mod crowd;
mod failing;
mod followed;
#[cfg(target_os = "linux")]
mod full;
mod killed;
mod ledger;
#[cfg(target_os = "linux")]
mod limited;
#[cfg(target_os = "linux")]
mod mounted;
#[cfg(unix)]
mod names;
mod one_writer;
#[cfg(unix)]
mod permissions;
#[cfg(any(target_os = "linux", windows))]
mod pinned;
#[cfg(unix)]
mod removed;
#[cfg(unix)]
mod signals;
mod torn;
#[cfg(any(target_os = "linux", windows))]
mod turns;
mod work;
mod yielding;

/// Returns how much to do: so much by default, so much if there is time.
fn effort<T>(usual: T, full: T) -> T {
    let is_full = std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full");
    if is_full { full } else { usual }
}
