//! The bar that a person sees while a large file is read. Every command opens files through here.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use annals::reports::BackfillProgress;
use annals::{Options, Phase, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget};

use crate::files;

/// The duration from which a progress bar is shown.
const PATIENCE: Duration = Duration::from_millis(500);

/// Set once a page of an image was found lost.
static VERIFIES: AtomicBool = AtomicBool::new(false);

/// Makes all databases that are opened from now on do without lost pages of their images.
pub(crate) fn verify_images() {
    VERIFIES.store(true, Ordering::Relaxed);
}

/// How much memory the program takes at most, in bytes, unless it is told otherwise.
const MOST_MEMORY: u64 = 256 << 20;

/// How much of it isn't for a database.
const OWN_MEMORY: u64 = 16 << 20;

/// The least memory for the pages of a database.
const LEAST_PAGES: u64 = 2 << 20;

/// How much memory the pages of a database may take, in bytes; 0: the library's default.
static PAGES: AtomicU64 = AtomicU64::new(pages_of(MOST_MEMORY));

/// Returns how much of some memory is for the pages of a database: changes may take half as much again.
const fn pages_of(memory: u64) -> u64 {
    let pages = memory.saturating_sub(OWN_MEMORY) / 3 * 2;
    if pages < LEAST_PAGES { LEAST_PAGES } else { pages }
}

/// Sets how much memory the program takes at most, in bytes.
pub(crate) fn limit_memory(bytes: u64) {
    PAGES.store(pages_of(bytes), Ordering::Relaxed);
}

/// Leaves the memory for the pages of a database to the library: the program is a server.
#[cfg(feature = "net")]
pub(crate) fn leave_memory() {
    PAGES.store(0, Ordering::Relaxed);
}

/// Returns the default options, with a bar on standard error if that is a terminal.
pub(crate) fn options() -> Options {
    let bar = Bar::new();
    let options = Options::new()
        .verify_image(VERIFIES.load(Ordering::Relaxed))
        .memory(PAGES.load(Ordering::Relaxed));
    options.on_progress(move |progress| {
        bar.show(progress);
        ControlFlow::Continue(())
    })
}

/// How much of an image is kept in memory where all rows are read once, in bytes.
const PASS: u64 = 16 << 20;

/// Returns the options for reading all rows once: memory doesn't grow with them, where there is an image.
pub(crate) fn options_for_a_pass() -> Options {
    options().memory(PASS)
}

/// Returns a progress bar for a backfill, on standard error if that is a terminal.
pub(crate) fn of_backfill() -> impl FnMut(BackfillProgress) -> ControlFlow<()> {
    let bar = Bar::new();
    bar.bar.set_message("writing pages");
    bar.bar.set_style(files::style("{msg} {wide_bar} {pos}/{len} {eta}"));
    move |BackfillProgress { done, total, .. }| {
        bar.show(Progress { phase: Phase::Reading, done, total });
        ControlFlow::Continue(())
    }
}

/// Rows that are written or read, shown on standard error if that is a terminal.
pub(crate) struct Rows {
    bar: Bar,
    done: u64,
    total: u64,
}

impl Rows {
    /// Shows how many of `total` rows are done.
    pub(crate) fn new(message: &'static str, total: u64) -> Self {
        let bar = Bar::new();
        bar.bar.set_message(message);
        bar.bar.set_style(files::style("{msg} {wide_bar} {pos}/{len} {eta}"));
        Self { bar, done: 0, total }
    }

    /// Counts a row.
    pub(crate) fn count(&mut self) {
        self.done += 1;
        if self.done.is_multiple_of(4096) {
            let Self { done, total, .. } = *self;
            self.bar.show(Progress { phase: Phase::Reading, done, total });
        }
    }
}

/// A bar that appears after a delay, and disappears at the end.
struct Bar {
    bar: ProgressBar,
    is_shown: Mutex<bool>,
}

impl Bar {
    fn new() -> Self {
        let bar = files::progress(0);
        bar.set_draw_target(ProgressDrawTarget::hidden());
        bar.set_message("reading");
        Self { bar, is_shown: Mutex::new(false) }
    }

    fn show(&self, progress: Progress) {
        if self.bar.is_finished() {
            return;
        }
        if progress.phase == Phase::ReadingAgain {
            // Then others write to the terminal.
            return self.bar.finish_and_clear();
        }
        let mut is_shown = self.is_shown.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_shown && self.bar.elapsed() > PATIENCE {
            *is_shown = true;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_length(progress.total);
        self.bar.set_position(progress.done);
        if progress.done >= progress.total && progress.total > 0 {
            self.bar.finish_and_clear();
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_changes_and_the_program_share_the_memory() {
        for memory in [32 << 20, MOST_MEMORY, 1 << 30] {
            let pages = pages_of(memory);
            let all = pages + pages / 2 + OWN_MEMORY;
            assert!(all <= memory && all > memory - 16, "{memory}: {pages}");
        }
        assert_eq!(pages_of(0), LEAST_PAGES);
    }
}
