//! Copies of a journal: the same frames, byte for byte, in other files, so that one number, the chain, tells
//! whether two of them are one history.
//!
//! A `source` is read, while others may write it; a `target` is written, by the rules of any journal, so that
//! it is a database at every moment; a `push` brings one up to the other, segment by segment, and refuses
//! what `differs`. A `backup` is a push to a name that nobody knows, and then its `names`. This room moves
//! frames and never looks at what the events in them say.
#![deny(clippy::indexing_slicing)]

mod backup;
mod convert;
mod differs;
mod names;
mod push;
mod source;
mod target;

pub(crate) use backup::backup;
pub use convert::Converted;
pub(crate) use convert::convert;
pub use names::Names;
pub use push::Copied;
pub(crate) use push::Pushing;
pub(crate) use source::{Source, like};

use crate::progress::{Phase, Progress, Watch};
use crate::{Error, ErrorKind, Result};

/// Tells a program how far copying has come, and lets it stop that.
#[derive(Debug)]
pub(crate) struct Meter {
    watch: Option<Watch>,
    done: u64,
    next: u64,
    pub(crate) total: u64,
}

/// How often it is told, in bytes.
const STEP: u64 = 1 << 20;

impl Meter {
    pub(crate) const fn new(watch: Option<Watch>) -> Self {
        Self { watch, done: 0, next: 0, total: 0 }
    }

    /// Begins anew, with so many bytes to come.
    pub(crate) const fn begin(&mut self, total: u64) {
        (self.done, self.next, self.total) = (0, 0, total);
    }

    /// Notes that so many bytes were copied; an error if the program wants to stop.
    pub(crate) fn add(&mut self, bytes: u64) -> Result<()> {
        self.done += bytes;
        let Some(watch) = self.watch.as_ref().filter(|_| self.done >= self.next) else {
            return Ok(());
        };
        self.next =
            if self.done < self.total { self.total.min(self.done + STEP) } else { u64::MAX };
        let done = self.done.min(self.total);
        match (watch.0)(Progress { phase: Phase::Copying, done, total: self.total }).is_break() {
            true => Err(Error::new(ErrorKind::Cancelled, "the program stopped copying")),
            false => Ok(()),
        }
    }
}
