//! The bar that a person sees while a large file is read. Every command opens files through here.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use annals::{Options, Phase, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget};

use crate::files;

/// What takes less than this needs no bar.
const PATIENCE: Duration = Duration::from_millis(500);

/// Gives the default options, with a bar on standard error if that is a terminal.
pub(crate) fn options() -> Options {
    let bar = Bar::new();
    Options::new().on_progress(move |progress| {
        bar.show(progress);
        ControlFlow::Continue(())
    })
}

/// A bar that comes late, and goes when whatever it shows is done.
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
        if progress.phase != Phase::Reading {
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
        if progress.done >= progress.total {
            self.bar.finish_and_clear();
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
