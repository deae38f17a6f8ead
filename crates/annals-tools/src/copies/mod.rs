//! Copies of a journal: the same frames, byte for byte, in other files. Two of them are one history if they have the
//! same chain.
//!
//! A `source` is read, while others may write it. A `target` is written by the rules of any journal, so that it is a
//! database at every moment. A `push` updates a target from its source, segment by segment, and refuses one that
//! `differs`. A `backup` is a push to a temporary name. `convert` compresses and unpacks. This folder moves frames
//! and never decodes their events.
#![deny(clippy::indexing_slicing)]

mod backup;
mod convert;
mod differs;
mod place;
mod push;
mod source;
mod target;

use annals::internals::Watch;
use annals::{Error, ErrorKind, Phase, Progress, Result};

pub use self::backup::{backup, backup_in};
pub use self::convert::{Converted, convert};
pub use self::push::{Copied, Push, push, push_in};
pub(crate) use self::source::Source;

/// Reports the progress of copying to a program, which may stop it.
#[derive(Debug)]
struct Meter {
    watch: Option<Watch>,
    done: u64,
    next: u64,
    total: u64,
}

/// How often it is reported, in bytes.
const STEP: u64 = 1 << 20;

impl Meter {
    const fn new(watch: Option<Watch>) -> Self {
        Self { watch, done: 0, next: 0, total: 0 }
    }

    /// Begins again, with `total` bytes to copy.
    const fn begin(&mut self, total: u64) {
        (self.done, self.next, self.total) = (0, 0, total);
    }

    /// Adds copied bytes; an error if the program wants to stop.
    fn add(&mut self, bytes: u64) -> Result<()> {
        self.done += bytes;
        let Some(watch) = self.watch.as_ref().filter(|_| self.done >= self.next) else {
            return Ok(());
        };
        self.next =
            if self.done < self.total { self.total.min(self.done + STEP) } else { u64::MAX };
        let done = self.done.min(self.total);
        let progress = Progress { phase: Phase::Copying, done, total: self.total };
        match watch.tell(progress).is_break() {
            true => Err(Error::new(ErrorKind::Cancelled, "the program stopped copying")),
            false => Ok(()),
        }
    }
}
